/* SPDX-License-Identifier: ISC */
/* slipway-admin: the schema, the key files, users and their tokens. */
#include "cli/admin.h"

#include <err.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "core/log.h"
#include "core/str.h"
#include "crypto/crypto.h"

#define ARENA ((size_t)64 << 20)
#define NAME_WORDS 2

static const struct command commands[] = {
	{ "migrate", "[--status | --dry-run]",
	    "upgrade the schema to this program's version",
	    COMMAND_DB | COMMAND_MIGRATE, admin_migrate },
	{ "key", "[--reseal | --prune] [--dry-run]",
	    "create the key files, or add a new first key to each; "
	    "re-encrypt\n      all values with it; drop the older keys",
	    COMMAND_DB, admin_key },
	{ "check", "",
	    "print the effective settings and check keys and database",
	    COMMAND_DB, admin_check },
	{ "doctor", "", "check everything that sign-in and deployments require",
	    COMMAND_DB, admin_doctor },
	{ "gitserver move", "OLD [--dry-run]",
	    "move accounts and repositories from the Git server's old URL to "
	    "the\n      configured one",
	    COMMAND_DB | COMMAND_SCHEMA, admin_gitserver_move },
	{ "user list", "",
	    "list name, role, status, full name and email of all users",
	    COMMAND_DB | COMMAND_SCHEMA, admin_user_list },
	{ "user add",
	    "USER --role ROLE [--status STATUS] [--name NAME] [--email MAIL]",
	    "create a user", COMMAND_DB | COMMAND_SCHEMA, admin_user_add },
	{ "user set",
	    "USER [--role ROLE] [--status STATUS] [--name NAME]"
	    " [--email MAIL]",
	    "change a user; an empty text clears a value",
	    COMMAND_DB | COMMAND_SCHEMA, admin_user_set },
	{ "user delete", "USER", "delete a user and the user's tokens",
	    COMMAND_DB | COMMAND_SCHEMA, admin_user_delete },
	{ "token add", "USER --name NAME [--role ROLE] [--expires TIME|DAYSd]",
	    "create an API token and print it; it is not shown again",
	    COMMAND_DB | COMMAND_SCHEMA, admin_token_add },
	{ "token list", "USER",
	    "list number, role, name and expiry of a user's tokens",
	    COMMAND_DB | COMMAND_SCHEMA, admin_token_list },
	{ "token delete", "USER NUMBER",
	    "delete a token; it is invalid immediately",
	    COMMAND_DB | COMMAND_SCHEMA, admin_token_delete },
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

/* Whether the command is "group SUBCOMMAND"; NULL = whether it is any. */
static bool
is_in_group(const struct command *c, const char *group)
{
	const size_t len = group == NULL ? 0 : strlen(group);

	return group == NULL ||
	    (strncmp(c->name, group, len) == 0 && c->name[len] == ' ');
}

/* Lists the commands of a group, or all. */
static void
usage(FILE *to, const char *group)
{
	size_t i;

	(void)fprintf(to, "usage: slipway-admin [-c FILE] COMMAND\n");
	for (i = 0; i < COMMANDS; i++)
		if (is_in_group(&commands[i], group))
			(void)fprintf(to, "  %s%s%s\n      %s\n",
			    commands[i].name,
			    *commands[i].args == '\0' ? "" : " ",
			    commands[i].args, commands[i].doc);
	(void)fprintf(to,
	    "  -c FILE  read this configuration; default " SLIPWAY_CONF "\n"
	    "  -h       print this text\n"
	    "  -V       print the version\n");
}

/* Rejects an unknown command; names the subcommands if its first word has
 * some. */
static int
command_unknown(int argc, char **argv)
{
	const char *separator = "";
	bool group = false;
	size_t i;

	for (i = 0; argc > 0 && i < COMMANDS && !group; i++)
		group = is_in_group(&commands[i], argv[0]);
	if (argc > 0 && !group)
		warnx("unknown command %s", argv[0]);
	if (group) {
		if (argc > 1)
			(void)fprintf(stderr,
			    "slipway-admin: unknown command %s %s; existing ones:",
			    argv[0], argv[1]);
		else
			(void)fprintf(stderr,
			    "slipway-admin: %s requires a subcommand:",
			    argv[0]);
		for (i = 0; i < COMMANDS; i++) {
			if (!is_in_group(&commands[i], argv[0]))
				continue;
			(void)fprintf(stderr, "%s %s", separator,
			    commands[i].name);
			separator = ",";
		}
		(void)fprintf(stderr, "\n");
	}
	usage(stderr, group ? argv[0] : NULL);
	return EX_USAGE;
}

static const struct option_value *
option_find(const struct option_value *o, const char *name, size_t len)
{
	for (; o->name != NULL; o++)
		if (strlen(o->name) == len && strncmp(o->name, name, len) == 0)
			return o;
	return NULL;
}

/* Parses --name VALUE or --name=VALUE; advances *at past a separate value. */
static const struct err *
option_take(const struct option_value *options, int argc, char **argv, int *at)
{
	const char *name = argv[*at] + 2;
	size_t len = strcspn(name, "=");
	const struct option_value *o = option_find(options, name, len);

	if (o == NULL)
		return err_public(ERR_METHOD, "%s: unknown option %s", argv[0],
		    argv[*at]);
	if (o->flag != NULL) {
		if (name[len] != '\0')
			return err_public(ERR_METHOD, "%s: --%s takes no value",
			    argv[0], o->name);
		*o->flag = true;
		return NULL;
	}
	if (name[len] == '=')
		*o->value = name + len + 1;
	else if (*at + 1 < argc)
		*o->value = argv[++*at];
	else
		return err_public(ERR_METHOD, "%s: --%s requires a value",
		    argv[0], o->name);
	return NULL;
}

const struct err *
admin_options(int argc, char **argv, const struct option_value *options,
    const char **words, size_t max)
{
	const struct err *e;
	bool only_words = false;
	size_t n = 0;
	int i;

	for (i = 1; i < argc; i++) {
		if (!only_words && strcmp(argv[i], "--") == 0) {
			only_words = true;
		} else if (!only_words && str_starts(argv[i], "--")) {
			if ((e = option_take(options, argc, argv, &i)) != NULL)
				return e;
		} else if (n < max) {
			words[n++] = argv[i];
		} else {
			return err_public(ERR_METHOD,
			    "%s: unexpected argument \"%s\"", argv[0], argv[i]);
		}
	}
	if (n < max)
		return err_public(ERR_METHOD, "%s: missing argument", argv[0]);
	return NULL;
}

/* Finds the command that argv starts with, and the number of its words. */
static const struct command *
command_find(int argc, char **argv, int *words)
{
	char name[64];
	size_t i;

	for (*words = NAME_WORDS; *words > 0; --*words) {
		if (*words > argc)
			continue;
		(void)snprintf(name, sizeof(name), "%s%s%s", argv[0],
		    *words > 1 ? " " : "", *words > 1 ? argv[1] : "");
		for (i = 0; i < COMMANDS; i++)
			if (strcmp(commands[i].name, name) == 0)
				return &commands[i];
	}
	return NULL;
}

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
command_do(struct admin *admin, const struct command *c, int argc, char **argv)
{
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
	return c->run(admin, argc, argv);
}

static int
command_main(const char *path, const struct command *c, int argc, char **argv)
{
	struct admin admin = { .a = arena_open(ARENA) };
	const struct err *e;
	int status = EX_OK;

	if ((e = crypto_init()) != NULL)
		goto out;
	if ((e = conf_read(admin.a, settings_keys,
		 path == NULL ? SLIPWAY_CONF : path,
		 path == NULL ? CONF_OPTIONAL : 0, &admin.set)) != NULL)
		goto out;
	e = command_do(&admin, c, argc, argv);
out:
	db_close(admin.db);
	if (e != NULL) {
		status = err_kinds[e->code].exit;
		warnx("%s", str_visible(admin.a, e->msg));
		if (e->code == ERR_METHOD)
			(void)fprintf(stderr,
			    "usage: slipway-admin [-c FILE] %s %s\n", c->name,
			    c->args);
	}
	arena_close(admin.a);
	if (fflush(stdout) != 0)
		err(EX_IOERR, "standard output");
	return status;
}

int
main(int argc, char **argv)
{
	const struct command *command;
	const char *path = NULL;
	int opt, words = 0;

	log_init("slipway-admin", 0);
	while ((opt = getopt(argc, argv, "+c:hV")) != -1) {
		switch (opt) {
		case 'c':
			path = optarg;
			break;
		case 'h':
			usage(stdout, NULL);
			return EX_OK;
		case 'V':
			(void)printf("slipway-admin %s\n", SLIPWAY_VERSION);
			return EX_OK;
		default:
			usage(stderr, NULL);
			return EX_USAGE;
		}
	}
	argc -= optind;
	argv += optind;
	command = argc > 0 ? command_find(argc, argv, &words) : NULL;
	if (command == NULL)
		return command_unknown(argc, argv);
	return command_main(path, command, argc - words + 1, argv + words - 1);
}
