/* SPDX-License-Identifier: ISC */
/*
 * Statuses on commits.  While there are any due a process of its own, with a
 * connection of its own, tells them one after the other and ends; the loop
 * only looks, with one cheap read every few seconds, whether there are.
 *
 * What fails is tried again with growing delay.  Where the server itself seems
 * to be away the rest is left alone for a while, too.
 */
#include "store/report.h"

#include <sys/wait.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "access/access.h"
#include "core/address.h"
#include "core/log.h"
#include "core/str.h"
#include "dispatch/dispatch.h"
#include "store/gitrepo.h"

#define LOOK_MS 5000 /* between looks at the table */
#define PAUSE_MIN 1000
#define PAUSE_MAX 60000
#define TURN_MS 60000   /* then the settings are looked at again */
#define ONE_MS 30000    /* for one status, with all it takes */
#define HOLD_SECONDS 60 /* above that, and for the database */
#define DELAY_MAX 3600  /* seconds */
#define REFUSED_MIN 60  /* the first delay where it is the server's word */
#define REFUSED_TRIES 8 /* then, after some two hours, it is given up */
#define AGE_MAX 259200  /* three days: given up, whatever it is */
#define FAULT_MAX 500
#define CONTEXT_MAX 255

/* Of one turn of the child. */
struct teller {
	struct dispatch *d;
	struct access access;
	struct report report; /* that is told now */
	struct forge_repo repo;
	struct forge_status status;
	bool remembered; /* the repository's number, from before */
};

enum told {
	TOLD,         /* or dropped, or to be tried again: the next, please */
	TOLD_TROUBLE, /* the server, or the database, is away */
};

/* Where a person reads on; NULL if nobody said where this service is. */
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
status_fill(struct teller *x, struct arena *a)
{
	const struct report *r = &x->report;
	const enum commit_state state = state_commit(r->wanted);

	assert(state < COMMIT__MAX);
	x->status = (struct forge_status){
		.state = state,
		.description = state_describe(state, state_reason(r->reason)),
		.commit_hash = r->commit_hash,
		.branch = r->branch,
		.context = text_clean(a,
		    arena_printf(a, "slipway/%s", r->pipeline_name),
		    CONTEXT_MAX),
		.url = link_of(&x->d->settings, a, r->deployment_id),
	};
}

/* Asks for the repository and keeps its number: it stays when the repository
 * is renamed. */
static const struct err *
repo_ask(struct teller *x, struct arena *a, const struct access_token *token)
{
	const struct report *r = &x->report;
	const struct err *e;
	struct git_repo row;

	e = forge_repo_find(x->access.forge, a, token->text, &x->repo);
	if (e != NULL || !token->trusted)
		return e;
	row = (struct git_repo){ .project_id = r->project_id,
		.server = forge_server(x->access.forge),
		.repository = r->repository,
		.repo_id = x->repo.id,
		.path = x->repo.path };
	return gitrepo_put(x->access.db, &row);
}

/* With one token. */
static const struct err *
put(struct forge *forge, struct arena *a, const struct access_token *token,
    void *context)
{
	struct teller *x = context;
	const struct err *e;

	if (x->repo.id == NULL && (e = repo_ask(x, a, token)) != NULL)
		return e;
	e = forge_status_put(forge, a, token->text, &x->repo, &x->status);
	if (e == NULL || !x->remembered ||
	    (e->code != ERR_NOTFOUND && e->sys / 100 != 3))
		return e;
	/* it may be called otherwise by now */
	x->remembered = false;
	if ((e = repo_ask(x, a, token)) != NULL)
		return e;
	return forge_status_put(forge, a, token->text, &x->repo, &x->status);
}

/* Whether the server said no, so that asking again soon is of no use. */
static bool
is_refused(const struct err *e)
{
	return e->code == ERR_NOTFOUND || e->code == ERR_UNAUTHENTICATED ||
	    e->code == ERR_FORBIDDEN || e->code == ERR_CONFIG ||
	    (e->code == ERR_UPSTREAM && e->sys >= 300 && e->sys < 500);
}

/* Whether it is of no use to ask it anything now. */
static bool
is_away(const struct err *e)
{
	return e->code == ERR_RATE || e->code == ERR_UPSTREAM_TIMEOUT ||
	    (e->code == ERR_UPSTREAM &&
		(e->sys == 0 || (e->sys >= 502 && e->sys <= 504)));
}

static const struct err *
repo_known(struct teller *x, struct arena *a)
{
	const struct report *r = &x->report;
	const struct err *e;
	struct git_repo row;

	if ((e = forge_repo_of(x->access.forge, a, r->repository, &x->repo)) !=
	    NULL)
		return e;
	e = gitrepo_find(x->access.db, a, r->project_id,
	    forge_server(x->access.forge), r->repository, &row);
	if (e != NULL)
		return e->code == ERR_NOTFOUND ? NULL : e;
	x->repo.id = row.repo_id;
	x->repo.path = row.path;
	x->remembered = true;
	return NULL;
}

/* A status is the service's own statement, so it takes the service's token.
 * Where there is none, or that may not write there, it takes the one of the
 * user who deploys. */
static const struct err *
tell(struct teller *x, struct arena *a)
{
	const char *service = x->access.settings->token;
	const struct report *r = &x->report;
	struct access_token token;
	const struct err *e;
	const struct err *first;
	struct err room;

	status_fill(x, a);
	forge_until(x->access.forge, time_mono_ms() + ONE_MS);
	if (service == NULL || service[0] == '\0')
		return access_call(&x->access, a, r->created_by.n, put, x);
	e = access_call(&x->access, a, 0, put, x);
	if (e == NULL || !r->created_by.set || !is_refused(e))
		return e;
	first = err_keep(&room, e);
	e = access_for(&x->access, a, r->created_by.n, &token);
	if (e == NULL && token.as == ACCESS_USER &&
	    access_call(&x->access, a, r->created_by.n, put, x) == NULL)
		return NULL;
	return err_wrap(first, "status");
}

/* Seconds until the next try, about. */
static int64_t
delay(const struct report *r, const struct err *e)
{
	int64_t seconds = is_refused(e) ? REFUSED_MIN : 1, i;

	for (i = 1; i < r->attempts && seconds < DELAY_MAX; i++)
		seconds *= 2;
	if (e->code == ERR_RATE && e->sys > seconds)
		seconds = e->sys;
	if (seconds > DELAY_MAX)
		seconds = DELAY_MAX;
	return seconds + (int64_t)arc4random_uniform((uint32_t)seconds / 4 + 1);
}

/* What failed. Told once in the log, and once more when it is given up. */
static enum told
failed(struct teller *x, struct arena *a, const struct err *e)
{
	const struct report *r = &x->report;
	struct err room;
	const struct err *stored, *why = err_keep(&room, e);
	const char *fault = text_clean(a,
	    why->detail[0] != '\0' ? why->detail : err_kinds[why->code].text,
	    FAULT_MAX);
	bool over = r->age > AGE_MAX ||
	    (is_refused(why) && r->attempts >= REFUSED_TRIES);

	if (over)
		log_error("%lld: its status %s is given up: %s",
		    (long long)r->deployment_id, r->wanted, why->msg);
	else if (!str_eq(fault, r->fault))
		log_warn("%lld: its status %s cannot be told: %s",
		    (long long)r->deployment_id, r->wanted, why->msg);
	stored = over ? report_drop(x->access.db, r, fault) :
			report_later(x->access.db, r, delay(r, why), fault);
	if (stored != NULL)
		log_err(stored, "reports");
	return stored != NULL || is_away(why) ? TOLD_TROUBLE : TOLD;
}

static enum told
tell_one(struct teller *x, struct arena *a)
{
	const struct report *r = &x->report;
	const struct err *e;

	x->remembered = false;
	e = repo_known(x, a);
	if (e != NULL && e->code == ERR_NOTFOUND) {
		e = report_drop(x->access.db, r, NULL);
	} else if (e == NULL) {
		e = tell(x, a);
		if (e != NULL && e->code != ERR_UNAVAILABLE)
			return failed(x, a, e);
		if (e == NULL)
			e = report_told(x->access.db, r);
	}
	if (e == NULL)
		return TOLD;
	log_err(e, "reports");
	return TOLD_TROUBLE;
}

static enum told
tell_all(struct teller *x, struct arena *a)
{
	int64_t end = time_mono_ms() + TURN_MS;
	const struct err *e;

	while (time_mono_ms() < end) {
		arena_clear(a);
		e = report_claim(x->access.db, a, HOLD_SECONDS, &x->report);
		if (e != NULL && e->code == ERR_NOTFOUND)
			return TOLD;
		if (e != NULL) {
			log_err(e, "reports");
			return TOLD_TROUBLE;
		}
		if (tell_one(x, a) == TOLD_TROUBLE)
			return TOLD_TROUBLE;
	}
	return TOLD;
}

/* The child, which never returns. */
static _Noreturn void
teller(struct dispatch *d)
{
	struct teller x = { .d = d,
		.access = { .settings = &d->settings.gitserver } };
	struct keyring *keys = NULL;
	enum told how = TOLD_TROUBLE;
	const struct err *e;

	if ((e = keyring_open(d->settings.secrets.key_file, &keys)) != NULL)
		log_debug("users' tokens do not open: %s", e->msg);
	x.access.keyring = keys;
	if ((e = db_open(&d->settings, DB_RUNNER, &x.access.db)) == NULL &&
	    (e = forge_open(x.access.settings, &x.access.forge)) == NULL)
		how = tell_all(&x, d->a);
	if (e != NULL)
		log_err(e, "reports");
	_exit((int)how);
}

void
teller_ended(struct dispatch *d, int status)
{
	const int64_t now = time_mono_ms();

	d->teller = 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == TOLD) {
		d->tell_pause = 0;
		d->tell_at = now;
		return;
	}
	d->tell_pause = d->tell_pause == 0 ? PAUSE_MIN : 2 * d->tell_pause;
	if (d->tell_pause > PAUSE_MAX)
		d->tell_pause = PAUSE_MAX;
	d->tell_at = now + d->tell_pause;
}

void
teller_wake(struct dispatch *d)
{
	if (d->tell_pause == 0)
		d->tell_at = 0;
}

int64_t
teller_due(const struct dispatch *d)
{
	if (d->forge == NULL || !report_wanted(&d->settings.gitserver))
		return INT64_MAX;
	return d->teller != 0 ? time_mono_ms() + LOOK_MS : d->tell_at;
}

void
teller_work(struct dispatch *d, int64_t now)
{
	int64_t ms;

	if (d->teller != 0 || now < teller_due(d) ||
	    !database_is_ready(&d->database))
		return;
	d->tell_at = now + LOOK_MS;
	if (!database_done(&d->database, report_due(d->db, LOOK_MS, &ms),
		"reports"))
		return;
	d->tell_at = now + ms;
	if (ms > 0)
		return;
	arena_clear(d->a);
	if ((d->teller = child_fork(-1)) == 0)
		teller(d);
	if (d->teller == -1) {
		log_err(err_errno("fork"), "reports");
		teller_ended(d, -1);
	}
}
