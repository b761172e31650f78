/* SPDX-License-Identifier: ISC */
/* The database and the accounts at the database server, for their setup. */
#ifndef SLIPWAY_STORE_DBSERVER_H
#define SLIPWAY_STORE_DBSERVER_H

#include "db/db.h"

/* What an account may do with the tables of the database. */
enum dbserver_rights {
	DBSERVER_ROWS,   /* read and write rows */
	DBSERVER_TABLES, /* and change the schema */
	DBSERVER__MAX
};

struct dbserver_account {
	const char *name;
	const char *host;     /* that it connects from */
	const char *password; /* NULL = identified by its system user */
	const char *tls;      /* "REQUIRE SSL", "REQUIRE X509" or "" */
	const char *database;
	enum dbserver_rights rights;
};

/* The host of this connection, as the server names it. */
MUSTCHECK const struct err *dbserver_client(struct db *, struct arena *,
    const char **out);
MUSTCHECK const struct err *dbserver_create_database(struct db *,
    struct arena *, const char *name);
/* Whether an account of that name, for that host or a pattern of hosts, has all
 * the rights; false also if this connection may not see it. */
MUSTCHECK const struct err *dbserver_has_account(struct db *, struct arena *,
    const struct dbserver_account *, bool *out);
/* Creates the account, unless it exists, and grants it the rights. */
MUSTCHECK const struct err *dbserver_create_account(struct db *, struct arena *,
    const struct dbserver_account *);

#endif
