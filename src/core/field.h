/* SPDX-License-Identifier: ISC */
/*
 * How a struct looks to clients and in rows: one table per struct, read by rows
 * (db), JSON input and output, validation (json) and the OpenAPI document
 * (api).
 *
 * The type of an entry comes from the member itself; the table does not compile
 * for a member of another type.  Names are those of the members and columns, in
 * snake_case; JSON uses camelCase.
 */
#ifndef SLIPWAY_CORE_FIELD_H
#define SLIPWAY_CORE_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/fault.h"

/* Optional number.  Zeroed memory means "none" (SQL NULL, JSON null). */
struct maybe {
	int64_t n;
	bool set;
};
/* A time in milliseconds since 1970 UTC, 0 = none. DATETIME(3) in rows,
 * RFC 3339 in JSON. */
struct when {
	int64_t ms;
};
/* JSON as text; NULL = none.  Input is validated by the entry's `shape` (an
 * array of such objects), stored in a canonical form, and copied into responses
 * unchanged.  With FIELD_MAP it is the text of a map, for output. */
struct json_text {
	const char *s;
};
/* An array of structs of the entry's `shape`, in the arena of its owner. */
struct list {
	void *items;
	size_t n;
};
/* An object of strings, in the arena of its owner; a value of NULL is null.  In
 * JSON only, never in rows. */
struct pair {
	const char *key;
	const char *value;
};
struct map {
	struct pair *items;
	size_t n;
};
/* Bytes; in rows only, never in JSON. */
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
	FIELD_OUT = 1 << 0,    /* in responses */
	FIELD_DETAIL = 1 << 1, /* with FIELD_OUT: only in responses with a
			        * single object */
	FIELD_IN = 1 << 2,     /* accepted in POST and PUT */
	FIELD_MUST = 1 << 3,   /* with FIELD_IN: required in POST */
	FIELD_ONCE = 1 << 4,   /* with FIELD_IN: PUT rejects another value */
	FIELD_NULL = 1 << 5,   /* null clears it; may be NULL in the row */
	FIELD_MAP = 1 << 6,    /* F_JSON: the text of a map, output only */
	FIELD_NUMBER = 1 << 7, /* F_BOOL is written as 1 or 0 */
	FIELD_LINE = 1 << 8,   /* F_STR: no control characters, at least one
			        * visible character (core/str.h) */
	FIELD_ONE = 1 << 9,    /* F_LIST: a single object; with FIELD_NULL, or
			        * null */
	FIELD_GAPS = 1 << 10,  /* F_MAP: null means a value stored elsewhere */
	FIELD_TEXT = 1 << 11,  /* F_STR: text with line breaks, but no other
			        * control characters */
	FIELD_LATER = 1 << 12, /* F_MAYBE, F_STR: left out if it is none, as
			        * stored text of older versions lacks it */
	FIELD_TRUE = 1 << 13,  /* F_BOOL with FIELD_IN: true if POST omits it */
	FIELD_TRUTH = 1 << 14, /* F_MAYBE: true or false instead of 1 or 0 */
};

struct shape;

struct field {
	const char *name;
	size_t offset;
	enum field_type type;
	unsigned flags;
	/* F_STR: length in code points; F_INT, F_MAYBE: value; F_JSON, F_LIST,
	 * F_MAP: number of members. 0, 0 = the limits of the type (F_STR:
	 * 0..65535; numbers: 0..2^53-1; arrays: 0..100). */
	int64_t min, max;
	const char *const *values; /* F_STR: one of these, ends with NULL */
	const char *named;   /* schema name that replaces `values`, or describes
			      * a FIELD_MAP, in the OpenAPI document: "Role" */
	const char *pattern; /* F_STR: an ERE that matches the whole text */
	const char *shown; /* F_STR: what other code requires, as a JSON Schema
			    * pattern that matches the whole text */
	const struct shape *shape; /* F_JSON, F_LIST: of the members */
	const char *doc;           /* describes the member in the OpenAPI
				    * document */
	const char *outside; /* JSON name, if it differs from the camelCase name
			      * of the member */
};

/* A struct with its table. */
struct shape {
	const char *name; /* name of the schema: "Project" */
	const struct field *fields;
	size_t size;
	/* Checks that no single entry can express; NULL if there are none.
	 * `pointer` is that of the item; faults are added below it.  Missing
	 * and invalid members are NULL or 0, or unchanged. */
	void (*check)(const void *item, const char *pointer, struct faults *);
	const char *doc; /* describes the schema in the OpenAPI document */
	/* An item of an array is not an object but the value of the only
	 * entry. */
	bool bare;
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
/* FIELD(struct, member, flags, .max = 100, .doc = "…"); the flags may be the
 * only argument, so they are part of the dots */
#define FIELD(T, m, ...) {						\
	.name = #m, .offset = offsetof(T, m),				\
	.type = FIELD_TYPE(T, m), .flags = __VA_ARGS__ }
#define FIELD_END { .name = NULL }
/* clang-format on */

/* A branch name that git accepts, as a JSON Schema pattern; then one with * and
 * ?. */
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

/* The entry of that name (snake_case); NULL if it does not exist. */
const struct field *field_find(const struct field *, const char *name);

#endif
