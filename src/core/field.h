/* SPDX-License-Identifier: ISC */
/*
 * How a struct looks from outside: one table per struct, read by rows (db),
 * JSON in and out, validation (json) and the OpenAPI document (api).
 *
 * The type of an entry comes from the member itself; a member of another type
 * does not compile.  Names are those of the members and of the columns, in
 * snake_case; in JSON they are camelCase.
 */
#ifndef SLIPWAY_CORE_FIELD_H
#define SLIPWAY_CORE_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/fault.h"

/* Optional number. Zeroed memory is "none" (SQL NULL, JSON null). */
struct maybe {
	int64_t n;
	bool set;
};
/* A time in milliseconds since 1970 UTC, 0 = none. DATETIME(3) in rows,
 * RFC 3339 in JSON. */
struct when {
	int64_t ms;
};
/* JSON kept as text; NULL = none. Checked when it comes in by the entry's
 * `shape` (an array of such objects), stored in a canonical form and spliced
 * into answers as it is. With FIELD_MAP it is the text of a map, for output. */
struct json_text {
	const char *s;
};
/* An array of structs of the entry's `shape`, in the arena of its owner. */
struct list {
	void *items;
	size_t n;
};
/* An object of strings, in the arena of its owner; a value of NULL is null. In
 * JSON only, never in rows. */
struct pair {
	const char *key;
	const char *value;
};
struct map {
	struct pair *items;
	size_t n;
};
/* Bytes; rows only, never in JSON. */
struct blob {
	const void *data;
	size_t len;
};

enum field_type {
	F_INT,   /* int64_t */
	F_STR,   /* const char *, NULL = none */
	F_BOOL,  /* bool */
	F_MAYBE, /* struct maybe */
	F_WHEN,  /* struct when */
	F_JSON,  /* struct json_text */
	F_LIST,  /* struct list */
	F_MAP,   /* struct map */
	F_BLOB,  /* struct blob */
};

enum field_flag {
	FIELD_OUT = 1 << 0,    /* in answers */
	FIELD_DETAIL = 1 << 1, /* with FIELD_OUT: only where one is read */
	FIELD_IN = 1 << 2,     /* accepted in POST and PUT */
	FIELD_MUST = 1 << 3,   /* with FIELD_IN: required in POST */
	FIELD_ONCE = 1 << 4,   /* with FIELD_IN: refused in PUT if it differs */
	FIELD_NULL = 1 << 5,   /* null clears it; may be NULL in the row */
	FIELD_NOROW = 1 << 6,  /* not a column */
	FIELD_MAP = 1 << 7,    /* F_JSON: the text of a map, output only */
	FIELD_NUMBER = 1 << 8, /* F_BOOL is written as 1 or 0 */
	FIELD_LINE = 1 << 9,   /* F_STR: no control characters, something to
				* see (core/str.h) */
	FIELD_ONE = 1 << 10,   /* F_LIST: one; with FIELD_NULL, or null */
	FIELD_GAPS = 1 << 11,  /* F_MAP: null is what is kept elsewhere */
	FIELD_TEXT = 1 << 12,  /* F_STR: of several lines, else no control
				* characters */
};

struct shape;

struct field {
	const char *name;
	size_t offset;
	enum field_type type;
	unsigned flags;
	/* F_STR: length in code points; F_INT, F_MAYBE: value; F_JSON, F_LIST,
	 * F_MAP: number of members. 0, 0 = the type's own limits (F_STR: 0..65535;
	 * numbers: 0..2^53-1; arrays: 0..100). */
	int64_t min, max;
	const char *const *values; /* F_STR: one of these, ends with NULL */
	const char *named;   /* what stands for `values`, or for a FIELD_MAP, in
			    * the OpenAPI document: "Role" */
	const char *pattern; /* F_STR: an ERE that matches whole */
	const char *shown; /* F_STR: what other code demands of it, as a pattern
			    * of JSON Schema that matches whole */
	const struct shape *shape; /* F_JSON, F_LIST: of the members */
	const char *doc;           /* one sentence for the OpenAPI document */
	const char *outside; /* JSON name, where it is not the camelCase of
			      * the member's */
};

/* A struct with its table. */
struct shape {
	const char *name; /* of the schema: "Project" */
	const struct field *fields;
	size_t size;
	/* What no single entry can say; NULL if there is nothing. `pointer`
	 * is the item's own, faults are added below it. Members that are
	 * missing or faulty are NULL or 0, or as they were. */
	void (*check)(const void *item, const char *pointer, struct faults *);
	const char *doc; /* one sentence for the OpenAPI document */
};

/* clang-format off */
#define FIELD_TYPE(T, m) _Generic(((T *)NULL)->m,			\
	int64_t: F_INT,							\
	const char *: F_STR,						\
	bool: F_BOOL,							\
	struct maybe: F_MAYBE,						\
	struct when: F_WHEN,						\
	struct json_text: F_JSON,					\
	struct list: F_LIST,						\
	struct map: F_MAP,						\
	struct blob: F_BLOB)
/* FIELD(struct, member, flags, .max = 100, .doc = "…"); flags may stand
 * alone, hence they are part of the dots */
#define FIELD(T, m, ...) {						\
	.name = #m, .offset = offsetof(T, m),				\
	.type = FIELD_TYPE(T, m), .flags = __VA_ARGS__ }
#define FIELD_END { .name = NULL }
/* clang-format on */

/* A name as git takes it, as a pattern for JSON Schema; and one with * and ?. */
#define FIELD_BRANCH_START                                                     \
	"(?![-/.])(?!.*(?:\\.\\.|//|@\\{|/\\.|\\.lock/))"                      \
	"(?!.*(?:/|\\.|\\.lock)$)(?!@$)"
#define FIELD_BRANCH FIELD_BRANCH_START "[^\\u0000-\\u0020\\u007f~^:?*\\[\\\\]+"
#define FIELD_BRANCHES FIELD_BRANCH_START "[^\\u0000-\\u0020\\u007f~^:\\[\\\\]+"

/* The member that an entry describes; the caller knows its type. */
static inline void *
field_at(void *item, const struct field *f)
{
	return (char *)item + f->offset;
}

static inline const void *
field_of(const void *item, const struct field *f)
{
	return (const char *)item + f->offset;
}

/* The entry of that name (snake_case); NULL if there is none. */
const struct field *field_find(const struct field *, const char *name);

#endif
