/* SPDX-License-Identifier: ISC */
/* Shared by the files of slipway-admin. */
#ifndef SLIPWAY_CLI_ADMIN_H
#define SLIPWAY_CLI_ADMIN_H

#include "core/settings.h"
#include "db/db.h"
#include "json/json.h"
#include "store/user.h"

/* Created once, in main. */
struct admin {
	struct arena *a;
	struct settings set;
	struct db *db; /* not connected until a command uses it */
};

enum command_flag {
	COMMAND_DB = 1 << 0,      /* opens the database */
	COMMAND_MIGRATE = 1 << 1, /* as the account that migrates */
	COMMAND_SCHEMA = 1 << 2,  /* requires this program's schema version */
};

/* argv[0] is the last word of the command's name. */
typedef const struct err *command_run(struct admin *, int argc, char **argv);

struct command {
	const char *name; /* "user add" */
	const char *args; /* for the usage */
	const char *doc;
	unsigned flags;
	command_run *run;
};

/* An option of a command; --name, with a value unless `flag` is set. */
struct option_value {
	const char *name;
	const char **value;
	bool *flag;
};

/* Takes the options from argv, wherever they are. The other arguments go to
 * words[0..max-1] and are all required. The list ends with a NULL name.
 * ERR_METHOD says what is wrong. */
MUSTCHECK const struct err *admin_options(int argc, char **argv,
    const struct option_value *, const char **words, size_t max);

/* Reads members given as text over `item`, validated like a body of the API.
 * ERR_INVALID lists everything that is wrong. */
MUSTCHECK const struct err *admin_read(struct admin *, const struct shape *,
    enum json_mode, const struct map *members, void *item);
/* ERR_NOTFOUND names the user. */
MUSTCHECK const struct err *admin_user_find(struct admin *,
    const char *username, struct user *out);

command_run admin_migrate, admin_key, admin_check, admin_doctor;
command_run admin_gitserver_move;
command_run admin_user_list, admin_user_add, admin_user_set;
command_run admin_user_delete;
command_run admin_token_add, admin_token_list, admin_token_delete;

#endif
