/* SPDX-License-Identifier: ISC */
/* slipway-runner: see monitor.h. */
#include "monitor/monitor.h"

#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "core/apart.h"
#include "core/log.h"
#include "core/str.h"

#define STOP_MS 5000 /* for the dispatcher to end on its own */

static struct monitor monitor = {
	.conf = SLIPWAY_CONF,
	.dispatch_path = SLIPWAY_LIBEXEC "/slipway-dispatch",
	.job_path = SLIPWAY_LIBEXEC "/slipway-job",
	.workspaces = -1,
	.homes = -1,
	.socket = -1,
};

static _Noreturn void
usage(FILE *to, int status)
{
	(void)fprintf(to,
	    "usage: slipway-runner [-hnV] [-c FILE] [-d PROGRAM] [-j PROGRAM]"
	    " [--once]\n"
	    "  -c FILE     configuration (" SLIPWAY_CONF ")\n"
	    "  -d PROGRAM  the dispatcher, -j PROGRAM the job\n"
	    "  -n          check the configuration and exit\n"
	    "  --once      exit when the queue is empty\n"
	    "  -h, -V      this text, the version\n");
	exit(status);
}

enum todo { TODO_RUN, TODO_CHECK };

static enum todo
options_read(struct monitor *m, int argc, char **argv)
{
	static const struct option long_options[] = {
		{ "once", no_argument, NULL, 'o' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	enum todo todo = TODO_RUN;
	int c;

	while ((c = getopt_long(argc, argv, "c:d:j:nhV", long_options, NULL)) !=
	    -1) {
		switch (c) {
		case 'c':
			m->conf = optarg;
			break;
		case 'd':
			m->dispatch_path = optarg;
			break;
		case 'j':
			m->job_path = optarg;
			break;
		case 'n':
			todo = TODO_CHECK;
			break;
		case 'o':
			m->once = true;
			break;
		case 'h':
			usage(stdout, 0);
		case 'V':
			(void)printf("slipway-runner %s\n", SLIPWAY_VERSION);
			exit(0);
		default:
			usage(stderr, EX_USAGE);
		}
	}
	if (optind != argc)
		usage(stderr, EX_USAGE);
	return todo;
}

static void
error_exit(const struct err *e)
{
	errx(err_kinds[e->code].exit, "%s", err_words(e));
}

/* A private /tmp must not hide anything that a job needs. */
static void
apart_find(struct monitor *m)
{
	char path[PATH_MAX];

	if (!m->root)
		return;
	m->apart = apart_possible();
	if (realpath(m->homes_path, path) == NULL || apart_hides(path) ||
	    realpath(m->job_path, path) == NULL || apart_hides(path))
		m->apart &= ~(unsigned)APART_TMP;
}

static void
groups_find(struct monitor *m)
{
	char prefix[CGROUP_PREFIX];
	struct buf text;
	struct stat st;

	if (fstat(m->workspaces, &st) == -1)
		err(EX_OSERR, "fstat");
	(void)snprintf(prefix, sizeof(prefix), "slipway-%llx.%llx-",
	    (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
	cgroup_init(prefix);
	buf_init(&text, 256);
	cgroup_describe(&text);
	log_info("%s; steps run under %s", text.data,
	    !m->root ? "this account (privilege_drop = no)" :
		(m->apart & APART_MOUNTS) != 0 ?
		       "separate accounts" :
		       "separate accounts without names (no mount"
		       " namespaces: ssh needs [run_as] or job_user)");
	buf_release(&text);
	if (m->root)
		log_info("each job has %s and %s",
		    (m->apart & APART_IPC) != 0 ? "private IPC and /dev/shm" :
						  "the host's IPC and /dev/shm",
		    (m->apart & APART_TMP) != 0 &&
			    m->settings.runner.private_tmp ?
			"a private /tmp" :
			"the host's /tmp");
}

static void
signals_open(struct monitor *m)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	sigset_t set;

	proc_signals_default();
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigaddset(&set, SIGHUP);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	if (sigprocmask(SIG_BLOCK, &set, NULL) == -1 ||
	    sigaction(SIGPIPE, &ignore, NULL) == -1 ||
	    (m->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)) ==
		-1 ||
	    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == -1)
		err(EX_OSERR, "signals");
}

static void
dispatcher_notify(struct monitor *m, enum wire_type type)
{
	const struct wire w = { .magic = WIRE_MAGIC, .type = type };

	monitor_send(m, &w);
}

static void
conf_reload(struct monitor *m)
{
	const struct err *e;

	proc_notify("RELOADING=1");
	if ((e = monitor_conf(m)) != NULL)
		log_err(e, "the configuration is unchanged");
	else
		log_info("configuration reloaded");
	dispatcher_notify(m, WIRE_RELOAD);
	proc_notify("READY=1");
}

static void
monitor_end(struct monitor *m)
{
	if (m->ending)
		return;
	log_info("exiting; running jobs continue");
	proc_notify("STOPPING=1");
	m->ending = true;
	m->once = false;
	m->end_by = time_mono_ms() + STOP_MS;
	dispatcher_notify(m, WIRE_STOP);
}

static void
children_reap(struct monitor *m)
{
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
		if (WIFSTOPPED(status))
			monitor_job_stopped(m, pid);
		else if (pid == m->dispatcher)
			monitor_dispatch_died(m, status);
		else if (!monitor_left_reaped(m, pid) &&
		    !monitor_probe_reaped(m, pid, status))
			(void)monitor_job_reaped(m, pid, status);
	}
}

static void
signals_read(struct monitor *m)
{
	struct signalfd_siginfo info;

	while (read(m->signals, &info, sizeof(info)) == sizeof(info)) {
		switch (info.ssi_signo) {
		case SIGHUP:
			conf_reload(m);
			break;
		case SIGINT:
		case SIGTERM:
			monitor_end(m);
			break;
		default:
			break;
		}
	}
	children_reap(m);
}

/* Starts the dispatcher when it is due; kills it if it does not end. */
static int
dispatcher_tick(struct monitor *m)
{
	const int64_t now = time_mono_ms();
	int64_t due = m->started_at + m->delay;

	if (m->ending) {
		if (m->dispatcher == 0 || m->end_by == 0)
			return -1;
		if (now < m->end_by)
			return (int)(m->end_by - now);
		(void)kill(m->dispatcher, SIGKILL);
		return 1000;
	}
	if (m->dispatcher != 0)
		return -1;
	if (m->delay != 0 && now < due)
		return (int)(due - now);
	monitor_dispatch_start(m);
	return m->dispatcher == 0 ? 1000 : -1;
}

static bool
is_over(const struct monitor *m)
{
	return m->ending && m->dispatcher == 0 &&
	    (!m->once || !monitor_jobs_live(m));
}

static void
monitor_loop(struct monitor *m)
{
	struct pollfd fds[2];
	int due, jobs, left;

	while (!is_over(m)) {
		due = dispatcher_tick(m);
		jobs = monitor_jobs_tick(m);
		if (jobs >= 0 && (due < 0 || jobs < due))
			due = jobs;
		left = monitor_left_tick(m);
		if (left >= 0 && (due < 0 || left < due))
			due = left;
		if (is_over(m))
			break;
		fds[0] = (struct pollfd){ .fd = m->signals, .events = POLLIN };
		fds[1] = (struct pollfd){ .fd = m->socket,
			.events = (short)(POLLIN |
			    (m->out_n > 0 ? POLLOUT : 0)) };
		if (poll(fds, 2, due) == -1 && errno != EINTR) {
			log_error("poll: %s", strerror(errno));
			return;
		}
		if ((fds[1].revents & POLLOUT) != 0)
			monitor_flush(m);
		if ((fds[1].revents & (POLLIN | POLLHUP | POLLERR)) != 0)
			monitor_dispatch_read(m);
		if (fds[0].revents != 0)
			signals_read(m);
	}
}

/* A job has a home before it has groups. */
static bool
has_home(const void *context, const char *id)
{
	const struct monitor *m = context;

	return faccessat(m->homes, id, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
	    errno != ENOENT;
}

int
main(int argc, char **argv)
{
	struct monitor *m = &monitor;
	const struct err *e;
	enum todo todo;

	m->root = geteuid() == 0;
	todo = options_read(m, argc, argv);
	(void)umask(022);
	if ((e = monitor_conf(m)) != NULL)
		error_exit(e);
	if (todo == TODO_CHECK) {
		(void)printf("%s is valid\n", m->conf);
		return 0;
	}
	log_init("slipway-runner",
	    (m->settings.log.syslog ? LOG_TO_SYSLOG : 0u) |
		(m->settings.log.debug ? LOG_DEBUGGING : 0u));
	closefrom(3);
	if ((e = monitor_dirs(m)) != NULL)
		error_exit(e);
	signals_open(m);
	apart_find(m);
	groups_find(m);
	monitor_adopt(m);
	cgroup_remove_old(has_home, m);
	monitor_dispatch_start(m);
	proc_notify("READY=1");
	monitor_loop(m);
	cgroup_release();
	log_info("ended");
	return m->exit_status;
}
