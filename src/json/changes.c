/* SPDX-License-Identifier: ISC */
/* What distinguishes two items, without texts that could be secret. */
#include "core/str.h"
#include "json/inner.h"

#define KEYS_MAX ((size_t)8192) /* bytes of keys that an entry names */

static bool
is_empty(const struct field *f, const void *at)
{
	switch (f->type) {
	case F_INT:
		return *(const int64_t *)at == 0;
	case F_STR:
		return *(const char *const *)at == NULL;
	case F_BOOL:
		return !*(const bool *)at;
	case F_MAYBE:
		return !((const struct maybe *)at)->set;
	case F_WHEN:
		return ((const struct when *)at)->ms == 0;
	case F_JSON:
		return ((const struct json_text *)at)->s == NULL;
	case F_LIST:
		return ((const struct list *)at)->n == 0;
	case F_MAP:
		return ((const struct map *)at)->n == 0;
	case F_BLOB:
		break;
	}
	return true;
}

/* The keys that have a value, which are names; never the values. */
static void
keys_write(struct buf *b, const struct map *map)
{
	struct buf text;
	size_t i, n = 0;

	buf_init(&text, KEYS_MAX * 2);
	for (i = 0; i < map->n && text.len < KEYS_MAX; i++)
		if (map->items[i].value != NULL)
			buf_printf(&text, "%s%s", n++ > 0 ? ", " : "",
			    map->items[i].key);
	if (i < map->n)
		buf_printf(&text, " and %zu more", map->n - i);
	if (n == 0 || text.overflow)
		buf_puts(b, "null");
	else
		json_string(b, text.data);
	buf_release(&text);
}

/* Texts, lists and objects are free for users to fill, so they may contain a
 * secret; values of an enumeration do not. */
static void
value_write(struct buf *b, const struct field *f, const void *at)
{
	char time[STR_TIME_SIZE];

	if (f->type == F_STR && f->values != NULL) {
		json_string(b, *(const char *const *)at);
	} else if (f->type == F_BOOL) {
		json_string(b, *(const bool *)at ? "true" : "false");
	} else if (f->type == F_INT) {
		buf_printf(b, "\"%lld\"", (long long)*(const int64_t *)at);
	} else if (f->type == F_MAYBE && !is_empty(f, at) &&
	    (f->flags & FIELD_TRUTH) != 0) {
		json_string(b,
		    ((const struct maybe *)at)->n != 0 ? "true" : "false");
	} else if (f->type == F_MAYBE && !is_empty(f, at)) {
		buf_printf(b, "\"%lld\"",
		    (long long)((const struct maybe *)at)->n);
	} else if (f->type == F_WHEN && !is_empty(f, at)) {
		str_time(time, ((const struct when *)at)->ms);
		json_string(b, time);
	} else if (f->type == F_MAP) {
		keys_write(b, at);
	} else {
		buf_puts(b, "null");
	}
}

static void
change_write(struct buf *b, const struct field *f, const void *old,
    const void *new)
{
	buf_puts(b, "{\"name\":");
	json_name_write(b, f);
	buf_puts(b, ",\"from\":");
	if (old == NULL)
		buf_puts(b, "null");
	else
		value_write(b, f, field_of(old, f));
	buf_puts(b, ",\"to\":");
	value_write(b, f, field_of(new, f));
	buf_putc(b, '}');
}

/* Whether the entry describes no member that was changed, or set. */
static bool
is_same(const struct field *f, const void *old, const void *new)
{
	if ((f->flags & FIELD_IN) == 0)
		return true;
	if (old == NULL)
		return is_empty(f, field_of(new, f));
	return (f->flags & FIELD_ONCE) != 0 ||
	    json_value_same(f, field_of(old, f), field_of(new, f));
}

bool
json_changes(struct buf *b, const struct shape *shape, const void *old,
    const void *new)
{
	const struct field *f;
	bool some = false;

	buf_putc(b, '[');
	for (f = shape->fields; f->name != NULL; f++) {
		if (is_same(f, old, new))
			continue;
		if (some)
			buf_putc(b, ',');
		some = true;
		change_write(b, f, old, new);
	}
	buf_putc(b, ']');
	return some;
}
