/* SPDX-License-Identifier: ISC */
/* The target of a request line, and the entity tags of a condition: the first
 * line is the target, the rest is an If-Match. */
#include <string.h>

#include "core/str.h"
#include "core/utf8.h"
#include "fuzz.h"
#include "web/etag.h"
#include "web/uri.h"

/* An accepted path has one reading, and is returned unchanged. */
static void
again(struct arena *a, const struct uri *uri)
{
	struct uri twin;
	struct buf b;
	size_t i;

	MUST(uri->path[0] == '/' && strstr(uri->path, "//") == NULL);
	MUST(strstr(uri->path, "/../") == NULL && !str_ends(uri->path, "/.."));
	MUST(utf8_valid(uri->path, strlen(uri->path)));
	MUST(!str_has_control(uri->path));
	MUST(uri->pairs < URI_PAIRS && uri->pair[uri->pairs].name == NULL);
	buf_init(&b, (size_t)64 * 1024);
	uri_encode_path(&b, uri->path);
	for (i = 0; i < uri->pairs; i++) {
		buf_putc(&b, i == 0 ? '?' : '&');
		uri_encode(&b, uri->pair[i].name);
		buf_putc(&b, '=');
		uri_encode(&b, uri->pair[i].value);
	}
	if (b.len <= URI_MAX) {
		MUST(uri_parse(a, b.data, &twin) == NULL);
		MUST(str_eq(twin.path, uri->path) && twin.pairs == uri->pairs);
		for (i = 0; i < uri->pairs; i++)
			MUST(str_eq(twin.pair[i].name, uri->pair[i].name) &&
			    str_eq(twin.pair[i].value, uri->pair[i].value));
	}
	buf_release(&b);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct arena *a = arena_open((size_t)1 << 20);
	char *target = arena_strndup(a, (const char *)data, len), *tags;
	const struct err *e;
	struct uri uri;

	tags = target + strcspn(target, "\n");
	if (*tags != '\0')
		*tags++ = '\0';
	e = uri_parse(a, target, &uri);
	MUST(e == NULL || e->code == ERR_BAD_REQUEST);
	if (e == NULL)
		again(a, &uri);
	(void)etag_listed(tags, "7-0123456789abcdef");
	e = etag_require(tags, "7-0123456789abcdef");
	MUST(e == NULL || e->code == ERR_BAD_REQUEST ||
	    e->code == ERR_PRECONDITION);
	e = etag_guard(tags,
	    &(struct etag_key){ .kind = "Project", .id = 1, .version = 7 });
	MUST(e == NULL || e->code == ERR_BAD_REQUEST ||
	    e->code == ERR_PRECONDITION);
	arena_close(a);
	return 0;
}
