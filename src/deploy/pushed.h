/* SPDX-License-Identifier: ISC */
/*
 * What a push to a repository starts: a deployment for each of the project's
 * triggers that it matches, with the checks that a request passes.
 *
 * A deployment whose branch has moved when the runner fetches is canceled, as
 * another push has started a newer one. If the trigger has paths, that push may
 * have started none, so the deployment follows the branch instead. If pushes of
 * the trigger do not supersede each other, it runs nevertheless.
 *
 * If the message of the commit asks for it, as in "[skip ci]", nothing is
 * started.
 *
 * An event may never be delivered, because the service was down. So the last
 * commit of each branch is stored, and a runner compares it with the branch.
 */
#ifndef SLIPWAY_DEPLOY_PUSHED_H
#define SLIPWAY_DEPLOY_PUSHED_H

#include "core/buf.h"
#include "deploy/context.h"
#include "queue/deployment.h"
#include "store/project.h"

struct pushed {
	const char *branch;
	const char *tag; /* instead of a branch */
	const char *commit_hash;
	const char *commit_message;
	const char *before;    /* the commit that it replaced, or NULL */
	struct list files;     /* const char *, sorted: files that it changed */
	bool has_files;        /* they are known */
	bool is_event;         /* a runner may find it before it arrives */
	struct maybe reader;   /* who made the secret; not set = unknown */
	struct maybe deployer; /* the same, if that user may still deploy */
	/* Records each new deployment in the audit log. */
	const struct err *(*audit)(void *context, const struct deployment *);
	void *context;
};

#define PUSHED_TRIGGERS 100 /* of a project, at most */

struct pushed_result {
	struct buf ids;      /* of the deployments: "[1,2]" */
	struct buf rejected; /* why triggers were rejected */
	size_t matching;
	size_t made;
	size_t caught;    /* triggers whose deployment a runner has made */
	const char *skip; /* what the commit's message contains, such as
			   * "[skip ci]"; nothing is started; NULL */
	bool is_watched;  /* a trigger names the branch, whatever its paths */
	/* For all tries of the transaction: what is left of the budget of work
	 * to match files with paths, and for which triggers of the project it
	 * is decided already whether they match. */
	size_t budget;
	struct buf triggers;
	enum pushed_matches {
		PUSHED_UNDECIDED,
		PUSHED_MATCHES,
		PUSHED_DIFFERS
	} matches[PUSHED_TRIGGERS];
};

void pushed_result_init(struct pushed_result *);
void pushed_result_release(struct pushed_result *);
/* Inside a transaction that holds the project: creates the deployments. The
 * context's arena is cleared for each of them, so nothing else may be in it. A
 * rejected trigger is logged and does not affect the others. */
MUSTCHECK const struct err *pushed_fire(struct deploy *, struct arena *,
    const struct project *, const struct pushed *, struct pushed_result *out);

/* Inside the same transaction: stores where the branch is, if a trigger names it
 * or once did. The event of a push that a runner has found says nothing new. */
MUSTCHECK const struct err *pushed_note(struct deploy *, int64_t project_id,
    const struct pushed *, const struct pushed_result *);
/* A branch is at another commit than at the last push that was delivered: does
 * what its event would have done, in a transaction, unless another process has
 * done it, or the commit is what was deployed last. `before` is the commit of the
 * last push; the audit log names the runner. `made` is the number of
 * deployments. */
MUSTCHECK const struct err *pushed_catch_up(struct deploy *, int64_t project_id,
    const struct pushed *, const char *runner, size_t *made);

#endif
