/* SPDX-License-Identifier: ISC */
/*
 * The accounts behind sessions.  For each user with a session the Git server is
 * asked, well within auth.recheck, whether it still accepts the account that
 * the user signed in with; if not, the user's sessions end.  A process of its
 * own asks; the loop only looks, with one cheap read a minute at most, whether
 * there is something to ask.  A server that is away ends nothing.
 */
#include <unistd.h>

#include "access/access.h"
#include "core/log.h"
#include "core/str.h"
#include "dispatch/dispatch.h"
#include "store/session.h"

#define LOOK_MAX_MS 60000
#define HOLD_SECONDS 60 /* for one account, and between tries */
#define TURN_MS 60000   /* then the settings are looked at again */
#define ONE_MS 9000

/* An account is asked for when three quarters of the time are over, so that
 * there is time left for what is slow. */
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

/* What the server says of one account; an error only if it does not say. */
static const struct err *
account_check(const struct dispatch *d, const struct access *x, struct arena *a,
    int64_t user_id)
{
	const struct err *e;

	forge_until(x->forge, time_mono_ms() + ONE_MS);
	e = access_confirm(x, a, user_id);
	forge_until(x->forge, 0);
	if (e == NULL)
		return session_checked(x->db, user_id);
	if (e->code == ERR_UNAUTHENTICATED || e->code == ERR_FORBIDDEN) {
		log_info("user %lld: the account at the Git server is refused:"
			 " %s",
		    (long long)user_id, e->msg);
		return NULL;
	}
	if (e->code != ERR_NOTFOUND)
		return e;
	log_info("user %lld: there is no token by which the Git server could "
		 "confirm the account: the sessions end",
	    (long long)user_id);
	return session_end_unchecked(x->db, user_id, due_seconds(d));
}

static bool
is_away(const struct err *e)
{
	return e != NULL &&
	    (e->code == ERR_UPSTREAM_TIMEOUT || e->code == ERR_RATE ||
		e->code == ERR_UPSTREAM || e->code == ERR_UNAVAILABLE);
}

/* Some that are due; only what keeps all others from being confirmed, too, is an
 * error. */
static const struct err *
check_some(const struct dispatch *d, const struct access *x, struct arena *a,
    const struct list *list, int64_t end)
{
	const struct session_check *check = list->items;
	const struct err *e = NULL;
	size_t i;

	for (i = 0; e == NULL && i < list->n && time_mono_ms() < end; i++) {
		arena_clear(a);
		e = session_check_take(x->db, check[i].user_id, due_seconds(d),
		    HOLD_SECONDS);
		if (e == NULL)
			e = account_check(d, x, a, check[i].user_id);
		if (e == NULL || is_away(e))
			continue;
		if (e->code != ERR_CONFLICT)
			log_err(e, "the account behind a session");
		e = NULL;
	}
	return e;
}

/* All that are due; a server that is away is left alone until the next turn. */
static const struct err *
check_all(const struct dispatch *d, const struct access *x)
{
	const int64_t end = time_mono_ms() + TURN_MS;
	struct arena *a = arena_open((size_t)4 << 20);
	const struct err *e;
	struct list list;

	do {
		arena_clear(d->a);
		e = session_unchecked(x->db, d->a, forge_server(x->forge),
		    due_seconds(d), &list);
		if (e == NULL)
			e = check_some(d, x, a, &list, end);
	} while (e == NULL && list.n > 0 && time_mono_ms() < end);
	arena_close(a);
	return e;
}

/* The child, which never returns. */
static _Noreturn void
checker(struct dispatch *d)
{
	struct access x = { .settings = &d->settings.gitserver };
	struct keyring *keys = NULL;
	const struct err *e;

	/* without the key nothing could be said of any account */
	if ((e = keyring_open(d->settings.secrets.key_file, &keys)) != NULL) {
		log_debug("users' tokens do not open: %s", e->msg);
		_exit(1);
	}
	x.keyring = keys;
	if ((e = db_open(&d->settings, DB_RUNNER, &x.db)) == NULL &&
	    (e = forge_open(x.settings, &x.forge)) == NULL)
		e = check_all(d, &x);
	if (e != NULL)
		log_warn("accounts behind sessions are not confirmed now: %s",
		    e->msg);
	_exit(e != NULL ? 1 : 0);
}

int64_t
recheck_due(const struct dispatch *d)
{
	if (d->forge == NULL || !forge_has_api(d->forge) ||
	    forge_can_sign_in(d->forge) != NULL)
		return INT64_MAX;
	return d->checker != 0 ? time_mono_ms() + LOOK_MAX_MS : d->check_at;
}

void
recheck_work(struct dispatch *d, int64_t now)
{
	const struct err *e;
	struct list list;

	if (d->checker != 0 || now < recheck_due(d) ||
	    !database_is_ready(&d->database))
		return;
	d->check_at = now + look_ms(d);
	e = session_unchecked(d->db, d->a, forge_server(d->forge),
	    due_seconds(d), &list);
	if (!database_done(&d->database, e, "accounts") || list.n == 0)
		return;
	arena_clear(d->a);
	if ((d->checker = child_fork(-1)) == 0)
		checker(d);
	if (d->checker == -1) {
		log_err(err_errno("fork"), "accounts");
		d->checker = 0;
	}
}
