/* SPDX-License-Identifier: ISC */
#include "job/run.h"

#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "core/apart.h"
#include "core/file.h"
#include "core/str.h"
#include "job/filter.h"
#include "job/job.h"
#include "job/log.h"

#define CHUNK 65536
#define CHUNKS_A_ROUND 16
#define STRAY_MS 200   /* for surviving processes to end on their own */
#define SWEEP_MS 10000 /* then a process that cannot be killed is left behind */
#define SWEEP_STEP_MS 5
#define CALL_MAX ((size_t)1 << 20)

enum { CALL_FAILED = 1, CALL_NOTFOUND };

enum phase {
	PHASE_RUNS,
	PHASE_TERM,   /* has received TERM */
	PHASE_STRAYS, /* has ended; its descendants may end */
	PHASE_SWEEP,  /* its descendants are killed */
	PHASE_OVER,
};

struct running {
	struct job *job;
	const struct run *run;
	struct run_end *end;
	pid_t pid;
	int pipe;
	bool unreaped; /* more may have ended */
	enum phase phase;
	int64_t since; /* of the phase */
};

static void
phase_set(struct running *r, enum phase phase)
{
	r->phase = phase;
	r->since = time_mono_ms();
}

static int
limit_set(__rlimit_resource_t what, int64_t most)
{
	struct rlimit rl;

	if (most <= 0)
		return 0;
	if (getrlimit(what, &rl) == -1)
		return -1;
	if (rl.rlim_max == RLIM_INFINITY || rl.rlim_max > (rlim_t)most)
		rl.rlim_max = (rlim_t)most;
	rl.rlim_cur = rl.rlim_max;
	return setrlimit(what, &rl);
}

/* Runs the function instead of an exec, with the directories but no other
 * descriptor of the job. */
static _Noreturn void
function_run(const struct run *run, int err)
{
	const struct err *e;
	int fd;

	(void)close(err);
	for (fd = JOB_FD(0); fd < JOB_FD(WIRE_FD__REQUEST); fd++)
		(void)close(fd);
	if ((e = run->call(run->arg)) == NULL)
		_exit(0);
	if (file_store(STDOUT_FILENO, e->msg, strlen(e->msg)) != NULL)
		_exit(CALL_FAILED);
	_exit(e->code == ERR_NOTFOUND ? CALL_NOTFOUND : CALL_FAILED);
}

/* Enters the directory, or the workspace, whose permissions a step may have
 * removed. */
static bool
directory_enter(int dir)
{
	struct stat st;

	if (dir != 0)
		return fchdir(dir) == 0;
	dir = JOB_FD(WIRE_FD_WORKSPACE);
	if (fchdir(dir) == 0)
		return true;
	return errno == EACCES && fstat(dir, &st) == 0 &&
	    fchmod(dir, (st.st_mode & 07777) | S_IRWXU) == 0 &&
	    fchdir(dir) == 0;
}

/* Makes the descriptor, or an empty file, the standard input. */
static bool
input_place(int fd)
{
	if (fd == 0)
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return fd != -1 && dup2(fd, STDIN_FILENO) != -1;
}

/* Forbids actions that the account may take but steps must not. */
static bool
actions_forbid(const struct job_place *place, pid_t job)
{
	return filter_keys() &&
	    (place->watch == 0 ||
		filter_scheduling(job, getpgid(job), place->watch)) &&
	    (place->user_namespaces || filter_namespaces());
}

/* Runs between fork and exec: no allocation, no stdio.  Returns on failure with
 * errno; the caller then writes it to `err`. */
static void
child_run(const struct running *r, pid_t parent, int out, int *err)
{
	const struct rlimit none = { 0, 0 };
	const struct job *job = r->job;
	const struct run *run = r->run;
	int fds[2] = { *err, run->keep_fd };

	if (!proc_drop_rest() || !directory_enter(run->directory) ||
	    !input_place(run->input) || dup2(out, STDOUT_FILENO) == -1 ||
	    dup2(out, STDERR_FILENO) == -1 ||
	    (run->call == NULL &&
		proc_fds_place(fds, run->keep_fd == -1 ? 1 : 2) != NULL))
		return;
	if (run->call == NULL)
		*err = 3;
	if (fcntl(*err, F_SETFD, FD_CLOEXEC) == -1 || setsid() == -1 ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL) == -1 || getppid() != parent ||
	    setrlimit(RLIMIT_CORE, &none) == -1)
		return;
	(void)umask(022);
	proc_signals_default();
	if (run->call != NULL)
		function_run(run, *err);
	/* POSIX message queues of the host cannot be found later */
	if ((job->place.who.uid != 0 && (job->place.apart & APART_IPC) == 0 &&
		setrlimit(RLIMIT_MSGQUEUE, &none) == -1) ||
	    limit_set(RLIMIT_NOFILE, job->place.open_files) == -1 ||
	    limit_set(RLIMIT_FSIZE, job->place.file_size) == -1 ||
	    limit_set(RLIMIT_NPROC, job->place.processes) == -1 ||
	    !actions_forbid(&job->place, parent))
		return;
	if (run->argv != NULL)
		(void)execve(run->argv[0], (char *const *)(uintptr_t)run->argv,
		    (char *const *)(uintptr_t)run->envp);
}

/* Returns 0 if the exec succeeded, else its errno. */
static int
exec_error(int fd)
{
	int error = 0;
	ssize_t got;

	do
		got = read(fd, &error, sizeof(error));
	while (got == -1 && errno == EINTR);
	return got == (ssize_t)sizeof(error) ? error : 0;
}

static const struct err *
child_start(struct running *r)
{
	const pid_t self = getpid();
	int out[2], err[2], error;
	ssize_t put;

	if (pipe2(out, O_CLOEXEC) == -1)
		return err_errno("pipe");
	if (pipe2(err, O_CLOEXEC) == -1 || (r->pid = fork()) == -1)
		return err_errno("start a process");
	if (r->pid == 0) {
		child_run(r, self, out[1], &err[1]);
		error = errno;
		put = write(err[1], &error, sizeof(error));
		_exit(put == -1 ? 127 : 126);
	}
	(void)close(out[1]);
	(void)close(err[1]);
	r->pipe = out[0];
	r->end->error = exec_error(err[0]);
	(void)close(err[0]);
	if (fcntl(r->pipe, F_SETFL, O_NONBLOCK) == -1)
		return err_errno("fcntl");
	phase_set(r, PHASE_RUNS);
	return NULL;
}

/* Moves at most `max` bytes from the pipe to their destination; returns the
 * result of read(2). */
static ssize_t
output_take(const struct running *r, size_t max)
{
	static char chunk[CHUNK];
	ssize_t got;

	got = read(r->pipe, chunk, max < sizeof(chunk) ? max : sizeof(chunk));
	if (got > 0 && r->run->capture != NULL)
		buf_add(r->run->capture, chunk, (size_t)got);
	else if (got > 0)
		job_log_feed(&r->job->log, chunk, (size_t)got);
	return got;
}

/* Reads from the pipe, at most one round's worth; false if it is empty. */
static bool
output_drain(const struct running *r)
{
	ssize_t got = 0;
	int i;

	for (i = 0; i < CHUNKS_A_ROUND; i++)
		if ((got = output_take(r, CHUNK)) <= 0)
			break;
	return got > 0 || (got == -1 && errno == EINTR);
}

/* Reads the rest of the pipe when the child's last process has ended.  A
 * process outside the job that has its write end, received over a socket for
 * example, may write forever; that is not output of the child. */
static void
drain_last(const struct running *r)
{
	struct pollfd fd = { .fd = r->pipe, .events = POLLIN };
	ssize_t got;
	int left = 0;

	if (ioctl(r->pipe, FIONREAD, &left) == -1)
		left = 0;
	while (left > 0) {
		got = output_take(r, (size_t)left);
		if (got == -1 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		left -= (int)got;
	}
	if (poll(&fd, 1, 0) == -1 || (fd.revents & POLLHUP) == 0)
		job_log_say(&r->job->log,
		    "==> a process that cannot be killed keeps the output "
		    "open; its further output is discarded");
}

static void
children_reap(struct running *r)
{
	struct signalfd_siginfo info;
	pid_t pid = 0;
	int status, i;

	while (read(r->job->signal_fd, &info, sizeof(info)) > 0)
		continue;
	for (i = 0; i < PROC_REAP_MAX; i++) {
		if ((pid = waitpid(-1, &status, WNOHANG)) <= 0)
			break;
		if (pid != r->pid)
			continue;
		r->end->status = status;
		r->pid = -1;
		phase_set(r, PHASE_STRAYS);
	}
	r->unreaped = i == PROC_REAP_MAX;
	/* Without a child there are no descendants, for they would be our
	 * children. */
	if (pid == -1 && errno == ECHILD && r->phase < PHASE_OVER)
		phase_set(r, PHASE_OVER);
}

static void
cancel_note(struct job *job)
{
	if (job->cancel_at == 0)
		job->cancel_at = time_mono_ms();
}

void
job_control(struct job *job)
{
	const int fd = JOB_FD(WIRE_FD_CONTROL);
	char *newline;
	ssize_t got;
	size_t len;

	while ((got = read(fd, job->control + job->control_len,
		    sizeof(job->control) - job->control_len)) > 0) {
		job->control_len += (size_t)got;
		while ((newline = memchr(job->control, '\n',
			    job->control_len)) != NULL) {
			len = (size_t)(newline - job->control);
			if (len == strlen("cancel") &&
			    memcmp(job->control, "cancel", len) == 0)
				cancel_note(job);
			job->control_len -= len + 1;
			(void)memmove(job->control, newline + 1,
			    job->control_len);
		}
		if (job->control_len == sizeof(job->control))
			job->control_len = 0; /* no valid line is so long */
	}
}

static void
child_stop(struct running *r, enum run_how how)
{
	r->end->how = how;
	(void)kill(-r->pid, SIGTERM);
	phase_set(r, PHASE_TERM);
}

static int64_t
deadline_of(const struct running *r)
{
	const struct job *job = r->job;
	int64_t own = r->run->deadline, most;

	if (job->cancel_at == 0 || (r->run->flags & RUN_CANCEL_LIMITS_IT) == 0)
		return own;
	most = job->cancel_at + job->spec.cancel_grace * 1000;
	return own == 0 || most < own ? most : own;
}

/* Does the work that is due; returns milliseconds until more is due. */
static int
run_tick(struct running *r)
{
	const int64_t now = time_mono_ms(), grace = r->job->spec.grace * 1000;
	const int64_t deadline = deadline_of(r);
	int64_t due = -1;
	int log_due = job_log_tick(&r->job->log);

	switch (r->phase) {
	case PHASE_RUNS:
		if (r->job->cancel_at != 0 &&
		    (r->run->flags & RUN_CANCEL_ENDS_IT) != 0)
			child_stop(r, RUN_CANCELED);
		else if (deadline != 0 && now >= deadline)
			child_stop(r, RUN_TIMED_OUT);
		else if (deadline != 0)
			due = deadline - now;
		if (r->phase == PHASE_TERM)
			due = 0;
		break;
	case PHASE_TERM:
		due = r->since + grace - now;
		if (due <= 0) {
			(void)kill(-r->pid, SIGKILL);
			due = 1000;
		}
		break;
	case PHASE_STRAYS:
		due = r->since + STRAY_MS - now;
		if (due <= 0 || r->end->how != RUN_EXITED) {
			phase_set(r, PHASE_SWEEP);
			due = 0;
		}
		break;
	case PHASE_SWEEP:
		due = SWEEP_STEP_MS;
		if (proc_kill_below(NULL, 0) == 0 && !proc_reap())
			phase_set(r, PHASE_OVER);
		else if (now - r->since > SWEEP_MS)
			phase_set(r, PHASE_OVER);
		break;
	case PHASE_OVER:
		break;
	}
	if (log_due >= 0 && (due < 0 || log_due < due))
		due = log_due;
	return due > INT32_MAX ? INT32_MAX : (int)due;
}

const struct err *
job_run(struct job *job, const struct run *run, struct run_end *out)
{
	struct running r = { .job = job, .run = run, .end = out, .pipe = -1 };
	struct pollfd fds[3] = { { .events = POLLIN },
		{ .fd = JOB_FD(WIRE_FD_CONTROL), .events = POLLIN },
		{ .fd = job->signal_fd, .events = POLLIN } };
	const struct err *e;
	int due;

	(void)memset(out, 0, sizeof(*out));
	if ((e = child_start(&r)) != NULL)
		return e;
	fds[0].fd = r.pipe;
	while (r.phase != PHASE_OVER) {
		due = run_tick(&r);
		if (r.phase == PHASE_OVER)
			break;
		if (poll(fds, 3, r.unreaped ? 0 : due) == -1 && errno != EINTR)
			return err_errno("poll");
		if (fds[1].revents != 0)
			job_control(job);
		if (fds[0].revents != 0 && !output_drain(&r) &&
		    (fds[0].revents & POLLHUP) != 0)
			fds[0].fd = -1; /* no writer is left */
		if (fds[2].revents != 0 || r.unreaped)
			children_reap(&r);
	}
	drain_last(&r);
	(void)close(r.pipe);
	job_log_finish(&job->log);
	if (out->error != 0)
		out->how = RUN_NOT_STARTED;
	return NULL;
}

const struct err *
job_call(struct job *job, const struct run *run, struct run_end *end,
    const char **out)
{
	struct run captured = *run;
	const struct err *e;
	struct buf text;

	*out = "";
	buf_init(&text, CALL_MAX);
	captured.capture = &text;
	captured.keep_fd = -1;
	e = job_run(job, &captured, end);
	if (text.len > 0)
		*out = arena_strndup(job->a, text.data, text.len);
	buf_release(&text);
	if (e == NULL && end->how == RUN_EXITED && end->status != 0)
		e = err_new(WIFEXITED(end->status) &&
			    WEXITSTATUS(end->status) == CALL_NOTFOUND ?
			ERR_NOTFOUND :
			ERR_INTERNAL,
		    "%s",
		    WIFSIGNALED(end->status) ? run_text(job->a, end) : *out);
	return e;
}

const struct err *
job_call_within(struct job *job, int64_t ms, run_call *what, void *arg,
    const char **out)
{
	const struct run run = { .call = what,
		.arg = arg,
		.deadline = time_mono_ms() + ms };
	const struct err *e;
	struct run_end end;

	if ((e = job_call(job, &run, &end, out)) == NULL &&
	    end.how != RUN_EXITED)
		e = err_new(ERR_UNAVAILABLE, "it %s", run_text(job->a, &end));
	return e;
}

const char *
run_text(struct arena *a, const struct run_end *end)
{
	switch (end->how) {
	case RUN_NOT_STARTED:
		return arena_printf(a, "could not be started: %s",
		    strerror(end->error));
	case RUN_TIMED_OUT:
		return "timed out";
	case RUN_CANCELED:
		return "was canceled";
	case RUN_EXITED:
		break;
	}
	if (WIFSIGNALED(end->status))
		return arena_printf(a, "was killed by signal %d (%s)",
		    WTERMSIG(end->status), strsignal(WTERMSIG(end->status)));
	return arena_printf(a, "ended with exit status %d",
	    WEXITSTATUS(end->status));
}
