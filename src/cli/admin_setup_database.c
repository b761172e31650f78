/* SPDX-License-Identifier: ISC */
/* What setup creates at the database server, and in the database. */
#include <stdio.h>
#include <string.h>

#include "cli/admin_setup.h"
#include "core/str.h"
#include "store/dbserver.h"

#define LOGIN "admin"
#define TOKEN "first"

const char *
setup_database(struct setup *s)
{
	return s->admin->set.database.name;
}

const char *
setup_user(struct setup *s)
{
	return s->admin->set.database.user;
}

const char *
setup_api_user(struct setup *s)
{
	const struct settings_database *set = &s->admin->set.database;

	return str_eq(set->api_user, set->user) ? NULL : set->api_user;
}

/* The account that creates the others exists. */
const char *
setup_migrate_user(struct setup *s)
{
	const struct settings_database *set = &s->admin->set.database;

	return s->options->db_user == NULL ||
		str_eq(set->migrate_user, s->options->db_user) ||
		str_eq(set->migrate_user, set->user) ?
	    NULL :
	    set->migrate_user;
}

const char *
setup_schema(struct setup *s)
{
	(void)s;
	return "of version " SLIPWAY_VERSION;
}

/* Says which account would do. */
static const struct err *
explain(const struct setup *s, const struct err *e)
{
	const struct settings_database *set = &s->server.database;

	if (e == NULL || e->code == ERR_UNAVAILABLE)
		return e;
	return err_explain(e, ERR_CONFIG,
	    "the account %s at the database server could not do this (%s): "
	    "name one that may create databases and accounts with --db-user",
	    set->migrate_user != NULL ? set->migrate_user : set->user, e->msg);
}

static const struct err *
server_open(struct setup *s)
{
	return s->db != NULL ? NULL : db_open(&s->server, DB_MIGRATE, &s->db);
}

/* A connection is rejected if the account or the database does not exist. */
static const struct err *
connects(struct db *db, bool *out)
{
	const struct err *e = db_script(db, "DO 1");

	*out = e == NULL;
	return e != NULL && e->code == ERR_CONFIG && e->sys != 0 ? NULL : e;
}

const struct err *
setup_database_find(struct setup *s, const struct part *part, const char *name,
    bool *found)
{
	struct settings as = s->server;
	const struct err *e;
	struct db *db;

	(void)part;
	as.database.name = name;
	*found = false;
	if ((e = db_open(&as, DB_MIGRATE, &db)) == NULL)
		e = connects(db, found);
	db_close(db);
	return e;
}

const struct err *
setup_database_create(struct setup *s, const struct part *part,
    const char *name)
{
	const struct err *e;

	(void)part;
	if ((e = server_open(s)) == NULL)
		e = dbserver_create_database(s->db, s->admin->a, name);
	return explain(s, e);
}

static struct dbserver_account
account_of(const struct setup *s, const char *name)
{
	const struct settings_database *set = &s->admin->set.database;
	const bool migrates = str_eq(name, set->migrate_user);

	return (struct dbserver_account){ .name = name,
		.password = migrates ? set->migrate_password : set->password,
		.tls = set->tls_cert != NULL   ? "REQUIRE X509" :
		    settings_database_tls(set) ? "REQUIRE SSL" :
						 "",
		.database = set->name,
		.rights = migrates ? DBSERVER_TABLES : DBSERVER_ROWS };
}

static const struct err *
has_rights(struct setup *s, struct db *db, struct dbserver_account *account,
    bool *out)
{
	const struct err *e;

	*out = false;
	if ((e = dbserver_client(db, s->admin->a, &account->host)) != NULL)
		return e;
	return dbserver_has_account(db, s->admin->a, account, out);
}

/* An account with a password sees its own rights; system accounts identify the
 * others, and this process is not theirs. */
const struct err *
setup_dbaccount_find(struct setup *s, const struct part *part, const char *name,
    bool *found)
{
	struct settings as = s->admin->set;
	struct dbserver_account account = account_of(s, name);
	const struct err *e;
	struct db *db;

	(void)part;
	*found = false;
	if (as.database.host != NULL && account.password == NULL)
		return err_new(ERR_CONFIG,
		    "a server that is reached over TCP cannot identify system "
		    "accounts: set its password in [database]");
	if (account.password == NULL)
		return (e = server_open(s)) != NULL ?
		    e :
		    explain(s, has_rights(s, s->db, &account, found));
	as.database.user = name;
	as.database.password = account.password;
	if ((e = db_open(&as, 0, &db)) == NULL &&
	    (e = connects(db, found)) == NULL && *found)
		e = has_rights(s, db, &account, found);
	db_close(db);
	return e;
}

const struct err *
setup_dbaccount_create(struct setup *s, const struct part *part,
    const char *name)
{
	struct dbserver_account account = account_of(s, name);
	const struct err *e;

	(void)part;
	if ((e = server_open(s)) == NULL &&
	    (e = dbserver_client(s->db, s->admin->a, &account.host)) == NULL)
		e = dbserver_create_account(s->db, s->admin->a, &account);
	return explain(s, e);
}

/* Opens the database; without a schema in it, *found is false. */
const struct err *
setup_schema_find(struct setup *s, const struct part *part, const char *name,
    bool *found)
{
	const char *database = setup_database(s);
	const struct err *e;

	(void)name;
	if ((e = setup_database_find(s, part, database, found)) != NULL ||
	    !*found)
		return e;
	*found = false;
	if ((e = db_open(&s->migrator, DB_MIGRATE, &s->admin->db)) != NULL)
		return e;
	e = admin_schema_is_current(s->admin, found);
	s->current = *found;
	return e;
}

const struct err *
setup_schema_create(struct setup *s, const struct part *part, const char *name)
{
	(void)part;
	(void)name;
	s->current = true;
	return admin_schema_apply(s->admin);
}

/* The administrator of the command line; else an existing one, which is looked
 * for first. */
const char *
setup_login(struct setup *s)
{
	return s->login != NULL ? s->login : LOGIN;
}

static const struct err *
any_admin(struct setup *s, bool *found)
{
	const struct user_filter filter = { .status = "active",
		.role = "admin" };
	struct page page = { .page = 1, .limit = 1 };
	struct list list;
	const struct err *e;

	*found = false;
	if ((e = user_page(s->admin->db, s->admin->a, &filter, &page, &list)) !=
	    NULL)
		return e;
	if (list.n > 0)
		s->login = ((const struct user *)list.items)->username;
	*found = list.n > 0;
	return NULL;
}

/* An account with fewer rights is not changed. */
static const struct err *
named_admin(struct setup *s, const char *name, bool *found)
{
	const struct err *e;
	struct user u;

	e = user_by_name(s->admin->db, s->admin->a, name, &u);
	*found = e == NULL;
	if (e != NULL)
		return e->code == ERR_NOTFOUND ? NULL : e;
	if (str_eq(u.role, "admin") && str_eq(u.status, "active"))
		return NULL;
	return err_new(ERR_CONFIG,
	    "the user exists with the role %s and the status %s: name another "
	    "one, or run slipway-admin user set %s --role admin --status "
	    "active",
	    u.role, u.status, name);
}

static const struct err *
has_token(struct setup *s, const char *name, bool *out)
{
	struct page page = { .page = 1, .limit = 1 };
	const struct err *e;
	struct list list;
	struct user u;

	if ((e = user_by_name(s->admin->db, s->admin->a, name, &u)) != NULL ||
	    (e = token_page(s->admin->db, s->admin->a, u.id, &page, &list)) !=
		NULL)
		return e;
	*out = list.n > 0;
	return NULL;
}

/* Before the schema exists, --dry-run finds nothing in it. */
const struct err *
setup_login_find(struct setup *s, const struct part *part, const char *name,
    bool *found)
{
	const struct err *e;

	(void)part;
	*found = false;
	if (!s->current)
		return NULL;
	/* Without --admin, `admin` is created, so it must not be a user of
	 * another role. */
	if ((s->options->admin == NULL && (e = any_admin(s, found)) != NULL) ||
	    (!*found && (e = named_admin(s, name, found)) != NULL))
		return e;
	s->had_login = *found;
	return *found ? has_token(s, setup_login(s), &s->had_token) : NULL;
}

const struct err *
setup_login_create(struct setup *s, const struct part *part, const char *name)
{
	const struct admin_user options = { .role = "admin" };

	(void)part;
	return admin_user_create(s->admin, name, &options);
}

/* An existing account gets no token: it may belong to someone else. */
const char *
setup_token(struct setup *s)
{
	return s->had_login && !s->had_token ? NULL : setup_login(s);
}

const struct err *
setup_token_find(struct setup *s, const struct part *part, const char *name,
    bool *found)
{
	(void)part;
	(void)name;
	*found = s->had_token;
	return NULL;
}

const struct err *
setup_token_create(struct setup *s, const struct part *part, const char *name)
{
	const struct admin_token options = { .name = TOKEN };
	const char *token;
	const struct err *e;

	(void)part;
	if ((e = admin_token_create(s->admin, name, &options, &token)) != NULL)
		return e;
	(void)printf("%s\n", token);
	return NULL;
}
