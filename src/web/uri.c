/* SPDX-License-Identifier: ISC */
#include "web/uri.h"

#include <ctype.h>
#include <string.h>

#include "core/arena.h"
#include "core/str.h"
#include "core/utf8.h"

static int
hex_value(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at;

	if (c == '\0' || (at = strchr(digits, c | 0x20)) == NULL)
		return -1;
	if (c < '0' || (c > '9' && !isalpha((unsigned char)c)))
		return -1;
	return (int)(at - digits);
}

/* Decodes s up to `len`; NULL if it is malformed or contains control bytes. */
static const char *
text_decode(struct arena *a, const char *s, size_t len, const char *blank)
{
	char *out = arena_alloc(a, len + 1, 1);
	char *to = out;
	int high, low;
	size_t i;

	for (i = 0; i < len; i++) {
		if (s[i] == '%') {
			high = i + 2 < len ? hex_value(s[i + 1]) : -1;
			low = high < 0 ? -1 : hex_value(s[i + 2]);
			if (low < 0)
				return NULL;
			*to = (char)(high * 16 + low);
			if (*to == '\0')
				return NULL;
			to++;
			i += 2;
		} else {
			*to++ = strchr(blank, s[i]) != NULL ? ' ' : s[i];
		}
	}
	*to = '\0';
	if (str_has_control(out) || !utf8_valid(out, (size_t)(to - out)))
		return NULL;
	return out;
}

/* Whether the path has only one interpretation. */
static bool
path_plain(const char *raw, size_t rawlen, const char *path)
{
	const char *p;
	size_t i, len;

	for (i = 0; i + 2 < rawlen; i++)
		if (raw[i] == '%' && raw[i + 1] == '2' &&
		    (raw[i + 2] | 0x20) == 'f')
			return false;
	if (path[0] != '/' || strpbrk(path, ";\\") != NULL)
		return false;
	for (p = path; *p != '\0'; p += len) {
		len = strcspn(++p, "/");
		if (len == 0 && *p != '\0')
			return false;
		if ((len == 1 && p[0] == '.') ||
		    (len == 2 && p[0] == '.' && p[1] == '.'))
			return false;
	}
	return true;
}

static const struct err *
query_parse(struct arena *a, const char *query, struct uri *out)
{
	const char *name, *value;
	size_t len, eq;

	for (; *query != '\0'; query += len + (query[len] == '&')) {
		if ((len = strcspn(query, "&")) == 0)
			continue;
		eq = strcspn(query, "=&");
		name = text_decode(a, query, eq, "+");
		value = text_decode(a, query + eq + (eq < len),
		    len - eq - (eq < len), "+");
		if (name == NULL || value == NULL)
			return err_public(ERR_BAD_REQUEST,
			    "The query must be percent-encoded UTF-8 without "
			    "control characters.");
		if (uri_pair_find(out->pair, name) != NULL)
			return err_public(ERR_BAD_REQUEST,
			    "The query parameter \"%s\" is repeated.", name);
		if (out->pairs + 1 >= URI_PAIRS)
			return err_public(ERR_BAD_REQUEST,
			    "The query has too many parameters.");
		out->pair[out->pairs].name = name;
		out->pair[out->pairs].value = value;
		out->pairs++;
	}
	return NULL;
}

const struct err *
uri_parse(struct arena *a, const char *target, struct uri *out)
{
	size_t len = strcspn(target, "?");

	(void)memset(out, 0, sizeof(*out));
	out->path = "";
	if (strlen(target) > URI_MAX)
		return err_public(ERR_BAD_REQUEST,
		    "The URL is longer than %d bytes.", URI_MAX);
	out->path = text_decode(a, target, len, "");
	if (out->path == NULL || strchr(target, '#') != NULL ||
	    !path_plain(target, len, out->path)) {
		out->path = "";
		return err_public(ERR_BAD_REQUEST,
		    "The path must be percent-encoded UTF-8 without empty "
		    "segments, \".\", \"..\", \";\", \"\\\" and encoded "
		    "slashes.");
	}
	if (target[len] == '?')
		return query_parse(a, target + len + 1, out);
	return NULL;
}

static void
text_encode(struct buf *b, const char *text, const char *also)
{
	for (; *text != '\0'; text++) {
		if (isalnum((unsigned char)*text) ||
		    strchr("-._~", *text) != NULL ||
		    strchr(also, *text) != NULL)
			buf_putc(b, *text);
		else
			buf_printf(b, "%%%02X", (unsigned char)*text);
	}
}

void
uri_encode(struct buf *b, const char *text)
{
	text_encode(b, text, "");
}

void
uri_encode_path(struct buf *b, const char *path)
{
	text_encode(b, path, "/");
}

const struct uri_pair *
uri_pair_find(const struct uri_pair *p, const char *name)
{
	for (; p->name != NULL; p++)
		if (strcmp(p->name, name) == 0)
			return p;
	return NULL;
}
