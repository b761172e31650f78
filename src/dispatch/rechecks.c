/* SPDX-License-Identifier: ISC */
/*
 * Rechecks the accounts behind sessions and API tokens.
 *
 * Once within auth.recheck, the Git server is queried for each user with a
 * session or an API token: whether it still accepts the account that the user
 * signed in with.  If not, the user's sessions end, and API tokens are rejected
 * until the user signs in.  If the server does not respond, no session ends.
 *
 * A child process, the checker, sends the requests; the loop only checks, with
 * one cheap read a minute at most, whether there is one to send.
 */
#include <unistd.h>

#include "core/log.h"
#include "core/str.h"
#include "dispatch/child.h"
#include "dispatch/context.h"
#include "dispatch/part.h"
#include "store/gitaccount.h"

#define LOOK_MAX_MS 60000
#define HOLD_SECONDS 60 /* for one account, and between tries */
#define TURN_MS 60000   /* then the settings are read again */
#define ONE_MS 9000

struct rechecks {
	pid_t checker; /* 0 = none */
	int64_t at;
};

/* An account is due after three quarters of the time, so that a quarter is left
 * for slow servers. */
static int64_t
due_seconds(const struct dispatch *d)
{
	return d->settings.auth.recheck * 3 / 4;
}

static int64_t
look_ms(const struct dispatch *d)
{
	int64_t ms = d->settings.auth.recheck * 1000 / 16;

	return ms < LOOK_MAX_MS ? ms : LOOK_MAX_MS;
}

/* An error only if the server does not say whether it accepts the account. */
static const struct err *
account_check(const struct dispatch *d, const struct access *x, struct arena *a,
    int64_t user_id)
{
	const struct err *e;

	forge_until(x->forge, time_mono_ms() + ONE_MS);
	e = access_confirm(x, a, user_id);
	forge_until(x->forge, 0);
	if (e == NULL)
		return gitaccount_confirm(x->db, user_id);
	if (e->code == ERR_UNAUTHENTICATED || e->code == ERR_FORBIDDEN) {
		log_info("user %lld: the Git server rejects the account: %s",
		    (long long)user_id, e->msg);
		return NULL;
	}
	if (e->code != ERR_NOTFOUND)
		return e;
	log_info("user %lld: no token to confirm the account at the Git server"
		 " with: sessions and API tokens end",
	    (long long)user_id);
	return gitaccount_refuse_unchecked(x->db, user_id, due_seconds(d));
}

/* No account can be confirmed now. */
static bool
is_away(const struct err *e)
{
	return e != NULL &&
	    (e->code == ERR_UPSTREAM_TIMEOUT || e->code == ERR_RATE ||
		e->code == ERR_UPSTREAM || e->code == ERR_UNAVAILABLE);
}

/* An error only if the other accounts cannot be confirmed, either. */
static const struct err *
check_some(const struct dispatch *d, const struct access *x, struct arena *a,
    const struct list *list, int64_t end)
{
	const struct gitaccount *account = list->items;
	const struct err *e = NULL;
	size_t i;

	for (i = 0; e == NULL && i < list->n && time_mono_ms() < end; i++) {
		arena_clear(a);
		e = gitaccount_take(x->db, account[i].user_id, due_seconds(d),
		    HOLD_SECONDS);
		if (e == NULL)
			e = account_check(d, x, a, account[i].user_id);
		if (e == NULL || is_away(e))
			continue;
		if (e->code != ERR_CONFLICT)
			log_err(e, "the account of a user");
		e = NULL;
	}
	return e;
}

static const struct err *
check_all(const struct dispatch *d, const struct access *x)
{
	const int64_t end = time_mono_ms() + TURN_MS;
	struct arena *a = arena_open((size_t)4 << 20);
	const struct err *e;
	struct list list;

	do {
		arena_clear(d->a);
		e = gitaccount_unchecked(x->db, d->a, forge_server(x->forge),
		    due_seconds(d), &list);
		if (e == NULL)
			e = check_some(d, x, a, &list, end);
	} while (e == NULL && list.n > 0 && time_mono_ms() < end);
	arena_close(a);
	return e;
}

static _Noreturn void
checker_run(const struct dispatch *d)
{
	const struct err *e;
	struct access x;

	e = child_connect(d, &x);
	/* without the key no account can be confirmed */
	if (x.keyring == NULL)
		_exit(1);
	if (e == NULL)
		e = check_all(d, &x);
	if (e != NULL)
		log_warn("accounts of users cannot be confirmed: %s", e->msg);
	_exit(e != NULL ? 1 : 0);
}

static int64_t
rechecks_next(const struct dispatch *d, const void *state, int64_t now)
{
	const struct rechecks *r = state;
	const struct forge *forge = d->forge;

	(void)now;
	/* users could not sign in again */
	if (r->checker != 0 || forge == NULL || !forge_has_api(forge) ||
	    forge_can_sign_in(forge) != NULL || d->settings.auth.remote_user)
		return INT64_MAX;
	return r->at;
}

static void
rechecks_work(struct dispatch *d, void *state, int64_t now)
{
	struct rechecks *r = state;
	const struct err *e;
	struct list list;

	if (now < rechecks_next(d, state, now))
		return;
	r->at = now + look_ms(d);
	e = gitaccount_unchecked(d->db, d->a, forge_server(d->forge),
	    due_seconds(d), &list);
	if (!database_done(&d->database, e, "accounts") || list.n == 0)
		return;
	arena_clear(d->a);
	if ((r->checker = child_fork(-1)) == 0)
		checker_run(d);
	if (r->checker == -1) {
		log_err(err_errno("fork"), "accounts");
		r->checker = 0;
	}
}

static void
rechecks_events(void *state, unsigned events)
{
	struct rechecks *r = state;

	if ((events & EVENT_RELOAD) != 0)
		r->at = 0;
}

static void
rechecks_child(struct dispatch *d, void *state, pid_t pid, int status)
{
	struct rechecks *r = state;

	(void)d;
	(void)status;
	if (pid == r->checker)
		r->checker = 0;
}

static bool
rechecks_is_idle(const struct dispatch *d, const void *state, int64_t now)
{
	const struct rechecks *r = state;

	return r->checker == 0 && rechecks_next(d, state, now) > now;
}

const struct part rechecks_part = {
	.size = sizeof(struct rechecks),
	.work = rechecks_work,
	.next = rechecks_next,
	.events = rechecks_events,
	.child = rechecks_child,
	.is_idle = rechecks_is_idle,
};
