/* SPDX-License-Identifier: ISC */
#include "web/worker.h"

#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "core/log.h"
#include "core/str.h"
#include "core/wake.h"
#include "web/answer.h"
#include "web/fcgi.h"

/* Together these keep a worker below 16 MiB for any request. */
#define ARENA_MAX ((size_t)6 << 20)
#define DATA_MAX ((rlim_t)14 << 20)
/* For workers that call the Git server: CA certificates, and its responses as
 * text and as a tree. They also import documents. */
#define SLOW_ARENA_MAX ((size_t)16 << 20)
#define SLOW_DATA_MAX ((rlim_t)64 << 20)
#define KEEP_MAX ((size_t)128 * 1024)
#define LARGE ((size_t)1 << 20)
#define BUSY_WAIT_MS 100 /* pause when no descriptor is free */

/* Where a worker waits. */
struct wait {
	int epoll;
	int listen_fd;
	int signal_fd;
};

/* SIGTERM: serve the clients that wait, then end; SIGQUIT: end. */
static bool draining, leaving;

/* Signals stay blocked and are read from a descriptor, so that none interrupts
 * a request. */
static const struct err *
signals_open(int *out)
{
	static const int ignored[] = { SIGINT, SIGHUP, SIGUSR1, SIGUSR2 };
	struct sigaction action = { .sa_handler = SIG_IGN };
	sigset_t mine;
	size_t i;

	(void)sigemptyset(&action.sa_mask);
	/* the master handles those of the terminal and reload */
	for (i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		(void)sigaction(ignored[i], &action, NULL);
	action.sa_handler = SIG_DFL;
	(void)sigaction(SIGCHLD, &action, NULL);
	(void)sigemptyset(&mine);
	(void)sigaddset(&mine, SIGTERM);
	(void)sigaddset(&mine, SIGQUIT);
	(void)sigprocmask(SIG_SETMASK, &mine, NULL);
	*out = signalfd(-1, &mine, SFD_NONBLOCK | SFD_CLOEXEC);
	return *out == -1 ? err_errno("signalfd") : NULL;
}

/* Until the tables have been checked, because MariaDB was not available or its
 * schema is older than this program, requests that need them are rejected with
 * the reason. */
static const struct err *
schema_check(const struct worker *w, struct db *db)
{
	const struct err *e;

	if (atomic_load(&w->scoreboard->schema_ok) != 0)
		return NULL;
	if ((e = w->check(db)) == NULL)
		atomic_store(&w->scoreboard->schema_ok, 1);
	return e;
}

static void
request_count(const struct worker *w, const struct req *rq, int64_t began)
{
	const int64_t took = time_mono_ms() - began;

	scoreboard_count(w->scoreboard, rq->answer.status, took);
	log_info("%s %s %s %d %lld ms %s", rq->request_id, rq->in[IN_METHOD],
	    rq->path, rq->answer.status, (long long)took, rq->who_text);
}

static void
connection_serve(const struct worker *w, const struct access *access,
    struct req *rq, int fd)
{
	struct answer answer = rq->answer;
	int64_t began = time_mono_ms();
	size_t used;

	answer_reset(&answer);
	*rq = (struct req){ .a = rq->a,
		.db = rq->db,
		.settings = w->settings,
		.keyring = w->keyring,
		.public_key = w->public_key,
		.access = access,
		.scoreboard = w->scoreboard,
		.client_fd = -1,
		.place = &w->scoreboard->place[w->place],
		.answer = answer,
		.unready = schema_check(w, rq->db) };
	if (fcgi_serve(fd, rq))
		request_count(w, rq, began);
	if (db_has_written(rq->db)) {
		wake_send(w->settings->api.live_wake_socket);
		if (rq->answer.status < 500)
			writable_note(&w->scoreboard->writable, NULL);
	}
	used = arena_used(rq->a);
	arena_clear(rq->a);
	used += rq->answer.body.cap;
	if (used > LARGE)
		db_drop(rq->db); /* it keeps the memory of its largest row */
	if (used > KEEP_MAX) {
		answer_release(&rq->answer);
		(void)malloc_trim(0);
	}
}

/* One connection wakes one worker. Without EPOLLEXCLUSIVE all of them would
 * try to accept it. */
static const struct err *
wait_open(struct wait *w, int listen_fd)
{
	struct epoll_event connection = { .events = EPOLLIN | EPOLLEXCLUSIVE,
		.data.fd = listen_fd };
	struct epoll_event sign = { .events = EPOLLIN };
	const struct err *e;

	w->listen_fd = listen_fd;
	if ((e = signals_open(&w->signal_fd)) != NULL)
		return e;
	sign.data.fd = w->signal_fd;
	if ((w->epoll = epoll_create1(EPOLL_CLOEXEC)) == -1 ||
	    epoll_ctl(w->epoll, EPOLL_CTL_ADD, listen_fd, &connection) == -1 ||
	    epoll_ctl(w->epoll, EPOLL_CTL_ADD, w->signal_fd, &sign) == -1)
		return err_errno("epoll");
	return NULL;
}

static void
signals_read(const struct wait *w)
{
	struct signalfd_siginfo info;

	while (read(w->signal_fd, &info, sizeof(info)) == sizeof(info))
		if (info.ssi_signo == SIGTERM)
			draining = true;
		else
			leaving = true;
}

/* Waits until a connection or a signal comes; true for a connection. */
static bool
wait_event(const struct wait *w)
{
	struct epoll_event events[2];
	bool connection = false;
	int n, i;

	n = epoll_wait(w->epoll, events, 2, -1);
	for (i = 0; i < n; i++)
		if (events[i].data.fd == w->signal_fd)
			signals_read(w);
		else
			connection = true;
	return connection;
}

/* Accepts the next connection; -1 if there is none. */
static int
connection_take(const struct wait *w)
{
	int fd;

	if (!draining && !wait_event(w))
		return -1;
	fd = accept4(w->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd != -1)
		log_fault_over("accept");
	if (fd != -1 || errno == EINTR || errno == ECONNABORTED)
		return fd;
	if (draining && errno == EAGAIN) {
		leaving = true; /* no client is waiting any more */
	} else if (errno != EAGAIN) {
		log_fault(err_errno("wait"), "accept");
		(void)poll(NULL, 0, BUSY_WAIT_MS);
	}
	return -1;
}

static bool
is_slow(const struct worker *w)
{
	return w->pool == POOL_SLOW || w->settings->api.slow_workers == 0;
}

static void
limits_set(const struct worker *w)
{
	const struct rlimit none = { .rlim_cur = 0, .rlim_max = 0 };
	rlim_t most = is_slow(w) ? SLOW_DATA_MAX : DATA_MAX;
	const struct rlimit data = { .rlim_cur = most, .rlim_max = most };

#ifndef __SANITIZE_ADDRESS__ /* its shadow memory counts, too */
	(void)setrlimit(RLIMIT_DATA, &data);
#else
	(void)data;
#endif
	(void)setrlimit(RLIMIT_CORE, &none);
	(void)mallopt(M_MMAP_THRESHOLD, (int)KEEP_MAX);
	(void)mallopt(M_TRIM_THRESHOLD, (int)KEEP_MAX);
}

/* Without a Git server, all other requests are served. */
static void
forge_try(struct access *access)
{
	const struct err *e;

	if (access->settings->url == NULL)
		return;
	if ((e = forge_open(access->settings, &access->forge)) != NULL)
		log_err(e, "gitserver");
}

void
worker_run(const struct worker *w)
{
	struct req rq = { .a = arena_open(
			      is_slow(w) ? SLOW_ARENA_MAX : ARENA_MAX) };
	struct access access = { .keyring = w->keyring,
		.settings = &w->settings->gitserver };
	const struct err *e;
	struct wait wait;
	int fd;

	limits_set(w);
	if (prctl(PR_SET_PDEATHSIG, SIGTERM) == -1 || getppid() != w->master)
		exit(EX_OSERR);
	answer_init(&rq.answer);
	if ((e = wait_open(&wait, w->listen_fd)) != NULL ||
	    (e = fcgi_init(w->settings)) != NULL ||
	    (e = w->database(w->settings, &rq.db)) != NULL) {
		log_err(e, "worker");
		exit(err_kinds[e->code].exit);
	}
	access.db = rq.db;
	forge_try(&access);
	/* one worker checks and logs */
	if (atomic_exchange(&w->scoreboard->schema_look, 1) == 0 &&
	    (e = schema_check(w, rq.db)) != NULL)
		log_err(e, "database");
	atomic_store(&w->scoreboard->place[w->place].ready, 1);
	while (!leaving)
		if ((fd = connection_take(&wait)) != -1)
			connection_serve(w, &access, &rq, fd);
	exit(0);
}
