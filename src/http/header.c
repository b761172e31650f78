/* SPDX-License-Identifier: ISC */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include <curl/curl.h>

#include "core/num.h"
#include "core/str.h"
#include "http/inner.h"

#define RETRY_MAX 3600
#define BLANKS " \t"
#define HEADERS_MAX 256 /* of one response; others are left out */

/* The three date forms of RFC 9110 5.6.7. */
#define DAY "(Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
#define CLOCK "[0-2][0-9]:[0-5][0-9]:[0-6][0-9]"
#define DATE                                                                   \
	DAY ", [0-9]{2} [A-Z][a-z]{2} [0-9]{4} " CLOCK " GMT|"                 \
	    "[A-Z][a-z]+day, [0-9]{2}-[A-Z][a-z]{2}-[0-9]{2} " CLOCK           \
	    " GMT|" DAY " [A-Z][a-z]{2} [ 0-9][0-9] " CLOCK " [0-9]{4}"

bool
header_name_fit(const char *name)
{
	const char *p;

	for (p = name; *p != '\0'; p++) {
		unsigned char c = (unsigned char)*p;

		if (c >= 0x80 ||
		    (!isalnum(c) && strchr("!#$%&'*+-.^_`|~", c) == NULL))
			return false;
	}
	return p > name;
}

static char *
lower(struct arena *a, const char *text, size_t len)
{
	char *copy = arena_strndup(a, text, len);
	char *p;

	for (p = copy; *p != '\0'; p++)
		*p = (char)tolower((unsigned char)*p);
	return copy;
}

/* Reads one line up to its end; false if it is not a header. */
static bool
line_read(struct arena *a, const char *line, size_t len,
    struct http_header *out)
{
	const char *colon, *value;

	while (len > 0 && strchr(" \t\r\n", line[len - 1]) != NULL)
		len--;
	if ((colon = memchr(line, ':', len)) == NULL)
		return false;
	out->name = lower(a, line, (size_t)(colon - line));
	value = arena_strndup(a, colon + 1, len - (size_t)(colon - line) - 1);
	out->value = value + strspn(value, BLANKS);
	return header_name_fit(out->name) && !str_has_control(out->value);
}

void
header_list(struct arena *a, const struct buf *lines, struct list *out)
{
	struct http_header *items;
	const char *p = lines->data, *end;
	size_t n = 0;

	out->items = NULL;
	out->n = 0;
	if (p == NULL)
		return;
	items = arena_alloc(a, HEADERS_MAX, sizeof(*items));
	for (; n < HEADERS_MAX && (end = strchr(p, '\n')) != NULL; p = end + 1)
		if (line_read(a, p, (size_t)(end - p), &items[n]))
			n++;
	out->items = items;
	out->n = n;
}

const char *
header_media_type(struct arena *a, const char *value)
{
	size_t len;

	if (value == NULL)
		return NULL;
	len = strcspn(value, "; \t");
	return len == 0 ? NULL : lower(a, value, len);
}

const char *
http_header(const struct http_response *r, const char *name)
{
	const struct http_header *items = r->headers.items;
	size_t i;

	for (i = 0; i < r->headers.n; i++)
		if (strcmp(items[i].name, name) == 0)
			return items[i].value;
	return NULL;
}

int64_t
http_retry_after(const struct http_response *r)
{
	const char *value = http_header(r, "retry-after");
	int64_t wait;
	time_t at;

	if (value == NULL || *value == '\0')
		return -1;
	if (value[strspn(value, "0123456789")] == '\0') {
		value += strspn(value, "0");
		if (*value == '\0')
			return 0;
		return num_parse(value, 0, RETRY_MAX, &wait) ? wait : RETRY_MAX;
	}
	if (!str_matches(value, DATE) ||
	    (at = curl_getdate(value, NULL)) == (time_t)-1)
		return -1;
	wait = (int64_t)at - time_now_ms() / 1000;
	return wait < 0 ? 0 : wait > RETRY_MAX ? RETRY_MAX : wait;
}

int64_t
http_date(const struct http_response *r)
{
	const char *value = http_header(r, "date");
	time_t at;

	if (value == NULL || !str_matches(value, DATE) ||
	    (at = curl_getdate(value, NULL)) == (time_t)-1)
		return 0;
	return (int64_t)at * 1000;
}

/* Whether one of the words is `rel`, ignoring case. */
static bool
has_word(const char *words, size_t len, const char *rel)
{
	size_t at = 0, n, want = strlen(rel);

	while (at < len) {
		for (n = 0; at + n < len && words[at + n] != ' '; n++)
			;
		if (n == want && strncasecmp(words + at, rel, n) == 0)
			return true;
		at += n + 1;
	}
	return false;
}

/* Reads the parameters of one link from *p on and advances *p past them.
 * Returns whether rel= contains that word.  Only the first rel counts (RFC 8288
 * 3.3). */
static bool
params_match(const char **p, const char *rel)
{
	const char *name, *value;
	size_t name_len, len;
	bool seen = false, yes = false;

	while (*(*p += strspn(*p, BLANKS)) == ';') {
		name = *p + 1 + strspn(*p + 1, BLANKS);
		name_len = strcspn(name, "=;, \t");
		*p = name + name_len;
		*p += strspn(*p, BLANKS);
		value = *p;
		len = 0;
		if (**p == '=') {
			value = *p + 1 + strspn(*p + 1, BLANKS);
			if (*value == '"') {
				len = strcspn(++value, "\"");
				*p = value + len + (value[len] == '"');
			} else {
				len = strcspn(value, ";, \t");
				*p = value + len;
			}
		}
		if (name_len != 3 || strncasecmp(name, "rel", 3) != 0 || seen)
			continue;
		seen = true;
		yes = has_word(value, len, rel);
	}
	return yes;
}

/* The target of the first link with that relation in one header. */
static const char *
link_find(struct arena *a, const char *p, const char *rel)
{
	const char *target, *end;

	for (;;) {
		p += strspn(p, BLANKS ",");
		if (*p != '<' || (end = strchr(p, '>')) == NULL)
			return NULL;
		target = arena_strndup(a, p + 1, (size_t)(end - p) - 1);
		p = end + 1;
		if (params_match(&p, rel))
			return target;
		if (*p != ',')
			return NULL;
	}
}

/* The server may use another name for itself than the requested one; then only
 * the query of the target is used. */
const char *
http_link(struct arena *a, const struct http_response *r, const char *rel)
{
	const struct http_header *items = r->headers.items;
	const char *target = NULL, *origin, *query;
	size_t i;

	for (i = 0; target == NULL && i < r->headers.n; i++)
		if (strcmp(items[i].name, "link") == 0)
			target = link_find(a, items[i].value, rel);
	if (target == NULL ||
	    (target = url_resolve(a, r->url, target)) == NULL ||
	    (origin = http_origin(a, target)) == NULL)
		return NULL;
	if (str_eq(origin, http_origin(a, r->url)))
		return target;
	if ((query = strchr(target, '?')) == NULL)
		return NULL;
	return arena_printf(a, "%.*s%s", (int)strcspn(r->url, "?#"), r->url,
	    query);
}
