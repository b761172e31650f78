/* SPDX-License-Identifier: ISC */
#include "web/etag.h"

#include <stdio.h>
#include <string.h>

#include "core/arena.h"
#include "crypto/crypto.h"

#define HASH_LEN 16 /* hex digits of the body's hash in a tag */
#define CHECKSUM_LEN 8

struct tag {
	const char *text; /* without the quotes */
	size_t len;
	bool weak;
};

/* The checksum of a tag with that hash of a body. It needs no key: a client that
 * forges a tag harms only itself. Hosts with other releases accept the tag,
 * however they make the hash. */
static void
checksum_of(const struct etag_key *key, const char *hash,
    char out[CRYPTO_HASH_HEX])
{
	char text[128];

	(void)snprintf(text, sizeof(text), "%.32s %lld %lld %.*s", key->kind,
	    (long long)key->id, (long long)key->version, HASH_LEN, hash);
	crypto_sha256(text, strlen(text), out);
}

const char *
etag_make(struct arena *a, const struct etag_key *key, const struct buf *body)
{
	char hash[CRYPTO_DIGEST_HEX], checksum[CRYPTO_HASH_HEX];

	crypto_digest(body->data == NULL ? "" : body->data, body->len, hash);
	if (key->version == 0)
		return arena_printf(a, "0-%.*s", HASH_LEN + CHECKSUM_LEN, hash);
	checksum_of(key, hash, checksum);
	return arena_printf(a, "%lld-%.*s%.*s", (long long)key->version,
	    HASH_LEN, hash, CHECKSUM_LEN, checksum);
}

/* Parses the next tag of a list. False at the end; sets `*bad` if the list is
 * malformed. */
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
	*bad = true;
	if (*p != '"')
		return false;
	for (end = p + 1; *end != '"'; end++)
		if ((unsigned char)*end <= ' ' || *end == 0x7f)
			return false;
	out->text = p + 1;
	out->len = (size_t)(end - p - 1);
	end += 1 + strspn(end + 1, " \t");
	if (*end != '\0' && *end != ',')
		return false;
	*bad = false;
	*s = end;
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

/* For the comparison of weak tags see RFC 9110, section 8.8.3.2. */
enum compare { STRONG, WEAK };

static bool
is_issued(const struct tag *tag, const struct etag_key *key)
{
	char want[32], checksum[CRYPTO_HASH_HEX];
	const char *hash;
	size_t len;

	(void)snprintf(want, sizeof(want), "%lld-", (long long)key->version);
	len = strlen(want);
	if (tag->len != len + HASH_LEN + CHECKSUM_LEN ||
	    memcmp(tag->text, want, len) != 0)
		return false;
	hash = tag->text + len;
	checksum_of(key, hash, checksum);
	return memcmp(hash + HASH_LEN, checksum, CHECKSUM_LEN) == 0;
}

/* Whether the list contains a tag of that version. */
static bool
version_listed(const char *header, const struct etag_key *key, enum compare how,
    bool *bad)
{
	struct tag tag;
	bool found = false;

	while (tag_next(&header, &tag, bad))
		if ((how == WEAK || !tag.weak) && is_issued(&tag, key))
			found = true;
	return found;
}

static const struct err *
etag_reject(void)
{
	return err_public(ERR_BAD_REQUEST,
	    "If-Match must be * or a list of quoted entity tags.");
}

const struct err *
etag_require(const char *header, const char *etag)
{
	struct tag tag;
	bool bad, found = false;

	if (is_star(header))
		return NULL;
	while (tag_next(&header, &tag, &bad))
		if (!tag.weak && etag != NULL && tag.len == strlen(etag) &&
		    memcmp(tag.text, etag, tag.len) == 0)
			found = true;
	if (bad)
		return etag_reject();
	if (!found && etag == NULL)
		return err_public(ERR_PRECONDITION,
		    "This resource has no entity tag. Repeat the request "
		    "without If-Match.");
	if (!found)
		return err_public(ERR_PRECONDITION,
		    "The resource has none of the entity tags in If-Match. "
		    "Read it again without If-Match.");
	return NULL;
}

const struct err *
etag_guard(const char *header, const struct etag_key *key)
{
	bool bad, found;

	if (is_star(header))
		return NULL;
	found = version_listed(header, key, STRONG, &bad);
	if (bad)
		return etag_reject();
	if (!found)
		return err_public(ERR_PRECONDITION,
		    "The resource has changed since it was read. Read it again "
		    "and repeat the change.");
	return NULL;
}

const struct err *
etag_exclude(const char *header, const struct etag_key *key)
{
	bool bad;

	if (!is_star(header) && !version_listed(header, key, WEAK, &bad))
		return NULL;
	return err_public(ERR_PRECONDITION,
	    "The resource has an entity tag that If-None-Match excludes.");
}
