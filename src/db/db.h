/* SPDX-License-Identifier: ISC */
/*
 * MariaDB: statements as data, rows to structs and back, transactions, and the
 * one place that knows what the server's error numbers mean.
 *
 * A connection is made when it is first needed and again after it was lost;
 * nothing above has to know.  Statements are prepared once per connection and
 * kept by the address of their struct stmt.
 *
 * What errors become: unreachable, full, read-only, too many connections or a
 * cluster node without quorum are ERR_UNAVAILABLE; an account that may not is
 * ERR_CONFIG; a duplicate key (1062) is ERR_CONFLICT, its `sys` is 1062;
 * anything unforeseen is ERR_INTERNAL.
 */
#ifndef SLIPWAY_DB_DB_H
#define SLIPWAY_DB_DB_H

#include <stdbool.h>

#include "core/field.h"
#include "core/settings.h"

#define DB_DUPLICATE 1062 /* err->sys of a refused duplicate */
#define DB_UNKNOWN (-1) /* of a write that may have been made, or may yet be */

struct db;

struct stmt {
	const char *name;         /* for messages: "project_by_id" */
	const char *sql;          /* constant text */
	const struct field *args; /* one per `?`, in their order; or NULL */
	const struct field *row;  /* one per column, in their order, leaving
				   * out FIELD_NOROW; or NULL */
	size_t rowsize;
};

/* What an INSERT, UPDATE or DELETE did. Rows that were found count as
 * affected even if nothing in them changed (CLIENT_FOUND_ROWS). */
struct db_done {
	int64_t affected;
	int64_t insert_id;
};

enum db_flag {
	DB_MIGRATE = 1 << 0, /* the migrating account */
	DB_RUNNER = 1 << 1,  /* sets wsrep_sync_wait = 7 */
	DB_API = 1 << 2,     /* the API's account */
};

/* Makes no connection yet. `settings` must outlive it. */
MUSTCHECK const struct err *db_open(const struct settings *, unsigned flags,
    struct db **out);
void db_close(struct db *);
const struct settings *db_settings(const struct db *);
/* Closes the connection; the next use makes another (after a fork, say). */
void db_drop(struct db *);

/* Prepares every statement, compares columns and `?` with the tables, and closes
 * it again: together they take megabytes, and most processes use a few.
 * ERR_CONFIG names statement and column. The list ends with a NULL. */
MUSTCHECK const struct err *db_check(struct db *, const struct stmt *const *);
/* ERR_CONFIG unless the newest migration applied is the newest this program
 * knows, and none of them was changed; says which is missing or unknown. */
MUSTCHECK const struct err *db_check_schema(struct db *);
/* Reads a table, not only SELECT 1: a cluster node without quorum says no. */
MUSTCHECK const struct err *db_ping(struct db *);

/* One row into `out` (of the statement's rowsize), strings in the arena;
 * ERR_NOTFOUND if there is none. */
MUSTCHECK const struct err *db_row(struct db *, struct arena *,
    const struct stmt *, const void *args, void *out);
/* All rows; none is success. */
MUSTCHECK const struct err *db_rows(struct db *, struct arena *,
    const struct stmt *, const void *args, struct list *out);
/* INSERT, UPDATE, DELETE. `out` may be NULL. */
MUSTCHECK const struct err *db_exec(struct db *, const struct stmt *,
    const void *args, struct db_done *out);

/* Runs `body` in a transaction at READ COMMITTED and commits it.  Deadlocks,
 * lock timeouts and conflicts (1213, 1205, 1020) roll back and run it again,
 * at most five times and for two timeouts, so it must set all it hands out
 * each time it runs.
 * It has happened exactly once when this returns NULL, also if the answer to
 * COMMIT was lost: a token row written with it tells.  Calls do not nest. */
typedef const struct err *db_body(struct db *, void *context);
MUSTCHECK const struct err *db_transaction(struct db *, db_body *,
    void *context);

/* Runs SQL text of a migration, statements separated by `;` at line ends. */
MUSTCHECK const struct err *db_script(struct db *, const char *sql);

/* The migrations built into this program (sql/NNNN-*.sql), in their order. */
struct migration {
	const char *name; /* "0001-schema" */
	const char *sql;
};
extern const struct migration db_migrations[]; /* ends with a NULL name */

/* What became of a migration, here and in the database. */
struct migration_state {
	const char *name;
	const char *state; /* applied; pending; unfinished: begun, to be run
			    * again; changed: applied with another text;
			    * unknown: applied, not in this program */
	struct when finished_at;
};
/* All that program or database know, by name. No table yet: all pending. */
MUSTCHECK const struct err *db_migration_states(struct db *, struct arena *,
    struct list *out);
/* Runs one and records it; needs DB_MIGRATE. */
MUSTCHECK const struct err *db_migrate(struct db *, const char *name);

#endif
