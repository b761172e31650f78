/* SPDX-License-Identifier: ISC */
/* slipway: starts and follows deployments from a terminal or a script. */
#include "cli/slipway.h"

#include <sysexits.h>

#include "cli/find.h"
#include "core/log.h"
#include "core/num.h"
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
#define PLACE(T)							\
	PROJECT(T),							\
	OPTION(T, environment, "environment", .letter = 'E',		\
	    .value = "NAME", .known = known_environments,		\
	    .doc = "only this environment of the project"),		\
	OPTION(T, service, "service", .doc = "the whole service")
#define VARIABLES(T)							\
	OPTION(T, variables.env, "env", .letter = 'e',			\
	    .value = "KEY=VALUE", .member = "envVars",			\
	    .doc = "set a variable"),					\
	OPTION(T, variables.env_file, "env-file", .value = "FILE",	\
	    .file = true, .doc = "set the variables in lines of KEY=VALUE"), \
	OPTION(T, variables.secret, "secret", .letter = 's',		\
	    .value = "KEY[=FILE]",					\
	    .doc = "ask for a secret variable, or read it from a file; - is " \
		   "standard input")
#define WITH(list, type) .options = (list), .size = sizeof(struct type)
#define DEPLOYMENT { "ID", .optional = true, .known = known_deployments }
/* clang-format on */

static const struct option_row deploy_options[] = {
	PROJECT(struct deploy_options),
	OPTION(struct deploy_options, pipeline, "pipeline", .letter = 'P',
	    .value = "PIPELINE", .known = known_pipelines,
	    .member = "pipelineId",
	    .doc = "its pipeline; needed if it has several"),
	OPTION(struct deploy_options, environment, "environment", .letter = 'E',
	    .value = "NAME", .known = known_environments,
	    .member = "environmentId",
	    .doc = "deploy to this environment; needed if it has several"),
	OPTION(struct deploy_options, branch, "branch", .letter = 'b',
	    .value = "BRANCH", .member = "branch",
	    .doc = "deploy this branch; default: that of the checkout"),
	OPTION(struct deploy_options, tag, "tag", .letter = 't', .value = "TAG",
	    .member = "tag", .doc = "deploy this tag, instead of a branch"),
	OPTION(struct deploy_options, commit, "commit", .letter = 'c',
	    .value = "COMMIT", .member = "commitHash",
	    .doc = "deploy this commit of the branch or tag"),
	VARIABLES(struct deploy_options),
	OPTION(struct deploy_options, follow, "follow", .letter = 'f',
	    .doc = "print the log until the deployment ends"),
	OPTION_END,
};

static const struct option_row logs_options[] = {
	OPTION(struct logs_options, follow, "follow", .letter = 'f',
	    .doc = "follow the log until the deployment ends"),
	OPTION(struct logs_options, step, "step", .value = "STEP",
	    .doc = "only the output of this step, by name or position"),
	OPTION(struct logs_options, failed, "failed",
	    .doc = "only the output of the steps that failed"),
	OPTION(struct logs_options, tail, "tail", .value = "LINES", .min = 1,
	    .max = 1000000, .doc = "begin with the last lines"),
	OPTION(struct logs_options, offset, "offset", .value = "BYTES",
	    .max = NUM_SAFE, .doc = "begin after this many bytes"),
	OPTION_END,
};

static const struct option_row follow_options[] = {
	OPTION(struct follow_options, follow, "follow", .letter = 'f',
	    .doc = "print the log until the deployment ends"),
	OPTION_END,
};

static const struct option_row comment_options[] = {
	OPTION(struct comment_options, comment, "comment", .letter = 'm',
	    .value = "TEXT", .member = "comment",
	    .doc = "comment to store with the decision"),
	OPTION_END,
};

static const struct option_row promote_options[] = {
	OPTION(struct promote_options, environment, "environment",
	    .letter = 'E', .value = "NAME", .must = true,
	    .known = known_environments, .member = "environmentId",
	    .doc = "the environment to deploy to"),
	VARIABLES(struct promote_options),
	OPTION(struct promote_options, follow, "follow", .letter = 'f',
	    .doc = "print the log until the deployment ends"),
	OPTION_END,
};

static const struct option_row rollback_options[] = {
	PROJECT(struct rollback_options),
	OPTION(struct rollback_options, environment, "environment",
	    .letter = 'E', .value = "NAME", .known = known_environments,
	    .doc = "its environment; needed if it has several"),
	OPTION(struct rollback_options, to, "to", .value = "ID", .min = 1,
	    .max = NUM_SAFE, .known = known_deployments,
	    .member = "deploymentId",
	    .doc = "repeat this deployment; default: the one before the live "
		   "one"),
	OPTION(struct rollback_options, message, "message", .letter = 'm',
	    .value = "TEXT", .member = "reason", .doc = "why"),
	OPTION(struct rollback_options, follow, "follow", .letter = 'f',
	    .doc = "print the log until the deployment ends"),
	OPTION_END,
};

static const struct option_row lock_options[] = {
	PLACE(struct lock_options),
	OPTION(struct lock_options, message, "message", .letter = 'm',
	    .value = "TEXT", .must = true, .member = "reason",
	    .doc = "why deployments wait"),
	OPTION(struct lock_options, until, "until", .value = "TIME",
	    .member = "until",
	    .doc = "when the lock expires: 90m, 2h, 3d, or a time as in "
		   "2027-01-31T00:00:00Z"),
	OPTION_END,
};

static const struct option_row unlock_options[] = {
	PLACE(struct lock_options),
	OPTION_END,
};

static const struct option_row login_options[] = {
	OPTION(struct auth_options, browser, "browser",
	    .doc = "open the page on which to enter the code"),
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
	OPTION(struct list_options, tag, "tag", .letter = 't', .value = "TAG",
	    .doc = "only deployments of this tag"),
	OPTION(struct list_options, limit, "limit", .letter = 'n',
	    .value = "NUMBER", .min = 1, .max = 100,
	    .doc = "print at most this many; default 20"),
	OPTION_END,
};

static const struct option_row project_options[] = {
	PROJECT(struct project_options),
	OPTION_END,
};

static const struct option_row apply_options[] = {
	OPTION(struct apply_options, dry_run, "dry-run",
	    .doc = "show the difference only"),
	OPTION(struct apply_options, yes, "yes", .letter = 'y',
	    .doc = "do not ask"),
	OPTION_END,
};

static const struct command commands[] = {
	{ "deploy", "deploy a branch or a commit",
	    .examples =
		"deploy -f\tdeploy the branch of this checkout, and follow "
		"the log\n"
		"deploy -p shop -E production -b main\tdeploy to an "
		"environment\n"
		"deploy -e VERSION=2.1 --secret API_KEY\tset a variable, and "
		"ask for a secret\n",
	    .run = slipway_deploy, WITH(deploy_options, deploy_options) },
	{ "logs", "print the log of a deployment",
	    .examples = "logs -f\tfollow the latest deployment of this "
			"checkout's project\n"
			"logs 17 --failed\tprint the output of the steps that "
			"failed\n"
			"logs 17 --tail 20 -f\tbegin with the last 20 "
			"lines\n",
	    .word = { DEPLOYMENT }, .run = slipway_logs,
	    WITH(logs_options, logs_options) },
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
	{ "retry",
	    "repeat a deployment with the same commit, steps and "
	    "variables",
	    .examples = "retry 17 -f\trepeat it, and follow the log\n",
	    .word = { DEPLOYMENT }, .run = slipway_retry,
	    WITH(follow_options, follow_options) },
	{ "cancel", "cancel a deployment that is pending or running",
	    .examples = "cancel 17\tend its steps, or remove it from the "
			"queue\n",
	    .word = { { "ID", .known = known_deployments } },
	    .run = slipway_cancel },
	{ "rollback",
	    "repeat an earlier successful deployment to an "
	    "environment",
	    .examples = "rollback -E production -f\treturn to what was live "
			"before\n"
			"rollback -E production --to 17 -m 'broken login'\t"
			"return to a certain deployment\n",
	    .run = slipway_rollback, WITH(rollback_options, rollback_options) },
	{ "promote",
	    "deploy the same commit and steps to another "
	    "environment",
	    .examples = "promote 17 -E production -f\tdeploy what was tested "
			"elsewhere\n",
	    .word = { DEPLOYMENT }, .run = slipway_promote,
	    WITH(promote_options, promote_options) },
	{ "approve", "approve a deployment, so that it can run",
	    .examples = "approve 17 -m 'checked on staging'\tapprove it with "
			"a comment\n",
	    .word = { { "ID", .known = known_deployments } },
	    .run = slipway_approve, WITH(comment_options, comment_options) },
	{ "deny", "cancel a deployment that waits for approval",
	    .examples = "deny 17 -m 'not on a Friday'\tcancel it with a "
			"comment\n",
	    .word = { { "ID", .known = known_deployments } },
	    .run = slipway_deny, WITH(comment_options, comment_options) },
	{ "open", "open the page of a deployment in a browser",
	    .examples = "open\topen the latest deployment of this checkout's "
			"project\n",
	    .word = { DEPLOYMENT }, .run = slipway_open },
	{ "lock", "keep new deployments from starting",
	    .examples = "lock -p shop -m 'moving the database' --until 2h\t"
			"lock a project for two hours\n"
			"lock --service -m maintenance\tlock everything\n",
	    .run = slipway_lock, WITH(lock_options, lock_options) },
	{ "unlock", "remove a lock",
	    .examples = "unlock -p shop -E production\tunlock an "
			"environment\n"
			"unlock --service\tremove the lock of the whole "
			"service\n",
	    .run = slipway_unlock, WITH(unlock_options, lock_options) },
	{ "projects", "list projects",
	    .examples = "projects\tlist the projects, and which are "
			"locked\n",
	    .run = slipway_projects },
	{ "pipelines", "list the pipelines of a project",
	    .examples = "pipelines -p shop\tlist what deploy -P accepts\n",
	    .run = slipway_pipelines, WITH(project_options, project_options) },
	{ "environments", "list the environments of a project",
	    .examples = "environments -p shop\tshow what is live where\n",
	    .run = slipway_environments,
	    WITH(project_options, project_options) },
	{ "runners", "list runners and what they run",
	    .examples = "runners\tshow whether a runner is online\n",
	    .run = slipway_runners },
	{ "cache clear", "empty the cache of a project",
	    .examples = "cache clear -p shop\tlet the next deployment fetch "
			"its packages again\n",
	    .run = slipway_cache_clear,
	    WITH(project_options, project_options) },
	{ "export", "print a project and its parts as a file",
	    .examples = "export -p shop >shop.json\tstore a project, without "
			"its secrets\n",
	    .run = slipway_export, WITH(project_options, project_options) },
	{ "apply", "create a project from a file, or change it to match",
	    .examples = "apply shop.json\tshow the difference, and ask\n"
			"apply --yes shop.json\tapply it in a script\n",
	    .word = { { "FILE", .file = true, .member = "document" } },
	    .run = slipway_apply, WITH(apply_options, apply_options) },
	{ "auth login", "sign in to a service, with a browser or a token",
	    .examples =
		"auth login https://deploy.example.org\t"
		"show a code to enter in a browser\n"
		"auth login --with-token https://deploy.example.org <token\t"
		"store a token\n"
		"auth login --token-command 'pass slipway' "
		"https://deploy.example.org\t"
		"ask a password manager for it each time\n",
	    .word = { { "URL", .optional = true } }, .run = slipway_login,
	    WITH(login_options, auth_options) },
	{ "auth status", "print the service in use and the signed-in user",
	    .run = slipway_auth_status },
	{ "auth logout", "remove the token for a service",
	    .word = { { "URL", .optional = true } }, .run = slipway_logout },
	{ "api", "send a request to the REST interface",
	    .examples = "api GET /api/projects\tprint the response\n"
			"api POST /api/projects -i project.json\tsend a "
			"body\n",
	    .word = { { "METHOD", .choices = methods }, { .name = "PATH" } },
	    .run = slipway_api, WITH(api_options, api_options) },
	{ "completion", "print a completion script for a shell",
	    .examples = "completion bash\tprint the script; the manual says "
			"where to put it\n",
	    .word = { { "SHELL", .choices = command_shells } },
	    .run = command_completion },
	{ "help", "print the help of a command",
	    .examples = "help deploy\texplain a command and its options\n",
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
	    "auth login https://deploy.example.org\tsign in with a browser\n"
	    "deploy -f\tdeploy the branch of this checkout, and follow the "
	    "log\n"
	    "status\tshow the latest deployment of this checkout's project\n"
	    "logs 17 --failed\tfind out why a deployment failed\n",
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
