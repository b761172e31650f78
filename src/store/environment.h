/* SPDX-License-Identifier: ISC */
/* Environments: the places that a project is deployed to. */
#ifndef SLIPWAY_STORE_ENVIRONMENT_H
#define SLIPWAY_STORE_ENVIRONMENT_H

#include "db/db.h"
#include "store/lock_row.h"
#include "store/page.h"

/* A variable that deployments to an environment get. */
struct environment_variable {
	const char *key;
	const char *value; /* NULL if secret: stored sealed beside the row */
	bool secret;
};

/* The last successful deployment to an environment. */
struct environment_live {
	int64_t deployment_id; /* 0 = none */
	const char *commit_hash;
	const char *commit_message;
	const char *branch;
	const char *tag;
	struct when finished_at;
	struct maybe created_by;
};

/* A user who may approve deployments to an environment. */
struct environment_approver {
	int64_t user_id;
};

struct environment_pattern {
	const char *text;
};

struct environment {
	int64_t id;
	int64_t project_id;
	const char *name;
	const char *url;
	struct maybe position;
	struct json_text branches;  /* struct environment_pattern */
	struct json_text tags;      /* the same */
	struct json_text variables; /* struct environment_variable */
	const char *approval;       /* one of environment_approvals */
	struct json_text approvers; /* struct environment_approver */
	const char *runner;         /* name or label of those that may run it */
	bool valid;
	struct when created_at;
	struct when updated_at;
	struct maybe created_by;
	int64_t version;
	struct list lock;                 /* at most one item: lock_row */
	struct deploy_lock lock_row;      /* its memory */
	struct list live;                 /* at most one item: live_row */
	struct environment_live live_row; /* its memory */
};

/* Values of secret variables: an object of strings, each sealed separately;
 * NULL = none. */
struct environment_secrets {
	int64_t id;
	struct json_text secret_values;
};

#define ENVIRONMENT_APPROVAL_NONE "none"
#define ENVIRONMENT_APPROVAL_REQUIRED "required"

extern const char *const environment_approvals[]; /* ends with NULL */
extern const struct shape environment_shape;
extern const struct shape environment_approver_shape;
extern const struct shape environment_pattern_shape;
extern const struct shape environment_variable_shape;

/* Ordered by project, position and id; those of a project, or 0 = all. */
MUSTCHECK const struct err *environment_page(struct db *, struct arena *,
    int64_t project_id, struct page *, struct list *out);
/* The only environment of a project; 0 = it has none. ERR_CONFLICT if it has
 * several. */
MUSTCHECK const struct err *environment_only(struct db *, struct arena *,
    int64_t project_id, int64_t *id);
/* Finds live environments of live projects only; ERR_NOTFOUND. */
MUSTCHECK const struct err *environment_by_id(struct db *, struct arena *,
    int64_t id, struct environment *out);
/* The same, locked until the transaction ends. */
MUSTCHECK const struct err *environment_lock(struct db *, struct arena *,
    int64_t id, struct environment *out);
/* Inside a transaction: locks the environment's project, as
 * deployment_hold_project() does. ERR_NOTFOUND if either is deleted. */
MUSTCHECK const struct err *environment_hold_project(struct db *,
    struct arena *, int64_t id);
/* Adds faults: the project is unknown, or another environment of the project
 * has the name. */
MUSTCHECK const struct err *environment_judge(struct db *,
    const struct environment *, struct faults *);
/* Inside a transaction that has locked the project. Without a position, the
 * environment becomes the last one. */
MUSTCHECK const struct err *environment_insert(struct db *, struct arena *,
    const struct environment *, int64_t *id);
MUSTCHECK const struct err *environment_update(struct db *,
    const struct environment *);
/* Deletes the environment and its notifiers, inside a transaction that has locked
 * the project.  move_cancel_of_environment() cancels what waits there. */
MUSTCHECK const struct err *environment_delete(struct db *, int64_t id);
/* ERR_NOTFOUND if it is deleted. */
MUSTCHECK const struct err *environment_secrets_find(struct db *,
    struct arena *, int64_t id, struct environment_secrets *out);
/* Requires a locked row. */
MUSTCHECK const struct err *environment_secrets_save(struct db *,
    const struct environment_secrets *);

#endif
