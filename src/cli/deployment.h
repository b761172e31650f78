/* SPDX-License-Identifier: ISC */
/* A deployment as the commands print it. */
#ifndef SLIPWAY_CLI_DEPLOYMENT_H
#define SLIPWAY_CLI_DEPLOYMENT_H

#include "cli/client.h"

struct deployment {
	int64_t id;
	int64_t project_id;
	int64_t environment_id; /* 0 = none */
	int64_t created_by;     /* the same */
	const char *branch;
	const char *tag;
	const char *commit_hash;
	const char *commit_message;
	const char *env_vars_sent; /* keys with commas between them */
	const char *status;
	const char *reason;
	const char *detail;
	int64_t warnings; /* steps that failed and may */
	const char *trigger;
	const char *approval;         /* NULL = not required */
	int64_t approval_by;          /* 0 = not decided */
	const char *approval_comment; /* of the decision */
	const char *runner;
	struct when created_at;
	struct when started_at;
	struct when finished_at;
	int64_t log_size;
	const char *project;     /* filled in by deployment_names() */
	const char *environment; /* the same */
	const char *approver;    /* filled in by approval_name() */
};
struct deployment_step {
	int64_t position;
	const char *name;
	const char *status;
	struct when started_at;
	struct when finished_at;
	const char *exit_code; /* a number as text; NULL = none */
	int64_t log_offset;
	int64_t log_length;
};
struct deployment_wait {
	const char *reason;
	const char *detail;
};

extern const struct json_path deployment_paths[];
extern const struct json_path deployment_step_paths[];
extern const struct json_path deployment_wait_paths[];

MUSTCHECK const struct err *deployment_get(struct client *, int64_t id,
    struct deployment *out, struct http_response *);
/* The lists in a response with a single deployment. */
MUSTCHECK const struct err *deployment_steps(struct client *,
    const struct http_response *, struct list *out);
MUSTCHECK const struct err *deployment_waits(struct client *,
    const struct http_response *, struct list *out);
/* Fills in the names of projects and environments. */
MUSTCHECK const struct err *deployment_names(struct client *,
    const struct list *deployments);

#endif
