/* SPDX-License-Identifier: ISC */
#include <assert.h>
#include <string.h>

#include "core/str.h"
#include "core/utf8.h"
#include "json/inner.h"

#define NAME_MAX_LEN ((size_t)64) /* of a member of a struct */

/* Selects the members to write. */
struct choice {
	unsigned want;   /* FIELD_OUT or FIELD_IN */
	unsigned detail; /* FIELD_DETAIL or 0 */
	unsigned skip;   /* FIELD_ONCE or 0 */
};

static void item_write(struct buf *, const struct shape *, const void *item,
    const struct choice *);

/* Returns the byte of the JSON name for the name's byte at *at; advances
 * *at. */
static char
camel_next(const char **at)
{
	char c = *(*at)++;

	if (c != '_' || **at == '\0')
		return c;
	c = *(*at)++;
	return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

bool
json_is_name(const struct field *f, const char *name)
{
	const char *own = f->name;

	if (f->outside != NULL)
		return strcmp(f->outside, name) == 0;
	while (*own != '\0')
		if (*name == '\0' || *name++ != camel_next(&own))
			return false;
	return *name == '\0';
}

const char *
json_name(struct arena *a, const struct field *f)
{
	return f->outside != NULL ? f->outside : str_camel(a, f->name);
}

/* Writes the name in quotes to `out`; returns its length. */
static size_t
name_make(const struct field *f, char out[NAME_MAX_LEN + 2])
{
	const char *own = f->outside != NULL ? f->outside : f->name;
	size_t len = 0;

	out[len++] = '"';
	while (*own != '\0') {
		assert(len <= NAME_MAX_LEN);
		out[len++] = f->outside != NULL ? *own++ : camel_next(&own);
	}
	out[len++] = '"';
	return len;
}

void
json_name_write(struct buf *b, const struct field *f)
{
	char text[NAME_MAX_LEN + 2];

	buf_add(b, text, name_make(f, text));
}

/* Begins a member of an object: `before`, the name and a colon. */
static void
member_begin(struct buf *b, char before, const struct field *f)
{
	char text[NAME_MAX_LEN + 4];
	size_t len;

	text[0] = before;
	len = 1 + name_make(f, text + 1);
	text[len++] = ':';
	buf_add(b, text, len);
}

/* Writes a byte that must be escaped. */
static void
byte_escape(struct buf *b, unsigned char c)
{
	static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
	const char *simple = strchr(from, c);

	if (simple != NULL)
		buf_printf(b, "\\%c", to[simple - from]);
	else
		buf_printf(b, "\\u%04x", c);
}

/* Length of the well-formed code point at s; 0 if it is malformed. */
static size_t
wide_len(const char *s)
{
	size_t len = strnlen(s, 4), i;

	for (i = 2; i <= len; i++)
		if (utf8_valid(s, i))
			return i;
	return 0;
}

void
json_string(struct buf *b, const char *s)
{
	const char *done = s;
	size_t len;

	if (s == NULL) {
		buf_puts(b, "null");
		return;
	}
	buf_putc(b, '"');
	while (*s != '\0') {
		unsigned char c = (unsigned char)*s;

		len = c < 0x80 ? 1 : wide_len(s);
		if (len > 0 && c >= 0x20 && c != '"' && c != '\\') {
			s += len;
			continue;
		}
		buf_add(b, done, (size_t)(s - done));
		if (c < 0x80)
			byte_escape(b, c);
		else
			buf_puts(b, "\\ufffd");
		done = ++s;
	}
	buf_add(b, done, (size_t)(s - done));
	buf_putc(b, '"');
}

void
json_when(struct buf *b, struct when when)
{
	char text[STR_TIME_SIZE];

	if (when.ms == 0) {
		buf_puts(b, "null");
		return;
	}
	str_time(text, when.ms);
	buf_putc(b, '"');
	buf_puts(b, text);
	buf_putc(b, '"');
}

static void
items_write(struct buf *b, const struct shape *shape, const struct list *list,
    const struct choice *choice)
{
	const char *item = list->items;
	size_t i;

	buf_putc(b, '[');
	for (i = 0; i < list->n; i++, item += shape->size) {
		if (i > 0)
			buf_putc(b, ',');
		item_write(b, shape, item, choice);
	}
	buf_putc(b, ']');
}

static void
text_write(struct buf *b, const struct field *f, const char *text)
{
	const char *empty = (f->flags & FIELD_MAP) != 0 ? "{}" : "[]";

	if ((f->flags & FIELD_NULL) != 0)
		empty = "null";
	buf_puts(b, text == NULL ? empty : text);
}

static void
list_write(struct buf *b, const struct field *f, const struct list *list,
    const struct choice *choice)
{
	if ((f->flags & FIELD_ONE) == 0)
		items_write(b, f->shape, list, choice);
	else if (list->n == 0)
		buf_puts(b, "null");
	else
		item_write(b, f->shape, list->items, choice);
}

static void
value_write(struct buf *b, const struct field *f, const void *at,
    const struct choice *choice)
{
	static const char *const truth[2][2] = {
		{ "false", "true" },
		{ "0", "1" },
	};
	const struct maybe *maybe = at;

	switch (f->type) {
	case F_INT:
		buf_number(b, *(const int64_t *)at);
		break;
	case F_STR:
		json_string(b, *(const char *const *)at);
		break;
	case F_BOOL:
		buf_puts(b,
		    truth[(f->flags & FIELD_NUMBER) != 0][*(const bool *)at]);
		break;
	case F_MAYBE:
		if (maybe->set && (f->flags & FIELD_TRUTH) != 0)
			buf_puts(b, truth[0][maybe->n != 0]);
		else if (maybe->set)
			buf_number(b, maybe->n);
		else
			buf_puts(b, "null");
		break;
	case F_WHEN:
		json_when(b, *(const struct when *)at);
		break;
	case F_JSON:
		text_write(b, f, ((const struct json_text *)at)->s);
		break;
	case F_LIST:
		list_write(b, f, at, choice);
		break;
	case F_MAP:
		json_write_map(b, at);
		break;
	case F_BLOB:
		assert(0 && "bytes are never written as JSON");
	}
}

/* Whether an optional text or number is missing. */
static bool
is_none(const struct field *f, const void *at)
{
	return f->type == F_STR ? *(const char *const *)at == NULL :
				  !((const struct maybe *)at)->set;
}

static bool
is_wanted(const struct field *f, const void *at, const struct choice *choice)
{
	if ((f->flags & choice->want) == 0 || (f->flags & choice->skip) != 0 ||
	    ((f->flags & FIELD_LATER) != 0 && is_none(f, at)))
		return false;
	if (choice->want == FIELD_OUT)
		return (f->flags & FIELD_DETAIL & ~choice->detail) == 0;
	/* Members that the client left out and that must not be null are
	 * omitted, so that stored text can be sent back. */
	return (f->flags & FIELD_NULL) != 0 ||
	    (f->type != F_STR && f->type != F_MAYBE) || !is_none(f, at);
}

static void
object_write(struct buf *b, const struct shape *shape, const void *item,
    const struct choice *choice)
{
	const struct field *f;
	char before = '{';

	for (f = shape->fields; f->name != NULL; f++) {
		if (!is_wanted(f, field_of(item, f), choice))
			continue;
		member_begin(b, before, f);
		before = ',';
		value_write(b, f, field_of(item, f), choice);
	}
	buf_puts(b, before == '{' ? "{}" : "}");
}

static void
item_write(struct buf *b, const struct shape *shape, const void *item,
    const struct choice *choice)
{
	const struct field *only = shape->fields;

	if (shape->bare)
		value_write(b, only, field_of(item, only), choice);
	else
		object_write(b, shape, item, choice);
}

void
json_write(struct buf *b, const struct shape *shape, const void *item,
    unsigned detail)
{
	const struct choice choice = { .want = FIELD_OUT, .detail = detail };

	object_write(b, shape, item, &choice);
}

void
json_write_input(struct buf *b, const struct shape *shape, enum json_mode mode,
    const void *item)
{
	const struct choice choice = { .want = FIELD_IN,
		.skip = mode == JSON_UPDATE ? FIELD_ONCE : 0 };

	item_write(b, shape, item, &choice);
}

void
json_write_list(struct buf *b, const struct shape *shape,
    const struct list *list, unsigned detail)
{
	const struct choice choice = { .want = FIELD_OUT, .detail = detail };

	items_write(b, shape, list, &choice);
}

void
json_write_stored(struct buf *b, const struct shape *shape,
    const struct list *list)
{
	const struct choice choice = { .want = FIELD_IN };

	items_write(b, shape, list, &choice);
}

void
json_write_map(struct buf *b, const struct map *map)
{
	const struct pair *pair = map->items;
	size_t i;

	buf_putc(b, '{');
	for (i = 0; i < map->n; i++) {
		if (i > 0)
			buf_putc(b, ',');
		json_string(b, pair[i].key);
		buf_putc(b, ':');
		json_string(b, pair[i].value);
	}
	buf_putc(b, '}');
}
