/* SPDX-License-Identifier: ISC */
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "core/str.h"
#include "monitor/monitor.h"

#define DELAY_FIRST 100
#define DELAY_MAX 30000
#define DELAY_RESET 60000 /* after this time the delay is reset */
#define ENV_MAX 256
#define WIRE_HERE 3    /* descriptor of the dispatcher's end */
#define ROUND_MAX 16   /* messages read per pass */
#define FLOOD_MAX 4000 /* messages in FLOOD_MS; 256 jobs need far fewer */
#define FLOOD_MS 5000

/* The variables passed on to the dispatcher: possible settings, and what the
 * log needs. */
static const char *const passed[] = { "SLIPWAY_", "GITSERVER_",
	"PATH=", "LANG=", "LC_ALL=", "TZ=", "JOURNAL_STREAM=", "SSL_CERT_",
	"ASAN_OPTIONS=", "UBSAN_OPTIONS=" };

static char **
environment_make(void)
{
	static char *env[ENV_MAX + 1];
	char **from;
	size_t n = 0, i;

	for (from = environ; *from != NULL && n < ENV_MAX; from++)
		for (i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
			if (str_starts(*from, passed[i])) {
				env[n++] = *from;
				break;
			}
	env[n] = NULL;
	return env;
}

static _Noreturn void
child_run(const struct monitor *m, int end)
{
	const char *argv[] = { m->dispatch_path, "-c", m->conf,
		m->once ? "--once" : NULL, NULL };
	const struct err *e = NULL;

	proc_signals_default();
	if (setsid() == -1 || proc_fds_place(&end, 1) != NULL)
		_exit(71);
	if (m->root && (e = proc_drop(&m->user)) == NULL)
		e = proc_no_new_privs();
	if (e != NULL) {
		log_err(e, "dispatcher");
		_exit(71);
	}
	(void)execve(argv[0], (char *const *)(uintptr_t)argv,
	    environment_make());
	log_error("%s: %s", argv[0], strerror(errno));
	_exit(71);
}

void
monitor_dispatch_start(struct monitor *m)
{
	int ends[2];
	pid_t pid;

	m->started_at = time_mono_ms();
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == -1) {
		log_error("socketpair: %s", strerror(errno));
		return;
	}
	if ((pid = fork()) == -1) {
		log_error("fork: %s", strerror(errno));
		(void)close(ends[0]);
		(void)close(ends[1]);
		return;
	}
	if (pid == 0)
		child_run(m, ends[1]);
	(void)close(ends[1]);
	if (fcntl(ends[0], F_SETFL, O_NONBLOCK) == -1)
		log_error("fcntl: %s", strerror(errno));
	m->socket = ends[0];
	m->dispatcher = pid;
	m->out_n = 0;
	m->counted = 0;
	log_debug("dispatcher %ld started", (long)pid);
}

void
monitor_dispatch_died(struct monitor *m, int status)
{
	if (m->socket != -1)
		(void)close(m->socket);
	m->socket = -1;
	m->dispatcher = 0;
	if (m->ending)
		return;
	if (m->once) {
		m->ending = true;
		m->exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 70;
		return;
	}
	if (m->delay == 0 || time_mono_ms() - m->started_at > DELAY_RESET)
		m->delay = DELAY_FIRST;
	else
		m->delay = m->delay < DELAY_MAX / 2 ? m->delay * 2 : DELAY_MAX;
	log_warn("the dispatcher %s %d; restarting it in %lld ms",
	    WIFEXITED(status) ? "ended with status" : "was killed by signal",
	    WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status),
	    (long long)m->delay);
}

/* The expected descriptors of a start request, by enum wire_fd. */
static const struct {
	mode_t type;
	int flags; /* exactly these of `mask` */
	int mask;
} expected[WIRE_FD__REQUEST] = {
	[WIRE_FD_JOB] = { S_IFREG, 0, O_WRONLY | O_PATH },
	[WIRE_FD_LOG] = { S_IFREG, O_WRONLY | O_APPEND,
	    O_ACCMODE | O_APPEND | O_PATH },
	[WIRE_FD_RESULT] = { S_IFREG, O_WRONLY | O_APPEND,
	    O_ACCMODE | O_APPEND | O_PATH },
	[WIRE_FD_LOCK] = { S_IFREG, O_RDWR, O_ACCMODE | O_PATH },
	[WIRE_FD_CONTROL] = { S_IFIFO, O_RDWR, O_ACCMODE | O_PATH },
};

/* A job trusts its descriptors: they must be files of the spool, opened as
 * spool/spool.h describes, and nothing else that the dispatcher can open. */
static bool
fds_valid(const struct monitor *m, const int *fds)
{
	const uid_t owner = m->root ? m->user.uid : geteuid();
	struct stat st;
	int flags;
	size_t i;

	for (i = 0; i < WIRE_FD__REQUEST; i++) {
		flags = fcntl(fds[i], F_GETFL);
		if (flags == -1 ||
		    (flags & expected[i].mask) != expected[i].flags ||
		    fstat(fds[i], &st) == -1 ||
		    (st.st_mode & S_IFMT) != expected[i].type ||
		    st.st_uid != owner)
			return false;
	}
	return true;
}

static void
job_start(struct monitor *m, const struct wire *w, int *fds)
{
	size_t i;

	if (fds_valid(m, fds)) {
		monitor_job_start(m, w, fds);
		return;
	}
	log_error(
	    "the dispatcher sent descriptors that are not files of a job");
	(void)kill(m->dispatcher, SIGKILL);
	for (i = 0; i < WIRE_FD__REQUEST; i++)
		(void)close(fds[i]);
}

static void
message_handle(struct monitor *m, const struct wire *w, int *fds)
{
	if (w->type == WIRE_START) {
		job_start(m, w, fds);
	} else if (w->type == WIRE_KILL) {
		monitor_job_kill(m, w);
	} else if (w->type == WIRE_WIPE) {
		monitor_wipe(m, w);
	} else if (w->type == WIRE_PROBE) {
		monitor_probe(m);
	} else {
		log_error(
		    "the dispatcher sent message %u, a message of the monitor",
		    w->type);
		(void)kill(m->dispatcher, SIGKILL);
	}
}

static bool
is_flood(struct monitor *m)
{
	const int64_t now = time_mono_ms();

	if (now - m->counted_since > FLOOD_MS) {
		m->counted_since = now;
		m->counted = 0;
	}
	return ++m->counted > FLOOD_MAX;
}

void
monitor_dispatch_read(struct monitor *m)
{
	int fds[WIRE_FD__REQUEST];
	const struct err *e = NULL;
	struct wire w;
	int n;

	for (n = 0; n < ROUND_MAX; n++) {
		if (is_flood(m)) {
			e = err_new(ERR_BAD_REQUEST, "too many messages");
			break;
		}
		e = wire_recv(m->socket, &w, fds, WIRE_FD__REQUEST);
		if (e != NULL)
			break;
		message_handle(m, &w, fds);
	}
	if (e == NULL || e->sys == EAGAIN)
		return;
	if (e->code != ERR_NOTFOUND)
		log_err(e, "dispatcher");
	/* It runs, but cannot be communicated with. */
	(void)kill(m->dispatcher, SIGKILL);
	(void)close(m->socket);
	m->socket = -1;
}

void
monitor_flush(struct monitor *m)
{
	const struct err *e;

	while (m->socket != -1 && m->out_n > 0) {
		e = wire_send(m->socket, &m->out[m->out_first], NULL, 0);
		if (e != NULL && e->sys == EAGAIN)
			return;
		if (e != NULL) {
			log_err(e, "dispatcher");
			return; /* EOF will be read later */
		}
		m->out_first = (m->out_first + 1) % OUT_MAX;
		m->out_n--;
	}
}

void
monitor_send(struct monitor *m, const struct wire *w)
{
	if (m->socket == -1)
		return; /* the next dispatcher reads the spool */
	if (m->out_n == OUT_MAX) {
		log_error("the dispatcher does not read its messages");
		(void)kill(m->dispatcher, SIGKILL);
		return;
	}
	m->out[(m->out_first + m->out_n) % OUT_MAX] = *w;
	m->out_n++;
	monitor_flush(m);
}
