/* SPDX-License-Identifier: ISC */
/*
 * Shared by the parts of slipway-admin setup.  A part is one thing that an
 * installation needs; setup goes through the table of parts, looks for each,
 * and creates what is missing.
 */
#ifndef SLIPWAY_CLI_ADMIN_SETUP_H
#define SLIPWAY_CLI_ADMIN_SETUP_H

#include <sys/types.h>

#include "cli/admin.h"

struct setup {
	struct admin *admin; /* its db is NULL until the database exists */
	const struct admin_setup *options;
	const char *login; /* of the administrator */
	bool had_login;    /* it existed before this run */
	bool had_token;
	struct settings server;   /* to create databases and accounts */
	struct settings migrator; /* to change the schema */
	struct db *db;            /* with `server`; NULL = not open */
	bool current;             /* the schema has this version */
};

struct part {
	const char *what;
	/* What to look for and create; NULL = this host does not need it. */
	const char *(*name)(struct setup *);
	const char *(*owner)(struct setup *); /* account; NULL = root */
	mode_t mode;
	const struct err *(*find)(struct setup *, const struct part *,
	    const char *name, bool *found);
	const struct err *(
	    *create)(struct setup *, const struct part *, const char *name);
};

typedef const char *setup_name(struct setup *);
typedef const struct err *setup_find(struct setup *, const struct part *,
    const char *name, bool *found);
typedef const struct err *setup_create(struct setup *, const struct part *,
    const char *name);

/* admin_setup_host.c: system accounts, directories and files */
setup_name setup_runner_account, setup_api_account, setup_membership;
setup_name setup_conf_dir, setup_conf, setup_api_dir, setup_wake_dir;
setup_name setup_workspaces_parent, setup_workspaces, setup_spool, setup_keys;
setup_name setup_tls_key;
setup_find setup_account_find, setup_membership_find, setup_path_find;
setup_find setup_keys_find, setup_access_find;
setup_create setup_account_create, setup_membership_create;
setup_create setup_directory_create, setup_conf_create, setup_keys_create;
setup_create setup_access_create, setup_access_advise;

/* admin_setup_database.c: at the database server, and in the database */
setup_name setup_database, setup_user, setup_api_user, setup_migrate_user;
setup_name setup_schema, setup_login, setup_token;
setup_find setup_database_find, setup_dbaccount_find, setup_schema_find;
setup_find setup_login_find, setup_token_find;
setup_create setup_database_create, setup_dbaccount_create;
setup_create setup_schema_create, setup_login_create, setup_token_create;

#endif
