/* SPDX-License-Identifier: ISC */
/* slipway-live(8): options, configuration, privileges and the loop. */
#include <sys/resource.h>

#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <sysexits.h>
#include <unistd.h>

#include "core/log.h"
#include "core/proc.h"
#include "core/serve.h"
#include "db/db.h"
#include "live/live.h"

#define CONF_MAX ((size_t)4 << 20)

static const char *conf_path = SLIPWAY_CONF;
static volatile sig_atomic_t stopping;

static void
stop(int signal_number)
{
	(void)signal_number;
	stopping = 1;
}

static void
fail(const struct err *e)
{
	if (e != NULL)
		errx(err_kinds[e->code].exit, "%s", e->msg);
}

static _Noreturn void
usage(void)
{
	(void)fprintf(stderr, "usage: slipway-live [-fnV] [-c file]\n");
	exit(EX_USAGE);
}

/* Parses options; true if the configuration should only be checked. */
static bool
options(int argc, char **argv)
{
	bool check = false;
	int opt;

	while ((opt = getopt(argc, argv, "c:fnV")) != -1)
		switch (opt) {
		case 'c':
			conf_path = optarg;
			break;
		case 'f': /* it always runs in the foreground */
			break;
		case 'n':
			check = true;
			break;
		case 'V':
			(void)printf("slipway-live " SLIPWAY_VERSION "\n");
			exit(0);
		default:
			usage();
		}
	if (optind != argc)
		usage();
	return check;
}

/* The signals end the wait for clients only: they stay blocked elsewhere. */
static void
signals_set(void)
{
	struct sigaction action = { .sa_handler = stop };
	struct rlimit files;

	(void)sigaction(SIGTERM, &action, NULL);
	(void)sigaction(SIGINT, &action, NULL);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
}

static void
serve(const struct settings *s, int listen_fd)
{
	const struct session_term term = { .idle = s->auth.session_idle,
		.max = s->auth.session_max };
	struct clients clients;
	struct feed *feed;
	struct db *db;
	int ms = -1;

	fail(db_open(s, DB_API, &db));
	fail(clients_open(&clients, listen_fd));
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
}

int
main(int argc, char **argv)
{
	struct arena *a = arena_open(CONF_MAX);
	struct settings *s = arena_alloc(a, 1, sizeof(*s));
	bool check = options(argc, argv);
	int fd;

	log_init("slipway-live", 0);
	fail(conf_read(a, settings_keys, conf_path, 0, s));
	if (check)
		return 0;
	log_init("slipway-live",
	    (s->log.syslog ? (unsigned)LOG_TO_SYSLOG : 0) |
		(s->log.debug ? (unsigned)LOG_DEBUGGING : 0));
	fail(proc_close_up());
	fail(serve_listen(s->api.live_socket, (mode_t)s->api.socket_mode,
	    s->api.socket_group, &fd));
	fail(serve_as(s->api.user));
	signals_set();
	serve(s, fd);
	return 0;
}
