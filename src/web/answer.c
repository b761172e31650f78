/* SPDX-License-Identifier: ISC */
#include "web/answer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/log.h"
#include "core/str.h"
#include "web/etag.h"
#include "web/uri.h"

/* Up to three URLs, each with a filter of 255 characters of four bytes. */
#define HEADER_MAX ((size_t)12 * 1024)
#define HEADER_BRIEF 512 /* most are shorter */

void
answer_init(struct answer *an)
{
	(void)memset(an, 0, sizeof(*an));
	buf_init(&an->body, ANSWER_MAX);
}

void
answer_release(struct answer *an)
{
	buf_release(&an->body);
}

void
answer_reset(struct answer *an)
{
	buf_clear(&an->body);
	an->source = NULL;
	an->start = an->length = 0;
	an->status = 0;
	an->type = NULL;
	an->etag = NULL;
	an->max_age = 0;
	an->is_elsewhere = false;
	an->headers = 0;
}

void
answer_status(struct req *rq, int status)
{
	rq->answer.status = status;
}

void
answer_header(struct req *rq, const char *name, const char *fmt, ...)
{
	struct answer *an = &rq->answer;
	char brief[HEADER_BRIEF], *value = brief;
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(brief, sizeof(brief), fmt, ap);
	va_end(ap);
	if (len >= HEADER_BRIEF && (size_t)len < HEADER_MAX) {
		value = arena_alloc(rq->a, (size_t)len + 1, 1);
		va_start(ap, fmt);
		(void)vsnprintf(value, (size_t)len + 1, fmt, ap);
		va_end(ap);
	}
	if (len < 0 || (size_t)len >= HEADER_MAX || str_has_control(value) ||
	    an->headers >= REQ_HEADERS) {
		log_error("%s: header %s left out", rq->request_id, name);
		return;
	}
	an->header[an->headers].name = name;
	an->header[an->headers].value = value == brief ?
	    arena_strdup(rq->a, brief) :
	    value;
	an->headers++;
}

void
answer_location(struct req *rq, const char *fmt, ...)
{
	char value[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(value, sizeof(value), fmt, ap);
	va_end(ap);
	answer_header(rq, "Location", "%s", value);
}

void
answer_item(struct req *rq, const struct shape *shape, const void *item,
    int64_t version)
{
	struct answer *an = &rq->answer;

	const struct field *id = field_find(shape->fields, "id");
	const struct etag_key key = { .kind = shape->name,
		.id = id != NULL && id->type == F_INT ?
		    *(const int64_t *)field_of(item, id) :
		    rq->id[0], /* the one that the path names */
		.version = version };

	buf_clear(&an->body);
	json_write(&an->body, shape, item, FIELD_DETAIL);
	an->etag = etag_make(rq->a, &key, &an->body);
}

void
answer_json(struct req *rq, const char *text, size_t len, int64_t version)
{
	const struct etag_key key = { .kind = "", .version = version };
	struct answer *an = &rq->answer;

	buf_clear(&an->body);
	buf_add(&an->body, text, len);
	if (version >= 0)
		an->etag = etag_make(rq->a, &key, &an->body);
}

void
answer_tag(struct req *rq)
{
	const struct etag_key key = { .kind = "" };

	rq->answer.etag = etag_make(rq->a, &key, &rq->answer.body);
}

void
answer_bytes(struct req *rq, const char *type, const void *data, size_t len)
{
	struct answer *an = &rq->answer;

	buf_clear(&an->body);
	buf_add(&an->body, data, len);
	an->type = type;
}

void
answer_stream(struct req *rq, const char *type, req_source *source,
    int64_t start, int64_t length)
{
	struct answer *an = &rq->answer;

	buf_clear(&an->body);
	an->type = type;
	an->source = source;
	an->start = start;
	an->length = length;
}

/* Writes this list's URL with the given query parameters added or replaced.
 * Values are text because a cursor is a string. */
static void
link_add(struct req *rq, struct buf *out, const char *rel,
    const struct uri_pair *put)
{
	size_t i;
	const char *sep = "?";

	buf_printf(out, "%s<", out->len > 0 ? ", " : "");
	uri_encode_path(out, rq->path);
	for (i = 0; i < rq->pairs; i++) {
		if (uri_pair_find(put, rq->pair[i].name) != NULL)
			continue;
		buf_puts(out, sep);
		uri_encode(out, rq->pair[i].name);
		buf_putc(out, '=');
		uri_encode(out, rq->pair[i].value);
		sep = "&";
	}
	for (; put->name != NULL; put++) {
		if (put->value == NULL)
			continue;
		buf_printf(out, "%s%s=", sep, put->name);
		uri_encode(out, put->value);
		sep = "&";
	}
	buf_printf(out, ">; rel=\"%s\"", rel);
}

static void
link_page(struct req *rq, struct buf *out, const char *rel, int64_t page,
    int64_t limit)
{
	const struct uri_pair put[] = {
		{ "page", arena_printf(rq->a, "%lld", (long long)page) },
		{ "limit", arena_printf(rq->a, "%lld", (long long)limit) },
		{ NULL, NULL },
	};

	link_add(rq, out, rel, put);
}

static void
link_send(struct req *rq, struct buf *link)
{
	if (link->len > 0 && !link->overflow)
		answer_header(rq, "Link", "%s", link->data);
	buf_release(link);
}

static void
list_body(struct req *rq, const struct shape *shape, const struct list *list)
{
	struct buf *body = &rq->answer.body;

	buf_clear(body);
	buf_puts(body, "{\"data\":");
	json_write_list(body, shape, list, 0);
	buf_puts(body, ",\"pagination\":");
}

void
answer_page_headers(struct req *rq, const struct page *p)
{
	int64_t pages = page_last(p);
	struct buf link;

	buf_init(&link, HEADER_MAX);
	if (pages > 0)
		link_page(rq, &link, "first", 1, p->limit);
	if (p->page > 1 && pages > 0)
		link_page(rq, &link, "prev",
		    p->page - 1 < pages ? p->page - 1 : pages, p->limit);
	if (p->page < pages)
		link_page(rq, &link, "next", p->page + 1, p->limit);
	if (pages > 0)
		link_page(rq, &link, "last", pages, p->limit);
	link_send(rq, &link);
	answer_header(rq, "X-Total-Count", "%lld", (long long)p->total);
}

void
answer_more(struct req *rq, const struct shape *shape, const struct list *list,
    const struct page_part *p)
{
	struct buf link;

	list_body(rq, shape, list);
	buf_printf(&rq->answer.body,
	    "{\"page\":%lld,\"limit\":%lld,\"hasMore\":%s}}",
	    (long long)p->page, (long long)p->limit,
	    p->has_more ? "true" : "false");
	buf_init(&link, HEADER_MAX);
	link_page(rq, &link, "first", 1, p->limit);
	if (p->page > 1)
		link_page(rq, &link, "prev", p->page - 1, p->limit);
	if (p->has_more)
		link_page(rq, &link, "next", p->page + 1, p->limit);
	link_send(rq, &link);
}

void
answer_cursor(struct req *rq, const struct shape *shape,
    const struct list *list, int64_t limit, int64_t next)
{
	const char *size = arena_printf(rq->a, "%lld", (long long)limit);
	const struct uri_pair first[] = {
		{ "limit", size },
		{ "cursor", NULL },
		{ NULL, NULL },
	};
	const struct uri_pair after[] = {
		{ "limit", size },
		{ "cursor", arena_printf(rq->a, "%lld", (long long)next) },
		{ NULL, NULL },
	};
	struct buf link;

	list_body(rq, shape, list);
	buf_printf(&rq->answer.body,
	    "{\"limit\":%lld,\"next\":", (long long)limit);
	if (next > 0)
		buf_printf(&rq->answer.body, "\"%lld\"}}", (long long)next);
	else
		buf_puts(&rq->answer.body, "null}}");
	buf_init(&link, HEADER_MAX);
	link_add(rq, &link, "first", first);
	if (next > 0)
		link_add(rq, &link, "next", after);
	link_send(rq, &link);
}
