/* SPDX-License-Identifier: ISC */
/*
 * Reports commit statuses to the Git server.
 *
 * A report that fails is repeated with a growing delay. If the server does not
 * respond, the other reports wait, too.
 */
#include <assert.h>

#include "access/setter.h"
#include "core/log.h"
#include "core/str.h"
#include "dispatch/child.h"
#include "dispatch/context.h"
#include "dispatch/link.h"
#include "dispatch/remote.h"
#include "dispatch/sender.h"
#include "dispatch/text.h"
#include "queue/report.h"

#define REJECTED_MIN 60  /* the first delay, if the server rejects it */
#define REJECTED_TRIES 8 /* after some two hours it is given up */
#define AGE_MAX 259200   /* three days: given up in any case */
#define FAULT_MAX 500
#define CONTEXT_MAX 255

/* In the child. */
struct reporter {
	struct dispatch *d;
	struct arena *a;
	struct access access;
	struct report report; /* the one that is being sent */
	struct remote remote;
	struct forge_repo repo;
	struct forge_status status;
	bool is_found; /* the server showed the repository for this status */
};

static enum commit_state
state_of(const struct report_shown *shown)
{
	const enum commit_state state = state_commit(shown->wanted);

	assert(state < COMMIT__MAX);
	return shown->is_skipped  ? COMMIT_SKIPPED :
	    shown->needs_approval ? COMMIT_APPROVAL :
				    state;
}

/* The place that the deployment changes: "production", or the pipeline's name
 * without an environment. */
static const char *
context_of(const struct reporter *x)
{
	const struct report *r = &x->report;
	const char *place = r->environment_name != NULL ? r->environment_name :
							  r->pipeline_name;

	return text_clean(x->a,
	    r->is_shared ?
		arena_printf(x->a, "slipway/%s/%s", r->project_name, place) :
		arena_printf(x->a, "slipway/%s", place),
	    CONTEXT_MAX);
}

static void
status_fill(struct reporter *x)
{
	const struct report *r = &x->report;
	const enum commit_state state = state_of(&r->shown);
	const char *says = state_describe(state, state_reason(r->shown.reason));

	if (state == COMMIT_SUCCESS && r->shown.is_warned)
		says = "The deployment succeeded with warnings.";
	if (state == COMMIT_SKIPPED)
		says = arena_printf(x->a, "Not deployed. %s", says);
	if (r->environment_name != NULL)
		says = arena_printf(x->a, "%s: %s", r->environment_name, says);
	x->status = (struct forge_status){
		.state = state,
		.description = says,
		.commit_hash = r->commit_hash,
		.ref = r->tag != NULL ? r->tag : r->branch,
		.context = context_of(x),
		.url = link_deployment(&x->d->settings, x->a,
		    r->shown.deployment_id),
	};
}

/* Finds the repository by its number, else by its address, and stores the
 * number. */
static const struct err *
repo_find(struct reporter *x, struct arena *a, const struct access_token *token)
{
	const struct err *e;

	e = forge_repo_find(x->access.forge, a, token->text, &x->repo);
	x->is_found = e == NULL;
	if (e != NULL || !token->trusted)
		return e;
	return remote_store(x->access.forge, x->access.db, &x->remote,
	    &x->repo);
}

/* Most servers take a status at the repository's path, which another one may
 * have taken: the path comes from the server each time. */
static const struct err *
status_put(struct forge *forge, struct arena *a,
    const struct access_token *token, void *context)
{
	struct reporter *x = context;
	const struct err *e;

	if (!x->is_found && (e = repo_find(x, a, token)) != NULL)
		return e;
	return forge_status_put(forge, a, token->text, &x->repo, &x->status);
}

/* The server denies the request, so that repeating it soon is useless. */
static bool
is_rejected(const struct err *e)
{
	return e->code == ERR_NOTFOUND || e->code == ERR_UNAUTHENTICATED ||
	    e->code == ERR_FORBIDDEN || e->code == ERR_CONFIG ||
	    (e->code == ERR_UPSTREAM && e->sys >= 300 && e->sys < 500);
}

/* Any request would fail now. */
static bool
is_away(const struct err *e)
{
	return e->code == ERR_RATE || e->code == ERR_UPSTREAM_TIMEOUT ||
	    (e->code == ERR_UPSTREAM &&
		(e->sys == 0 || (e->sys >= 502 && e->sys <= 504)));
}

/* A status is the service's own statement, so it takes the service's token,
 * which writes only to what the user who set the repository could read.  If there
 * is none, or it may not write there, it takes the token of the user who
 * deploys. */
static const struct err *
send_status(struct reporter *x)
{
	const char *service = x->access.settings->token;
	const struct report *r = &x->report;
	struct access_token token;
	const struct err *e;
	const struct err *first;
	struct err room;

	status_fill(x);
	forge_until(x->access.forge, time_mono_ms() + SENDER_SEND_MS);
	if (service == NULL || service[0] == '\0')
		return access_call(&x->access, x->a, r->created_by.n,
		    status_put, x);
	e = setter_check(&x->access, x->a, r->project_id, r->repository);
	if (e == NULL)
		e = access_call(&x->access, x->a, 0, status_put, x);
	if (e == NULL || !r->created_by.set || !is_rejected(e))
		return e;
	first = err_keep(&room, e);
	e = access_for(&x->access, x->a, r->created_by.n, &token);
	if (e == NULL && token.as == ACCESS_USER &&
	    access_call(&x->access, x->a, r->created_by.n, status_put, x) ==
		NULL)
		return NULL;
	return err_wrap(first, "status");
}

/* Seconds until the next attempt. */
static int64_t
retry_delay(const struct report *r, const struct err *e)
{
	return sender_delay(is_rejected(e) ? REJECTED_MIN : 1, r->attempts,
	    e->code == ERR_RATE ? e->sys : 0);
}

/* Logs a failure when it is new, and when the status is given up. */
static enum sent
status_failed(struct reporter *x, const struct err *e)
{
	const struct report *r = &x->report;
	struct err room;
	const struct err *stored, *why = err_keep(&room, e);
	const char *fault = text_clean(x->a,
	    why->detail[0] != '\0' ? why->detail : err_kinds[why->code].text,
	    FAULT_MAX);
	bool over = r->age > AGE_MAX ||
	    (is_rejected(why) && r->attempts >= REJECTED_TRIES);

	if (over)
		log_error("%lld: its commit status %s is given up: %s",
		    (long long)r->deployment_id, r->wanted, why->msg);
	else if (!str_eq(fault, r->fault))
		log_warn("%lld: its commit status %s cannot be reported: %s",
		    (long long)r->deployment_id, r->wanted, why->msg);
	stored = over ?
	    report_drop(x->access.db, r, fault) :
	    report_later(x->access.db, r, retry_delay(r, why), fault);
	if (stored != NULL)
		log_err(stored, "commit statuses");
	return stored != NULL || is_away(why) ? SENT_AWAY : SENT;
}

static enum sent
report_one(struct reporter *x)
{
	const struct report *r = &x->report;
	const struct err *e;

	x->remote = (struct remote){ r->project_id, r->repository };
	e = remote_recall(x->access.forge, x->access.db, x->a, &x->remote,
	    &x->repo);
	if (e != NULL && e->code == ERR_NOTFOUND) {
		e = report_drop(x->access.db, r, NULL);
	} else if (e == NULL) {
		x->is_found = false;
		e = send_status(x);
		if (e != NULL && e->code != ERR_UNAVAILABLE)
			return status_failed(x, e);
		if (e == NULL)
			e = report_told(x->access.db, r);
	}
	if (e == NULL)
		return SENT;
	log_err(e, "commit statuses");
	return SENT_AWAY;
}

static enum sent
report_all(struct reporter *x)
{
	int64_t end = time_mono_ms() + SENDER_TURN_MS;
	const struct err *e;

	while (time_mono_ms() < end) {
		arena_clear(x->a);
		e = report_claim(x->access.db, x->a, SENDER_HOLD, &x->report);
		if (e != NULL && e->code == ERR_NOTFOUND)
			return SENT;
		if (e != NULL) {
			log_err(e, "commit statuses");
			return SENT_AWAY;
		}
		if (report_one(x) == SENT_AWAY)
			return SENT_AWAY;
	}
	return SENT;
}

static enum sent
statuses_send(struct dispatch *d)
{
	struct reporter x = { .d = d, .a = d->a };
	const struct err *e;

	if ((e = child_connect(d, &x.access)) == NULL)
		return report_all(&x);
	log_err(e, "commit statuses");
	return SENT_AWAY;
}

static bool
statuses_is_enabled(const struct dispatch *d)
{
	return d->forge != NULL && report_wanted(&d->settings.gitserver);
}

/* One child: the Git server gets the statuses in order. */
static const struct sender_kind statuses = {
	.what = "commit statuses",
	.children = 1,
	.is_enabled = statuses_is_enabled,
	.due = report_due,
	.send = statuses_send,
};

SENDER_FUNCTIONS(statuses, statuses)

const struct part statuses_part = { SENDER_MEMBERS(statuses) };
