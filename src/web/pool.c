/* SPDX-License-Identifier: ISC */
#include "web/pool.h"

#include <sys/wait.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "core/proc.h"
#include "core/str.h"
#include "web/deadline.h"

#define YOUNG_MS 1000 /* a worker that dies younger than this has failed */
#define DELAY_MS 100  /* restart delay after a worker that has served */
/* Limit of the delay, which doubles each time otherwise. */
#define DELAY_MAX_MS 10000
#define SOON_MS 20 /* until a worker that starts or ends is looked at again */
#define DRAIN_MS 5000 /* on top of the maximum time of a request */

struct worker_slot {
	pid_t pid; /* 0 = free, -1 = starts at `due` */
	enum route_pool pool;
	unsigned generation;
	int64_t began;
	int64_t due;
	int64_t delay;
	bool signaled; /* SIGTERM or SIGQUIT was sent */
};

static struct worker_slot slots[SCOREBOARD_WORKERS];
static unsigned generation = 1;
static enum { RUNNING, DRAINING, KILLING } state = RUNNING;
static int64_t drain_until;

static void
signals_of_master(sigset_t *set)
{
	static const int mine[] = { SIGTERM, SIGINT, SIGHUP, SIGCHLD };
	size_t i;

	(void)sigemptyset(set);
	for (i = 0; i < sizeof(mine) / sizeof(mine[0]); i++)
		(void)sigaddset(set, mine[i]);
}

void
pool_signals(void)
{
	sigset_t set;

	signals_of_master(&set);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
}

static void
slot_start(struct pool *p, struct worker_slot *s)
{
	struct worker w = p->worker;
	int place = (int)(s - slots), pool;
	pid_t pid;

	w.pool = s->pool;
	w.master = getpid(); /* the master may end before the child checks it */
	w.place = place;
	w.listen_fd = p->sockets.fd[s->pool];
	scoreboard_clear(w.scoreboard, place);
	atomic_store(&w.scoreboard->place[place].pool, (int)s->pool);
	s->generation = generation;
	s->began = time_mono_ms();
	s->signaled = false;
	if ((pid = fork()) == 0) {
		for (pool = 0; pool < POOL__MAX; pool++)
			if (pool != (int)s->pool && p->sockets.fd[pool] != -1)
				(void)close(p->sockets.fd[pool]);
		worker_run(&w);
	}
	if (pid == -1) {
		log_error("fork: %s", strerror(errno));
		s->pid = -1;
		s->due = s->began + DELAY_MAX_MS;
		return;
	}
	s->pid = pid;
}

static bool
slot_add(struct pool *p, enum route_pool pool)
{
	size_t i;

	for (i = 0; i < SCOREBOARD_WORKERS; i++)
		if (slots[i].pid == 0) {
			slots[i] = (struct worker_slot){ .pool = pool };
			slot_start(p, &slots[i]);
			return true;
		}
	return false;
}

static void
slot_tell(struct worker_slot *s, int signal_number)
{
	if (s->pid > 0 && kill(s->pid, signal_number) == 0)
		s->signaled = true;
}

static void
death_log(const struct worker_slot *s, const struct scoreboard_place *place,
    int status)
{
	const int64_t until = atomic_load(&place->until);
	const char *request = place->request;
	const char *with = request[0] == '\0' ? "" : ", serving ";

	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && until != 0 &&
	    time_mono_ms() >= until + DEADLINE_HUNG_MS)
		log_error("worker %ld: it hung past the deadline of its "
			  "request",
		    (long)s->pid);
	if (WIFSIGNALED(status))
		log_warn("worker %ld: killed by signal %d%s%s", (long)s->pid,
		    WTERMSIG(status), with, request);
	else if (WEXITSTATUS(status) == DEADLINE_MISSED)
		log_warn("worker %ld: ended at the deadline of its request%s%s",
		    (long)s->pid, with, request);
	else if (WEXITSTATUS(status) != 0)
		log_warn("worker %ld: exit status %d%s%s", (long)s->pid,
		    WEXITSTATUS(status), with, request);
}

/* How long to wait before replacing a dead worker. One that never served would
 * probably fail again for the same reason, so the delay grows. One that served
 * probably died of a request, which must not delay others. */
static int64_t
delay_next(const struct worker_slot *s, bool served)
{
	if (served)
		return time_mono_ms() - s->began >= YOUNG_MS ? 0 : DELAY_MS;
	if (s->delay < DELAY_MS)
		return DELAY_MS;
	return s->delay < DELAY_MAX_MS / 2 ? s->delay * 2 : DELAY_MAX_MS;
}

/* Handles the end of a worker: replaces it, unless it was stopped. */
static void
slot_ended(struct pool *p, struct worker_slot *s, int status)
{
	struct scoreboard *shared = p->worker.scoreboard;
	int place = (int)(s - slots);
	bool served = atomic_load(&shared->place[place].ready) != 0;

	death_log(s, &shared->place[place], status);
	scoreboard_clear(shared, place);
	if (s->signaled || state != RUNNING) {
		*s = (struct worker_slot){ .pid = 0 };
		return;
	}
	atomic_fetch_add(&shared->restarts, 1);
	s->delay = delay_next(s, served);
	s->pid = -1;
	s->due = time_mono_ms() + s->delay;
}

static void
workers_reap(struct pool *p)
{
	int status;
	pid_t pid;
	size_t i;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (i = 0; i < SCOREBOARD_WORKERS; i++)
			if (slots[i].pid == pid)
				slot_ended(p, &slots[i], status);
}

static size_t
slots_count(enum route_pool pool, unsigned of_generation)
{
	size_t i, n = 0;

	for (i = 0; i < SCOREBOARD_WORKERS; i++)
		if (slots[i].pid != 0 && slots[i].pool == pool &&
		    !slots[i].signaled && slots[i].generation == of_generation)
			n++;
	return n;
}

/* A worker of this pool that has started but does not serve yet. */
static struct worker_slot *
slot_unready(struct pool *p, enum route_pool pool)
{
	size_t i;

	for (i = 0; i < SCOREBOARD_WORKERS; i++)
		if (slots[i].pid != 0 && slots[i].pool == pool &&
		    !slots[i].signaled &&
		    atomic_load(&p->worker.scoreboard->place[i].ready) == 0)
			return &slots[i];
	return NULL;
}

/* Stops at most so many workers of an earlier generation. They are replaced one
 * by one, each when a new one serves. */
static void
old_retire(enum route_pool pool, size_t most)
{
	size_t i;

	for (i = 0; i < SCOREBOARD_WORKERS; i++)
		if (slots[i].pid != 0 && slots[i].pool == pool &&
		    !slots[i].signaled && slots[i].generation != generation) {
			if (slots[i].pid == -1)
				slots[i].pid = 0;
			else
				slot_tell(&slots[i], SIGQUIT);
			if (--most == 0)
				return;
		}
}

/* Moves each pool one step towards its configured size. */
static void
pools_tend(struct pool *p)
{
	int64_t now = time_mono_ms(), want;
	size_t i, have;
	int pool;

	for (i = 0; i < SCOREBOARD_WORKERS; i++)
		if (slots[i].pid == -1 && slots[i].due <= now)
			slot_start(p, &slots[i]);
	for (pool = 0; pool < POOL__MAX; pool++) {
		want = p->sockets.workers[pool];
		if (p->sockets.fd[pool] == -1 ||
		    slot_unready(p, (enum route_pool)pool) != NULL)
			continue;
		have = slots_count((enum route_pool)pool, generation);
		if ((int64_t)have >= want) {
			old_retire((enum route_pool)pool, SCOREBOARD_WORKERS);
			continue;
		}
		if (have > 0)
			old_retire((enum route_pool)pool, 1);
		if (!slot_add(p, (enum route_pool)pool))
			log_fault(err_new(ERR_UNAVAILABLE, "no free slot"),
			    "workers");
	}
}

static void
start_all(struct pool *p)
{
	int64_t i;
	int pool;

	for (pool = 0; pool < POOL__MAX; pool++)
		for (i = 0; i < p->sockets.workers[pool]; i++)
			if (p->sockets.fd[pool] != -1)
				(void)slot_add(p, (enum route_pool)pool);
}

static void
pool_reload(struct pool *p)
{
	char text[64];
	const struct err *e;

	(void)snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%lld",
	    (long long)time_mono_ms() * 1000);
	proc_notify(text);
	if ((e = p->reload(&p->worker)) != NULL) {
		log_error(
		    "reload failed, the old configuration stays in use: %s",
		    e->msg);
	} else {
		listen_workers(&p->sockets, p->worker.settings);
		atomic_store(&p->worker.scoreboard->schema_ok, 0);
		atomic_store(&p->worker.scoreboard->schema_look, 0);
		generation++;
		log_info("configuration reloaded, replacing workers");
	}
	proc_notify("READY=1");
}

static void
pool_stop(struct pool *p)
{
	size_t i;

	if (state == DRAINING) {
		state = KILLING;
		for (i = 0; i < SCOREBOARD_WORKERS; i++)
			slot_tell(&slots[i], SIGKILL);
		return;
	}
	log_info("stopping, finishing requests in progress");
	proc_notify("STOPPING=1");
	state = DRAINING;
	drain_until = time_mono_ms() + DRAIN_MS +
	    p->worker.settings->api.request_timeout * 1000;
	listen_stop(&p->sockets);
	for (i = 0; i < SCOREBOARD_WORKERS; i++) {
		if (slots[i].pid == -1)
			slots[i].pid = 0;
		slot_tell(&slots[i], SIGTERM);
	}
}

static bool
all_gone(void)
{
	size_t i;

	for (i = 0; i < SCOREBOARD_WORKERS; i++)
		if (slots[i].pid != 0)
			return false;
	return true;
}

/* Whether there is more to do soon.  Signals and dead workers wake the master, so
 * only delayed starts, replacements and a drain count. */
static bool
is_moving(struct pool *p)
{
	size_t i;

	for (i = 0; i < SCOREBOARD_WORKERS; i++)
		if (slots[i].pid == -1 ||
		    (slots[i].pid > 0 && slots[i].generation != generation) ||
		    (slots[i].pid > 0 && state == RUNNING &&
			atomic_load(&p->worker.scoreboard->place[i].ready) ==
			    0))
			return true;
	return state != RUNNING;
}

int
pool_run(struct pool *p)
{
	const struct timespec soon = { .tv_nsec = SOON_MS * 1000000L };
	sigset_t set;
	int got;

	signals_of_master(&set);
	start_all(p);
	log_info("slipway-api " SLIPWAY_VERSION " is ready");
	proc_notify("READY=1");
	while (state == RUNNING || !all_gone()) {
		got = is_moving(p) ? sigtimedwait(&set, NULL, &soon) :
				     sigwaitinfo(&set, NULL);
		if (got == SIGHUP && state == RUNNING)
			pool_reload(p);
		else if (got == SIGTERM || got == SIGINT)
			pool_stop(p);
		workers_reap(p);
		if (state == RUNNING)
			pools_tend(p);
		else if (state == DRAINING && time_mono_ms() > drain_until)
			pool_stop(p);
	}
	log_info("stopped");
	return 0;
}
