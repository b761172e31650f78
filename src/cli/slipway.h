/* SPDX-License-Identifier: ISC */
/* The commands of slipway; each gets its struct client. */
#ifndef SLIPWAY_CLI_SLIPWAY_H
#define SLIPWAY_CLI_SLIPWAY_H

#include "cli/client.h"

/* Exit statuses of commands that report how a deployment ended. */
enum outcome {
	OUTCOME_FAILED = 1,
	OUTCOME_CANCELED = 2,
	OUTCOME_INTERRUPTED = 3,
};

/* The exit status for a deployment's status; 0 unless it ended without
 * success. */
int slipway_outcome(const char *status);

struct auth_options {
	bool with_token;
	bool browser;
	const char *token_command;
	const char *cacert;
};
struct api_options {
	const char *input;
	bool headers;
};
struct list_options {
	const char *project;
	const char *environment;
	const char *status;
	const char *branch;
	const char *tag;
	int64_t limit;
};
struct project_options {
	const char *project;
};
struct apply_options {
	bool dry_run;
	bool yes;
};
struct variable_options {
	struct option_list env;
	struct option_list env_file;
	struct option_list secret;
};
struct deploy_options {
	const char *project;
	const char *pipeline;
	const char *environment;
	const char *branch;
	const char *tag;
	const char *commit;
	struct variable_options variables;
	bool follow;
};
struct follow_options {
	bool follow;
};
struct comment_options {
	const char *comment;
};
struct promote_options {
	const char *environment;
	struct variable_options variables;
	bool follow;
};
struct rollback_options {
	const char *project;
	const char *environment;
	int64_t to; /* id of a deployment; 0 = the one before the live one */
	const char *message;
	bool follow;
};
struct logs_options {
	bool follow;
	bool failed;
	const char *step;
	int64_t tail;
	int64_t offset;
};
struct lock_options {
	const char *project;
	const char *environment;
	bool service;
	const char *message;
	const char *until;
};

/* Follows a deployment from an offset of its log, prints how it ended, and sets
 * the exit status to its result. */
MUSTCHECK const struct err *slipway_follow(struct client *, int64_t id,
    int64_t offset);

command_run slipway_deploy, slipway_logs;
command_run slipway_retry, slipway_cancel, slipway_open;
command_run slipway_approve, slipway_deny;
command_run slipway_promote, slipway_rollback;
command_run slipway_lock, slipway_unlock;
command_run slipway_cache_clear;
command_run slipway_export, slipway_apply;
command_run slipway_login, slipway_auth_status, slipway_logout;
command_run slipway_api;
command_run slipway_list, slipway_status;
command_run slipway_projects, slipway_pipelines, slipway_environments;
command_run slipway_runners;

#endif
