/* SPDX-License-Identifier: ISC */
/*
 * The states of deployments and steps, the reasons why a deployment ended, and
 * the commit statuses on the Git server.  Their names and sentences are defined
 * only here; rows, the spool's records, JSON, the OpenAPI document and commit
 * statuses all use them.
 *
 * queue/move.h defines which moves from state to state are legal.
 */
#ifndef SLIPWAY_CORE_STATE_H
#define SLIPWAY_CORE_STATE_H

#include <stdbool.h>

/* clang-format off */
/* Commit status: enumerator, name, description on the Git server.  The last two
 * are not stored: they are what "pending" and "canceled" mean for a deployment
 * that waits for approval, and for one of which no step began. */
#define STATE_COMMITS(X)						\
	X(COMMIT_PENDING, "pending", "The deployment is waiting to start.") \
	X(COMMIT_RUNNING, "running", "The deployment is running.")	\
	X(COMMIT_SUCCESS, "success", "The deployment succeeded.")	\
	X(COMMIT_FAILED, "failed", "The deployment failed.")		\
	X(COMMIT_ERROR, "error", "The deployment could not be run.")	\
	X(COMMIT_CANCELED, "canceled", "The deployment was canceled.")	\
	X(COMMIT_APPROVAL, "approval", "The deployment is waiting for approval.") \
	X(COMMIT_SKIPPED, "skipped", "The commit was not deployed.")

/* State: enumerator, name, whether it is final, sentence.  Deployments and
 * steps have those of X; only steps have those of S. */
#define STATE_TABLE(X, S)						\
	X(STATE_PENDING, "pending", false, "It has not started.")	\
	X(STATE_RUNNING, "running", false, "It is running.")		\
	X(STATE_SUCCESS, "success", true, "It succeeded.")		\
	X(STATE_FAILED, "failed", true, "It failed.")			\
	S(STATE_SKIPPED, "skipped", true, "It was not run.")		\
	X(STATE_CANCELED, "canceled", true, "It was canceled.")		\
	X(STATE_INTERRUPTED, "interrupted", true,			\
	    "The runner was lost, so the outcome is unknown.")

/* Reason: enumerator, name, the state in which a deployment ends, commit
 * status, sentence, and the sentence for a deployment that never started; NULL
 * if they are the same. */
#define STATE_REASONS(X)						\
	X(REASON_DENIED, "approval_denied", STATE_CANCELED,		\
	    COMMIT_CANCELED, "The approval of the deployment was denied.", \
	    NULL)							\
	X(REASON_CANCELED, "canceled_by_user", STATE_CANCELED,		\
	    COMMIT_CANCELED, "The deployment was canceled.",		\
	    "It was canceled before it started.")			\
	X(REASON_CHECKOUT, "checkout_failed", STATE_FAILED,		\
	    COMMIT_FAILED, "The commit could not be checked out.", NULL) \
	X(REASON_ENVIRONMENT, "environment_deleted", STATE_CANCELED,	\
	    COMMIT_CANCELED,						\
	    "The environment was deleted before it started.", NULL)	\
	X(REASON_LOG_LOST, "log_lost", STATE_FAILED, COMMIT_FAILED,	\
	    "The log of the deployment is incomplete.", NULL)		\
	X(REASON_DELETED, "project_deleted", STATE_CANCELED,		\
	    COMMIT_CANCELED, "The project was deleted before it started.", \
	    NULL)							\
	X(REASON_RUNNER, "runner_error", STATE_FAILED, COMMIT_ERROR,	\
	    "The runner could not run the deployment.", NULL)		\
	X(REASON_LOST, "runner_lost", STATE_INTERRUPTED, COMMIT_ERROR,	\
	    "The runner was lost.", NULL)				\
	X(REASON_STEP, "step_failed", STATE_FAILED, COMMIT_FAILED,	\
	    "A step of the deployment failed.", NULL)			\
	X(REASON_SUPERSEDED, "superseded", STATE_CANCELED,		\
	    COMMIT_CANCELED, "The branch has a newer commit.", NULL)	\
	X(REASON_TIMEOUT, "timeout", STATE_FAILED, COMMIT_FAILED,	\
	    "The deployment took too long.", NULL)			\
	X(REASON_WORKSPACE, "workspace_error", STATE_FAILED, COMMIT_ERROR, \
	    "The runner could not create or use the workspace.", NULL)

/* Texts for the OpenAPI document: "NAME: SENTENCE", one after another. */
#define STATE_NO_TEXT(...)
#define STATE_TEXT(id, name, final, text) " " name ": " text
#define STATE_REASON_TEXT(id, name, ends, commit, text, unstarted)	\
	" " name ": " text
#define STATE_DEPLOYMENT_TEXTS STATE_TABLE(STATE_TEXT, STATE_NO_TEXT)
#define STATE_STEP_TEXTS STATE_TABLE(STATE_TEXT, STATE_TEXT)
#define STATE_REASON_TEXTS STATE_REASONS(STATE_REASON_TEXT)
/* clang-format on */

enum commit_state {
#define X(id, ...) id,
	STATE_COMMITS(X)
#undef X
	    COMMIT__MAX
};

enum state {
#define X(id, ...) id,
	STATE_TABLE(X, X)
#undef X
	    STATE__MAX
};

enum reason {
	REASON_NONE, /* the deployment has not ended, or has succeeded */
#define X(id, ...) id,
	STATE_REASONS(X)
#undef X
	    REASON__MAX
};

struct commit_kind {
	const char *name;
	const char *text;
};
struct state_kind {
	const char *name;
	const char *text;
	bool is_final;
};
struct reason_kind {
	const char *name; /* NULL: REASON_NONE */
	const char *text;
	const char *unstarted;
	enum state ends;
	enum commit_state commit;
};
extern const struct commit_kind commit_kinds[COMMIT__MAX];
extern const struct state_kind state_kinds[STATE__MAX];
extern const struct reason_kind reason_kinds[REASON__MAX];

/* Names; each list ends with NULL. */
extern const char *const state_deployments[];
extern const char *const state_steps[];
extern const char *const state_reasons[];

/* Lookup by name; STATE__MAX, REASON__MAX or COMMIT__MAX if the name is
 * unknown.  The name NULL is REASON_NONE. */
enum state state_find(const char *name);
enum reason state_reason(const char *name);
enum commit_state state_commit(const char *name);
/* The sentence for a deployment that ended for this reason before it
 * started. */
const char *state_unstarted(enum reason);
/* The description for the Git server, which includes the reason for failures
 * and for what was not deployed. */
const char *state_describe(enum commit_state, enum reason);

#endif
