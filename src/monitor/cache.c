/* SPDX-License-Identifier: ISC */
/*
 * Caches of projects: WORKSPACES/.cache/PROJECT/GENERATION.  The last directory
 * belongs to the account of the project's jobs, the others to us, so no step can
 * replace any of them.  A cache is emptied by giving the next job another one:
 * the old one is moved away, and nothing in it is opened here.
 */
#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "monitor/monitor.h"

#define CACHES ".cache"
#define NAME_SIZE 24

/* Whether the job can go on with a cache: it, or a monitor that made it a moment
 * ago, owns it, and the last job has not marked it as one to empty. */
static bool
is_usable(int of, const char *name, const struct slot *slot)
{
	struct stat st;

	return fstatat(of, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISDIR(st.st_mode) &&
	    (st.st_uid == slot->who.uid || st.st_uid == geteuid()) &&
	    (st.st_mode & (S_ISVTX | S_IRWXU)) == S_IRWXU;
}

static const struct err *
cache_remove(struct monitor *m, int at, const char *name)
{
	const struct err *e;

	/* only steps without separate accounts can leave anything else */
	if (unlinkat(at, name, 0) == 0)
		return NULL;
	if ((e = monitor_left_move(m, at, name, 0)) == NULL)
		m->sweep_at = 0;
	return e;
}

/* Moves all caches of a project away but that one; NULL = all. */
static const struct err *
away_but(struct monitor *m, int of, const char *keep)
{
	const struct err *e = NULL;
	const struct dirent *entry;
	DIR *dir;
	int fd;

	fd = openat(of, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd == -1 || (dir = fdopendir(fd)) == NULL) {
		e = err_errno("list the caches");
		(void)close(fd);
		return e;
	}
	while (e == NULL && (entry = readdir(dir)) != NULL)
		if (strcmp(entry->d_name, ".") != 0 &&
		    strcmp(entry->d_name, "..") != 0 &&
		    (keep == NULL || strcmp(entry->d_name, keep) != 0))
			e = cache_remove(m, of, entry->d_name);
	(void)closedir(dir);
	return e;
}

/* Opens a directory of ours. */
static const struct err *
directory_open(int at, const char *name, int *out)
{
	const struct err *e;
	struct stat st;

	if ((e = monitor_dir_step(at, name, 0711, out)) != NULL)
		return e;
	if (fstat(*out, &st) == -1)
		e = err_errno("%s", name);
	else if (st.st_uid != geteuid())
		e = err_new(ERR_FORBIDDEN, "%s belongs to uid %u", name,
		    st.st_uid);
	if (e != NULL) {
		(void)close(*out);
		*out = -1;
	}
	return e;
}

/* A step can open its cache to everybody, but none except those of the project
 * can reach it. */
static const struct err *
cache_enclose(const struct monitor *m, int of, const struct slot *slot)
{
	if ((m->root && fchown(of, (uid_t)-1, slot->who.gid) == -1) ||
	    fchmod(of, 0710) == -1)
		return err_errno("enclose the cache");
	return NULL;
}

/* Makes the cache of that name, and none but it. */
static const struct err *
cache_make(struct monitor *m, int of, const char *name, const struct slot *slot)
{
	const struct err *e;
	int fd;

	e = away_but(m, of, is_usable(of, name, slot) ? name : NULL);
	if (e != NULL || (e = monitor_dir_step(of, name, 0700, &fd)) != NULL)
		return e;
	e = monitor_hand_over(fd, name, slot);
	(void)close(fd);
	return e;
}

/* A job without a cache takes longer, but it does the same. */
void
monitor_cache(struct monitor *m, const struct wire *w, struct slot *slot)
{
	char project[NAME_SIZE], name[NAME_SIZE];
	const struct err *e;
	int top, of = -1;

	slot->cache[0] = '\0';
	if (m->settings.runner.cache_max == 0) {
		monitor_cache_drop(m, w->project);
		return;
	}
	(void)snprintf(project, sizeof(project), "%lld", (long long)w->project);
	(void)snprintf(name, sizeof(name), "%d", w->status);
	if ((e = directory_open(m->workspaces, CACHES, &top)) == NULL) {
		e = directory_open(top, project, &of);
		(void)close(top);
	}
	if (e == NULL && (e = cache_enclose(m, of, slot)) == NULL)
		e = cache_make(m, of, name, slot);
	if (of != -1)
		(void)close(of);
	if (e == NULL)
		(void)snprintf(slot->cache, sizeof(slot->cache),
		    CACHES "/%s/%s", project, name);
	else
		log_warn("job %s has no cache: %s", slot->id, e->msg);
}

void
monitor_cache_end(struct monitor *m, const struct slot *slot)
{
	const struct err *e;
	struct stat st;

	if (slot->cache[0] == '\0' ||
	    fstatat(m->workspaces, slot->cache, &st, AT_SYMLINK_NOFOLLOW) ==
		-1 ||
	    (st.st_mode & S_ISVTX) == 0)
		return;
	log_info("job %s: its cache is emptied (runner.cache_max)", slot->id);
	if ((e = cache_remove(m, m->workspaces, slot->cache)) != NULL)
		log_err(e, slot->id);
}

void
monitor_cache_drop(struct monitor *m, int64_t project)
{
	char path[sizeof(CACHES) + NAME_SIZE];
	const struct err *e;
	int of;

	(void)snprintf(path, sizeof(path), CACHES "/%lld", (long long)project);
	of = openat(m->workspaces, path,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (of == -1)
		return; /* it has none */
	e = away_but(m, of, NULL);
	(void)close(of);
	if (e == NULL && unlinkat(m->workspaces, path, AT_REMOVEDIR) == -1)
		e = err_errno("remove %s", path);
	if (e != NULL)
		log_err(e, path);
}
