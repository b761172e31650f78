/* SPDX-License-Identifier: ISC */
/* slipway: deploys and looks on from a terminal or a script. */
#include "cli/slipway.h"

#include <sysexits.h>

#include "cli/find.h"
#include "core/log.h"
#include "core/str.h"

static const char *const statuses[] = { "pending", "running", "success",
	"failed", "canceled", "interrupted", NULL };
static const char *const methods[] = { "GET", "POST", "PUT", "DELETE", NULL };

static const struct option_row settings_options[] = {
	OPTION(struct client_settings, host, "host", .letter = 'H',
	    .value = "URL",
	    .doc = "use this service instead of SLIPWAY_URL or the first one "
		   "in the configuration"),
	OPTION(struct client_settings, json, "json",
	    .doc = "print the API's objects"),
	OPTION_END,
};

/* clang-format off */
#define PROJECT(T)							\
	OPTION(T, project, "project", .letter = 'p', .value = "PROJECT", \
	    .known = known_projects,					\
	    .doc = "name or id of the project; default: that of the "	\
		   "checkout")
#define WITH(list, type) .options = (list), .size = sizeof(struct type)
#define DEPLOYMENT { "ID", .optional = true, .known = known_deployments }
/* clang-format on */

static const struct option_row login_options[] = {
	OPTION(struct auth_options, with_token, "with-token",
	    .doc = "read an API token from standard input"),
	OPTION(struct auth_options, token_command, "token-command",
	    .value = "COMMAND",
	    .doc = "store a shell command that prints the token instead"),
	OPTION(struct auth_options, cacert, "cacert", .value = "FILE",
	    .file = true,
	    .doc = "trust the CAs in this file instead of the system's"),
	OPTION_END,
};

static const struct option_row api_options[] = {
	OPTION(struct api_options, input, "input", .letter = 'i',
	    .value = "FILE", .file = true,
	    .doc = "send this file as the body; - is standard input"),
	OPTION(struct api_options, headers, "headers",
	    .doc = "print status and headers first"),
	OPTION_END,
};

static const struct option_row list_options[] = {
	PROJECT(struct list_options),
	OPTION(struct list_options, environment, "environment", .letter = 'E',
	    .value = "NAME", .known = known_environments,
	    .doc = "only deployments to this environment"),
	OPTION(struct list_options, status, "status", .letter = 's',
	    .value = "STATUS", .choices = statuses,
	    .doc = "only deployments with this status"),
	OPTION(struct list_options, branch, "branch", .letter = 'b',
	    .value = "BRANCH", .doc = "only deployments of this branch"),
	OPTION(struct list_options, limit, "limit", .letter = 'n',
	    .value = "NUMBER", .min = 1, .max = 100,
	    .doc = "print at most this many; default 20"),
	OPTION_END,
};

static const struct option_row project_options[] = {
	PROJECT(struct project_options),
	OPTION_END,
};

static const struct command commands[] = {
	{ "status", "print a deployment, its steps, and why it waits",
	    .examples = "status\tshow the latest deployment of this "
			"checkout's project\n"
			"status 17\tshow one deployment\n",
	    .word = { DEPLOYMENT }, .run = slipway_status },
	{ "list", "list deployments, newest first",
	    .examples = "list\tlist the latest deployments\n"
			"list -p shop -s failed\tlist those of a project that "
			"failed\n"
			"list --json | jq '.data[].id'\tprint the ids only\n",
	    .run = slipway_list, WITH(list_options, list_options) },
	{ "projects", "list projects", .run = slipway_projects },
	{ "pipelines", "list the pipelines of a project",
	    .run = slipway_pipelines, WITH(project_options, project_options) },
	{ "environments", "list the environments of a project",
	    .examples = "environments -p shop\tshow what is live where\n",
	    .run = slipway_environments,
	    WITH(project_options, project_options) },
	{ "runners", "list runners and what they run", .run = slipway_runners },
	{ "auth login", "sign in to a service with an API token",
	    .examples =
		"auth login --with-token https://deploy.example.org <token\t"
		"store a token\n"
		"auth login --token-command 'pass slipway' "
		"https://deploy.example.org\t"
		"ask a password manager for it each time\n",
	    .word = { { "URL", .optional = true } }, .run = slipway_login,
	    WITH(login_options, auth_options) },
	{ "auth status", "print the service in use and the signed-in user",
	    .run = slipway_auth_status },
	{ "auth logout", "forget the token for a service",
	    .word = { { "URL", .optional = true } }, .run = slipway_logout },
	{ "api", "send a request to the REST interface",
	    .examples = "api GET /api/projects\tprint the response\n"
			"api POST /api/projects -i project.json\tsend a "
			"body\n",
	    .word = { { "METHOD", .choices = methods }, { "PATH" } },
	    .run = slipway_api, WITH(api_options, api_options) },
	{ "completion", "print a completion script for a shell",
	    .examples = "completion bash\tprint the script; the manual says "
			"where to put it\n",
	    .word = { { "SHELL", .choices = command_shells } },
	    .run = command_completion },
	{ "help", "print the help of a command",
	    .word = { { "COMMAND", .optional = true, .known = command_names },
		{ "SUBCOMMAND", .optional = true } },
	    .run = command_help },
	{ .name = NULL },
};

int
slipway_outcome(const char *status)
{
	static const struct {
		const char *status;
		enum outcome outcome;
	} outcomes[] = {
		{ "failed", OUTCOME_FAILED },
		{ "canceled", OUTCOME_CANCELED },
		{ "interrupted", OUTCOME_INTERRUPTED },
	};
	size_t i;

	for (i = 0; i < sizeof(outcomes) / sizeof(outcomes[0]); i++)
		if (str_eq(outcomes[i].status, status))
			return (int)outcomes[i].outcome;
	return EX_OK;
}

static int
slipway_run(struct command_call *call)
{
	struct client client;
	const struct err *e;
	int status;

	client_init(&client, call);
	if ((e = call->command->run(&client, call)) != NULL) {
		client_progress(&client, NULL);
		status = command_report(call, e);
		client_explain(&client, e);
	} else {
		status = call->status;
	}
	client_release(&client);
	return status;
}

static const struct program program = {
	.name = "slipway",
	.doc = "deploy from a terminal or a script",
	.examples =
	    "auth login --with-token https://deploy.example.org <token\t"
	    "sign in\n"
	    "list\tlist the latest deployments\n",
	.commands = commands,
	.options = settings_options,
	.size = sizeof(struct client_settings),
	.run = slipway_run,
};

int
main(int argc, char **argv)
{
	log_init("slipway", 0);
	return command_main(&program, argc, argv);
}
