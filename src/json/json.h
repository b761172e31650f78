/* SPDX-License-Identifier: ISC */
/*
 * Structs to JSON and back, by field table (core/field.h).
 *
 * strict.c validates every text.  What the service's own tables describe is
 * then read from a tree of cJSON, each member once, into the type that the
 * struct has; what others describe is picked from the text, for reasons of
 * memory that pick.c states.
 *
 * Input is strict RFC 8259: valid UTF-8, depth at most 32, at most 40,000
 * values, numbers that a double can hold; no duplicate members, no U+0000.
 * Only then the text reaches cJSON, which alone is not a validator.  Unknown
 * members are faults that name them.
 */
#ifndef SLIPWAY_JSON_JSON_H
#define SLIPWAY_JSON_JSON_H

#include "core/buf.h"
#include "core/field.h"

#define JSON_DEPTH 32
#define JSON_VALUES 40000
/* What was stored may have more: members that were left out are null there. */
#define JSON_STORED_VALUES 60000

enum json_mode {
	JSON_CREATE, /* FIELD_MUST members must be there */
	JSON_UPDATE, /* what is left out keeps the value that `out` has; members
		      * that cannot be written may be sent with that value */
};

/* ERR_BAD_REQUEST with place (byte, from 1) and reason unless it is JSON; any
 * value may stand at the top.  ERR_INVALID, likewise, if it is JSON by its
 * grammar but has a member twice or U+0000, or is nested too deeply;
 * ERR_TOO_LARGE if it has too many values. */
MUSTCHECK const struct err *json_strict(const char *text, size_t len);

/* Reads a body over `item`, which holds the defaults (create) or the present
 * row (update).  Adds faults, each with its pointer, if it is no object or a
 * member is wrong; errors are those of json_strict(), for a text that cannot be
 * read at all.
 * What is faulty stays as it was, but for F_JSON and F_MAP: there the rest of it
 * stands.  Strings go to the arena of `faults`.  Members of F_LIST, F_JSON and
 * F_MAP are read anew from zeroed memory, whatever the mode; null is a value of
 * a map with FIELD_GAPS only. */
MUSTCHECK const struct err *json_read(const struct shape *, enum json_mode,
    const char *text, size_t len, void *item, struct faults *);

/* Whether what a PUT may change is the same of both. */
bool json_unchanged(const struct shape *, const void *a, const void *b);

/* The object of an item: members with FIELD_OUT, and those with FIELD_DETAIL
 * if `detail` is FIELD_DETAIL (else 0). */
void json_write(struct buf *, const struct shape *, const void *item,
    unsigned detail);
/* "[…]" of such objects. */
void json_write_list(struct buf *, const struct shape *, const struct list *,
    unsigned detail);
/* A string with its quotes; NULL is null. */
void json_string(struct buf *, const char *s);
/* A time with its quotes, or null. */
void json_when(struct buf *, struct when);

/* A stored json_text (an array of a shape) as structs; NULL text is empty. */
MUSTCHECK const struct err *json_items(struct arena *, const struct shape *,
    const char *text, struct list *out);
/* The same of a body that json_read() has read, with or without faults: members
 * of the items that were missing or faulty are NULL or 0. */
MUSTCHECK const struct err *json_items_sent(struct arena *,
    const struct shape *, const char *text, struct list *out);
/* A stored object of strings, in its order; NULL text is empty. */
MUSTCHECK const struct err *json_map(struct arena *, const char *text,
    struct map *out);
void json_write_map(struct buf *, const struct map *);

/*
 * JSON of others, by a table of paths to members: what is not named there is
 * ignored, nested members are named with dots ("commit.author.name"), the first
 * of an array or object with a star ("errors.*.message").  A member that is
 * missing or null leaves NULL, 0 or false; one of another type is an error where
 * `must`, else as if it were missing.  F_STR takes whole numbers too (ids, at
 * most 2^53-1), F_WHEN takes RFC 3339 with any offset.  What does not fit into
 * the arena is an error, or as if it were missing where `spare`.
 */
#define JSON_FOREIGN_VALUES 100000
struct json_path {
	const char *path; /* NULL ends the table */
	size_t offset;
	enum field_type type; /* F_INT, F_STR, F_BOOL, F_WHEN */
	bool must;
	bool spare;
};
/* JSON_PATH(struct, member, "path", .must = true) */
/* clang-format off */
#define JSON_PATH(T, m, p, ...) {					\
	.path = (p), .offset = offsetof(T, m),				\
	.type = FIELD_TYPE(T, m), __VA_ARGS__ }
#define JSON_PATH_END { .path = NULL }
/* clang-format on */

/* One object; strings in the arena.  Strict as above, but for the number of
 * values.  ERR_UPSTREAM if it is no such JSON or lacks what it must have; says
 * where. */
MUSTCHECK const struct err *json_pick(struct arena *, const struct json_path *,
    const char *text, size_t len, void *item);
/* The same of an event, which has values without limit and may be large; so does
 * json_pick_member(). */
MUSTCHECK const struct err *json_pick_event(struct arena *,
    const struct json_path *, const char *text, size_t len, void *item);
/* An array of objects, `size` each, or null: none. */
MUSTCHECK const struct err *json_pick_list(struct arena *,
    const struct json_path *, size_t size, const char *text, size_t len,
    struct list *out);

/* The same of an array below an object's member; none if that is missing. */
MUSTCHECK const struct err *json_pick_member(struct arena *, const char *member,
    const struct json_path *, size_t size, const char *text, size_t len,
    struct list *out);

/* Whether a text that was found to be JSON is an object with that member and no
 * other. */
bool json_is_only(const char *text, const char *member);

/* Schema objects of OpenAPI 3.1 (JSON Schema 2020-12) for a shape.  Nested
 * shapes are referred to as "#/components/schemas/NAME", for input
 * "NAMEInput". */
enum json_schema {
	JSON_SCHEMA_OUT,    /* what answers hold */
	JSON_SCHEMA_STORED, /* the same of members of F_JSON: strings that may
			     * be left out and not be null may be missing */
	JSON_SCHEMA_CREATE, /* what POST takes */
	JSON_SCHEMA_UPDATE, /* what PUT takes */
};
void json_schema(struct buf *, const struct shape *, enum json_schema,
    unsigned detail);
/* Whether the schema has the member as read-only, in the form of answers. */
bool json_schema_fixed(const struct field *, enum json_schema);
/* Parts of schemas: `"enum":[…]`, and the format of integers up to `max`. */
void json_schema_values(struct buf *, const char *const *values);
void json_schema_format(struct buf *, int64_t max);

#endif
