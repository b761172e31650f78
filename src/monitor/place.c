/* SPDX-License-Identifier: ISC */
#include <sys/file.h>
#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "core/str.h"
#include "monitor/monitor.h"

#define LOCK_NAME (CGROUP_ID + sizeof(MONITOR_LOCK))

bool
monitor_dir_valid(const char *dir)
{
	static const char allowed[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	    "0123456789._-";
	size_t len;

	for (;; dir++) {
		len = strspn(dir, allowed);
		if (len == 0 || dir[0] == '-' || dir[0] == '.')
			return false;
		dir += len;
		if (*dir == '\0')
			return true;
		if (*dir != '/')
			return false;
	}
}

static bool
is_dirty(const struct monitor *m, const struct proc_account *who)
{
	size_t i;

	for (i = 0; i < m->ndirty; i++)
		if (m->dirty[i] == who->uid)
			return proc_account_lives(who->uid);
	return false;
}

static bool
is_live(const struct monitor *m, uid_t uid)
{
	size_t i;

	for (i = 0; i < SLOTS_MAX; i++)
		if (m->slots[i].state != SLOT_FREE &&
		    m->slots[i].who.uid == uid)
			return true;
	return false;
}

/* Whether a job of another monitor with these homes has that account: the job
 * itself only has it as its effective user. */
static bool
is_elsewhere(const struct monitor *m, uid_t uid)
{
	const struct dirent *entry;
	struct stat st;
	bool found = false;
	DIR *dir;
	int fd;

	fd = openat(m->homes, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd == -1 || (dir = fdopendir(fd)) == NULL) {
		(void)close(fd);
		return true;
	}
	while (!found && (entry = readdir(dir)) != NULL)
		found = fstatat(dirfd(dir), entry->d_name, &st,
			    AT_SYMLINK_NOFOLLOW) == 0 &&
		    st.st_uid == uid;
	(void)closedir(dir);
	return found;
}

/* Whether a process has an account of the range that no job of ours has. */
static bool
is_foreign(const struct monitor *m, const struct proc_account *who)
{
	return is_elsewhere(m, who->uid) ? proc_account_lives(who->uid) :
					   !proc_account_is_idle(who->uid);
}

static const struct proc_account *
named_find(const struct monitor *m, const char *dir)
{
	size_t i;

	for (i = 0; i < m->nnamed; i++)
		if (strcmp(m->named[i].dir, dir) == 0)
			return &m->named[i].who;
	return m->job_user.uid != 0 ? &m->job_user : NULL;
}

enum wire_why
monitor_account(const struct monitor *m, const struct wire *w, struct slot *out)
{
	const struct settings_runner *conf = &m->settings.runner;
	const struct proc_account *named;

	if (!m->root) {
		out->kind = ACCOUNT_SELF;
		out->who.uid = geteuid();
		out->who.gid = getegid();
		return WIRE_WHY_NONE;
	}
	if ((named = named_find(m, w->dir)) != NULL) {
		out->kind = ACCOUNT_NAMED;
		out->who = *named;
	} else {
		out->kind = ACCOUNT_RANGE;
		out->who.uid = uid_range_at(uid_range_projects(conf),
		    w->project);
		out->who.gid = (gid_t)out->who.uid;
		out->who.groups[0] = out->who.gid;
		out->who.ngroups = 1;
	}
	if (out->who.uid == 0 || out->who.uid == m->user.uid)
		return WIRE_WHY_ACCOUNT;
	if (is_live(m, out->who.uid))
		return WIRE_WHY_BUSY;
	if (out->kind == ACCOUNT_RANGE ? is_foreign(m, &out->who) :
					 is_dirty(m, &out->who))
		return WIRE_WHY_FOREIGN;
	return WIRE_WHY_NONE;
}

uid_t
monitor_watch(const struct monitor *m)
{
	const struct uid_range range = uid_range_watchers(&m->settings.runner);
	int64_t i;
	size_t k;

	if (!m->root)
		return 0;
	for (i = 0; i < range.count; i++) {
		for (k = 0; k < SLOTS_MAX; k++)
			if (m->slots[k].state != SLOT_FREE &&
			    m->slots[k].watch == uid_range_at(range, i))
				break;
		if (k == SLOTS_MAX)
			break;
	}
	/* there are never more slots than ids */
	return uid_range_at(range, i);
}

const struct err *
monitor_dir_step(int at, const char *name, mode_t mode, int *out)
{
	if (mkdirat(at, name, mode) == -1 && errno != EEXIST)
		return err_errno("create %s", name);
	*out = openat(at, name,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return *out == -1 ? err_errno("open %s", name) : NULL;
}

/* Giving away files that another account wrote would mean trusting them. */
const struct err *
monitor_hand_over(int fd, const char *name, const struct slot *slot)
{
	struct stat st;

	if (fstat(fd, &st) == -1)
		return err_errno("%s", name);
	if (st.st_uid == slot->who.uid)
		return NULL;
	if (st.st_uid != geteuid())
		return err_new(ERR_FORBIDDEN,
		    "%s belongs to uid %u, but its job runs as %u: remove it,"
		    " or change its owner with chown -R",
		    name, st.st_uid, slot->who.uid);
	if (fchown(fd, slot->who.uid, slot->who.gid) == -1)
		return err_errno("chown %s", name);
	return NULL;
}

bool
monitor_is_projects(const struct monitor *m, uid_t uid)
{
	size_t i;

	if (!m->root || uid == 0)
		return false;
	if (uid_range_has(uid_range_projects(&m->settings.runner), uid) ||
	    uid == m->job_user.uid)
		return true;
	for (i = 0; i < m->nnamed; i++)
		if (m->named[i].who.uid == uid)
			return true;
	return false;
}

/* Kinds of components of a workspace's path. */
enum part {
	PART_WAY,
	PART_END,
};

/* Whether a deleted project left this directory on the path to a workspace, or
 * in its place: directories of existing projects do not overlap.  A project
 * whose account was changed in the configuration keeps its directory. */
static bool
is_left(const struct monitor *m, const struct slot *slot, uid_t owner,
    enum part part)
{
	if (part == PART_WAY)
		return monitor_is_projects(m, owner);
	return slot->kind == ACCOUNT_RANGE && owner != slot->who.uid &&
	    uid_range_has(uid_range_projects(&m->settings.runner), owner);
}

static const struct err *
make_room(const struct monitor *m, int at, const char *name, uid_t owner)
{
	if (is_live(m, owner))
		return err_new(ERR_CONFLICT,
		    "%s: a job of the deleted project that used it is running",
		    name);
	return monitor_left_move(m, at, name, monitor_left_keep(m));
}

/* Descends one component; moves away what a deleted project left there. */
static const struct err *
workspace_step(const struct monitor *m, const struct slot *slot, int at,
    const char *name, enum part part, int *out)
{
	const mode_t mode = part == PART_END ? 0700 : 0711;
	const struct err *e;
	struct stat st;

	if ((e = monitor_dir_step(at, name, mode, out)) != NULL)
		return e;
	if (fstat(*out, &st) == -1)
		return err_errno("%s", name);
	if (!is_left(m, slot, st.st_uid, part))
		return NULL;
	(void)close(*out);
	*out = -1;
	if ((e = make_room(m, at, name, st.st_uid)) != NULL)
		return e;
	return monitor_dir_step(at, name, mode, out);
}

static const struct err *directory_clear(const struct monitor *m, int fd);

/* Removes one entry of a directory that led to those of projects. */
static const struct err *
clear_one(const struct monitor *m, int at, const char *name)
{
	const struct err *e;
	struct stat st;
	int fd;

	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == -1)
		return errno == ENOENT ? NULL : err_errno("%s", name);
	if (S_ISDIR(st.st_mode) && monitor_is_projects(m, st.st_uid))
		return make_room(m, at, name, st.st_uid);
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid())
		return err_new(ERR_FORBIDDEN,
		    "%s in it belongs to uid %u, not to a project: remove it",
		    name, st.st_uid);
	fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1)
		return err_errno("open %s", name);
	if ((e = directory_clear(m, fd)) == NULL &&
	    unlinkat(at, name, AT_REMOVEDIR) == -1)
		e = err_errno("remove %s", name);
	return e;
}

/* Removes what deleted projects left from a directory of ours that led to
 * theirs, and closes it.  Descends no deeper than names in requests do. */
static const struct err *
directory_clear(const struct monitor *m, int fd)
{
	const struct err *e = NULL;
	const struct dirent *entry;
	DIR *dir = fdopendir(fd);

	if (dir == NULL) {
		e = err_errno("list");
		(void)close(fd);
		return e;
	}
	while (e == NULL && (entry = readdir(dir)) != NULL)
		if (strcmp(entry->d_name, ".") != 0 &&
		    strcmp(entry->d_name, "..") != 0)
			e = clear_one(m, dirfd(dir), entry->d_name);
	(void)closedir(dir);
	return e;
}

/* Directories of other projects were in there, so only their remains may be in
 * a directory of ours. */
static const struct err *
passage_clear(const struct monitor *m, int at)
{
	struct stat st;
	int fd;

	if (!m->root)
		return NULL;
	if (fstat(at, &st) == -1)
		return err_errno("stat");
	if (st.st_uid != geteuid())
		return NULL;
	fd = openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd == -1 ? err_errno("open") : directory_clear(m, fd);
}

const struct err *
monitor_workspace(const struct monitor *m, const char *dir,
    const struct slot *slot, int *out)
{
	char copy[WIRE_DIR], *rest = copy, *name;
	const struct err *e = NULL;
	struct stat st;
	int at, next = -1;

	*out = -1;
	(void)memcpy(copy, dir, strlen(dir) + 1);
	if ((at = fcntl(m->workspaces, F_DUPFD_CLOEXEC, 0)) == -1)
		return err_errno("dup");
	while (e == NULL && (name = strsep(&rest, "/")) != NULL) {
		e = workspace_step(m, slot, at, name,
		    rest == NULL ? PART_END : PART_WAY, &next);
		(void)close(at);
		at = next;
		if (e != NULL || rest == NULL)
			continue;
		if (fstat(at, &st) == -1)
			e = err_errno("%s", name);
		else if (st.st_uid != geteuid())
			e = err_new(ERR_FORBIDDEN,
			    "%s in %s belongs to another project", name, dir);
	}
	if (e == NULL && (e = passage_clear(m, at)) == NULL)
		e = monitor_hand_over(at, dir, slot);
	if (e == NULL)
		*out = at;
	else if (at != -1)
		(void)close(at);
	return e;
}

/* The lock of a home is a file beside it, which only the monitor can open: a step
 * can lock everything that it can open, such as its home. */
static void
lock_name(const char *id, char out[LOCK_NAME])
{
	(void)snprintf(out, LOCK_NAME, "%s" MONITOR_LOCK, id);
}

/* Opens and locks a file or directory in the homes. */
static const struct err *
locked_open(const struct monitor *m, const char *name, int flags, int *out)
{
	const struct err *e = NULL;

	*out = openat(m->homes, name, flags | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (*out == -1)
		return err_errno("open %s in the homes", name);
	if (flock(*out, LOCK_EX | LOCK_NB) == -1) {
		e = err_errno("lock %s in the homes", name);
		(void)close(*out);
		*out = -1;
	}
	return e;
}

const struct err *
monitor_home_claim(const struct monitor *m, struct slot *slot)
{
	char name[LOCK_NAME];

	lock_name(slot->id, name);
	/* an earlier release locks the home itself, and may still run */
	if (slot->adopted && faccessat(m->homes, name, F_OK, 0) == -1)
		return locked_open(m, slot->id, O_RDONLY | O_DIRECTORY,
		    &slot->claim);
	return locked_open(m, name, O_RDWR | O_CREAT, &slot->claim);
}

void
monitor_home_unlock(const struct monitor *m, const struct slot *slot)
{
	char name[LOCK_NAME];

	lock_name(slot->id, name);
	(void)unlinkat(m->homes, name, 0);
}

const struct err *
monitor_home(const struct monitor *m, struct slot *slot, int *out)
{
	const struct err *e = NULL;

	*out = -1;
	/* an adopting monitor ignores homes that are not locked yet */
	if (flock(m->homes, LOCK_SH) == -1)
		return err_errno("lock the homes");
	if (mkdirat(m->homes, slot->id, 0700) == -1)
		e = err_errno("create the home of %s", slot->id);
	else
		e = monitor_home_claim(m, slot);
	if (flock(m->homes, LOCK_UN) == -1 && e == NULL)
		e = err_errno("unlock the homes");
	if (e != NULL)
		return e;
	*out = openat(m->homes, slot->id,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*out == -1)
		return err_errno("open the home of %s", slot->id);
	if ((e = monitor_hand_over(*out, slot->id, slot)) != NULL) {
		(void)close(*out);
		*out = -1;
	}
	return e;
}
