/* SPDX-License-Identifier: ISC */
/* What the files of this folder share; nothing outside includes it. */
#ifndef SLIPWAY_DB_CONN_H
#define SLIPWAY_DB_CONN_H

#include <mariadb/mysql.h>

#include "db/db.h"

#define DB_COLUMNS 64  /* of one statement, and as many `?` */
#define DB_CONFLICTS 5 /* tries after deadlocks and the like */

/* What an error number means for the one who sent the statement. */
enum db_what {
	DB_BUG,    /* unforeseen: the statement or the data */
	DB_TWICE,  /* a duplicate key */
	DB_AGAIN,  /* roll back, run the whole again */
	DB_STALE,  /* the statement must be prepared again */
	DB_LOST,   /* the connection is gone; what was sent may have happened */
	DB_CUT,    /* the statement was ended, the connection is still there */
	DB_AWAY,   /* try later, over another connection */
	DB_FULL,   /* try later, over this connection */
	DB_DENIED, /* somebody must change account or configuration */
};

enum db_state {
	DB_PLAIN,  /* each statement for itself */
	DB_OPEN,   /* inside a transaction */
	DB_DOOMED, /* inside one that must not be committed */
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
	MYSQL_STMT *st;
	struct cell *args;    /* one per `?` */
	struct cell *columns; /* one per column; the library writes to them */
	MYSQL_BIND *binds;    /* enough for either */
	bool checked;         /* its columns are those of the table */
	bool bound;           /* the library knows the columns' cells */
};

/* Whether to check the connection before a statement. */
enum conn_care {
	CONN_TRUST, /* no: a statement that fails is sent again */
	CONN_LOOK,  /* yes: it cannot be sent twice */
};

struct db {
	const struct settings *settings;
	unsigned flags;
	MYSQL *my;      /* NULL while there is no connection */
	unsigned forks; /* of the process when it connected */
	struct prepared *prepared;
	size_t n, cap;
	int64_t not_before; /* no connection is tried until then */
	int64_t pause;      /* milliseconds; doubles with each failure */
	enum db_state state;
	enum db_what why; /* of DB_DOOMED */
	struct err kept;
	const struct err *doom; /* of DB_DOOMED; kept */
};

/* error.c */
enum db_what db_what(unsigned number);
/* The error value of a server's or the library's message. */
MUSTCHECK const struct err *db_error(const char *who, unsigned number,
    const char *text);
/* The one for a write whose answer was lost. */
MUSTCHECK const struct err *db_unknown(const struct err *cause);
/* Sleeps for about `ms`, at least half of it. */
void db_sleep(int64_t ms);

/* connect.c: `what` is set with an error. */
MUSTCHECK const struct err *conn_ready(struct db *, enum conn_care,
    enum db_what *what);
/* Closes the connection where `what` says that it is of no more use. */
void conn_judge(struct db *, enum db_what what);
/* A statement without arguments and rows. */
MUSTCHECK const struct err *conn_query(struct db *, const char *sql, size_t len,
    enum db_what *what);

/* stmt.c */
MUSTCHECK const struct err *stmt_get(struct db *, const struct stmt *,
    struct prepared **out, enum db_what *what);
void stmt_forget(struct db *, const struct stmt *);
void stmt_forget_all(struct db *);

/* row.c */
/* Whether the entry is a column. */
bool row_has(const struct field *);
size_t row_width(const struct field *);
/* What must remain of an arena for whoever works on the rows. */
size_t row_reserve(const struct arena *);
MUSTCHECK const struct err *row_bind_args(struct prepared *, const void *args);
/* Binds the columns to their cells, once; false with the library's error. */
bool row_bind(struct prepared *);
/* Copies the fetched row into an item, which is zeroed memory. */
MUSTCHECK const struct err *row_take(const struct prepared *, struct arena *,
    void *item);

/* check.c: ERR_CONFIG if the columns are not those of the table. */
MUSTCHECK const struct err *check_columns(const struct stmt *, MYSQL_STMT *);

#endif
