/* SPDX-License-Identifier: ISC */
/* Shared by the files of this folder; nothing outside includes it. */
#ifndef SLIPWAY_DB_CONN_H
#define SLIPWAY_DB_CONN_H

#include <mariadb/mysql.h>

#include "db/db.h"

#define DB_COLUMNS 64  /* columns, and also `?`, of one statement */
#define DB_CONFLICTS 5 /* tries after deadlocks and similar conflicts */
/* Milliseconds: a read that took longer before the connection broke is not
 * retried, so that the caller waits for at most one timeout. */
#define DB_SOON 1000

/* What an error number means for the caller. */
enum db_what {
	DB_BUG,   /* unexpected: a fault of the statement or the data */
	DB_TWICE, /* a duplicate key */
	DB_AGAIN, /* roll back and run the whole transaction again */
	DB_STALE, /* the statement must be prepared again */
	DB_LOST,  /* the connection is lost; what was sent may have been
		    * executed */
	DB_CUT,   /* the statement was aborted; the connection still works */
	DB_AWAY,  /* try later, over a new connection */
	DB_FULL,  /* try later, over this connection */
	DB_LARGE, /* a packet was too large; the server closes the connection */
	DB_DENIED, /* an administrator must change account or configuration */
};

enum db_state {
	DB_PLAIN,  /* each statement commits by itself */
	DB_OPEN,   /* in a transaction */
	DB_DOOMED, /* in a transaction that must not be committed */
};

/* Memory that the library reads from and writes to. */
struct cell {
	int64_t n;
	MYSQL_TIME time;
	unsigned long len;
	my_bool null;
	my_bool error;
};

struct prepared {
	const struct stmt *key;
	bool begins; /* it begins a transaction, too */
	MYSQL_STMT *st;
	struct cell *args;    /* one per `?` */
	struct cell *columns; /* one per column; the library writes to them */
	MYSQL_BIND *binds;    /* enough for either */
	bool checked;         /* its columns match the table */
	bool checked_more;    /* those of its second result do */
	bool bound;           /* the library knows the cells of the first */
};

/* Whether to check the connection before a statement. */
enum conn_care {
	CONN_TRUST, /* no: a statement that fails is sent again */
	CONN_LOOK,  /* yes: it cannot be sent twice */
};

struct db {
	const struct settings *settings;
	unsigned flags;
	MYSQL *my;           /* NULL while not connected */
	unsigned forks;      /* of the process when it connected */
	int64_t connections; /* that were opened */
	int64_t packet_max;  /* bytes that the server accepts at once */
	struct prepared *prepared;
	size_t n, cap;
	int64_t not_before; /* do not connect before this time */
	int64_t pause;      /* milliseconds; doubles with each failure */
	enum db_state state;
	const char *token; /* of the transaction */
	bool is_begun;     /* the server has begun it */
	bool wrote;        /* since db_has_written() was called */
	enum db_what why;  /* of DB_DOOMED */
	struct err kept;
	const struct err *doom; /* of DB_DOOMED; kept */
};

/* error.c */
enum db_what db_what(unsigned number);
/* Creates the error value for a message of the server or the library. */
MUSTCHECK const struct err *db_error(const char *who, unsigned number,
    const char *text);
/* Creates the error value for a write whose response was lost. */
MUSTCHECK const struct err *db_unknown(const struct err *cause);
/* Sleeps for about `ms` milliseconds, at least half of that. */
void db_sleep(int64_t ms);

/* connect.c: sets `what` with an error. */
MUSTCHECK const struct err *conn_ready(struct db *, enum conn_care,
    enum db_what *what);
/* Closes the connection if `what` means that it is no longer usable. */
void conn_judge(struct db *, enum db_what what);
/* Runs a statement without arguments and rows. */
MUSTCHECK const struct err *conn_query(struct db *, const char *sql, size_t len,
    enum db_what *what);

/* stmt.c */
/* Prepares a statement. With `begins`, it begins a transaction first, whose
 * token is one more `?` before its own. */
MUSTCHECK const struct err *stmt_get(struct db *, const struct stmt *,
    bool begins, struct prepared **out, enum db_what *what);
void stmt_forget(struct db *, const struct stmt *);
void stmt_forget_all(struct db *);

/* row.c */
size_t row_width(const struct field *);
/* How much of an arena must remain for processing the rows. */
size_t row_reserve(const struct arena *);
MUSTCHECK const struct err *row_bind_args(struct prepared *, const char *token,
    const void *args);
/* Binds columns to their cells; false with the library's error. */
bool row_bind(struct prepared *, const struct field *row);
/* Copies the fetched row into an item, which is zeroed memory. */
MUSTCHECK const struct err *row_take(const struct prepared *,
    const struct field *row, struct arena *, void *item);

/* txn.c: begins the transaction by a statement of its own. */
MUSTCHECK const struct err *txn_begin(struct db *);
/* Makes the next statement begin it again, if its first one failed. */
MUSTCHECK const struct err *txn_restart(struct db *, enum db_what *what);
/* The statements that begin a transaction: they insert its token. */
#define TXN_BEGIN                                                              \
	"START TRANSACTION; INSERT INTO commit_token (token) VALUES (?); "

/* check.c: ERR_CONFIG if the columns do not match the table. */
MUSTCHECK const struct err *check_columns(const char *name,
    const struct field *row, MYSQL_STMT *);

#endif
