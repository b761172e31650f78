/* SPDX-License-Identifier: ISC */
/* What the files of this folder share and nobody else needs. */
#ifndef SLIPWAY_JSON_INNER_H
#define SLIPWAY_JSON_INNER_H

#include "json/json.h"

/* Of one stored or spliced text. */
#define JSON_TEXT_MAX ((size_t)4 * 1024 * 1024)

/* As json_strict() with at most so many values; appends to `plain`, unless that
 * is NULL, the same text with every number rewritten: whole ones of at most
 * 2^53-1 stand as plain decimals, all others as 0.5, which no field takes.  So
 * nothing is rounded on the way. */
MUSTCHECK const struct err *json_plain(const char *text, size_t len,
    size_t values, struct buf *plain);
/* As json_strict() of a text of others with at most so many values: in objects
 * below the second level members may stand twice where there are more than
 * JSON_FOREIGN_VALUES. */
MUSTCHECK const struct err *json_foreign(const char *text, size_t len,
    size_t values);
/* The next code point of a string that was found well-formed, unescaped; 0 at
 * its closing quote, behind which `p` is then. */
uint32_t json_code_next(const unsigned char **p);
/* The same as a tree, for the caller to delete; NULL with an error. */
struct cJSON;
MUSTCHECK const struct err *json_tree(const char *text, size_t len,
    size_t values, struct cJSON **out);

/* Whether a member as it was sent says what `present`, the entry's member, is.
 * Nested objects may leave members out. */
bool json_same(const struct field *, const struct cJSON *value,
    const void *present);

/* The name of an entry outside, in the arena or static. */
const char *json_name(struct arena *, const struct field *);
/* The same in quotes. */
void json_name_write(struct buf *, const struct field *);
/* Whether that is its name, without taking memory. */
bool json_is_name(const struct field *, const char *name);

/* What an entry's min and max mean; also for defaults. */
struct json_limits {
	int64_t min, max;
};
struct json_limits json_limits(const struct field *);

/* "[…]" of a shape's FIELD_IN members, as it is stored. */
void json_write_stored(struct buf *, const struct shape *, const struct list *);

#endif
