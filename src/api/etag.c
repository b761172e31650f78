/* SPDX-License-Identifier: ISC */
#include "api/etag.h"

#include <stdio.h>
#include <string.h>

#include "core/arena.h"
#include "crypto/crypto.h"

#define HASH_LEN 16 /* hex digits of the hash that a tag carries */

struct tag {
	const char *text; /* between the quotes */
	size_t len;
	bool weak;
};

const char *
etag_make(struct arena *a, int64_t version, const struct buf *body)
{
	char hash[CRYPTO_HASH_HEX];

	crypto_sha256(body->data == NULL ? "" : body->data, body->len, hash);
	return arena_printf(a, "%lld-%.*s", (long long)version, HASH_LEN, hash);
}

/* The next tag of a list; false at its end, and `*bad` if it is no list. */
static bool
tag_next(const char **s, struct tag *out, bool *bad)
{
	const char *p = *s + strspn(*s, " \t,");
	const char *end;

	*bad = false;
	out->text = "";
	out->len = 0;
	if (*p == '\0')
		return false;
	if ((out->weak = strncmp(p, "W/", 2) == 0))
		p += 2;
	if (*p != '"' || (end = strchr(p + 1, '"')) == NULL ||
	    (end[1] != '\0' && strchr(" \t,", end[1]) == NULL)) {
		*bad = true;
		return false;
	}
	out->text = p + 1;
	out->len = (size_t)(end - p - 1);
	*s = end + 1;
	return true;
}

static bool
is_star(const char *header)
{
	const char *p = header + strspn(header, " \t");

	return *p == '*' && p[1 + strspn(p + 1, " \t")] == '\0';
}

bool
etag_listed(const char *header, const char *etag)
{
	struct tag tag;
	bool bad;

	if (is_star(header))
		return true;
	while (tag_next(&header, &tag, &bad))
		if (tag.len == strlen(etag) &&
		    memcmp(tag.text, etag, tag.len) == 0)
			return true;
	return false;
}

/* How weak tags compare (RFC 9110, section 8.8.3.2). */
enum compare { STRONG, WEAK };

/* Whether a tag of that version is among them. */
static bool
version_listed(const char *header, int64_t version, enum compare how, bool *bad)
{
	char want[32];
	struct tag tag;
	size_t len;
	bool found = false;

	(void)snprintf(want, sizeof(want), "%lld-", (long long)version);
	len = strlen(want);
	while (tag_next(&header, &tag, bad))
		if ((how == WEAK || !tag.weak) && tag.len == len + HASH_LEN &&
		    memcmp(tag.text, want, len) == 0)
			found = true;
	return found;
}

const struct err *
etag_guard(const char *header, int64_t version)
{
	bool bad, found;

	if (is_star(header))
		return NULL;
	found = version_listed(header, version, STRONG, &bad);
	if (bad)
		return err_tell(ERR_BAD_REQUEST,
		    "If-Match must be * or a list of quoted entity tags.");
	if (!found)
		return err_tell(ERR_PRECONDITION,
		    "The resource has changed since it was read; read it "
		    "again and repeat the change on what you find.");
	return NULL;
}

const struct err *
etag_exclude(const char *header, int64_t version)
{
	bool bad;

	if (!is_star(header) && !version_listed(header, version, WEAK, &bad))
		return NULL;
	return err_tell(ERR_PRECONDITION,
	    "The resource is as If-None-Match says that it must not be.");
}
