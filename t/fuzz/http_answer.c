/* SPDX-License-Identifier: ISC */
/* The headers of a response: the first line is the URL of the request, the
 * second that of a redirect, the rest are the headers. */
#include <string.h>

#include "core/str.h"
#include "fuzz.h"
#include "http/inner.h"

static void
headers_hold(struct arena *a, const struct http_response *r)
{
	const struct http_header *h = r->headers.items;
	const char *type;
	size_t i;

	for (i = 0; i < r->headers.n; i++) {
		MUST(header_name_fit(h[i].name));
		MUST(!str_has_control(h[i].value));
		MUST(http_header(r, h[i].name) != NULL);
	}
	type = header_media_type(a, http_header(r, "content-type"));
	MUST(type == NULL || (*type != '\0' && strpbrk(type, "; \t") == NULL));
	MUST(http_retry_after(r) >= -1 && http_retry_after(r) <= 3600);
}

/* No response leads to another server. */
static void
leads_home(struct arena *a, const struct http_response *r)
{
	static const char *const rels[] = { "next", "last", "prev" };
	const char *origin = http_origin(a, r->url), *link;
	size_t i;

	if (origin == NULL)
		return;
	MUST(url_fit(r->url));
	for (i = 0; i < sizeof(rels) / sizeof(rels[0]); i++)
		if ((link = http_link(a, r, rels[i])) != NULL)
			MUST(str_eq(http_origin(a, link), origin));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct arena *a = arena_open((size_t)8 << 20);
	char *text = arena_strndup(a, (const char *)data, len), *to;
	struct http_response r = { .status = 200, .url = text };
	const char *there;
	struct buf lines;

	to = text + strcspn(text, "\n");
	if (*to != '\0')
		*to++ = '\0';
	text = to + strcspn(to, "\n");
	if (*text != '\0')
		*text++ = '\0';
	buf_init(&lines, HTTP_HEAD_MAX);
	buf_puts(&lines, text);
	header_list(a, &lines, &r.headers);
	headers_hold(a, &r);
	leads_home(a, &r);
	there = url_resolve(a, r.url, to);
	MUST(there == NULL || url_fit(there));
	MUST(!str_has_control(http_escape(a, to)));
	buf_release(&lines);
	arena_close(a);
	return 0;
}
