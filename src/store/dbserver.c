/* SPDX-License-Identifier: ISC */
#include "store/dbserver.h"

#include "store/store.h"

/* The arguments of all statements here, and the one column of their rows. */
struct words {
	const char *name;
	const char *host;
	const char *password;
	const char *tls;
	const char *database;
	const char *rights; /* as in GRANT, separated by ", " */
	const char *text;
	int64_t n;
};

static const char *const rights[DBSERVER__MAX] = {
	[DBSERVER_ROWS] = "SELECT, INSERT, UPDATE, DELETE",
	[DBSERVER_TABLES] = "SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, "
			    "INDEX, DROP, REFERENCES",
};

#include "store/dbserver.sql.h"

const struct store dbserver_store = {
	.stmts = dbserver_stmts,
};

static struct words
words_of(const struct dbserver_account *account)
{
	return (struct words){ .name = account->name,
		.host = account->host,
		.password = account->password,
		.tls = account->tls,
		.database = account->database,
		.rights = rights[account->rights] };
}

/* Runs the text that the statement writes. */
static const struct err *
written_run(struct db *db, struct arena *a, const struct stmt *writes,
    const struct words *args)
{
	struct words row;
	const struct err *e;

	if ((e = db_row(db, a, writes, args, &row)) != NULL)
		return e;
	return db_script(db, row.text);
}

const struct err *
dbserver_client(struct db *db, struct arena *a, const char **out)
{
	struct words row;
	const struct err *e;

	*out = NULL;
	if ((e = db_row(db, a, &sql_dbserver_client, NULL, &row)) == NULL)
		*out = row.text;
	return e;
}

const struct err *
dbserver_create_database(struct db *db, struct arena *a, const char *name)
{
	const struct words args = { .database = name };

	return written_run(db, a, &sql_dbserver_create_database, &args);
}

const struct err *
dbserver_has_account(struct db *db, struct arena *a,
    const struct dbserver_account *account, bool *out)
{
	const struct words args = words_of(account);
	struct words row;
	const struct err *e;

	*out = false;
	if ((e = db_row(db, a, &sql_dbserver_has_account, &args, &row)) == NULL)
		*out = row.n > 0;
	return e;
}

const struct err *
dbserver_create_account(struct db *db, struct arena *a,
    const struct dbserver_account *account)
{
	const struct words args = words_of(account);
	const struct err *e;

	if ((e = written_run(db, a, &sql_dbserver_create_account, &args)) !=
	    NULL)
		return e;
	return written_run(db, a, &sql_dbserver_grant, &args);
}
