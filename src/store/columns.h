/* SPDX-License-Identifier: ISC */
/*
 * The columns of a table, in one list.  A store that creates, reads and changes
 * rows has one macro that lists them:
 *
 *	#define PIPELINE(X, T)						\
 *		X(T, KEY, id, FIELD_OUT, .doc = "Id of the pipeline.")	\
 *		X(T, ONCE, project_id, FIELD_OUT | FIELD_IN)		\
 *		X(T, SET, name, FIELD_OUT | FIELD_IN, .max = 100)
 *
 * The macros below generate the field table, the SQL texts and the arguments
 * from that list at compile time, so that they cannot disagree.  The SQL texts
 * remain constants, and db_check() compares them with the tables.
 *
 * The member is followed by the arguments of FIELD().  The second word states
 * how the statements use the column.  The list begins with KEY:
 *
 *	KEY	the primary key: read; AUTO_INCREMENT in an INSERT
 *	READ	read only; the database or another statement sets it
 *	ONCE	read and inserted, never updated
 *	SET	read, inserted and updated
 *	BLIND	inserted, never read
 *	NONE	no column: only an entry of the field table
 */
#ifndef SLIPWAY_STORE_COLUMNS_H
#define SLIPWAY_STORE_COLUMNS_H

#include "core/field.h"

/* clang-format off */

/* The entries of a field table, both for the shape and for rows. */
#define COLUMNS_FIELDS(TABLE, T) TABLE(COLUMN_FIELD, T) FIELD_END

/* SELECT <this> FROM ...; without an alias before the columns. */
#define COLUMNS_SELECT(TABLE) TABLE(COLUMN_SELECT, )

/* A row of two tables, the second by LEFT JOIN: the columns of each with its
 * alias, and the field entries of the second, which is the member `part` of
 * struct T.  Its columns may be NULL.  The first table's struct is the first
 * member of T, so its COLUMNS_FIELDS fit. */
#define COLUMNS_OF(alias, TABLE) TABLE(COLUMN_OF, alias)
#define COLUMNS_PART(T, part, TABLE) TABLE(COLUMN_PART, (T, part))

/* A complete INSERT and its arguments, in order. */
#define COLUMNS_INSERT(name, TABLE)					\
	"INSERT INTO " name " (" TABLE(COLUMN_INTO, ) ")"		\
	" VALUES (" TABLE(COLUMN_VALUE, ) ")"
#define COLUMNS_INSERT_ARGS(TABLE, T) TABLE(COLUMN_INSERT_ARG, T) FIELD_END

/* An UPDATE of the live row with that key, which increments the version, and
 * its arguments: the columns that are set, then the key. */
#define COLUMNS_UPDATE(name, TABLE)					\
	"UPDATE " name " FORCE INDEX (PRIMARY) SET version = version + 1"			\
	TABLE(COLUMN_ASSIGN, )						\
	", updated_at = CURRENT_TIMESTAMP(3)"				\
	" WHERE " TABLE(COLUMN_KEY, ) " = ? AND valid = 1"
#define COLUMNS_UPDATE_ARGS(TABLE, T)					\
	TABLE(COLUMN_UPDATE_ARG, T) TABLE(COLUMN_KEY_ARG, T) FIELD_END

/* A complete REPLACE of all columns that are read, including the key. Its
 * arguments are the field table. */
#define COLUMNS_REPLACE(name, TABLE)					\
	"REPLACE INTO " name " (" COLUMNS_SELECT(TABLE) ")"		\
	" VALUES (" TABLE(COLUMN_MARK, ) ")"

/* Parts of the macros above, by kind of column. */
#define COLUMN_FIELD(T, kind, m, ...) COLUMN_FIELD_##kind(T, m, __VA_ARGS__)
#define COLUMN_FIELD_KEY(T, m, ...) FIELD(T, m, __VA_ARGS__),
#define COLUMN_FIELD_READ(T, m, ...) FIELD(T, m, __VA_ARGS__),
#define COLUMN_FIELD_ONCE(T, m, ...) FIELD(T, m, __VA_ARGS__),
#define COLUMN_FIELD_SET(T, m, ...) FIELD(T, m, __VA_ARGS__),
#define COLUMN_FIELD_BLIND(T, m, ...)
#define COLUMN_FIELD_NONE(T, m, ...) FIELD(T, m, FIELD_NOROW | __VA_ARGS__),

#define COLUMN_SELECT(T, kind, m, ...) COLUMN_SELECT_##kind(m)
#define COLUMN_SELECT_KEY(m) "`" #m "`"
#define COLUMN_SELECT_READ(m) ", `" #m "`"
#define COLUMN_SELECT_ONCE(m) ", `" #m "`"
#define COLUMN_SELECT_SET(m) ", `" #m "`"
#define COLUMN_SELECT_BLIND(m)
#define COLUMN_SELECT_NONE(m)

#define COLUMN_OF(alias, kind, m, ...) COLUMN_OF_##kind(alias, m)
#define COLUMN_OF_KEY(alias, m) alias ".`" #m "`"
#define COLUMN_OF_READ(alias, m) ", " alias ".`" #m "`"
#define COLUMN_OF_ONCE(alias, m) ", " alias ".`" #m "`"
#define COLUMN_OF_SET(alias, m) ", " alias ".`" #m "`"
#define COLUMN_OF_BLIND(alias, m)
#define COLUMN_OF_NONE(alias, m)

#define COLUMN_PART(at, kind, m, ...) COLUMN_PART_##kind(at, m)
#define COLUMN_PART_KEY(at, m) COLUMN_PART_OF(COLUMN_BARE at, m)
#define COLUMN_PART_READ(at, m) COLUMN_PART_OF(COLUMN_BARE at, m)
#define COLUMN_PART_ONCE(at, m) COLUMN_PART_OF(COLUMN_BARE at, m)
#define COLUMN_PART_SET(at, m) COLUMN_PART_OF(COLUMN_BARE at, m)
#define COLUMN_PART_BLIND(at, m)
#define COLUMN_PART_NONE(at, m)
#define COLUMN_BARE(T, part) T, part
#define COLUMN_PART_OF(...) COLUMN_PART_ENTRY(__VA_ARGS__)
#define COLUMN_PART_ENTRY(T, part, m) {					\
	.name = #m, .offset = offsetof(T, part.m),			\
	.type = FIELD_TYPE(T, part.m), .flags = FIELD_NULL },

#define COLUMN_MARK(T, kind, m, ...) COLUMN_MARK_##kind
#define COLUMN_MARK_KEY "?"
#define COLUMN_MARK_READ ", ?"
#define COLUMN_MARK_ONCE ", ?"
#define COLUMN_MARK_SET ", ?"
#define COLUMN_MARK_BLIND
#define COLUMN_MARK_NONE

#define COLUMN_INTO(T, kind, m, ...) COLUMN_INTO_##kind(m)
#define COLUMN_INTO_KEY(m) "`" #m "`"
#define COLUMN_INTO_READ(m)
#define COLUMN_INTO_ONCE(m) ", `" #m "`"
#define COLUMN_INTO_SET(m) ", `" #m "`"
#define COLUMN_INTO_BLIND(m) ", `" #m "`"
#define COLUMN_INTO_NONE(m)

#define COLUMN_VALUE(T, kind, m, ...) COLUMN_VALUE_##kind
#define COLUMN_VALUE_KEY "DEFAULT"
#define COLUMN_VALUE_READ
#define COLUMN_VALUE_ONCE ", ?"
#define COLUMN_VALUE_SET ", ?"
#define COLUMN_VALUE_BLIND ", ?"
#define COLUMN_VALUE_NONE

#define COLUMN_INSERT_ARG(T, kind, m, ...) COLUMN_INSERT_ARG_##kind(T, m)
#define COLUMN_INSERT_ARG_KEY(T, m)
#define COLUMN_INSERT_ARG_READ(T, m)
#define COLUMN_INSERT_ARG_ONCE(T, m) FIELD(T, m, 0),
#define COLUMN_INSERT_ARG_SET(T, m) FIELD(T, m, 0),
#define COLUMN_INSERT_ARG_BLIND(T, m) FIELD(T, m, 0),
#define COLUMN_INSERT_ARG_NONE(T, m)

#define COLUMN_ASSIGN(T, kind, m, ...) COLUMN_ASSIGN_##kind(m)
#define COLUMN_ASSIGN_KEY(m)
#define COLUMN_ASSIGN_READ(m)
#define COLUMN_ASSIGN_ONCE(m)
#define COLUMN_ASSIGN_SET(m) ", `" #m "` = ?"
#define COLUMN_ASSIGN_BLIND(m)
#define COLUMN_ASSIGN_NONE(m)

#define COLUMN_UPDATE_ARG(T, kind, m, ...) COLUMN_UPDATE_ARG_##kind(T, m)
#define COLUMN_UPDATE_ARG_KEY(T, m)
#define COLUMN_UPDATE_ARG_READ(T, m)
#define COLUMN_UPDATE_ARG_ONCE(T, m)
#define COLUMN_UPDATE_ARG_SET(T, m) FIELD(T, m, 0),
#define COLUMN_UPDATE_ARG_BLIND(T, m)
#define COLUMN_UPDATE_ARG_NONE(T, m)

#define COLUMN_KEY(T, kind, m, ...) COLUMN_KEY_##kind(m)
#define COLUMN_KEY_KEY(m) "`" #m "`"
#define COLUMN_KEY_READ(m)
#define COLUMN_KEY_ONCE(m)
#define COLUMN_KEY_SET(m)
#define COLUMN_KEY_BLIND(m)
#define COLUMN_KEY_NONE(m)

#define COLUMN_KEY_ARG(T, kind, m, ...) COLUMN_KEY_ARG_##kind(T, m)
#define COLUMN_KEY_ARG_KEY(T, m) FIELD(T, m, 0),
#define COLUMN_KEY_ARG_READ(T, m)
#define COLUMN_KEY_ARG_ONCE(T, m)
#define COLUMN_KEY_ARG_SET(T, m)
#define COLUMN_KEY_ARG_BLIND(T, m)
#define COLUMN_KEY_ARG_NONE(T, m)
/* clang-format on */

#endif
