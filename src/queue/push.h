/* SPDX-License-Identifier: ISC */
/* Deployments of pushes, and where the branches were at the last push. */
#ifndef SLIPWAY_QUEUE_PUSH_H
#define SLIPWAY_QUEUE_PUSH_H

#include "db/db.h"

struct push_head {
	int64_t project_id;
	const char *branch;
	const char *commit_hash;
	bool caught_up; /* a runner found it; no event was delivered */
};

/* A deployment that a runner made of a push, for want of an event. */
struct push_caught {
	int64_t deployment_id;
	int64_t project_id;
	const char *branch;
	const char *commit_hash;
	const char *trigger_key;
};

/* A project whose branches may have moved. */
struct push_source {
	int64_t project_id;
	const char *repository;
	const char *deploy_key; /* private half, sealed; NULL = none */
	struct maybe made_by;   /* the webhook secret; not set = unknown */
	struct maybe deployer;  /* the same, if that user may still deploy */
};

/* Inside the transaction that inserts the deployment of a push: cancels older
 * pending ones of the same trigger that are not approved. Of a branch, only
 * those for the same branch: if the deployment follows the branch all, else
 * those of the commit `before`, as the order in which events arrive proves
 * nothing. */
MUSTCHECK const struct err *push_supersede(struct db *, struct arena *,
    int64_t deployment_id, const char *before);

/* Inside a transaction that holds the project: stores the commit of a branch. */
MUSTCHECK const struct err *push_head_put(struct db *,
    const struct push_head *);
/* The same if one is stored of that branch. */
MUSTCHECK const struct err *push_head_move(struct db *,
    const struct push_head *);
/* Forgets the branches of a project. */
MUSTCHECK const struct err *push_forget(struct db *, int64_t project_id);
/* ERR_NOTFOUND if no push to the branch was ever delivered. */
MUSTCHECK const struct err *push_head_find(struct db *, struct arena *,
    int64_t project_id, const char *branch, struct push_head *out);
/* Inside the transaction that makes the deployment. */
MUSTCHECK const struct err *push_caught_put(struct db *,
    const struct push_caught *);
/* Those of a commit of a branch: struct push_caught. */
MUSTCHECK const struct err *push_caught_of(struct db *, struct arena *,
    const struct push_head *, struct list *out);
/* All of a project. */
MUSTCHECK const struct err *push_heads(struct db *, struct arena *,
    int64_t project_id, struct list *out);
/* Whether a push of that commit to that branch has a deployment that no newer
 * push supersedes, and that is not followed by one of another commit. Events
 * can be delivered in the wrong order, so this need not be the last one. */
MUSTCHECK const struct err *push_is_current(struct db *, struct arena *,
    const struct push_head *, bool *out);
/* The next project after that id with such a branch; ERR_NOTFOUND. */
MUSTCHECK const struct err *push_source_next(struct db *, struct arena *,
    int64_t after, struct push_source *out);
/* Whether another runner looks for missed pushes: the first of those online, by
 * name, does. */
MUSTCHECK const struct err *push_is_others(struct db *, struct arena *,
    const char *runner, bool *out);
/* Whether that runner has reported its presence since the last multiple of
 * `seconds`. */
MUSTCHECK const struct err *push_is_looked(struct db *, struct arena *,
    const char *runner, int64_t seconds, bool *out);

#endif
