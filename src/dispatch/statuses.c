/* SPDX-License-Identifier: ISC */
/*
 * Reports commit statuses to the Git server.
 *
 * While any are due a child process, the reporter, sends them one after the
 * other and ends; the loop only checks, with one cheap read every few seconds,
 * whether there are.
 *
 * What fails is repeated with a growing delay.  If the server seems to be away,
 * the other statuses wait for a while, too.
 */
#include <sys/wait.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/address.h"
#include "core/log.h"
#include "core/str.h"
#include "dispatch/backoff.h"
#include "dispatch/child.h"
#include "dispatch/context.h"
#include "dispatch/part.h"
#include "dispatch/remote.h"
#include "dispatch/text.h"
#include "store/report.h"

#define LOOK_MS 5000 /* between looks at the table */
#define PAUSE_MIN 1000
#define PAUSE_MAX 60000
#define TURN_MS 60000    /* then the settings are read again */
#define ONE_MS 30000     /* for all requests of one status */
#define HOLD_SECONDS 60  /* longer than that, with time for the database */
#define DELAY_MAX 3600   /* seconds */
#define REJECTED_MIN 60  /* the first delay, if the server rejects it */
#define REJECTED_TRIES 8 /* after some two hours it is given up */
#define AGE_MAX 259200   /* three days: given up in any case */
#define FAULT_MAX 500
#define CONTEXT_MAX 255

struct statuses {
	pid_t reporter; /* 0 = none */
	int64_t at;
	int64_t pause;
};

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

enum sent {
	SENT,      /* or dropped, or put off */
	SENT_AWAY, /* the server, or the database, is away */
};

/* Where a person can read more; NULL if this service's address is not set. */
static const char *
link_of(const struct settings *s, struct arena *a, int64_t id)
{
	const char *form = s->gitserver.report_url, *base = s->api.url, *at;
	struct address ad;
	size_t len;

	if (form != NULL) {
		if ((at = strstr(form, "{id}")) == NULL)
			return form;
		return arena_printf(a, "%.*s%lld%s", (int)(at - form), form,
		    (long long)id, at + strlen("{id}"));
	}
	if (base == NULL && s->gitserver.redirect_uri != NULL &&
	    address_read(s->gitserver.redirect_uri, &ad) && address_is_web(&ad))
		base = address_origin(a, &ad);
	if (base == NULL)
		return NULL;
	len = strlen(base);
	while (len > 0 && base[len - 1] == '/')
		len--;
	return arena_printf(a, "%.*s/api/deployments/%lld/log", (int)len, base,
	    (long long)id);
}

static void
status_fill(struct reporter *x)
{
	const struct report *r = &x->report;
	const enum commit_state state = state_commit(r->wanted);

	assert(state < COMMIT__MAX);
	x->status = (struct forge_status){
		.state = state,
		.description = state_describe(state, state_reason(r->reason)),
		.commit_hash = r->commit_hash,
		.branch = r->branch,
		.context = text_clean(x->a,
		    arena_printf(x->a, "slipway/%s", r->pipeline_name),
		    CONTEXT_MAX),
		.url = link_of(&x->d->settings, x->a, r->deployment_id),
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
put(struct forge *forge, struct arena *a, const struct access_token *token,
    void *context)
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

/* A status is the service's own statement, so it takes the service's token.  If
 * there is none, or it may not write there, it takes the token of the user who
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
	forge_until(x->access.forge, time_mono_ms() + ONE_MS);
	if (service == NULL || service[0] == '\0')
		return access_call(&x->access, x->a, r->created_by.n, put, x);
	e = access_call(&x->access, x->a, 0, put, x);
	if (e == NULL || !r->created_by.set || !is_rejected(e))
		return e;
	first = err_keep(&room, e);
	e = access_for(&x->access, x->a, r->created_by.n, &token);
	if (e == NULL && token.as == ACCESS_USER &&
	    access_call(&x->access, x->a, r->created_by.n, put, x) == NULL)
		return NULL;
	return err_wrap(first, "status");
}

/* Seconds until the next try, about. */
static int64_t
delay(const struct report *r, const struct err *e)
{
	int64_t seconds = is_rejected(e) ? REJECTED_MIN : 1, i;

	for (i = 1; i < r->attempts && seconds < DELAY_MAX; i++)
		seconds *= 2;
	if (e->code == ERR_RATE && e->sys > seconds)
		seconds = e->sys;
	if (seconds > DELAY_MAX)
		seconds = DELAY_MAX;
	return seconds + (int64_t)arc4random_uniform((uint32_t)seconds / 4 + 1);
}

/* Logs a failure when it is new, and when the status is given up. */
static enum sent
failed(struct reporter *x, const struct err *e)
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
	stored = over ? report_drop(x->access.db, r, fault) :
			report_later(x->access.db, r, delay(r, why), fault);
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
			return failed(x, e);
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
	int64_t end = time_mono_ms() + TURN_MS;
	const struct err *e;

	while (time_mono_ms() < end) {
		arena_clear(x->a);
		e = report_claim(x->access.db, x->a, HOLD_SECONDS, &x->report);
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

static _Noreturn void
reporter(struct dispatch *d)
{
	struct reporter x = { .d = d, .a = d->a };
	enum sent how = SENT_AWAY;
	const struct err *e;

	if ((e = child_connect(d, &x.access)) == NULL)
		how = report_all(&x);
	else
		log_err(e, "commit statuses");
	_exit((int)how);
}

static void
ended(struct statuses *s, int status)
{
	const bool sent = WIFEXITED(status) && WEXITSTATUS(status) == SENT;

	s->reporter = 0;
	s->pause = sent ? 0 : backoff(s->pause, PAUSE_MIN, PAUSE_MAX);
	s->at = time_mono_ms() + s->pause;
}

static void
statuses_child(struct dispatch *d, void *state, pid_t pid, int status)
{
	struct statuses *s = state;

	(void)d;
	if (pid == s->reporter)
		ended(s, status);
}

static int64_t
statuses_next(const struct dispatch *d, const void *state, int64_t now)
{
	const struct statuses *s = state;

	(void)now;
	if (s->reporter != 0 || d->forge == NULL ||
	    !report_wanted(&d->settings.gitserver))
		return INT64_MAX;
	return s->at;
}

static void
statuses_work(struct dispatch *d, void *state, int64_t now)
{
	struct statuses *s = state;
	int64_t ms;

	if (now < statuses_next(d, state, now))
		return;
	s->at = now + LOOK_MS;
	if (!database_done(&d->database, report_due(d->db, LOOK_MS, &ms),
		"commit statuses"))
		return;
	s->at = now + ms;
	if (ms > 0)
		return;
	arena_clear(d->a);
	if ((s->reporter = child_fork(-1)) == 0)
		reporter(d);
	if (s->reporter == -1) {
		log_err(err_errno("fork"), "commit statuses");
		ended(s, -1);
	}
}

/* News does not shorten the pause for a server that is away. */
static void
statuses_events(void *state, unsigned events)
{
	struct statuses *s = state;

	if ((events & EVENT_RELOAD) != 0)
		s->pause = s->at = 0;
	if ((events & (EVENT_STATUS | EVENT_WAKE)) != 0 && s->pause == 0)
		s->at = 0;
}

static bool
statuses_is_idle(const struct dispatch *d, const void *state, int64_t now)
{
	const struct statuses *s = state;

	return s->reporter == 0 && statuses_next(d, state, now) > now;
}

const struct part statuses_part = {
	.size = sizeof(struct statuses),
	.work = statuses_work,
	.next = statuses_next,
	.events = statuses_events,
	.child = statuses_child,
	.is_idle = statuses_is_idle,
};
