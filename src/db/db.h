/* SPDX-License-Identifier: ISC */
/*
 * MariaDB: statements as data, rows to structs and back, transactions, and the
 * only place that interprets the server's error numbers.
 *
 * The first use opens the connection, and the next use after a loss reopens it;
 * callers need not care.  Statements are prepared once per connection and
 * cached by the address of their struct stmt.
 *
 * Errors: an unreachable, full or read-only server, too many connections, and a
 * cluster node without quorum are ERR_UNAVAILABLE; missing privileges are
 * ERR_CONFIG; more than max_allowed_packet is ERR_TOO_LARGE; a duplicate key is ERR_CONFLICT with `sys` 1062; anything
 * unexpected is ERR_INTERNAL.
 */
#ifndef SLIPWAY_DB_DB_H
#define SLIPWAY_DB_DB_H

#include <stdbool.h>

#include "core/field.h"
#include "core/settings.h"

#define DB_DUPLICATE 1062 /* err->sys of a rejected duplicate */
#define DB_UNKNOWN                                                             \
	(-1) /* err->sys of a write that may have been made, or may
			 * still be */

struct db;

/* Several statements in one, which saves the round trips: "BEGIN NOT ATOMIC …;
 * …; END". An error in one ends it; outside a transaction, what those before it
 * have changed remains. One of them may return rows, or two, in the order of the
 * members `row` and `more`. */
#define DB_COMPOUND "BEGIN NOT ATOMIC "

/* statements.awk makes them from src/store/NAME.sql and src/queue/NAME.sql. */
struct stmt {
	const char *name;         /* for messages: "project_by_id" */
	const char *sql;          /* constant text */
	const struct field *args; /* one per `?`, in order; or NULL */
	const struct field *row;  /* one per column, in order; or NULL */
	size_t rowsize;
	const struct field *more; /* the same of a second result; or NULL */
	size_t moresize;
	bool reads; /* a compound statement that writes nothing */
};

/* Result of an INSERT, UPDATE or DELETE.  Rows that matched count as affected
 * even if no value changed (CLIENT_FOUND_ROWS). */
struct db_done {
	int64_t affected;
	int64_t insert_id;
};

enum db_flag {
	DB_MIGRATE = 1 << 0, /* the migrating account */
	DB_API = 1 << 1,     /* the API's account */
};

/* Does not connect yet.  `settings` must outlive `out`. */
MUSTCHECK const struct err *db_open(const struct settings *, unsigned flags,
    struct db **out);
void db_close(struct db *);
const struct settings *db_settings(const struct db *);
/* How many connections were opened.  After a failover, the server of the next one
 * may not have what was committed over the one before. */
int64_t db_connections(const struct db *);
/* Closes the connection; the next use opens another (after a fork, for
 * example). */
void db_drop(struct db *);

/* Prepares every statement, compares columns and `?` with the tables, and closes
 * it again: together they take megabytes, and most processes use a few.
 * ERR_CONFIG names statement and column. The list ends with a NULL. */
MUSTCHECK const struct err *db_check(struct db *, const struct stmt *const *);
/* ERR_CONFIG unless the newest migration applied is the newest that this
 * program contains, and none was changed; names the one that is missing or
 * unknown. */
MUSTCHECK const struct err *db_check_schema(struct db *);
/* Reads a table, because a cluster node without quorum still answers SELECT
 * 1. */
MUSTCHECK const struct err *db_ping(struct db *);

/* Reads one row into `out` (of the statement's rowsize), strings in the arena;
 * ERR_NOTFOUND if there is none. */
MUSTCHECK const struct err *db_row(struct db *, struct arena *,
    const struct stmt *, const void *args, void *out);
/* Reads all rows; an empty list is success. */
MUSTCHECK const struct err *db_rows(struct db *, struct arena *,
    const struct stmt *, const void *args, struct list *out);
/* Reads one row like db_row(), and then all rows of the second result. */
MUSTCHECK const struct err *db_row_more(struct db *, struct arena *,
    const struct stmt *, const void *args, void *out, struct list *more);
/* INSERT, UPDATE, DELETE. `out` may be NULL. */
MUSTCHECK const struct err *db_exec(struct db *, const struct stmt *,
    const void *args, struct db_done *out);

/* Whether the error says that the server takes no writes at all: it is read-only,
 * or its disk is full. */
bool db_rejects_writes(const struct err *);
/* The same because it has no room. */
bool db_is_full(const struct err *);
/* Whether a statement has changed rows since the last call, even if its
 * transaction was rolled back. */
bool db_has_written(struct db *);

/* Runs `body` in a transaction at READ COMMITTED and commits it.  After a
 * deadlock, lock timeout or conflict (1213, 1205, 1020) it rolls back and runs
 * `body` again, at most five times and for at most two timeouts, so `body` must
 * set all its results on each run.
 *
 * NULL means that the transaction was committed exactly once, even if the
 * response to COMMIT was lost: a token row written with it proves that.  Calls
 * do not nest. */
typedef const struct err *db_body(struct db *, void *context);
/* Whether the caller is in the body of one. */
bool db_in_transaction(const struct db *);
MUSTCHECK const struct err *db_transaction(struct db *, db_body *,
    void *context);

/* Runs `body` on a snapshot: all its statements see the database as it was at
 * one moment, and the server rejects writes.  After a conflict or a lost
 * connection, `body` runs again, so it must set all its results on each run.
 * Calls do not nest. */
MUSTCHECK const struct err *db_snapshot(struct db *, db_body *, void *context);

/* Runs the SQL text of a migration; a `;` at the end of a line ends a
 * statement. */
MUSTCHECK const struct err *db_script(struct db *, const char *sql);

/* The migrations built into this program (sql/NNNN-*.sql), in order. */
struct migration {
	const char *name; /* "0001-schema" */
	const char *sql;
	const char *checksum; /* the SHA-256 of sql, in hexadecimal digits */
};
extern const struct migration db_migrations[]; /* ends with a NULL name */

/* State of a migration in this program and the database. */
struct migration_state {
	const char *name;
	const char *state; /* applied; pending; unfinished: started, must be run
			    * again; changed: applied with another text;
			    * unknown: applied, but not in this program */
	struct when finished_at;
};
/* All migrations that the program or the database contains, by name.  If the
 * table does not exist yet, all are pending. */
MUSTCHECK const struct err *db_migration_states(struct db *, struct arena *,
    struct list *out);
/* Runs one migration and records it; needs DB_MIGRATE. */
MUSTCHECK const struct err *db_migrate(struct db *, const char *name);

#endif
