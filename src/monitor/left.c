/* SPDX-License-Identifier: ISC */
/*
 * Directories of deleted projects, and caches that are emptied: WORKSPACES/
 * .left/NUMBER.TIME.  Only root can reach them.  They are removed at that time,
 * each under the account that owns it.
 */
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "core/num.h"
#include "core/str.h"
#include "core/tree.h"
#include "monitor/monitor.h"

#define LEFT ".left"
#define NAME_SIZE 64
#define SWEEP_MS 3600000 /* between passes */

const struct err *
monitor_left_move(const struct monitor *m, int at, const char *name,
    int64_t keep)
{
	static unsigned long counter;
	const int64_t until = time_now_ms() + keep;
	const struct err *e;
	char to[NAME_SIZE];
	int left;

	if ((e = monitor_dir_step(m->workspaces, LEFT, 0700, &left)) != NULL)
		return e;
	(void)snprintf(to, sizeof(to), "%ld-%lu.%lld", (long)getpid(),
	    ++counter, (long long)until);
	/* its mode may keep its owner from moving it, but not root */
	if ((!m->root && fchmodat(at, name, S_IRWXU, 0) == -1) ||
	    renameat(at, name, left, to) == -1)
		e = err_errno("move %s to " LEFT, name);
	else
		log_info("%s is now " LEFT "/%s", name, to);
	(void)close(left);
	return e;
}

/* Whether its time has come.  An entry without a time is not ours. */
static bool
is_due(const char *name)
{
	const char *dot = strrchr(name, '.');
	int64_t at;

	return dot != NULL && num_parse(dot + 1, 0, INT64_MAX, &at) &&
	    at <= time_now_ms();
}

/* Switches to the owner for good and empties the directory. */
static _Noreturn void
empty(const struct monitor *m, int fd, const struct stat *st, const char *name)
{
	const struct proc_account who = { .uid = st->st_uid,
		.gid = st->st_gid,
		.groups = { st->st_gid },
		.ngroups = 1 };
	const struct err *e;

	if (proc_fds_place(&fd, 1) != NULL)
		_exit(1);
	fd = 3;
	/* steps of another project with that account cannot stop it */
	e = proc_drop_behind(&who, monitor_watch(m));
	if (e == NULL && fchmod(fd, S_IRWXU) == -1)
		e = err_errno("chmod");
	if (e == NULL)
		e = tree_empty(fd);
	if (e != NULL)
		log_err(e, name);
	_exit(e == NULL ? 0 : 1);
}

static void
entry_remove(const struct monitor *m, int left, const char *name)
{
	const struct err *e;
	struct stat st;
	int fd, status = -1;
	pid_t pid;

	if (!m->root) {
		if ((e = tree_remove(left, name)) != NULL)
			log_err(e, LEFT);
		return;
	}
	fd = openat(left, name,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1 || fstat(fd, &st) == -1) {
		log_warn(LEFT "/%s: %s", name, strerror(errno));
		return;
	}
	if ((pid = fork()) == 0)
		empty(m, fd, &st, name);
	(void)close(fd);
	while (pid != -1 && waitpid(pid, &status, 0) == -1 && errno == EINTR)
		continue;
	if (status == 0 && unlinkat(left, name, AT_REMOVEDIR) == 0)
		log_info(LEFT "/%s removed", name);
	else
		log_warn(LEFT "/%s could not be removed yet", name);
}

/* Runs in a child process, since it may take long. */
static _Noreturn void
sweep(const struct monitor *m, int left)
{
	const struct dirent *entry;
	DIR *dir;

	proc_signals_default();
	if (proc_fds_place(&left, 1) != NULL || (dir = fdopendir(3)) == NULL)
		_exit(1);
	if (flock(3, LOCK_EX | LOCK_NB) == -1)
		_exit(0); /* another monitor's child is doing it */
	while ((entry = readdir(dir)) != NULL)
		if (is_due(entry->d_name))
			entry_remove(m, 3, entry->d_name);
	_exit(0);
}

int
monitor_left_tick(struct monitor *m)
{
	const int64_t now = time_mono_ms();
	int left;

	if (m->sweeper != 0 || m->ending)
		return -1;
	if (now < m->sweep_at)
		return (int)(m->sweep_at - now);
	m->sweep_at = now + SWEEP_MS;
	left = openat(m->workspaces, LEFT,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (left == -1)
		return SWEEP_MS; /* nothing was ever deleted */
	if ((m->sweeper = fork()) == 0)
		sweep(m, left);
	if (m->sweeper == -1)
		m->sweeper = 0;
	(void)close(left);
	return m->sweeper == 0 ? SWEEP_MS : -1;
}

bool
monitor_left_reaped(struct monitor *m, pid_t pid)
{
	if (pid != m->sweeper)
		return false;
	m->sweeper = 0;
	return true;
}

/* Opens the directory that contains the last component of `dir`, which is
 * stored in *name; *out is -1 if part of the path is missing or not ours. */
static const struct err *
parent_open(const struct monitor *m, char *dir, const char **name, int *out)
{
	char *part = dir, *slash;
	struct stat st;
	int next;

	*name = dir;
	if ((*out = fcntl(m->workspaces, F_DUPFD_CLOEXEC, 0)) == -1)
		return err_errno("dup");
	while (*out != -1 && (slash = strchr(part, '/')) != NULL) {
		*slash = '\0';
		next = openat(*out, part,
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		(void)close(*out);
		*out = next;
		*name = part = slash + 1;
		if (next != -1 &&
		    (fstat(next, &st) == -1 || st.st_uid != geteuid())) {
			(void)close(next);
			*out = -1;
		}
	}
	return NULL;
}

/* A project's directory belongs to its account; if the owner is another
 * account, the directory now belongs to another project. */
static const struct err *
wipe(struct monitor *m, const struct wire *w)
{
	struct slot slot = { .pidfd = -1 };
	const struct err *e;
	char copy[WIRE_DIR];
	const char *name;
	struct stat st;
	int at;

	if (w->project <= 0 || !monitor_dir_valid(w->dir))
		return err_new(ERR_BAD_REQUEST, "invalid project");
	if (monitor_account(m, w, &slot) != WIRE_WHY_NONE)
		return err_new(ERR_CONFLICT, "its account is in use");
	monitor_cache_drop(m, w->project);
	(void)memcpy(copy, w->dir, sizeof(copy));
	if ((e = parent_open(m, copy, &name, &at)) != NULL || at == -1)
		return e;
	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISDIR(st.st_mode) && st.st_uid == slot.who.uid)
		e = monitor_left_move(m, at, name,
		    w->status == WIRE_WIPE_KEEP ? LEFT_KEEP : 0);
	(void)close(at);
	return e;
}

void
monitor_wipe(struct monitor *m, const struct wire *w)
{
	struct wire reply = { .magic = WIRE_MAGIC,
		.type = WIRE_WIPED,
		.project = w->project };
	const struct err *e = wipe(m, w);

	if (e != NULL)
		log_warn("project %lld: cannot remove its directory: %s",
		    (long long)w->project, e->msg);
	else
		m->sweep_at = 0;
	reply.status = e == NULL ? 0 : 1;
	monitor_send(m, &reply);
}
