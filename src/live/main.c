/* SPDX-License-Identifier: ISC */
/* slipway-live(8): options, configuration, privileges and the loop. */
#include <sys/resource.h>

#include <err.h>
#include <signal.h>
#include <unistd.h>

#include "core/log.h"
#include "core/proc.h"
#include "core/serve.h"
#include "db/db.h"
#include "live/live.h"

static volatile sig_atomic_t stopping;

static void
stop(int signal_number)
{
	(void)signal_number;
	stopping = 1;
}

/* The signals end the wait for clients only: they are blocked elsewhere. */
static void
signals_set(void)
{
	struct sigaction action = { .sa_handler = stop };
	sigset_t signals;

	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGTERM);
	(void)sigaddset(&signals, SIGINT);
	(void)sigprocmask(SIG_BLOCK, &signals, NULL);
	(void)sigaction(SIGTERM, &action, NULL);
	(void)sigaction(SIGINT, &action, NULL);
}

/* As many descriptors as the unit permits. */
static void
files_raise(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
}

/* Serves until a signal comes. */
static const struct err *
serve(const struct settings *s, int listen_fd)
{
	const struct session_term term = { .idle = s->auth.session_idle,
		.max = s->auth.session_max };
	const struct err *e;
	struct clients clients;
	struct feed *feed;
	struct db *db;
	int ms = -1;

	if ((e = db_open(s, DB_API, &db)) != NULL ||
	    (e = clients_open(&clients, listen_fd)) != NULL)
		return e;
	feed = feed_open(db, &term);
	log_info("slipway-live " SLIPWAY_VERSION " is ready");
	proc_notify("READY=1");
	while (!stopping) {
		clients_wait(&clients, ms, feed_begin, feed);
		ms = feed_turn(feed, &clients);
		clients_flush(&clients);
	}
	clients_close(&clients);
	db_close(db);
	return NULL;
}

static const struct err *
run(const struct settings *s)
{
	const struct err *e;
	int fd;

	if ((e = proc_close_up()) != NULL ||
	    (e = serve_listen(s->api.live_socket, (mode_t)s->api.socket_mode,
		 s->api.socket_group, &fd)) != NULL ||
	    (e = serve_as(s->api.user)) != NULL)
		return e;
	signals_set();
	files_raise();
	return serve(s, fd);
}

int
main(int argc, char **argv)
{
	struct serve server = { .program = "slipway-live" };
	const struct err *e;
	struct settings *settings;
	struct arena *a;
	int status = serve_options(&server, argc, argv);

	if (status != -1)
		return status;
	log_init(server.program, 0);
	e = serve_configure(&server, &a, &settings);
	if (e == NULL && !server.check) {
		serve_log(&server, settings);
		e = run(settings);
	}
	if (e != NULL)
		errx(err_kinds[e->code].exit, "%s", e->msg);
	return 0;
}
