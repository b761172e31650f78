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

#define W(m) FIELD(struct words, m, 0)

static const char *const rights[DBSERVER__MAX] = {
	[DBSERVER_ROWS] = "SELECT, INSERT, UPDATE, DELETE",
	[DBSERVER_TABLES] = "SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, "
			    "INDEX, DROP, REFERENCES",
};

/* SQL: the name of a database in GRANT, where _ and % are patterns. */
#define GRANTED                                                                \
	"REPLACE(REPLACE(REPLACE(?, '\\\\', '\\\\\\\\'), '_', '\\\\_'), '%', '\\\\%')"

static const struct field text_row[] = { W(text), FIELD_END };
static const struct field n_row[] = { W(n), FIELD_END };
static const struct field database_args[] = { W(database), FIELD_END };
static const struct field has_args[] = { W(rights), W(rights), W(rights),
	W(database), W(name), W(host), FIELD_END };
static const struct field create_args[] = { W(name), W(host), W(password),
	W(password), W(tls), FIELD_END };
static const struct field grant_args[] = { W(rights), W(database), W(name),
	W(host), FIELD_END };

static const struct stmt client_stmt = {
	.name = "dbserver_client",
	.sql = "SELECT SUBSTRING_INDEX(USER(), '@', -1) AS text",
	.row = text_row,
	.rowsize = sizeof(struct words),
};

static const struct stmt has_stmt = {
	.name = "dbserver_has_account",
	.sql = "SELECT COUNT(*) AS n FROM"
	       " (SELECT COUNT(DISTINCT privilege_type) AS had, 1 + LENGTH(?)"
	       " - LENGTH(REPLACE(?, ',', '')) AS wanted"
	       " FROM information_schema.schema_privileges"
	       " WHERE FIND_IN_SET(privilege_type, REPLACE(?, ', ', ','))"
	       " AND ? LIKE table_schema" /* a pattern, as in GRANT */
	       " AND CONCAT('''', ?, '''@''', ?, '''') LIKE grantee"
	       " GROUP BY grantee) AS accounts WHERE had = wanted",
	.args = has_args,
	.row = n_row,
	.rowsize = sizeof(struct words),
};

/* The server does not accept parameters in these statements, so it writes the
 * text of each, which quotes them. */
static const struct stmt create_database_stmt = {
	.name = "dbserver_create_database",
	.sql = "SELECT CONCAT('CREATE DATABASE IF NOT EXISTS `',"
	       " REPLACE(?, '`', '``'), '` CHARACTER SET utf8mb4') AS text",
	.args = database_args,
	.row = text_row,
	.rowsize = sizeof(struct words),
};

static const struct stmt create_account_stmt = {
	.name = "dbserver_create_account",
	.sql = "SELECT CONCAT('CREATE USER IF NOT EXISTS ', QUOTE(?), '@',"
	       " QUOTE(?), IF(? IS NULL, ' IDENTIFIED VIA unix_socket',"
	       " CONCAT(' IDENTIFIED BY PASSWORD ', QUOTE(PASSWORD(?)))),"
	       " ' ', ?) AS text",
	.args = create_args,
	.row = text_row,
	.rowsize = sizeof(struct words),
};

static const struct stmt grant_stmt = {
	.name = "dbserver_grant",
	.sql = "SELECT CONCAT('GRANT ', ?, ' ON `',"
	       " REPLACE(" GRANTED ", '`', '``'),"
	       " '`.* TO ', QUOTE(?), '@', QUOTE(?)) AS text",
	.args = grant_args,
	.row = text_row,
	.rowsize = sizeof(struct words),
};

static const struct stmt *const dbserver_stmts[] = { &client_stmt, &has_stmt,
	&create_database_stmt, &create_account_stmt, &grant_stmt, NULL };

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
run(struct db *db, struct arena *a, const struct stmt *writes,
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
	if ((e = db_row(db, a, &client_stmt, NULL, &row)) == NULL)
		*out = row.text;
	return e;
}

const struct err *
dbserver_create_database(struct db *db, struct arena *a, const char *name)
{
	const struct words args = { .database = name };

	return run(db, a, &create_database_stmt, &args);
}

const struct err *
dbserver_has_account(struct db *db, struct arena *a,
    const struct dbserver_account *account, bool *out)
{
	const struct words args = words_of(account);
	struct words row;
	const struct err *e;

	*out = false;
	if ((e = db_row(db, a, &has_stmt, &args, &row)) == NULL)
		*out = row.n > 0;
	return e;
}

const struct err *
dbserver_create_account(struct db *db, struct arena *a,
    const struct dbserver_account *account)
{
	const struct words args = words_of(account);
	const struct err *e;

	if ((e = run(db, a, &create_account_stmt, &args)) != NULL)
		return e;
	return run(db, a, &grant_stmt, &args);
}
