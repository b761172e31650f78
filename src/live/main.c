/* SPDX-License-Identifier: ISC */
/* slipway-live(8): options, configuration, privileges and the loop. */
#include <sys/resource.h>

#include <err.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <unistd.h>

#include "core/log.h"
#include "core/proc.h"
#include "core/serve.h"
#include "core/wake.h"
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
serve(const struct settings *s, int listen_fd, int wake_fd)
{
	const struct session_term term = { .idle = s->auth.session_idle,
		.max = s->auth.session_max,
		.remote_user = s->auth.remote_user };
	const struct err *e;
	struct clients clients;
	struct feed *feed;
	struct db *db;
	int ms = -1;

	if ((e = db_open(s, DB_API, &db)) != NULL ||
	    (e = clients_open(&clients, listen_fd, wake_fd,
		 (size_t)s->api.live_user_clients)) != NULL)
		return e;
	feed = feed_open(db, &term);
	log_info("slipway-live " SLIPWAY_VERSION " is ready");
	proc_notify("READY=1");
	while (!stopping) {
		if (clients_wait(&clients, ms, feed_begin, feed))
			feed_wake(feed);
		ms = feed_turn(feed, &clients);
		clients_flush(&clients);
	}
	clients_close(&clients);
	db_close(db);
	return NULL;
}

/* The group whose members announce changes: that in the configuration,
 * otherwise that of the dispatcher's account. */
static const char *
wake_group(const struct settings_runner *s)
{
	const struct passwd *pw;
	const struct group *gr;

	if (s->wake_group != NULL)
		return s->wake_group;
	pw = getpwnam(s->user);
	gr = pw == NULL ? NULL : getgrgid(pw->pw_gid);
	return gr == NULL ? NULL : gr->gr_name;
}

static const struct err *
run(const struct settings *s)
{
	const struct err *e;
	int fd, wake_fd;

	/* the API, which runs as that account, connects to see whether this
	 * process serves */
	if ((e = proc_close_up()) != NULL ||
	    (e = serve_listen(s->api.live_socket, (mode_t)s->api.socket_mode,
		 s->api.socket_group, s->api.user, &fd)) != NULL ||
	    (e = serve_as(s->api.user)) != NULL)
		return e;
	if ((e = wake_open(s->api.live_wake_socket, 0660,
		 wake_group(&s->runner), &wake_fd)) != NULL)
		log_err(e, "changes are only found by polling");
	signals_set();
	files_raise();
	return serve(s, fd, wake_fd);
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
