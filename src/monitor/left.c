/* SPDX-License-Identifier: ISC */
/*
 * Directories of deleted projects, and caches that are emptied: WORKSPACES/
 * .left/NUMBER.TIME.  Only root can reach them.  They are removed at that time,
 * each under the account that owns it, like directories of other accounts in
 * them.
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
#define ROUNDS 10        /* of a pass */
#define DAY_MS 86400000
#define FOREVER_DAYS 36500
#define STRANGERS 1000 /* directories of other accounts, in a pass */

static const struct err *
directory_move(const struct monitor *m, int at, const char *name, int left,
    int64_t keep)
{
	static unsigned long counter;
	const int64_t until = time_now_ms() + keep;
	char to[NAME_SIZE];

	(void)snprintf(to, sizeof(to), "%ld-%lu.%lld", (long)getpid(),
	    ++counter, (long long)until);
	/* its mode may keep its owner from moving it, but not root */
	if ((!m->root && fchmodat(at, name, S_IRWXU, 0) == -1) ||
	    renameat(at, name, left, to) == -1)
		return err_errno("move %s to " LEFT, name);
	log_info("%s is now " LEFT "/%s", name, to);
	return NULL;
}

int64_t
monitor_left_keep(const struct monitor *m)
{
	const int64_t days = m->settings.runner.workspace_days;

	return (days == 0 ? FOREVER_DAYS : days) * DAY_MS;
}

const struct err *
monitor_left_move(const struct monitor *m, int at, const char *name,
    int64_t keep)
{
	const struct err *e;
	int left;

	if ((e = monitor_dir_step(m->workspaces, LEFT, 0700, &left)) != NULL)
		return e;
	e = directory_move(m, at, name, left, keep);
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
directory_empty(const struct monitor *m, int fd, const struct stat *st,
    const char *name)
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

/* Where a step has opened its directories, those of other projects can make
 * theirs.  Moves these to LEFT, so that each is removed under its own account.
 * What could not be removed otherwise is at the top or one level below it.
 * Returns whether there was any. */
static bool
strangers_move(const struct monitor *m, int left, int of, uid_t owner,
    bool is_top)
{
	static size_t n; /* of this process, and thus of the pass */
	const struct dirent *entry;
	bool some = false;
	struct stat st;
	DIR *dir;
	int fd;

	fd = openat(of, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd == -1 || (dir = fdopendir(fd)) == NULL) {
		(void)close(fd);
		return false;
	}
	while (n < STRANGERS && (entry = readdir(dir)) != NULL) {
		if (str_eq(entry->d_name, ".") || str_eq(entry->d_name, "..") ||
		    fstatat(dirfd(dir), entry->d_name, &st,
			AT_SYMLINK_NOFOLLOW) == -1 ||
		    !S_ISDIR(st.st_mode))
			continue;
		if (st.st_uid == owner && is_top &&
		    (fd = openat(dirfd(dir), entry->d_name,
			 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) !=
			-1) {
			some |= strangers_move(m, left, fd, owner, false);
			(void)close(fd);
		} else if (st.st_uid != owner &&
		    monitor_is_projects(m, st.st_uid)) {
			n++;
			some |= directory_move(m, dirfd(dir), entry->d_name,
				    left, 0) == NULL;
		}
	}
	(void)closedir(dir);
	return some;
}

/* Empties the directory in a child process, and removes it. */
static bool
is_removed(const struct monitor *m, int left, int fd, const char *name)
{
	struct stat st;
	int status = -1;
	pid_t pid;

	if (fstat(fd, &st) == -1)
		return false;
	if ((pid = fork()) == 0)
		directory_empty(m, fd, &st, name);
	while (pid != -1 && waitpid(pid, &status, 0) == -1 && errno == EINTR)
		continue;
	return status == 0 && unlinkat(left, name, AT_REMOVEDIR) == 0;
}

/* Returns whether there is more to remove than before. */
static bool
entry_remove(const struct monitor *m, int left, const char *name)
{
	const struct err *e;
	bool more = false;
	struct stat st;
	int fd;

	if (!m->root) {
		if ((e = tree_remove(left, name)) != NULL)
			log_err(e, LEFT);
		return false;
	}
	fd = openat(left, name,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1 || fstat(fd, &st) == -1) {
		log_warn(LEFT "/%s: %s", name, strerror(errno));
		if (fd != -1)
			(void)close(fd);
		return false;
	}
	if (is_removed(m, left, fd, name))
		log_info(LEFT "/%s removed", name);
	else if (!(more = strangers_move(m, left, fd, st.st_uid, true)))
		log_warn(LEFT "/%s could not be removed yet", name);
	(void)close(fd);
	return more;
}

/* Runs in a child process, since it may take long. */
static _Noreturn void
trash_empty(const struct monitor *m, int left)
{
	const struct dirent *entry;
	bool more = true;
	DIR *dir;
	int round;

	proc_signals_default();
	if (proc_fds_place(&left, 1) != NULL || (dir = fdopendir(3)) == NULL)
		_exit(1);
	if (flock(3, LOCK_EX | LOCK_NB) == -1)
		_exit(0); /* another monitor's child is doing it */
	for (round = 0; more && round < ROUNDS; round++) {
		more = false;
		rewinddir(dir);
		while ((entry = readdir(dir)) != NULL)
			if (is_due(entry->d_name))
				more |= entry_remove(m, 3, entry->d_name);
	}
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
		trash_empty(m, left);
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
project_wipe(struct monitor *m, const struct wire *w)
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
		    w->status == WIRE_WIPE_KEEP ? monitor_left_keep(m) : 0);
	(void)close(at);
	return e;
}

void
monitor_wipe(struct monitor *m, const struct wire *w)
{
	struct wire reply = { .magic = WIRE_MAGIC,
		.type = WIRE_WIPED,
		.project = w->project };
	const struct err *e = project_wipe(m, w);

	if (e != NULL)
		log_warn("project %lld: cannot remove its directory: %s",
		    (long long)w->project, e->msg);
	else
		m->sweep_at = 0;
	reply.status = e == NULL ? 0 : 1;
	monitor_send(m, &reply);
}
