/* SPDX-License-Identifier: ISC */
/* slipway-admin: the schema, the key files, users and their tokens. */
#include "cli/admin.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <sysexits.h>
#include <unistd.h>

#include "core/log.h"
#include "crypto/crypto.h"

struct globals {
	const char *conf;
};

static const struct option_row global_options[] = {
	OPTION(struct globals, conf, "conf", .letter = 'c', .value = "FILE",
	    .file = true,
	    .doc = "read this configuration; default " SLIPWAY_CONF),
	OPTION_END,
};

static const struct option_row setup_options[] = {
	OPTION(struct admin_setup, admin, "admin", .value = "USER",
	    .doc = "the administrator; default: any, or else admin"),
	OPTION(struct admin_setup, db_user, "db-user", .value = "ACCOUNT",
	    .doc = "database account that creates the others; default: "
		   "database.migrate_user"),
	OPTION(struct admin_setup, db_password_file, "db-password-file",
	    .value = "FILE", .file = true,
	    .doc = "its password; default: ask for it"),
	OPTION(struct admin_setup, dry_run, "dry-run",
	    .doc = "print what is missing"),
	OPTION_END,
};

static const struct option_row migrate_options[] = {
	OPTION(struct admin_migrate, status, "status",
	    .doc = "print each migration and its time"),
	OPTION(struct admin_migrate, dry_run, "dry-run",
	    .doc = "print what would be applied"),
	OPTION_END,
};

static const struct option_row skip_options[] = {
	OPTION(struct admin_skip, deployments, "deployments", .value = "COUNT",
	    .min = 1, .max = INT64_C(1000000000000),
	    .doc = "how many of deployments; default: 100000"),
	OPTION(struct admin_skip, projects, "projects", .value = "COUNT",
	    .min = 1, .max = 1000000,
	    .doc = "how many of projects and environments; default: 100"),
	OPTION(struct admin_skip, dry_run, "dry-run",
	    .doc = "print the next ids"),
	OPTION_END,
};

static const struct option_row key_options[] = {
	OPTION(struct admin_key, reseal, "reseal",
	    .doc = "encrypt all values again with the first keys"),
	OPTION(struct admin_key, prune, "prune",
	    .doc = "remove all keys but the first"),
	OPTION(struct admin_key, dry_run, "dry-run",
	    .doc = "print what would be done"),
	OPTION_END,
};

static const struct option_row move_options[] = {
	OPTION(struct admin_move, dry_run, "dry-run",
	    .doc = "print what would be changed"),
	OPTION_END,
};

static const struct option_row known_host_options[] = {
	OPTION(struct admin_known_host, yes, "yes",
	    .doc = "do not ask; requires --fingerprint"),
	OPTION(struct admin_known_host, fingerprint, "fingerprint",
	    .value = "FINGERPRINT",
	    .doc = "add only the key with this fingerprint; can be repeated"),
	OPTION_END,
};

/* clang-format off */
#define USER_OPTIONS(needs_role)					\
	OPTION(struct admin_user, role, "role", .value = "ROLE",	\
	    .must = (needs_role),					\
	    .doc = "guest, viewer, deployer, maintainer or admin"),		\
	OPTION(struct admin_user, status, "status", .value = "STATUS",	\
	    .doc = "active or inactive"),				\
	OPTION(struct admin_user, name, "name", .value = "NAME",	\
	    .doc = "full name"),					\
	OPTION(struct admin_user, email, "email", .value = "MAIL",	\
	    .doc = "email address")
/* clang-format on */

static const struct option_row user_add_options[] = {
	USER_OPTIONS(true),
	OPTION_END,
};

static const struct option_row user_set_options[] = {
	USER_OPTIONS(false),
	OPTION_END,
};

static const struct option_row token_options[] = {
	OPTION(struct admin_token, name, "name", .value = "NAME", .must = true,
	    .doc = "name of the token"),
	OPTION(struct admin_token, role, "role", .value = "ROLE",
	    .doc = "role of the token; default: the user's highest"),
	OPTION(struct admin_token, expires, "expires", .value = "TIME|DAYSd",
	    .doc = "when it stops working; default: never"),
	OPTION_END,
};

/* clang-format off */
#define NONE_OF(f) .flags = (f)
#define WITH(f, list, type) .flags = (f), .options = (list),		\
	.size = sizeof(struct type)
#define ROWS (COMMAND_DB | COMMAND_SCHEMA)
/* clang-format on */

static const struct command commands[] = {
	{ "setup",
	    "create what is missing: accounts, keys, database, "
	    "administrator",
	    .examples = "setup --dry-run\tprint what is missing\n"
			"setup --admin ada\tcreate it, with an administrator "
			"of this name\n",
	    .run = admin_setup,
	    WITH(COMMAND_SETUP, setup_options, admin_setup) },
	{ "migrate", "upgrade the schema to this program's version",
	    .run = admin_migrate,
	    WITH(COMMAND_DB | COMMAND_MIGRATE, migrate_options,
		admin_migrate) },
	{ "skip-ids",
	    "after a restore, give no id that may have been given before",
	    .run = admin_skip_ids,
	    WITH(COMMAND_DB | COMMAND_MIGRATE | COMMAND_SCHEMA, skip_options,
		admin_skip) },
	{ "key", "create the key files, or rotate the keys", .run = admin_key,
	    .examples = "key\tcreate the key files, or add a new first key\n"
			"key --reseal\tencrypt all values with it\n"
			"key --prune\tdrop the older keys\n",
	    WITH(COMMAND_DB, key_options, admin_key) },
	{ "check", "print the settings, check the keys and the database",
	    .run = admin_check, NONE_OF(COMMAND_DB) },
	{ "doctor", "check everything that sign-in and deployments require",
	    .run = admin_doctor, NONE_OF(COMMAND_DB) },
	{ "gitserver move",
	    "move everything from the Git server's old URL to the new one",
	    .word = { { .name = "OLD" } }, .run = admin_gitserver_move,
	    WITH(ROWS, move_options, admin_move) },
	{ "known-host add",
	    "store the SSH host keys of a Git server, after a confirmation",
	    .examples = "known-host add git.example.org\t"
			"compare the fingerprints, then store the keys\n",
	    .word = { { .name = "HOST[:PORT]" } }, .run = admin_known_host_add,
	    WITH(COMMAND_CONF, known_host_options, admin_known_host) },
	{ "known-host list", "list the stored SSH host keys",
	    .run = admin_known_host_list, NONE_OF(COMMAND_CONF) },
	{ "known-host remove", "remove the SSH host keys of a Git server",
	    .word = { { .name = "HOST[:PORT]" } },
	    .run = admin_known_host_remove, NONE_OF(COMMAND_CONF) },
	{ "user list", "list all users", .run = admin_user_list,
	    NONE_OF(ROWS) },
	{ "user add", "create a user", .word = { { .name = "USER" } },
	    .run = admin_user_add, WITH(ROWS, user_add_options, admin_user) },
	{ "user set", "change a user; an empty text clears a value",
	    .word = { { .name = "USER" } }, .run = admin_user_set,
	    WITH(ROWS, user_set_options, admin_user) },
	{ "user delete", "delete a user and the user's tokens",
	    .word = { { .name = "USER" } }, .run = admin_user_delete,
	    NONE_OF(ROWS) },
	{ "token add", "create an API token and print it once",
	    .examples = "token add ada --name ci --expires 365d\t"
			"create a token that is valid for a year\n",
	    .word = { { .name = "USER" } }, .run = admin_token_add,
	    WITH(ROWS, token_options, admin_token) },
	{ "token list", "list the tokens of a user",
	    .word = { { .name = "USER" } }, .run = admin_token_list,
	    NONE_OF(ROWS) },
	{ "token delete", "delete a token; it is invalid immediately",
	    .word = { { .name = "USER" }, { .name = "NUMBER" } },
	    .run = admin_token_delete, NONE_OF(ROWS) },
	{ "completion", "print a completion script for a shell",
	    .word = { { "SHELL", .choices = command_shells } },
	    .run = command_completion },
	{ "help", "print the help of a command",
	    .word = { { "COMMAND", .optional = true, .known = command_names },
		{ "SUBCOMMAND", .optional = true } },
	    .run = command_help },
	{ .name = NULL },
};

static bool
runs_as(const char *account)
{
	const struct passwd *pw = account == NULL ? NULL : getpwnam(account);

	return pw != NULL && pw->pw_uid == geteuid();
}

/* Without a password MariaDB checks the account of the client (unix_socket), so
 * only that account can connect. */
static unsigned
account_of(const struct settings_database *s)
{
	if (s->password != NULL || runs_as(s->user))
		return 0;
	if (runs_as(s->api_user))
		return DB_API;
	return runs_as(s->migrate_user) ? DB_MIGRATE : 0;
}

static const struct err *
command_do(struct admin *admin, struct command_call *call)
{
	const struct command *c = call->command;
	unsigned how = (c->flags & COMMAND_MIGRATE) != 0 ?
	    DB_MIGRATE :
	    account_of(&admin->set.database);
	const struct err *e;

	if ((c->flags & COMMAND_DB) != 0 &&
	    (e = db_open(&admin->set, how, &admin->db)) != NULL)
		return e;
	if ((c->flags & COMMAND_SCHEMA) != 0 &&
	    (e = db_check_schema(admin->db)) != NULL)
		return e;
	return c->run(admin, call);
}

/* Without -c the file may be missing, and the environment may replace it. */
static const struct err *
settings_read(struct admin *admin, const struct command_call *call)
{
	const struct globals *globals = call->settings;
	const bool optional = globals->conf == NULL ||
	    (call->command->flags & COMMAND_SETUP) != 0;

	if (access(admin->conf, R_OK) == 0 || (errno == ENOENT && optional))
		return conf_read(admin->a, settings_keys, admin->conf,
		    optional ? CONF_OPTIONAL : 0, &admin->set);
	if (errno == ENOENT)
		return err_public(ERR_CONFIG,
		    "%s does not exist: name the configuration with -c; "
		    "slipway-admin setup creates one",
		    admin->conf);
	if (errno == EACCES)
		return err_public(ERR_CONFIG,
		    "%s: this account cannot read the configuration: run the "
		    "command as root, or as the service with runuser -u "
		    "slipway-api",
		    admin->conf);
	return err_errno("%s", admin->conf);
}

static int
admin_run(struct command_call *call)
{
	const struct globals *globals = call->settings;
	struct admin admin = { .a = call->a,
		.command = call->command->name,
		.conf = globals->conf == NULL ? SLIPWAY_CONF : globals->conf };
	const struct err *e;
	int status = EX_OK;

	if (call->command->flags == 0)
		e = call->command->run(&admin, call);
	else if ((e = crypto_init()) == NULL &&
	    (e = settings_read(&admin, call)) == NULL)
		e = command_do(&admin, call);
	if (e != NULL)
		status = command_report(call, e);
	db_close(admin.db);
	return status;
}

static const struct program program = {
	.name = "slipway-admin",
	.doc = "administer the schema, keys, users and tokens of slipway",
	.commands = commands,
	.options = global_options,
	.size = sizeof(struct globals),
	.run = admin_run,
};

int
main(int argc, char **argv)
{
	log_init("slipway-admin", 0);
	return command_main(&program, argc, argv);
}
