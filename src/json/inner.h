/* SPDX-License-Identifier: ISC */
/* Shared by the files of this folder only. */
#ifndef SLIPWAY_JSON_INNER_H
#define SLIPWAY_JSON_INNER_H

#include "json/json.h"

/* Limit of one stored or inserted text. */
#define JSON_TEXT_MAX ((size_t)4 * 1024 * 1024)

/* Like json_strict(), with at most `values` values.  Unless `plain` is NULL,
 * appends the text with every number rewritten: whole numbers of at most 2^53-1
 * as plain decimals, all others as 0.5, which no field accepts.  So no number
 * is rounded on the way. */
MUSTCHECK const struct err *json_plain(const char *text, size_t len,
    size_t values, struct buf *plain);
/* Like json_strict() for a text from another server, with at most `values`
 * values.  If it has more than JSON_FOREIGN_VALUES values, objects below the
 * second level may contain duplicate members. */
MUSTCHECK const struct err *json_foreign(const char *text, size_t len,
    size_t values);
/* Returns the next code point of a well-formed string, unescaped; 0 at the
 * closing quote, and then `p` points past it. */
uint32_t json_code_next(const unsigned char **p);
/* Validates and parses a text into a tree, which the caller deletes; NULL with
 * an error. */
struct cJSON;
MUSTCHECK const struct err *json_tree(const char *text, size_t len,
    size_t values, struct cJSON **out);

/* Whether a member sent by a client equals `present`, the value in the item.
 * Nested objects may leave members out. */
bool json_same(const struct field *, const struct cJSON *value,
    const void *present);
/* Whether a member has the same value in two items. */
bool json_value_same(const struct field *, const void *a, const void *b);

/* The JSON name of an entry, in the arena or static. */
const char *json_name(struct arena *, const struct field *);
/* Writes that name in quotes. */
void json_name_write(struct buf *, const struct field *);
/* Whether that is the entry's name; allocates nothing. */
bool json_is_name(const struct field *, const char *name);

/* The limits that min and max of an entry stand for, with defaults applied. */
struct json_limits {
	int64_t min, max;
};
struct json_limits json_limits(const struct field *);

/* Writes a shape's FIELD_IN members as an array, in the stored form. */
void json_write_stored(struct buf *, const struct shape *, const struct list *);

#endif
