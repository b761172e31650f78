/* SPDX-License-Identifier: ISC */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "core/str.h"
#include "monitor/monitor.h"

#define ARENA ((size_t)4 << 20)
#define HOMES ".home"

/* All processes of an account in the range are a job's, and are killed; an
 * account of the second range watches over them. */
static bool
is_in_range(const struct settings_runner *r, uid_t uid)
{
	return uid_range_has(uid_range_projects(r), uid) ||
	    uid_range_has(uid_range_watchers(r), uid);
}

static const struct err *
account_find(const struct settings_runner *r, const char *name,
    const char *what, struct proc_account *out)
{
	const struct err *e;

	if ((e = proc_account_named(name, out)) != NULL)
		return err_public(ERR_CONFIG, "%s: %s", what, e->msg);
	if (out->uid == 0)
		return err_public(ERR_CONFIG,
		    "%s: %s is root, but nothing may run as root", what, name);
	if (is_in_range(r, out->uid))
		return err_public(ERR_CONFIG,
		    "%s: %s has uid %u, which is in the range of runner."
		    "uid_first or of runner.watch_uid_first: choose an account"
		    " outside of these ranges",
		    what, name, out->uid);
	return NULL;
}

/* Looks up all accounts before any of them takes effect. */
static const struct err *
accounts_find(struct monitor *m, const struct settings *s)
{
	static struct named fresh[NAMED_MAX];
	struct proc_account user, job_user = { 0 };
	const struct settings_runner *r = &s->runner;
	const struct err *e;
	size_t i;

	if ((e = account_find(r, r->user, "runner.user", &user)) != NULL)
		return e;
	if (r->job_user != NULL &&
	    (e = account_find(r, r->job_user, "runner.job_user", &job_user)) !=
		NULL)
		return e;
	if (s->run_as.n > NAMED_MAX)
		return err_public(ERR_CONFIG, "run_as: at most %d projects",
		    NAMED_MAX);
	(void)memset(fresh, 0, sizeof(fresh));
	for (i = 0; i < s->run_as.n; i++) {
		if (strlen(s->run_as.items[i].key) >= WIRE_DIR ||
		    !monitor_dir_valid(s->run_as.items[i].key))
			return err_public(ERR_CONFIG,
			    "run_as: %s is not a project directory",
			    s->run_as.items[i].key);
		(void)snprintf(fresh[i].dir, sizeof(fresh[i].dir), "%s",
		    s->run_as.items[i].key);
		if ((e = account_find(r, s->run_as.items[i].value, "run_as",
			 &fresh[i].who)) != NULL)
			return e;
	}
	m->user = user;
	m->job_user = job_user;
	m->nnamed = s->run_as.n;
	(void)memcpy(m->named, fresh, sizeof(fresh));
	return NULL;
}

static const struct err *
settings_check(struct monitor *m, const struct settings *s)
{
	const struct settings_runner *r = &s->runner;
	const struct uid_range projects = uid_range_projects(r),
			       watchers = uid_range_watchers(r);

	if (!m->root && r->privilege_drop)
		return err_public(ERR_CONFIG,
		    "runner.privilege_drop: without root steps cannot run under"
		    " separate accounts: start slipway-runner as root, or"
		    " set privilege_drop = no to run them as yourself");
	if (m->root && !r->privilege_drop)
		return err_public(ERR_CONFIG,
		    "runner.privilege_drop: as root it must be yes: no step"
		    " runs as root");
	if (!uid_range_fits(projects))
		return err_public(ERR_CONFIG,
		    "runner.uid_count: the range ends past the last user id");
	if (!uid_range_fits(watchers))
		return err_public(ERR_CONFIG,
		    "runner.watch_uid_first: the range ends past the last"
		    " user id");
	if (uid_range_overlap(projects, watchers))
		return err_public(ERR_CONFIG,
		    "runner.watch_uid_first: its %d user ids overlap those of"
		    " runner.uid_first",
		    UID_WATCHERS);
	return m->root ? accounts_find(m, s) : NULL;
}

/* Keeps what only a restart can change: directories are open, and the
 * dispatcher already has its account. */
static void
settings_keep(struct arena *a, const struct settings *old,
    struct settings *fresh)
{
	const struct settings_runner *was = &old->runner;
	struct settings_runner *is = &fresh->runner;

	if (!str_eq(was->spool, is->spool) ||
	    !str_eq(was->workspaces, is->workspaces) ||
	    !str_eq(was->user, is->user))
		log_warn("spool, workspaces and user of the runner change"
			 " only with a restart");
	is->spool = arena_strdup(a, was->spool);
	is->workspaces = arena_strdup(a, was->workspaces);
	is->user = arena_strdup(a, was->user);
}

const struct err *
monitor_conf(struct monitor *m)
{
	const unsigned how = CONF_NO_SECRETS |
	    (m->root ? CONF_ROOT_OWNED | CONF_NO_ENV : 0);
	struct arena *a = arena_open(ARENA);
	struct settings fresh;
	const struct err *e;

	(void)memset(&fresh, 0, sizeof(fresh));
	e = conf_read(a, settings_keys, m->conf, how, &fresh);
	if (e == NULL && m->arena != NULL)
		settings_keep(a, &m->settings, &fresh);
	if (e == NULL)
		e = settings_check(m, &fresh);
	if (e != NULL) {
		arena_close(a);
		return e;
	}
	arena_close(m->arena);
	m->arena = a;
	m->settings = fresh;
	return NULL;
}

/* Creates all components of a path; existing ones are unchanged. */
static const struct err *
path_make(const char *path, mode_t mode)
{
	char copy[4096], *p;
	int len = snprintf(copy, sizeof(copy), "%s", path);

	if (len < 0 || (size_t)len >= sizeof(copy))
		return err_public(ERR_CONFIG, "%s: the path is too long", path);
	for (p = copy + 1; *p != '\0'; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(copy, 0755) == -1 && errno != EEXIST)
			return err_errno("make %s", copy);
		*p = '/';
	}
	if (mkdir(copy, mode) == -1 && errno != EEXIST)
		return err_errno("make %s", copy);
	return NULL;
}

/* Opens a directory that only its owner can write. */
static const struct err *
dir_open(const char *path, uid_t owner, int *out)
{
	struct stat st;

	*out = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*out == -1 || fstat(*out, &st) == -1)
		return err_errno("open %s", path);
	if (st.st_uid != owner || (st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return err_public(ERR_CONFIG,
		    "%s: must belong to uid %u and be writable only by it",
		    path, owner);
	return NULL;
}

static const struct err *
spool_make(const struct monitor *m)
{
	const char *path = m->settings.runner.spool;
	const uid_t owner = m->root ? m->user.uid : geteuid();
	const struct err *e;
	struct stat st;
	int fd;

	if ((e = path_make(path, 0700)) != NULL)
		return e;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1 || fstat(fd, &st) == -1)
		return err_errno("open %s", path);
	if (m->root && st.st_uid == 0 &&
	    fchown(fd, m->user.uid, m->user.gid) == -1)
		e = err_errno("chown %s", path);
	else if (st.st_uid != owner && st.st_uid != 0)
		e = err_public(ERR_CONFIG, "%s: must belong to %s", path,
		    m->settings.runner.user);
	else if (fchmod(fd, 0700) == -1)
		e = err_errno("chmod %s", path);
	(void)close(fd);
	return e;
}

const struct err *
monitor_dirs(struct monitor *m)
{
	const char *path = m->settings.runner.workspaces;
	const struct err *e;
	int len;

	if ((e = spool_make(m)) != NULL)
		return e;
	if ((e = path_make(path, 0711)) != NULL ||
	    (e = dir_open(path, geteuid(), &m->workspaces)) != NULL)
		return e;
	len = snprintf(m->homes_path, sizeof(m->homes_path), "%s/" HOMES, path);
	if (len < 0 || (size_t)len >= sizeof(m->homes_path))
		return err_public(ERR_CONFIG, "%s: the path is too long", path);
	if ((e = path_make(m->homes_path, 0711)) != NULL)
		return e;
	return dir_open(m->homes_path, geteuid(), &m->homes);
}
