/* SPDX-License-Identifier: ISC */
/* Checks what the runner requires of this host. */
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/admin_doctor.h"
#include "core/proc.h"
#include "core/serve.h"
#include "core/str.h"
#include "core/uid.h"

#define IDS "user ids"
#define LIVE "slipway-live"
#define ROOM (INT64_C(1) << 30) /* bytes that checkouts and logs need */

static const struct range_name {
	const char *key;
	struct uid_range (*get)(const struct settings_runner *);
} range_names[] = {
	{ "uid_first", uid_range_projects },
	{ "watch_uid_first", uid_range_watchers },
};
#define RANGES (sizeof(range_names) / sizeof(range_names[0]))

/* A process of that account would be taken for one of a step. */
static bool
passwd_try(struct doctor *d, const struct range_name *name)
{
	const struct uid_range range = name->get(&d->admin->set.runner);
	const struct passwd *pw;

	setpwent();
	while ((pw = getpwent()) != NULL && !uid_range_has(range, pw->pw_uid))
		continue;
	if (pw != NULL)
		doctor_say(d, VERDICT_FAULT, IDS,
		    "the account %s has the id %u, which is in the range of "
		    "runner.%s: steps could read its files, and its processes "
		    "would be killed; set %s in [runner] to a range without "
		    "accounts",
		    pw->pw_name, pw->pw_uid, name->key, name->key);
	endpwent();
	return pw == NULL;
}

/* subuid(5): "name:first:count"; false if the line has another form. */
static bool
subuid_read(char *line, struct uid_range *out)
{
	char *first = strchr(line, ':'), *count, *end;

	if (first == NULL || (count = strchr(first + 1, ':')) == NULL)
		return false;
	*first = '\0';
	out->first = strtoimax(first + 1, &end, 10);
	if (end != count)
		return false;
	out->count = strtoimax(count + 1, &end, 10);
	return *end == '\n' || *end == '\0';
}

/* Containers of that user run under ids that belong to projects, too. */
static bool
subuid_try(struct doctor *d, const struct range_name *name)
{
	static const char path[] = "/etc/subuid";
	const struct uid_range range = name->get(&d->admin->set.runner);
	struct uid_range theirs;
	bool fits = true;
	char line[512];
	FILE *f;

	if ((f = fopen(path, "re")) == NULL)
		return true;
	while (fits && fgets(line, sizeof(line), f) != NULL)
		fits = !subuid_read(line, &theirs) ||
		    !uid_range_overlap(range, theirs);
	(void)fclose(f);
	if (!fits)
		doctor_say(d, VERDICT_FAULT, IDS,
		    "%s gives %" PRId64 " to %" PRId64 " to the containers of "
		    "%s, and these overlap the range of runner.%s: set %s in "
		    "[runner] to a range that is not in %s",
		    path, theirs.first, theirs.first + theirs.count - 1, line,
		    name->key, name->key, path);
	return fits;
}

/* Projects whose ids differ by a multiple of the range share a user id. */
static bool
count_try(struct doctor *d)
{
	const int64_t count = d->admin->set.runner.uid_count;

	if (d->capacity.newest_project < count)
		return true;
	doctor_say(d, VERDICT_FAULT, IDS,
	    "the newest project has the id %" PRId64 ", and runner.uid_count "
	    "is %" PRId64 ", so projects share user ids and can read each "
	    "other's files: raise uid_count in [runner]",
	    d->capacity.newest_project, count);
	return false;
}

static bool
drop_try(struct doctor *d)
{
	if (d->admin->set.runner.privilege_drop)
		return true;
	doctor_say(d, VERDICT_NOTE, IDS,
	    "runner.privilege_drop = no: steps run under the account of the "
	    "runner, and can read its keys and the files of all projects; "
	    "remove that line and start slipway-runner as root");
	return false;
}

void
doctor_ids(struct doctor *d)
{
	bool fits = drop_try(d) && count_try(d);
	size_t i;

	for (i = 0; i < RANGES && d->admin->set.runner.privilege_drop; i++)
		fits = passwd_try(d, &range_names[i]) &&
		    subuid_try(d, &range_names[i]) && fits;
	if (fits)
		doctor_say(d, VERDICT_OK, IDS,
		    "those of the projects have no other use");
}

/* Whether a setting names an account that a step may run under. */
static bool
account_try(struct doctor *d, const char *key, const char *name)
{
	const struct err *e;
	struct proc_account who;

	if ((e = proc_account_named(name, &who)) != NULL)
		doctor_say(d, VERDICT_FAULT, "accounts",
		    "%s: %s; slipway-runner does not start: create the "
		    "account, or correct the line",
		    key, e->msg);
	else if (who.uid == 0)
		doctor_say(d, VERDICT_FAULT, "accounts",
		    "%s: %s is root, and steps must not run as root: choose "
		    "another account",
		    key, name);
	else
		return true;
	return false;
}

void
doctor_accounts(struct doctor *d)
{
	const struct settings *s = &d->admin->set;
	const struct conf_map *named = &s->run_as;
	bool fits = true;
	size_t i;

	if (is_set(s->runner.job_user))
		fits = account_try(d, "runner.job_user", s->runner.job_user);
	for (i = 0; i < named->n; i++)
		fits = account_try(d,
			   arena_printf(d->admin->a, "[run_as] %s",
			       named->items[i].key),
			   named->items[i].value) &&
		    fits;
	if (fits && (is_set(s->runner.job_user) || named->n > 0))
		doctor_say(d, VERDICT_OK, "accounts",
		    "all that the configuration names exist");
}

static void
room_try(struct doctor *d, const char *what, const char *path,
    const struct statvfs *fs)
{
	const int64_t room = (int64_t)fs->f_bavail * (int64_t)fs->f_frsize;

	if (room < ROOM)
		doctor_say(d, VERDICT_FAULT, what,
		    "%s: only %" PRId64 " MiB are free; deployments fail when "
		    "none is: delete files, or move it to a larger file system",
		    path, room >> 20);
	else if (fs->f_files > 0 && fs->f_favail < 1000)
		doctor_say(d, VERDICT_FAULT, what,
		    "%s: only %llu inodes are free; checkouts create many "
		    "files: delete files, or move it to another file system",
		    path, (unsigned long long)fs->f_favail);
	else if ((fs->f_flag & ST_RDONLY) != 0)
		doctor_say(d, VERDICT_FAULT, what,
		    "%s is on a file system that is mounted read-only: no "
		    "deployment can start until it is mounted read-write",
		    path);
	else
		doctor_say(d, VERDICT_OK, what, "%s has free space", path);
}

static void
directory_try(struct doctor *d, const char *what, const char *path)
{
	struct statvfs fs;
	struct stat st;

	if (stat(path, &st) == -1 && errno == ENOENT)
		doctor_say(d, VERDICT_NOTE, what,
		    "%s does not exist: a host with a runner needs it; "
		    "systemd-tmpfiles --create creates it",
		    path);
	else if (stat(path, &st) == -1 || statvfs(path, &fs) == -1)
		doctor_say(d, VERDICT_NOTE, what,
		    "%s cannot be checked by this account: %s", path,
		    strerror(errno));
	else if (!S_ISDIR(st.st_mode))
		doctor_say(d, VERDICT_FAULT, what,
		    "%s is not a directory, so the runner cannot start: "
		    "correct the path in [runner]",
		    path);
	else if ((st.st_mode & S_IWOTH) != 0)
		doctor_say(d, VERDICT_FAULT, what,
		    "%s can be written by every account, which could replace "
		    "what the runner reads: chmod o-w %s",
		    path, path);
	else
		room_try(d, what, path, &fs);
}

/* Steps run programs of the repository. */
static void
exec_try(struct doctor *d, const char *path)
{
	struct statvfs fs;

	if (statvfs(path, &fs) == 0 && (fs.f_flag & ST_NOEXEC) != 0)
		doctor_say(d, VERDICT_FAULT, "workspaces",
		    "%s is mounted noexec, so steps cannot run programs of "
		    "the repository: mount it with exec, or set workspaces in "
		    "[runner] to another file system",
		    path);
}

void
doctor_directories(struct doctor *d)
{
	const struct settings_runner *r = &d->admin->set.runner;

	directory_try(d, "spool", r->spool);
	directory_try(d, "workspaces", r->workspaces);
	exec_try(d, r->workspaces);
}

/* Whether a directory of the PATH contains the program. */
static bool
is_in_path(struct arena *a, const char *path, const char *program)
{
	const char *dir = path;
	size_t len;

	for (;; dir += len + 1) {
		len = strcspn(dir, ":");
		if (access(arena_printf(a, "%.*s/%s", (int)len, dir, program),
			X_OK) == 0)
			return true;
		if (dir[len] == '\0')
			return false;
	}
}

void
doctor_programs(struct doctor *d)
{
	static const struct {
		const char *name, *purpose;
	} programs[] = {
		{ "git", "no repository can be cloned" },
		{ "ssh", "no repository can be cloned over SSH" },
		{ "git-lfs", "files of Git LFS cannot be fetched" },
	};
	const char *path = d->admin->set.runner.path;
	size_t i;

	for (i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		if (is_in_path(d->admin->a, path, programs[i].name))
			doctor_say(d, VERDICT_OK, "programs", "%s is installed",
			    programs[i].name);
		else
			doctor_say(d, i == 0 ? VERDICT_FAULT : VERDICT_NOTE,
			    "programs",
			    "%s is not in runner.path, %s, so %s: install it, "
			    "or correct path in [runner]",
			    programs[i].name, path, programs[i].purpose);
}

/* Without control groups the monitor finds the processes of a job by other
 * means, and limits nothing. */
void
doctor_cgroups(struct doctor *d)
{
	static const char path[] = "/sys/fs/cgroup/cgroup.controllers";

	if (access(path, R_OK) == 0)
		doctor_say(d, VERDICT_OK, "control groups", "version 2");
	else
		doctor_say(d, VERDICT_NOTE, "control groups",
		    "%s does not exist, so memory_max and pids_max may have no "
		    "effect: boot with systemd.unified_cgroup_hierarchy=1",
		    path);
}

void
doctor_live(struct doctor *d)
{
	const char *path = d->admin->set.api.live_socket;
	const int number = serve_try(path);

	if (number == 0)
		doctor_say(d, VERDICT_OK, LIVE, "it listens on %s", path);
	else if (number == ENOENT)
		doctor_say(d, VERDICT_NOTE, LIVE,
		    "%s does not exist, so no client can wait for logs and "
		    "events; on a host with the API, start it: systemctl "
		    "enable --now slipway-live",
		    path);
	else if (number == ECONNREFUSED)
		doctor_say(d, VERDICT_FAULT, LIVE,
		    "it has stopped: %s accepts no connection, so no client "
		    "can wait for logs and events: systemctl restart "
		    "slipway-live",
		    path);
	else
		doctor_say(d, VERDICT_NOTE, LIVE,
		    "%s cannot be checked by this account: %s", path,
		    strerror(number));
}
