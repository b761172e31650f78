/* SPDX-License-Identifier: ISC */
/*
 * slipway-dispatch: takes deployments off the queue, lets the monitor start
 * their jobs, and copies logs and results from the spool to the database.
 *
 * The monitor starts it, unprivileged, with a socketpair as descriptor 3.  All
 * its work is done by parts; this file has the loop that runs them.
 */
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <malloc.h>
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
#include "dispatch/context.h"
#include "dispatch/part.h"
#include "dispatch/task.h"
#include "dispatch/waiting.h"
#include "dispatch/watch.h"

#define SETTINGS_ARENA ((size_t)4 << 20)
#define TURN_ARENA ((size_t)128 << 20)
#define ONCE_MS 30000 /* without a database, then --once gives up */
#define HOST_SIZE 256
#define MESSAGES_MAX 64 /* of the monitor, in one turn */
#define TRIM_MS 10000   /* without a task; then memory is given back */

static const struct part *const parts[] = {
#define X(name) &name##_part,
	PARTS(X)
#undef X
};
#define NPARTS (sizeof(parts) / sizeof(parts[0]))

struct loop {
	struct dispatch d;
	void *state[NPARTS]; /* of the parts */
	const char *conf;
	struct arena *settings_arena;
	int wake; /* -1 = none */
	int64_t trim_at;
	struct watch watch;
	struct waiting_notes notes;
	struct tasks tasks;
	struct fetch_hosts hosts;
};

static volatile sig_atomic_t got_stop, got_reload;

static void
on_signal(int sig)
{
	if (sig == SIGHUP)
		got_reload = 1;
	else if (sig != SIGCHLD) /* that only ends the wait */
		got_stop = 1;
}

/* They are blocked except while the loop waits. */
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
settings_read(struct loop *l)
{
	struct arena *a = arena_open(SETTINGS_ARENA);
	struct settings fresh;
	const struct err *e;

	(void)memset(&fresh, 0, sizeof(fresh));
	if ((e = conf_read(a, settings_keys, l->conf, 0, &fresh)) != NULL) {
		arena_close(a);
		return e;
	}
	if (l->settings_arena != NULL)
		arena_close(l->settings_arena);
	l->settings_arena = a;
	l->d.settings = fresh;
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
forge_reopen(struct dispatch *d)
{
	const struct settings_gitserver *g = &d->settings.gitserver;
	const struct err *e;

	forge_close(d->forge);
	d->forge = NULL;
	if (g->url != NULL && (e = forge_open(g, &d->forge)) != NULL)
		log_err(e, "the Git server is not used");
}

static void
settings_reload(struct loop *l)
{
	const struct err *e = settings_read(l);

	if (e != NULL) {
		log_err(e, "reload: the old configuration stays in use");
		return;
	}
	log_start(&l->d);
	db_drop(l->d.db);
	forge_reopen(&l->d);
	l->d.events |= EVENT_RELOAD;
	log_info("configuration read again");
}

static void
options_read(struct loop *l, int argc, char **argv)
{
	static const struct option longs[] = {
		{ "once", no_argument, NULL, '1' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "c:", longs, NULL)) != -1) {
		if (c == 'c')
			l->conf = optarg;
		else if (c == '1')
			l->d.once = true;
		else
			break;
	}
	if (c != -1 || optind != argc) {
		(void)fprintf(stderr,
		    "usage: slipway-dispatch [-c FILE] [--once]\n"
		    "Only slipway-runner starts it.\n");
		exit(EX_USAGE);
	}
}

static const char *
runner_name(const struct settings_runner *s)
{
	static char host[HOST_SIZE];

	if (s->name != NULL)
		(void)snprintf(host, sizeof(host), "%s", s->name);
	else if (gethostname(host, sizeof(host) - 1) == -1)
		err(EX_OSERR, "gethostname");
	return host;
}

static void
exit_on_error(const struct err *e)
{
	if (e != NULL)
		errx(err_kinds[e->code].exit, "%s", e->msg);
}

static void
dispatch_init(struct loop *l, int argc, char **argv)
{
	struct dispatch *d = &l->d;
	const struct err *e;
	struct stat st;
	size_t i;

	log_init("slipway-dispatch", 0);
	options_read(l, argc, argv);
	if (fstat(CONTEXT_WIRE, &st) == -1 || !S_ISSOCK(st.st_mode))
		errx(EX_USAGE,
		    "descriptor 3 is not a socket: only slipway-runner starts "
		    "this program");
	(void)umask(077);
	exit_on_error(proc_close_up());
	exit_on_error(settings_read(l));
	exit_on_error(crypto_init());
	log_start(d);
	d->name = runner_name(&d->settings.runner);
	d->a = arena_open(TURN_ARENA);
	d->tasks = &l->tasks;
	d->watch = &l->watch;
	d->notes = &l->notes;
	watch_open(d->watch);
	d->hosts = &l->hosts;
	database_init(&d->database);
	forge_reopen(d);
	exit_on_error(db_open(&d->settings, 0, &d->db));
	exit_on_error(spool_open(&d->spool, d->settings.runner.spool));
	for (i = 0; i < NPARTS; i++)
		if (parts[i]->size > 0)
			l->state[i] = mem_alloc(1, parts[i]->size);
	if (!d->once &&
	    (e = wake_open(d->settings.runner.wake_socket, 0660,
		 d->settings.runner.wake_group, &l->wake)) != NULL)
		log_err(e, "new work is only found by polling");
}

/* Events of one part reach the others before the next one works. */
static void
events_deliver(struct loop *l)
{
	const unsigned events = l->d.events;
	size_t i;

	if (events == 0)
		return;
	l->d.events = 0;
	for (i = 0; i < NPARTS; i++)
		if (parts[i]->events != NULL)
			parts[i]->events(l->state[i], events);
}

static void
children_reap(struct loop *l)
{
	int status;
	pid_t pid;
	size_t i;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (i = 0; i < NPARTS; i++)
			if (parts[i]->child != NULL)
				parts[i]->child(&l->d, l->state[i], pid,
				    status);
}

/* A stop that is requested during a turn ends it: nothing more is claimed.  The
 * signals are blocked then, so the handler has not run. */
static bool
is_stopping(void)
{
	sigset_t set;

	return got_stop != 0 ||
	    (sigpending(&set) == 0 &&
		(sigismember(&set, SIGTERM) == 1 ||
		    sigismember(&set, SIGINT) == 1));
}

/* Gives memory that the last tasks needed back to the host, once. */
static void
memory_trim(struct loop *l)
{
	const int64_t now = time_mono_ms();

	if (l->tasks.n > 0)
		l->trim_at = now + TRIM_MS;
	if (now < l->trim_at)
		return;
	l->trim_at = INT64_MAX;
	(void)malloc_trim(0);
}

/* One turn: everything that is due. */
static void
parts_work(struct loop *l)
{
	struct dispatch *d = &l->d;
	size_t i;

	children_reap(l);
	exit_on_error(database_check(&d->database, d->db, d->once));
	for (i = 0; i < NPARTS && !is_stopping(); i++) {
		events_deliver(l);
		arena_clear(d->a);
		if ((parts[i]->flags & PART_OFFLINE) != 0 ||
		    database_is_usable(&d->database))
			parts[i]->work(d, l->state[i], time_mono_ms());
	}
	events_deliver(l);
	if (db_has_written(d->db))
		wake_send(d->settings.api.live_wake_socket);
	memory_trim(l);
}

/* A part that needs the database has nothing to do while it is away. */
static int64_t
next_due(const struct loop *l, int64_t now)
{
	const struct database *b = &l->d.database;
	int64_t due = b->is_checked ? INT64_MAX : b->at, at;
	size_t i;

	for (i = 0; i < NPARTS; i++) {
		at = parts[i]->next(&l->d, l->state[i], now);
		if ((parts[i]->flags & PART_OFFLINE) == 0) {
			if (!b->is_checked)
				continue;
			if (at < b->at)
				at = b->at;
		}
		if (at < due)
			due = at;
	}
	return due;
}

static void
message_deliver(struct loop *l, const struct wire *w)
{
	size_t i;

	if (w->type == WIRE_RELOAD)
		got_reload = 1;
	else if (w->type == WIRE_STOP)
		got_stop = 1;
	for (i = 0; i < NPARTS; i++)
		if (parts[i]->message != NULL)
			parts[i]->message(&l->d, l->state[i], w);
}

static bool
is_readable(int fd)
{
	struct pollfd one = { .fd = fd, .events = POLLIN };

	return poll(&one, 1, 0) == 1;
}

static void
monitor_hear(struct loop *l)
{
	const struct err *e;
	struct wire w;
	int n;

	for (n = 0; n < MESSAGES_MAX && is_readable(CONTEXT_WIRE); n++) {
		if ((e = wire_recv(CONTEXT_WIRE, &w, NULL, 0)) != NULL) {
			if (e->code != ERR_NOTFOUND)
				log_err(e, "monitor");
			got_stop = 1;
			return;
		}
		message_deliver(l, &w);
	}
}

static void
wait_for_work(struct loop *l, const sigset_t *waiting)
{
	struct pollfd fds[] = {
		{ .fd = CONTEXT_WIRE, .events = POLLIN },
		{ .fd = l->wake, .events = POLLIN },
		{ .events = POLLIN },
	};
	int64_t now = time_mono_ms(), due = next_due(l, now);
	struct timespec timeout = { 0, 0 };

	fds[2].fd = watch_wait(&l->watch, now, &due);
	if (due > now && due != INT64_MAX) {
		timeout.tv_sec = (time_t)((due - now) / 1000);
		timeout.tv_nsec = (long)((due - now) % 1000) * 1000000;
	}
	if (ppoll(fds, 3, due == INT64_MAX ? NULL : &timeout, waiting) <= 0)
		return;
	if (fds[0].revents != 0)
		monitor_hear(l);
	if (fds[1].revents != 0 && wake_drain(l->wake))
		l->d.events |= EVENT_WAKE;
	if (fds[2].revents != 0)
		watch_read(&l->watch, &l->tasks);
}

/* Whether --once has nothing more to do. */
static bool
is_drained(const struct loop *l)
{
	const struct dispatch *d = &l->d;
	const int64_t now = time_mono_ms();
	size_t i;

	if (!d->once || d->tasks->n > 0)
		return false;
	if (d->database.since == 0 && now - d->database.lost > ONCE_MS)
		errx(EX_TEMPFAIL, "the database cannot be reached");
	for (i = 0; i < NPARTS; i++)
		if (parts[i]->is_idle != NULL &&
		    !parts[i]->is_idle(d, l->state[i], now))
			return false;
	return true;
}

/* Jobs continue.  While a claim is in doubt the spool keeps the mark of this
 * dispatcher, so that the next one settles it. */
static void
dispatch_shutdown(struct loop *l)
{
	struct dispatch *d = &l->d;
	size_t i;

	for (i = 0; i < NPARTS; i++)
		if (parts[i]->close != NULL)
			parts[i]->close(d, l->state[i]);
	if (d->tasks->n > 0)
		log_info("%zu deployments continue", tasks_live(d->tasks));
	if (!d->database.is_doubtful)
		spool_disown(&d->spool);
	watch_close(d->watch);
	spool_close(&d->spool);
	db_close(d->db);
}

int
main(int argc, char **argv)
{
	static struct loop l = { .conf = SLIPWAY_CONF,
		.wake = -1,
		.trim_at = TRIM_MS };
	sigset_t waiting;

	signals_set(&waiting);
	dispatch_init(&l, argc, argv);
	log_info("runner %s%s", l.d.name, l.d.once ? ", once" : "");
	while (got_stop == 0 && !is_drained(&l)) {
		if (got_reload != 0) {
			got_reload = 0;
			settings_reload(&l);
		}
		parts_work(&l);
		if (!is_drained(&l))
			wait_for_work(&l, &waiting);
	}
	dispatch_shutdown(&l);
	return 0;
}
