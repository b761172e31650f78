/* SPDX-License-Identifier: ISC */
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/apart.h"
#include "core/file.h"
#include "core/log.h"
#include "core/str.h"
#include "monitor/monitor.h"

#define LIMIT_MAX (INT64_C(1) << 32) /* seconds; more counts as no limit */
#define SWEEP_MS 10000               /* then the account is no longer used */
#define CLEAN_MS 60000
#define AGAIN_MS 10
#define ADOPTED_MS 100
#define ARGS_MAX 40
#define GROUP_SIZE 12 /* a comma, ten digits, NUL */

struct slot *
monitor_slot(struct monitor *m, int64_t deployment, int64_t epoch)
{
	size_t i;

	for (i = 0; i < SLOTS_MAX; i++)
		if (m->slots[i].state != SLOT_FREE &&
		    m->slots[i].deployment == deployment &&
		    m->slots[i].epoch == epoch)
			return &m->slots[i];
	return NULL;
}

struct slot *
monitor_slot_free(struct monitor *m)
{
	size_t i;

	for (i = 0; i < SLOTS_MAX; i++)
		if (m->slots[i].state == SLOT_FREE)
			return &m->slots[i];
	return NULL;
}

static void
state_set(struct slot *slot, enum slot_state state)
{
	slot->state = state;
	slot->since = time_mono_ms();
}

/* The command line of a job: numbers and two paths. */
struct args {
	const char *argv[ARGS_MAX];
	size_t n;
	char text[10][32];
	size_t used;
	char groups[PROC_GROUPS * GROUP_SIZE];
	char home[4096 + CGROUP_ID + 1];
	char workspace[4096 + WIRE_DIR];
	char cache[4096 + sizeof(((struct slot *)NULL)->cache)];
};

static void
arg_number(struct args *args, const char *flag, int64_t value)
{
	char *text = args->text[args->used++];

	(void)snprintf(text, sizeof(args->text[0]), "%lld", (long long)value);
	args->argv[args->n++] = flag;
	args->argv[args->n++] = text;
}

static void
arg_text(struct args *args, const char *flag, const char *text)
{
	args->argv[args->n++] = flag;
	args->argv[args->n++] = text;
}

/* What a job does not share with the host: a set of enum apart. */
static unsigned
apart_of(const struct monitor *m, const struct slot *slot)
{
	unsigned apart = m->apart & (unsigned)APART_IPC;

	if (slot->kind == ACCOUNT_RANGE)
		apart |= m->apart & (unsigned)APART_MOUNTS;
	if (m->settings.runner.private_tmp)
		apart |= m->apart & (unsigned)APART_TMP;
	return slot->kind == ACCOUNT_SELF ? 0 : apart;
}

static void
args_make(const struct monitor *m, const struct slot *slot, const char *dir,
    struct args *out)
{
	const struct settings_runner *conf = &m->settings.runner;
	size_t i, len = 0;

	(void)memset(out, 0, sizeof(*out));
	(void)snprintf(out->home, sizeof(out->home), "%s/%s", m->homes_path,
	    slot->id);
	(void)snprintf(out->workspace, sizeof(out->workspace), "%s/%s",
	    conf->workspaces, dir);
	out->argv[out->n++] = m->job_path;
	arg_text(out, "-i", slot->id);
	/* for a monitor that adopts it, so it directly follows the number */
	arg_number(out, "-t", slot->deadline);
	arg_text(out, "-H", out->home);
	arg_text(out, "-W", out->workspace);
	arg_number(out, "-n", conf->open_files_max);
	arg_number(out, "-f", conf->file_size_max);
	arg_number(out, "-p", conf->pids_max);
	if (slot->cache[0] != '\0') {
		(void)snprintf(out->cache, sizeof(out->cache), "%s/%s",
		    conf->workspaces, slot->cache);
		arg_text(out, "-C", out->cache);
		arg_number(out, "-M", conf->cache_max);
	}
	if (conf->user_namespaces)
		out->argv[out->n++] = "-U";
	if (slot->kind == ACCOUNT_SELF)
		return;
	arg_number(out, "-u", slot->who.uid);
	arg_number(out, "-g", slot->who.gid);
	arg_number(out, "-S", slot->watch);
	for (i = 0; i < slot->who.ngroups; i++)
		len += (size_t)snprintf(out->groups + len, GROUP_SIZE, "%s%u",
		    i > 0 ? "," : "", slot->who.groups[i]);
	if (slot->who.ngroups > 0)
		arg_text(out, "-G", out->groups);
	if (slot->hides)
		out->argv[out->n++] = "-E";
	if ((slot->apart & APART_MOUNTS) != 0)
		out->argv[out->n++] = "-N";
	if ((slot->apart & APART_IPC) != 0)
		out->argv[out->n++] = "-I";
	if ((slot->apart & APART_TMP) != 0)
		out->argv[out->n++] = "-T";
}

/* Runs between fork and exec; on failure writes errno to `err` and exits. */
static _Noreturn void
child_run(const struct monitor *m, const struct slot *slot, const char *dir,
    int *fds, int err)
{
	static struct args args;
	static char *const empty[] = { NULL };
	int all[WIRE_FD__MAX + 1], error = 0;
	ssize_t put;

	args_make(m, slot, dir, &args);
	(void)memcpy(all, fds, WIRE_FD__MAX * sizeof(int));
	all[WIRE_FD__MAX] = err;
	proc_signals_default();
	if (setsid() == -1 || (cgroup_can_kill() && !cgroup_enter(slot->id)) ||
	    proc_fds_place(all, WIRE_FD__MAX + 1) != NULL) {
		error = errno;
		put = write(err, &error, sizeof(error));
		_exit(put == -1 ? 127 : 126);
	}
	err = 3 + WIRE_FD__MAX;
	if (fcntl(err, F_SETFD, FD_CLOEXEC) == 0)
		(void)execve(m->job_path, (char *const *)(uintptr_t)args.argv,
		    empty);
	error = errno;
	put = write(err, &error, sizeof(error));
	_exit(put == -1 ? 127 : 126);
}

/* Returns 0 or the errno of the failure. */
static int
job_spawn(const struct monitor *m, struct slot *slot, const char *dir, int *fds)
{
	int err[2], error = 0;
	ssize_t got;
	pid_t pid;

	if (pipe2(err, O_CLOEXEC) == -1)
		return errno;
	if ((pid = cgroup_fork(slot->id)) == -1) {
		error = errno;
		(void)close(err[0]);
		(void)close(err[1]);
		return error;
	}
	if (pid == 0)
		child_run(m, slot, dir, fds, err[1]);
	(void)close(err[1]);
	do
		got = read(err[0], &error, sizeof(error));
	while (got == -1 && errno == EINTR);
	(void)close(err[0]);
	if (got != (ssize_t)sizeof(error)) {
		slot->pid = pid;
		return 0;
	}
	(void)waitpid(pid, NULL, 0);
	return error;
}

static void
start_reject(struct monitor *m, const struct wire *w, enum wire_why why,
    int error)
{
	struct wire reply = { .magic = WIRE_MAGIC,
		.type = WIRE_REFUSED,
		.deployment = w->deployment,
		.epoch = w->epoch,
		.project = w->project,
		.status = (int32_t)why,
		.error = error };

	monitor_send(m, &reply);
}

/* Does everything that a start needs; on failure `why` says what failed. */
static const struct err *
job_start(struct monitor *m, const struct wire *w, struct slot *slot, int *fds,
    enum wire_why *why)
{
	const struct settings_runner *conf = &m->settings.runner;
	const struct err *e;
	int error;

	*why = WIRE_WHY_WORKSPACE;
	if (w->deployment <= 0 || w->epoch <= 0 || w->project <= 0 ||
	    w->status < 0 || !monitor_dir_valid(w->dir))
		return err_new(ERR_BAD_REQUEST, "invalid deployment");
	if ((*why = monitor_account(m, w, slot)) != WIRE_WHY_NONE)
		return err_new(ERR_CONFLICT, "account %u: %s", slot->who.uid,
		    *why == WIRE_WHY_BUSY        ? "busy" :
			*why == WIRE_WHY_FOREIGN ? "has processes that "
						   "another service or runner "
						   "started" :
						   "not allowed");
	slot->watch = monitor_watch(m);
	slot->apart = apart_of(m, slot);
	slot->hides = w->error == WIRE_FILES_HIDDEN &&
	    slot->kind != ACCOUNT_SELF && (m->apart & APART_MOUNTS) != 0;
	monitor_leavings_begin(&slot->before);
	*why = WIRE_WHY_WORKSPACE;
	e = monitor_workspace(m, w->dir, slot, &fds[WIRE_FD_WORKSPACE]);
	if (e != NULL && e->code == ERR_CONFLICT)
		*why = WIRE_WHY_BUSY;
	if (e == NULL && (errno = file_room(fds[WIRE_FD_WORKSPACE])) != 0)
		e = err_errno("workspace of %s", slot->id);
	if (e != NULL ||
	    (e = monitor_home(m, slot, &fds[WIRE_FD_HOME])) != NULL)
		return e;
	monitor_cache(m, w, slot);
	*why = WIRE_WHY_PROCESS;
	if ((e = cgroup_make(slot->id, conf->memory_max, conf->pids_max)) ==
		NULL &&
	    (error = job_spawn(m, slot, w->dir, fds)) != 0) {
		errno = error;
		e = err_errno("start %s", m->job_path);
	}
	if (e != NULL)
		monitor_home_remove(m, slot);
	return e;
}

void
monitor_job_start(struct monitor *m, const struct wire *w, int *request)
{
	struct slot *slot = monitor_slot_free(m),
		    fresh = { .pidfd = -1, .claim = -1 };
	struct wire reply = *w;
	int fds[WIRE_FD__MAX];
	const struct err *e;
	enum wire_why why;
	size_t i;

	(void)memcpy(fds, request, WIRE_FD__REQUEST * sizeof(int));
	fds[WIRE_FD_WORKSPACE] = fds[WIRE_FD_HOME] = -1;
	fresh.deployment = w->deployment;
	fresh.epoch = w->epoch;
	if (w->limit > 0 && w->limit < LIMIT_MAX)
		fresh.deadline = time_mono_ms() + w->limit * 1000;
	(void)snprintf(fresh.id, sizeof(fresh.id), "%lld.%lld",
	    (long long)w->deployment, (long long)w->epoch);
	why = WIRE_WHY_BUSY;
	if (slot == NULL || monitor_slot(m, w->deployment, w->epoch) != NULL)
		e = err_new(ERR_CONFLICT,
		    "it is running already, or too many jobs are");
	else
		e = job_start(m, w, &fresh, fds, &why);
	for (i = 0; i < WIRE_FD__MAX; i++)
		if (fds[i] != -1)
			(void)close(fds[i]);
	if (e != NULL) {
		log_warn("job %s rejected: %s", fresh.id, e->msg);
		start_reject(m, w, why, e->sys);
		(void)close(fresh.claim);
		return;
	}
	*slot = fresh;
	state_set(slot, SLOT_RUNS);
	log_info("job %s started: pid %ld, uid %u", slot->id, (long)slot->pid,
	    slot->who.uid);
	reply.type = WIRE_STARTED;
	reply.pid = slot->pid;
	reply.status = 0;
	reply.error = 0;
	monitor_send(m, &reply);
}

static void
job_exited(struct monitor *m, struct slot *slot)
{
	struct wire reply = { .magic = WIRE_MAGIC,
		.type = WIRE_EXITED,
		.deployment = slot->deployment,
		.epoch = slot->epoch,
		.status = slot->status };

	if (slot->pidfd != -1)
		(void)close(slot->pidfd);
	(void)close(slot->claim);
	monitor_cache_end(m, slot);
	monitor_send(m, &reply);
	log_info("job %s ended", slot->id);
	slot->state = SLOT_FREE;
}

void
monitor_job_kill(struct monitor *m, const struct wire *w)
{
	struct slot *slot = monitor_slot(m, w->deployment, w->epoch);
	struct slot none = { .deployment = w->deployment,
		.epoch = w->epoch,
		.pidfd = -1,
		.claim = -1 };

	(void)snprintf(none.id, sizeof(none.id), "%lld.%lld",
	    (long long)w->deployment, (long long)w->epoch);
	if (slot == NULL)
		slot = monitor_adopt_one(m, none.id);
	if (slot == NULL) {
		job_exited(m, &none);
	} else if (slot->state == SLOT_RUNS) {
		log_info("killing job %s", slot->id);
		state_set(slot, SLOT_KILLING);
	}
}

static void
job_gone(struct slot *slot, int status)
{
	slot->pid = 0;
	slot->status = status;
	state_set(slot, SLOT_SWEEPING);
}

bool
monitor_job_reaped(struct monitor *m, pid_t pid, int status)
{
	struct slot *slot;
	size_t i;

	for (i = 0; i < SLOTS_MAX; i++) {
		slot = &m->slots[i];
		if (slot->state == SLOT_FREE)
			continue;
		if (slot->pid == pid) {
			job_gone(slot, status);
			return true;
		}
		if (slot->cleaner == pid) {
			slot->cleaner = 0;
			monitor_home_remove(m, slot);
			job_exited(m, slot);
			return true;
		}
	}
	return false;
}

/* Whether an adopted job still lives. */
static bool
adopted_lives(const struct slot *slot)
{
	struct pollfd fd = { .fd = slot->pidfd, .events = POLLIN };

	if (slot->pidfd == -1)
		return monitor_job_lives(slot);
	return poll(&fd, 1, 0) == 0;
}

/* Returns -1 if it has ended.  The number of an adopted job may belong to
 * another process by now. */
static int
job_signal(const struct slot *slot, int which)
{
	if (slot->pidfd != -1)
		return (int)syscall(SYS_pidfd_send_signal, slot->pidfd, which,
		    NULL, 0);
	if (slot->adopted && !monitor_job_lives(slot))
		return -1;
	return kill(slot->pid, which);
}

/* Without root a step has its job's account, so it can stop the job, and with
 * it the enforcement of time limits and cancels.  The monitor continues it at
 * once. */
void
monitor_job_stopped(const struct monitor *m, pid_t pid)
{
	size_t i;

	for (i = 0; i < SLOTS_MAX; i++)
		if (m->slots[i].state == SLOT_RUNS && m->slots[i].pid == pid)
			(void)kill(pid, SIGCONT);
}

/* Kills all live processes of a job.  The job is stopped first: a step can die
 * before it, and it would then report how the step ended, or start the next. */
static void
kill_all(struct slot *slot)
{
	const bool stopped = job_signal(slot, SIGSTOP) == 0;

	if (cgroup_can_kill())
		(void)cgroup_kill(slot->id);
	if (slot->kind == ACCOUNT_RANGE)
		(void)proc_kill_account(&slot->who);
	if (stopped && proc_kill_tree(slot->pid) == 0)
		(void)job_signal(slot, SIGKILL);
}

static void
job_clean(struct monitor *m, struct slot *slot)
{
	if (monitor_clean(m, slot))
		job_exited(m, slot);
	else
		state_set(slot, SLOT_CLEANING);
}

static void
give_up(struct monitor *m, const struct slot *slot)
{
	log_error("job %s: cannot kill processes of uid %u; the account"
		  " is not used while they exist",
	    slot->id, slot->who.uid);
	m->dirty[m->ndirty % DIRTY_MAX] = slot->who.uid;
	if (m->ndirty < DIRTY_MAX)
		m->ndirty++;
}

/* A job enforces its limits itself, unless something prevents it. */
static int
watch_tick(struct slot *slot)
{
	const int64_t left = slot->deadline - time_mono_ms();

	if (slot->adopted && !adopted_lives(slot)) {
		job_gone(slot, 0);
		return 0;
	}
	if (slot->deadline != 0 && left <= 0) {
		log_error(
		    "job %s exceeded its limits without ending: killing it",
		    slot->id);
		state_set(slot, SLOT_KILLING);
		return 0;
	}
	if (slot->adopted) {
		/* no signal reports the stop of another's child */
		(void)job_signal(slot, SIGCONT);
		return ADOPTED_MS;
	}
	if (slot->deadline == 0)
		return -1;
	return left < INT32_MAX ? (int)left : INT32_MAX;
}

/* Handles one slot; returns milliseconds until it is due again. */
static int
slot_tick(struct monitor *m, struct slot *slot)
{
	const int64_t age = time_mono_ms() - slot->since;

	switch (slot->state) {
	case SLOT_FREE:
		break;
	case SLOT_RUNS:
		return watch_tick(slot);
	case SLOT_KILLING:
		if (slot->adopted && !adopted_lives(slot)) {
			job_gone(slot, 0);
			return 0;
		}
		kill_all(slot);
		return AGAIN_MS;
	case SLOT_SWEEPING:
		if (monitor_sweep(m, slot)) {
			slot->strays = true;
			if (age < SWEEP_MS)
				return AGAIN_MS;
			give_up(m, slot);
		}
		job_clean(m, slot);
		break;
	case SLOT_CLEANING:
		if (age < CLEAN_MS)
			return (int)(CLEAN_MS - age);
		log_fault(err_new(ERR_UNAVAILABLE,
			      "removing its home takes too long"),
		    slot->id);
		(void)kill(slot->cleaner, SIGKILL);
		return 1000;
	}
	return -1;
}

int
monitor_jobs_tick(struct monitor *m)
{
	int due = -1, own;
	size_t i;

	for (i = 0; i < SLOTS_MAX; i++) {
		own = slot_tick(m, &m->slots[i]);
		if (own >= 0 && (due < 0 || own < due))
			due = own;
	}
	return due;
}

bool
monitor_jobs_live(const struct monitor *m)
{
	size_t i;

	for (i = 0; i < SLOTS_MAX; i++)
		if (m->slots[i].state != SLOT_FREE)
			return true;
	return false;
}
