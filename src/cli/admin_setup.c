/* SPDX-License-Identifier: ISC */
/* slipway-admin setup: creates what an installation needs and does not have. */
#include "cli/admin_setup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/prompt.h"

#define PASSWORD_MAX 1024

/* In the order of creation. */
static const struct part parts[] = {
	{ "system account", setup_runner_account, .find = setup_account_find,
	    .create = setup_account_create },
	{ "system account", setup_api_account, .find = setup_account_find,
	    .create = setup_account_create },
	{ "membership", setup_membership, .find = setup_membership_find,
	    .create = setup_membership_create },
	{ "directory", setup_conf_dir, .mode = 0755, .find = setup_path_find,
	    .create = setup_directory_create },
	{ "configuration", setup_conf, .mode = 0640, .find = setup_path_find,
	    .create = setup_conf_create },
	{ "access to", setup_conf, .find = setup_access_find,
	    .create = setup_access_create },
	{ "access to", setup_tls_key, .find = setup_access_find,
	    .create = setup_access_advise },
	{ "directory", setup_workspaces_parent, .mode = 0755,
	    .find = setup_path_find, .create = setup_directory_create },
	{ "directory", setup_workspaces, .mode = 0755, .find = setup_path_find,
	    .create = setup_directory_create },
	{ "directory", setup_spool, setup_runner_account, 0700, setup_path_find,
	    setup_directory_create },
	{ "directory", setup_api_dir, setup_api_account, 0755, setup_path_find,
	    setup_directory_create },
	{ "directory", setup_wake_dir, setup_runner_account, 0755,
	    setup_path_find, setup_directory_create },
	{ "keys", setup_keys, .find = setup_keys_find,
	    .create = setup_keys_create },
	{ "database", setup_database, .find = setup_database_find,
	    .create = setup_database_create },
	{ "database account", setup_user, .find = setup_dbaccount_find,
	    .create = setup_dbaccount_create },
	{ "database account", setup_api_user, .find = setup_dbaccount_find,
	    .create = setup_dbaccount_create },
	{ "database account", setup_migrate_user, .find = setup_dbaccount_find,
	    .create = setup_dbaccount_create },
	{ "schema", setup_schema, .find = setup_schema_find,
	    .create = setup_schema_create },
	{ "administrator", setup_login, .find = setup_login_find,
	    .create = setup_login_create },
	{ "API token of", setup_token, .find = setup_token_find,
	    .create = setup_token_create },
};

static const struct err *
part_do(struct setup *s, const struct part *part)
{
	const char *name = part->name(s);
	const bool dry_run = s->options->dry_run;
	const struct err *e = NULL;
	bool found;

	if (name == NULL)
		return NULL;
	if ((e = part->find(s, part, name, &found)) == NULL && !found &&
	    !dry_run)
		e = part->create(s, part, name);
	if (e != NULL)
		return err_wrap(e, "%s %s", part->what, name);
	(void)printf("%s  %s %s\n",
	    found       ? "exists " :
		dry_run ? "missing" :
			  "created",
	    part->what, part->name(s));
	(void)fflush(stdout);
	return NULL;
}

/* Before the configuration exists, its example applies. */
static const struct err *
settings_read(struct setup *s)
{
	struct admin *admin = s->admin;

	if (access(admin->conf, F_OK) == 0 || errno != ENOENT)
		return NULL;
	if (access(SLIPWAY_EXAMPLE, F_OK) == -1 && errno == ENOENT)
		return err_public(ERR_CONFIG,
		    "neither %s nor its example %s exists: install slipway "
		    "first (make install, or the packages), or name an "
		    "existing configuration with -c",
		    admin->conf, SLIPWAY_EXAMPLE);
	admin->set = (struct settings){ .api = { .socket = NULL } };
	return conf_read(admin->a, settings_keys, SLIPWAY_EXAMPLE, 0,
	    &admin->set);
}

/* The account that creates databases and accounts is that of the command line,
 * or that which changes the schema. */
static const struct err *
server_set(struct setup *s)
{
	const struct admin_setup *options = s->options;
	struct settings_database *server = &s->server.database;
	const struct err *e;

	s->server = s->migrator = s->admin->set;
	server->name = NULL;
	if (options->db_user == NULL)
		return NULL;
	server->migrate_user = options->db_user;
	if (options->db_password_file != NULL)
		e = prompt_file(s->admin->a, options->db_password_file,
		    PASSWORD_MAX, &server->migrate_password);
	else
		e = prompt_secret(s->admin->a,
		    arena_printf(s->admin->a, "password of %s at the database",
			options->db_user),
		    &server->migrate_password);
	if (s->migrator.database.migrate_user == NULL) {
		s->migrator.database.migrate_user = server->migrate_user;
		s->migrator.database.migrate_password = server
							    ->migrate_password;
	}
	return e;
}

const struct err *
admin_setup(void *context, struct command_call *call)
{
	struct setup s = { .admin = context, .options = call->options };
	const struct err *e;
	size_t i;

	s.login = s.options->admin;
	if (s.login != NULL && *s.login == '\0')
		return err_public(ERR_METHOD,
		    "setup: the value of --admin is empty");
	if ((e = settings_read(&s)) != NULL || (e = server_set(&s)) != NULL)
		return e;
	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if ((e = part_do(&s, &parts[i])) != NULL)
			break;
	db_close(s.db);
	return e;
}
