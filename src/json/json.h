/* SPDX-License-Identifier: ISC */
/*
 * Structs to JSON and back, by field table (core/field.h).
 *
 * strict.c validates every text.  Bodies that the service's own tables describe
 * are then read from a cJSON tree, each member once, into the type of the
 * struct's member.  JSON from other servers is picked from the text instead;
 * pick.c explains why.
 *
 * Input is strict RFC 8259: valid UTF-8, depth at most 32, at most 40,000
 * values, numbers that fit a double; no duplicate members, no U+0000.  Only
 * validated text reaches cJSON, which is not a validator itself.  Unknown
 * members are reported as faults.
 */
#ifndef SLIPWAY_JSON_JSON_H
#define SLIPWAY_JSON_JSON_H

#include "core/buf.h"
#include "core/field.h"

#define JSON_DEPTH 32
#define JSON_VALUES 40000
/* Stored text may have more: members that the client left out are null
 * there. */
#define JSON_STORED_VALUES 60000

enum json_mode {
	JSON_CREATE, /* FIELD_MUST members are required */
	JSON_UPDATE, /* a member left out keeps the value in `out`; read-only
		      * members may be sent with their present value */
};

/* Validates a text, whose top-level value may be of any type.  The errors give
 * the place (byte, from 1) and the reason: ERR_BAD_REQUEST if it is not JSON;
 * ERR_INVALID if it follows the grammar but contains a duplicate member or
 * U+0000, or is nested too deeply; ERR_TOO_LARGE if it has too many values. */
MUSTCHECK const struct err *json_strict(const char *text, size_t len);

/* Reads a body into `item`, which holds the defaults (create) or the present
 * row (update).  Adds a fault with its pointer for each invalid member, or if
 * the body is not an object.  The errors are those of json_strict(), for a text
 * that cannot be read at all.
 *
 * An invalid member keeps its old value, except that F_JSON and F_MAP members
 * hold their valid parts.  Strings go to the arena of `faults`.  Members of
 * F_LIST, F_JSON and F_MAP are always read into zeroed memory, in either mode.
 * In a map, null is a value only with FIELD_GAPS. */
MUSTCHECK const struct err *json_read(const struct shape *, enum json_mode,
    const char *text, size_t len, void *item, struct faults *);

/* Writes the members with FIELD_IN that differ, or that have a value if `old` is
 * NULL, as an array of {"name", "from", "to"}; false if there are none. Values
 * that may contain a secret are null: all but numbers, times, truth values and
 * those of an enumeration. */
bool json_changes(struct buf *, const struct shape *, const void *old,
    const void *new);

/* Writes an item as an object: members with FIELD_OUT, and those with
 * FIELD_DETAIL if `detail` is FIELD_DETAIL (else 0). */
void json_write(struct buf *, const struct shape *, const void *item,
    unsigned detail);
/* Writes an object as a client would send it: members with FIELD_IN, without
 * those that have no value and must not be null; for an update, without those
 * that are written only once. */
void json_write_input(struct buf *, const struct shape *, enum json_mode,
    const void *item);
/* Writes an array of such objects. */
void json_write_list(struct buf *, const struct shape *, const struct list *,
    unsigned detail);
/* Writes a string with its quotes; NULL is written as null. */
void json_string(struct buf *, const char *s);
/* Writes a time with its quotes, or null. */
void json_when(struct buf *, struct when);

/* Parses a stored json_text (an array of a shape) into structs; NULL is read as
 * an empty list. */
MUSTCHECK const struct err *json_items(struct arena *, const struct shape *,
    const char *text, struct list *out);
/* The same for a body that json_read() has read, with or without faults:
 * missing or invalid members of the items are NULL or 0. */
MUSTCHECK const struct err *json_items_sent(struct arena *,
    const struct shape *, const char *text, struct list *out);
/* Parses a stored object of strings, keeping the order; NULL is read as an
 * empty map. */
MUSTCHECK const struct err *json_map(struct arena *, const char *text,
    struct map *out);
void json_write_map(struct buf *, const struct map *);

/*
 * JSON from other servers, read by a table of paths.  Members without an entry
 * are ignored.  Nested members are written with dots ("commit.author.name"),
 * the first member of an array or object with a star ("errors.*.message").  A
 * missing or null member leaves NULL, 0 or false.  A member of another type is
 * an error with `must`, and otherwise counts as missing.  F_STR also accepts
 * whole numbers (ids, at most 2^53-1); F_WHEN accepts RFC 3339 with any
 * offset.  A value that does not fit into the arena is an error, or counts as
 * missing with `spare`.
 */
#define JSON_FOREIGN_VALUES 100000
struct json_path {
	const char *path; /* NULL ends the table */
	size_t offset;
	enum field_type type; /* F_INT, F_STR, F_BOOL, F_WHEN */
	bool must;
	bool spare;
	/* Of an array, for F_STR: its strings and plain numbers, or those in
	 * this member of its objects, with commas between them. */
	const char *joined;
};
/* JSON_PATH(struct, member, "path", .must = true); the path may be the only
 * argument, so it is part of the dots */
/* clang-format off */
#define JSON_PATH(T, m, ...) {						\
	.offset = offsetof(T, m), .type = FIELD_TYPE(T, m),		\
	.path = __VA_ARGS__ }
#define JSON_PATH_END { .path = NULL }
/* clang-format on */

/* Picks from one object; strings go to the arena.  Validation is as strict as
 * above, with a higher limit of values.  ERR_UPSTREAM, with the place, if it is
 * not such an object or a required member is missing. */
MUSTCHECK const struct err *json_pick(struct arena *, const struct json_path *,
    const char *text, size_t len, void *item);
/* The same for an event, which may be large and has no limit of values;
 * likewise json_pick_member(). */
MUSTCHECK const struct err *json_pick_event(struct arena *,
    const struct json_path *, const char *text, size_t len, void *item);
/* Picks from an array of objects, `size` bytes each; null is read as empty. */
MUSTCHECK const struct err *json_pick_list(struct arena *,
    const struct json_path *, size_t size, const char *text, size_t len,
    struct list *out);

/* The same for an array in a member of an object; empty if it is missing. */
MUSTCHECK const struct err *json_pick_member(struct arena *, const char *member,
    const struct json_path *, size_t size, const char *text, size_t len,
    struct list *out);

/* The texts (const char *) in arrays of strings: the members `names`, which end
 * with NULL, of each object in the array `member`. Other values are ignored. */
MUSTCHECK const struct err *json_pick_texts(struct arena *, const char *member,
    const char *const *names, const char *text, size_t len, struct list *out);

/* Whether the text, which is valid JSON, is an object with that member and no
 * other. */
bool json_is_only(const char *text, const char *member);

/* Appends valid JSON with a member or element per line. */
void json_indent(struct buf *out, const char *text, size_t len);

/* Schema objects of OpenAPI 3.1 (JSON Schema 2020-12) for a shape.  References
 * to nested shapes are "#/components/schemas/NAME", for input "NAMEInput". */
enum json_schema {
	JSON_SCHEMA_OUT,    /* responses */
	JSON_SCHEMA_STORED, /* F_JSON members of responses: strings that are
			     * optional and not nullable may be missing */
	JSON_SCHEMA_CREATE, /* bodies of POST */
	JSON_SCHEMA_UPDATE, /* bodies of PUT */
};
void json_schema(struct buf *, const struct shape *, enum json_schema,
    unsigned detail);
/* Whether the schema contains the member as read-only, in the form of
 * responses. */
bool json_schema_fixed(const struct field *, enum json_schema);
/* Parts of schemas: `"enum":[…]`, and the format of integers up to `max`. */
void json_schema_values(struct buf *, const char *const *values);
void json_schema_format(struct buf *, int64_t max);

#endif
