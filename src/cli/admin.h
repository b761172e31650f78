/* SPDX-License-Identifier: ISC */
/* Shared by the files of slipway-admin. */
#ifndef SLIPWAY_CLI_ADMIN_H
#define SLIPWAY_CLI_ADMIN_H

#include "cli/command.h"
#include "core/settings.h"
#include "db/db.h"
#include "json/json.h"
#include "store/audit.h"
#include "store/user.h"

/* What the body of a transaction has changed. */
struct admin_audit {
	struct audit_object_ref object;
	const char *changes; /* JSON; NULL = none */
	bool is_unchanged;
};

/* Created once, in main. */
struct admin {
	struct arena *a;
	const char *conf; /* path of the configuration */
	struct settings set;
	struct db *db;       /* not connected until a command uses it */
	const char *command; /* the action of entries in the audit log */
	struct admin_audit audit;
};

/* Of a command. */
enum admin_flag {
	COMMAND_DB = 1 << 0,      /* opens the database */
	COMMAND_MIGRATE = 1 << 1, /* as the account that migrates */
	COMMAND_SCHEMA = 1 << 2,  /* requires this program's schema version */
	COMMAND_SETUP = 1 << 3,   /* the configuration may be missing */
	COMMAND_CONF = 1 << 4,    /* requires nothing but the configuration */
};

/* Options of setup, key and migrate. */
struct admin_setup {
	const char *admin;            /* NULL = any, or else "admin" */
	const char *db_user;          /* NULL = migrate_user */
	const char *db_password_file; /* NULL = ask for it */
	bool dry_run;
};
struct admin_key {
	bool reseal;
	bool prune;
	bool dry_run;
};
struct admin_migrate {
	bool status;
	bool dry_run;
};
struct admin_skip {
	int64_t deployments; /* 0 = the default, like the next one */
	int64_t projects;    /* and environments */
	bool dry_run;
};
struct admin_move {
	bool dry_run;
};
struct admin_known_host {
	bool yes;
	struct option_list fingerprint;
};
/* Options that describe a user; NULL = not given. */
struct admin_user {
	const char *role;
	const char *status;
	const char *name;
	const char *email;
};
/* Options that describe a token. */
struct admin_token {
	const char *name;
	const char *role;
	const char *expires;
};

/* Like db_transaction(), and adds an entry to the audit log with the account
 * that runs the command. The body sets the object, unless it changes
 * nothing. */
MUSTCHECK const struct err *admin_transaction(struct admin *, db_body *,
    void *context);
/* Inside the body: notes which members differ; false if none do. */
bool admin_changes(struct admin *, const struct shape *, const void *old,
    const void *new);
/* Reads members given as text over `item`, validated like a body of the API.
 * ERR_INVALID lists everything that is wrong. */
MUSTCHECK const struct err *admin_read(struct admin *, const struct shape *,
    enum json_mode, const struct map *members, void *item);
/* ERR_NOTFOUND names the user. */
MUSTCHECK const struct err *admin_user_find(struct admin *,
    const char *username, struct user *out);

/* What the commands of these names do, without their output. */
MUSTCHECK const struct err *admin_key_create(struct admin *);
MUSTCHECK const struct err *admin_schema_apply(struct admin *);
MUSTCHECK const struct err *admin_user_create(struct admin *,
    const char *username, const struct admin_user *);
MUSTCHECK const struct err *admin_token_create(struct admin *,
    const char *username, const struct admin_token *, const char **token);
/* ERR_CONFIG if migrate cannot make it so. */
MUSTCHECK const struct err *admin_schema_is_current(struct admin *, bool *out);

command_run admin_setup;
command_run admin_migrate, admin_skip_ids, admin_key, admin_check, admin_doctor;
command_run admin_gitserver_move;
command_run admin_known_host_add, admin_known_host_list;
command_run admin_known_host_remove;
command_run admin_user_list, admin_user_add, admin_user_set;
command_run admin_user_delete;
command_run admin_token_add, admin_token_list, admin_token_delete;

#endif
