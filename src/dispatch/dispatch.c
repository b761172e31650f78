/* SPDX-License-Identifier: ISC */
/* slipway-dispatch: the monitor starts it, unprivileged, with a socketpair as
 * descriptor 3. */
#include "dispatch/dispatch.h"

#include <sys/socket.h>
#include <sys/stat.h>

#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "core/log.h"
#include "core/proc.h"
#include "core/str.h"
#include "core/wake.h"
#include "crypto/crypto.h"
#include "db/db.h"
#include "store/gitrepo.h"
#include "store/gittoken.h"
#include "store/hook.h"
#include "store/idempotency.h"
#include "store/identity.h"
#include "store/joblog.h"
#include "store/lease.h"
#include "store/project.h"
#include "store/projectdir.h"
#include "store/report.h"
#include "store/session.h"
#include "store/store.h"

#define SETTINGS_ARENA ((size_t)4 << 20)
#define TURN_ARENA ((size_t)128 << 20)
#define SCAN_MS 5000  /* between looks at the spool */
#define ONCE_MS 30000 /* without a database, then --once gives up */
#define HOST_SIZE 256

static volatile sig_atomic_t got_stop, got_reload;

static void
check_database(struct dispatch *d)
{
	const struct err *e = database_check(&d->database, d->db, d->once);

	if (e != NULL)
		errx(err_kinds[e->code].exit, "%s", e->msg);
}

static void
on_signal(int sig)
{
	if (sig == SIGHUP)
		got_reload = 1;
	else if (sig != SIGCHLD) /* that only ends the wait */
		got_stop = 1;
}

/* Blocked but while the loop waits. */
static void
signals_set(sigset_t *waiting)
{
	const int caught[] = { SIGTERM, SIGINT, SIGHUP, SIGCHLD };
	struct sigaction act = { .sa_handler = on_signal };
	sigset_t set;
	size_t i;

	(void)sigemptyset(&set);
	for (i = 0; i < sizeof(caught) / sizeof(caught[0]); i++) {
		(void)sigaddset(&set, caught[i]);
		(void)sigaction(caught[i], &act, NULL);
	}
	act.sa_handler = SIG_IGN;
	(void)sigaction(SIGPIPE, &act, NULL);
	(void)sigprocmask(SIG_BLOCK, &set, waiting);
	for (i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
		(void)sigdelset(waiting, caught[i]);
}

static const struct err *
settings_read(struct dispatch *d)
{
	struct arena *a = arena_open(SETTINGS_ARENA);
	struct settings fresh;
	const struct err *e;

	(void)memset(&fresh, 0, sizeof(fresh));
	if ((e = conf_read(a, settings_keys, d->conf, 0, &fresh)) != NULL) {
		arena_close(a);
		return e;
	}
	if (d->settings_arena != NULL)
		arena_close(d->settings_arena);
	d->settings_arena = a;
	d->settings = fresh;
	return NULL;
}

static void
log_start(const struct dispatch *d)
{
	log_init("slipway-dispatch",
	    (d->settings.log.syslog ? LOG_TO_SYSLOG : 0) |
		(d->settings.log.debug ? LOG_DEBUGGING : 0));
}

static void
reload(struct dispatch *d)
{
	const struct err *e = settings_read(d);

	if (e != NULL) {
		log_err(e, "reload: the old configuration stays");
		return;
	}
	log_start(d);
	db_drop(d->db);
	clone_open(d);
	d->tell_at = d->tell_pause = d->check_at = 0;
	d->claim = true;
	log_info("configuration read again");
}

static void
options(struct dispatch *d, int argc, char **argv)
{
	static const struct option longs[] = {
		{ "once", no_argument, NULL, '1' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "c:", longs, NULL)) != -1) {
		if (c == 'c')
			d->conf = optarg;
		else if (c == '1')
			d->once = true;
		else
			break;
	}
	if (c != -1 || optind != argc) {
		(void)fprintf(stderr,
		    "usage: slipway-dispatch [-c FILE] [--once]\n"
		    "It is started by slipway-runner alone.\n");
		exit(EX_USAGE);
	}
}

static void
names_make(struct dispatch *d)
{
	static char host[HOST_SIZE];
	unsigned char bytes[(QUEUE_OWNER_SIZE - 1) / 2];
	size_t i;

	crypto_random(bytes, sizeof(bytes));
	for (i = 0; i < sizeof(bytes); i++)
		(void)snprintf(d->owner + 2 * i, 3, "%02x", bytes[i]);
	if (d->settings.runner.name != NULL)
		(void)snprintf(host, sizeof(host), "%s",
		    d->settings.runner.name);
	else if (gethostname(host, sizeof(host) - 1) == -1)
		err(EX_OSERR, "gethostname");
	d->name = host;
}

static void
init(struct dispatch *d, int argc, char **argv)
{
	const struct err *e;
	struct stat st;

	log_init("slipway-dispatch", 0);
	database_init(&d->database);
	options(d, argc, argv);
	if (fstat(DISPATCH_WIRE, &st) == -1 || !S_ISSOCK(st.st_mode))
		errx(EX_USAGE,
		    "descriptor 3 is no socket: slipway-runner "
		    "starts this program");
	(void)umask(077);
	if ((e = proc_close_up()) != NULL || (e = settings_read(d)) != NULL ||
	    (e = crypto_init()) != NULL)
		errx(err_kinds[e->code].exit, "%s", e->msg);
	log_start(d);
	names_make(d);
	d->a = arena_open(TURN_ARENA);
	clone_open(d);
	if ((e = db_open(&d->settings, DB_RUNNER, &d->db)) != NULL ||
	    (e = spool_open(d)) != NULL)
		errx(err_kinds[e->code].exit, "%s", e->msg);
	if (d->once)
		return;
	/* without it there is still the poll */
	if ((e = wake_open(d->settings.runner.wake_socket, 0660,
		 d->settings.runner.wake_group, &d->wake)) != NULL)
		log_err(e, "work is found by looking only");
}

static void
adopt(struct dispatch *d, const char *name)
{
	struct task found, *t;
	const struct err *e;

	task_init(&found);
	if ((e = spool_adopt(d, name, &found)) != NULL) {
		if (e->code != ERR_CONFLICT && e->code != ERR_NOTFOUND)
			log_fault(e, name);
		return;
	}
	log_fault_over(name);
	t = task_open(d);
	*t = found;
	t->flags |= TASK_ADOPTED;
	task_move(t, PHASE_RUNNING);
	log_info("%s: is adopted from the spool", name);
}

static void
scan(struct dispatch *d, int64_t now)
{
	if (now < d->scan_at)
		return;
	d->scan_at = now + SCAN_MS;
	spool_each(d, adopt);
	d->settle = spool_sweep(d) || d->settle;
}

static void
heard(struct dispatch *d, const struct wire *w)
{
	struct task *t = task_find(d, w->deployment, w->epoch);

	switch ((enum wire_type)w->type) {
	case WIRE_STARTED:
		if (t != NULL)
			claim_started(d, t, w);
		break;
	case WIRE_REFUSED:
		if (t != NULL)
			claim_refused(d, t, w);
		break;
	case WIRE_EXITED:
		if (t != NULL)
			task_exited(d, t);
		d->claim = true;
		claim_retry(d);
		break;
	case WIRE_WIPED:
		project_wiped(d, w);
		break;
	case WIRE_RELOAD:
		got_reload = 1;
		break;
	case WIRE_STOP:
		got_stop = 1;
		break;
	case WIRE_START:
	case WIRE_KILL:
	case WIRE_WIPE:
	case WIRE__MAX:
		break;
	}
}

static void
listen_to_monitor(struct dispatch *d)
{
	const struct err *e;
	struct wire w;

	if ((e = wire_recv(DISPATCH_WIRE, &w, NULL, 0)) == NULL) {
		heard(d, &w);
		return;
	}
	if (e->code != ERR_NOTFOUND)
		log_err(e, "monitor");
	got_stop = 1;
}

/* About a second, not the same one for all. */
static int64_t
jittered(int64_t ms)
{
	return ms * 3 / 4 + (int64_t)arc4random_uniform((uint32_t)ms / 2);
}

static void
poll_due(struct dispatch *d, int64_t now)
{
	if (now < d->poll_at)
		return;
	d->poll_at = now + jittered(d->settings.runner.poll * 1000);
	d->claim = true;
	d->review_at = 0;
}

/* One turn: everything that is due. */
static void
work(struct dispatch *d)
{
	int64_t now = time_mono_ms();
	size_t i;

	arena_clear(d->a);
	child_reap(d);
	check_database(d);
	scan(d, now);
	for (i = 0; i < d->n; i++) {
		arena_clear(d->a);
		task_work(d, d->tasks[i]);
	}
	task_reap(d);
	arena_clear(d->a);
	if (!d->database.is_checked)
		return;
	claim_settle(d);
	poll_due(d, now);
	claim_review(d);
	claim_work(d);
	task_reap(d);
	house_keep(d, now);
	project_wipes(d, now);
	teller_work(d, now);
	recheck_work(d, now);
}

static int64_t
next_due(const struct dispatch *d, int64_t now)
{
	int64_t due = d->poll_at < d->scan_at ? d->poll_at : d->scan_at, at;
	size_t i;

	for (i = 0; i < d->n; i++)
		if ((at = task_due(d->tasks[i], now)) < due)
			due = at;
	if ((at = claim_review_due(d)) < due)
		due = at;
	if (claim_wanted(d) && d->claim_at < due)
		due = d->claim_at;
	if ((at = teller_due(d)) < due)
		due = at;
	if ((at = recheck_due(d)) < due)
		due = at;
	/* nothing moves while the database is away but the jobs themselves */
	return due < d->database.at ? d->database.at : due;
}

static void
wait_for_it(struct dispatch *d, const sigset_t *waiting)
{
	struct pollfd fds[] = {
		{ .fd = DISPATCH_WIRE, .events = POLLIN },
		{ .fd = d->wake, .events = POLLIN },
	};
	int64_t now = time_mono_ms(), ms = next_due(d, now) - now;
	struct timespec timeout = { 0, 0 };

	if (ms > 0) {
		timeout.tv_sec = (time_t)(ms / 1000);
		timeout.tv_nsec = (long)(ms % 1000) * 1000000;
	}
	if (ppoll(fds, 2, &timeout, waiting) <= 0)
		return;
	if (fds[0].revents != 0)
		listen_to_monitor(d);
	if (fds[1].revents != 0 && wake_drain(d->wake)) {
		d->poll_at = 0;
		d->claim_at = 0; /* what came waits for none that was refused */
		teller_wake(d);
	}
}

/* Whether --once has nothing more to do; exits where the
 * database is away for too long. */
static bool
is_drained(const struct dispatch *d)
{
	if (!d->once || d->n > 0)
		return false;
	if (d->database.since == 0 &&
	    time_mono_ms() - d->database.lost > ONCE_MS)
		errx(EX_TEMPFAIL, "the database cannot be reached");
	return d->drained && !d->database.is_doubtful && !d->claim &&
	    d->teller == 0 && d->checker == 0 &&
	    teller_due(d) > time_mono_ms() && recheck_due(d) > time_mono_ms();
}

int
main(int argc, char **argv)
{
	static struct dispatch d = { .conf = SLIPWAY_CONF,
		.wake = -1,
		.owner_fd = -1,
		.settle = true };
	sigset_t waiting;

	signals_set(&waiting);
	init(&d, argc, argv);
	log_info("runner %s%s", d.name, d.once ? ", once" : "");
	while (got_stop == 0 && !is_drained(&d)) {
		if (got_reload != 0) {
			got_reload = 0;
			reload(&d);
		}
		work(&d);
		if (!is_drained(&d))
			wait_for_it(&d, &waiting);
	}
	claim_leave(&d);
	if (d.n > 0)
		log_info("%zu deployments go on", claim_live(&d));
	spool_close(&d);
	db_close(d.db);
	return 0;
}
