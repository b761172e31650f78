/* SPDX-License-Identifier: ISC */
#include "monitor/cgroup.h"

#include <sys/stat.h>
#include <sys/syscall.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "core/num.h"
#include "core/str.h"

#define PATH_SIZE 512
#define FILE_SIZE 8192
#define MOUNTS_MAX ((size_t)4 << 20) /* containers have many mounts */

enum hierarchy { CG_UNIFIED, CG_MEMORY, CG_PIDS, CG__MAX };
enum limit { LIMIT_MEMORY, LIMIT_PIDS, LIMIT__MAX };
enum version { CG_NONE, CG_V1, CG_V2, CG__VERSIONS };

/* A hierarchy of version 2 has all controllers, one of version 1 has its own:
 * `controller`, as named in /proc/self/cgroup. */
static const struct {
	const char *type; /* of its mount */
	const char *controller;
	const char *kill; /* the file that kills a group at once; NULL = none */
	/* The file that moves the writer there.  Moving a whole process waits
	 * for an RCU grace period, moving one thread does not; version 2 does
	 * not move threads between groups. */
	const char *enter;
} hierarchies[CG__MAX] = {
	[CG_UNIFIED] = { "cgroup2", NULL, "/cgroup.kill", "/cgroup.procs" },
	[CG_MEMORY] = { "cgroup", "memory", NULL, "/tasks" },
	[CG_PIDS] = { "cgroup", "pids", NULL, "/tasks" },
};

/* The limits and their files in each version. */
static const struct {
	const char *controller;
	const char *name;
	struct {
		enum hierarchy where;
		const char *file;
	} in[CG__VERSIONS];
} limits[LIMIT__MAX] = {
	[LIMIT_MEMORY] = { "memory", "memory",
	    { [CG_V1] = { CG_MEMORY, "/memory.limit_in_bytes" },
		[CG_V2] = { CG_UNIFIED, "/memory.max" } } },
	[LIMIT_PIDS] = { "pids", "processes",
	    { [CG_V1] = { CG_PIDS, "/pids.max" },
		[CG_V2] = { CG_UNIFIED, "/pids.max" } } },
};
static const char *const versions[CG__VERSIONS] = {
	[CG_NONE] = "none",
	[CG_V1] = "v1",
	[CG_V2] = "v2",
};

static struct {
	char base[CG__MAX][PATH_SIZE]; /* our own group, "" = not usable */
	char prefix[CGROUP_PREFIX];
	bool kill[CG__MAX];             /* the hierarchy has that file */
	enum version limit[LIMIT__MAX]; /* version that sets it */
	bool inside; /* this process was created in its unified group */
} host;

static ssize_t
file_get(const char *path, char out[FILE_SIZE])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t got;

	out[0] = '\0';
	if (fd == -1)
		return -1;
	while (len < FILE_SIZE - 1 &&
	    (got = read(fd, out + len, FILE_SIZE - 1 - len)) > 0)
		len += (size_t)got;
	(void)close(fd);
	out[len] = '\0';
	return (ssize_t)len;
}

static bool
file_put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), saved;
	ssize_t put;

	if (fd == -1)
		return false;
	put = write(fd, text, strlen(text));
	saved = errno;
	(void)close(fd);
	errno = saved;
	return put == (ssize_t)strlen(text);
}

/* Joins the parts to "/a/b"; "" if the result is too long. */
static void
path_join(char out[PATH_SIZE], const char *a, const char *b)
{
	const size_t alen = strlen(a), blen = strlen(b);

	out[0] = '\0';
	if (alen >= PATH_SIZE || blen >= PATH_SIZE - alen)
		return;
	(void)memmove(out, a, alen);
	(void)memcpy(out + alen, b, blen + 1);
}

static bool
has_word(const char *list, const char *word)
{
	const size_t len = strlen(word);
	const char *p = list;

	while ((p = strstr(p, word)) != NULL) {
		if ((p == list || strchr(", \n", p[-1]) != NULL) &&
		    (p[len] == '\0' || strchr(", \n", p[len]) != NULL))
			return true;
		p += len;
	}
	return false;
}

/* Reads where a hierarchy is mounted from a line of /proc/self/mounts: "DEVICE
 * PATH TYPE OPTIONS 0 0".  The first mount counts: later ones are copies, for
 * example in a chroot, that may be unmounted. */
static void
mount_read(char *line, char mounts[CG__MAX][PATH_SIZE])
{
	const char *word[4] = { "", "", "", "" };
	size_t i;

	for (i = 0; i < 4 && line != NULL; i++)
		word[i] = strsep(&line, " ");
	for (i = 0; i < CG__MAX; i++)
		if (strcmp(word[2], hierarchies[i].type) == 0 &&
		    (hierarchies[i].controller == NULL ||
			has_word(word[3], hierarchies[i].controller)) &&
		    mounts[i][0] == '\0')
			path_join(mounts[i], word[1], "");
}

/* Reads our own group from a line of /proc/self/cgroup:
 * "N:CONTROLLERS:PATH". */
static void
own_read(char *line, char mounts[CG__MAX][PATH_SIZE])
{
	const char *number = strsep(&line, ":"), *names, *path;
	size_t i;

	if ((names = strsep(&line, ":")) == NULL || (path = line) == NULL)
		return;
	if (strcmp(path, "/") == 0)
		path = "";
	for (i = 0; i < CG__MAX; i++) {
		if (mounts[i][0] == '\0')
			continue;
		if (hierarchies[i].controller == NULL ?
			strcmp(number, "0") == 0 :
			has_word(names, hierarchies[i].controller))
			path_join(host.base[i], mounts[i], path);
	}
}

/* Makes sure that groups can be created there. */
static void
hierarchy_probe(enum hierarchy which)
{
	char dir[PATH_SIZE], path[PATH_SIZE];

	if (host.base[which][0] == '\0')
		return;
	(void)snprintf(path, sizeof(path), "/%sprobe-%ld", host.prefix,
	    (long)getpid());
	path_join(dir, host.base[which], path);
	if (dir[0] == '\0' || mkdir(dir, 0755) == -1) {
		host.base[which][0] = '\0';
		return;
	}
	if (hierarchies[which].kill != NULL) {
		path_join(path, dir, hierarchies[which].kill);
		host.kill[which] = access(path, W_OK) == 0;
	}
	(void)rmdir(dir);
}

/* Enables limits in the unified hierarchy: a group that delegates controllers
 * must not contain processes itself, so the monitor moves into a leaf. */
static void
controllers_delegate(void)
{
	char path[PATH_SIZE], leaf[PATH_SIZE], known[FILE_SIZE],
	    text[PATH_SIZE];
	const char *base = host.base[CG_UNIFIED];
	bool any = false;
	size_t i;

	path_join(path, base, "/cgroup.controllers");
	if (base[0] == '\0' || file_get(path, known) <= 0)
		return;
	for (i = 0; i < LIMIT__MAX; i++)
		any = has_word(known, limits[i].controller) || any;
	if (!any)
		return;
	path_join(path, base,
	    "/cgroup.type"); /* the root group does not have this
					   * file */
	if (access(path, F_OK) == 0) {
		(void)snprintf(text, sizeof(text), "/%smonitor", host.prefix);
		path_join(leaf, base, text);
		if (mkdir(leaf, 0755) == -1 && errno != EEXIST)
			return;
		path_join(path, leaf, "/cgroup.procs");
		if (!file_put(path, "0"))
			return;
	}
	path_join(path, base, "/cgroup.subtree_control");
	for (i = 0; i < LIMIT__MAX; i++) {
		(void)snprintf(text, sizeof(text), "+%s", limits[i].controller);
		if (has_word(known, limits[i].controller) &&
		    file_put(path, text))
			host.limit[i] = CG_V2;
	}
}

void
cgroup_init(const char *prefix)
{
	char mounts[CG__MAX][PATH_SIZE] = { "" }, text[FILE_SIZE];
	char *rest, *line;
	struct buf all;
	size_t i;

	(void)memset(&host, 0, sizeof(host));
	(void)snprintf(host.prefix, sizeof(host.prefix), "%s", prefix);
	buf_init(&all, MOUNTS_MAX);
	if (file_load("/proc/self/mounts", &all) == NULL && all.len > 0)
		for (rest = all.data; (line = strsep(&rest, "\n")) != NULL;)
			mount_read(line, mounts);
	buf_release(&all);
	(void)file_get("/proc/self/cgroup", text);
	for (rest = text; (line = strsep(&rest, "\n")) != NULL;)
		own_read(line, mounts);
	for (i = 0; i < CG__MAX; i++)
		hierarchy_probe((enum hierarchy)i);
	for (i = 0; i < LIMIT__MAX; i++)
		if (host.base[limits[i].in[CG_V1].where][0] != '\0')
			host.limit[i] = CG_V1;
	controllers_delegate();
}

void
cgroup_describe(struct buf *out)
{
	bool any = false;
	size_t i;

	buf_puts(out, "control groups:");
	for (i = 0; i < LIMIT__MAX; i++)
		buf_printf(out, " %s %s,", limits[i].name,
		    versions[host.limit[i]]);
	for (i = 0; i < CG__MAX; i++)
		any = host.kill[i] || any;
	buf_printf(out, " kill %s", any ? "yes" : "no");
}

bool
cgroup_can_kill(void)
{
	size_t i;

	for (i = 0; i < CG__MAX; i++)
		if (host.base[i][0] != '\0')
			return true;
	return false;
}

/* The path of a job's group, or of a file in it. */
static void
of_job(char out[PATH_SIZE], size_t which, const char *id, const char *file)
{
	char tail[PATH_SIZE];

	(void)snprintf(tail, sizeof(tail), "/%s%s%s", host.prefix, id, file);
	path_join(out, host.base[which], tail);
}

static bool
set_limit(enum limit which, const char *id, int64_t value)
{
	const enum version v = host.limit[which];
	char path[PATH_SIZE], text[32];

	if (value <= 0 || v == CG_NONE)
		return true;
	of_job(path, limits[which].in[v].where, id, limits[which].in[v].file);
	(void)snprintf(text, sizeof(text), "%lld", (long long)value);
	return file_put(path, text);
}

const struct err *
cgroup_make(const char *id, int64_t memory, int64_t pids)
{
	char path[PATH_SIZE];
	bool ok;
	size_t i;

	for (i = 0; i < CG__MAX; i++) {
		if (host.base[i][0] == '\0')
			continue;
		of_job(path, i, id, "");
		if (mkdir(path, 0755) == -1 && errno != EEXIST)
			return err_errno("create %s", path);
	}
	ok = set_limit(LIMIT_MEMORY, id, memory) &&
	    set_limit(LIMIT_PIDS, id, pids);
	return ok ? NULL : err_errno("set the limits of %s", id);
}

/* Returns -1 if the kernel cannot do that, or not here. */
static pid_t
fork_into(const char *id)
{
	struct clone_args args = { .flags = CLONE_INTO_CGROUP,
		.exit_signal = SIGCHLD };
	char path[PATH_SIZE];
	pid_t pid;
	int fd;

	if (host.base[CG_UNIFIED][0] == '\0')
		return -1;
	of_job(path, CG_UNIFIED, id, "");
	if ((fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC)) == -1)
		return -1;
	args.cgroup = (unsigned)fd;
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0)
		host.inside = true;
	(void)close(fd);
	return pid;
}

pid_t
cgroup_fork(const char *id)
{
	const pid_t pid = fork_into(id);

	return pid == -1 ? fork() : pid;
}

bool
cgroup_enter(const char *id)
{
	char path[PATH_SIZE];
	size_t i;

	for (i = 0; i < CG__MAX; i++) {
		if (host.base[i][0] == '\0' || (i == CG_UNIFIED && host.inside))
			continue;
		of_job(path, i, id, hierarchies[i].enter);
		if (!file_put(path, "0"))
			return false;
	}
	return true;
}

/* Kills the members of one group one by one; returns whether there were any.  A
 * number that is truncated at the end of the buffer is another process's; the
 * next pass reads the right one. */
static bool
kill_members(size_t which, const char *id)
{
	char path[PATH_SIZE], text[FILE_SIZE], *line = text, *end;
	bool some = false;
	int64_t pid;

	of_job(path, which, id, "/cgroup.procs");
	if (file_get(path, text) <= 0)
		return false;
	for (; (end = strchr(line, '\n')) != NULL; line = end + 1) {
		*end = '\0';
		if (!num_parse(line, 1, INT32_MAX, &pid))
			continue;
		some = true;
		(void)kill((pid_t)pid, SIGKILL);
	}
	return some;
}

bool
cgroup_kill(const char *id)
{
	char path[PATH_SIZE];
	bool some = false;
	size_t i;

	for (i = 0; i < CG__MAX; i++)
		if (host.base[i][0] != '\0')
			some = kill_members(i, id) || some;
	for (i = 0; some && i < CG__MAX; i++) {
		if (!host.kill[i])
			continue;
		of_job(path, i, id, hierarchies[i].kill);
		(void)file_put(path, "1");
	}
	return some;
}

void
cgroup_remove(const char *id)
{
	char path[PATH_SIZE];
	size_t i;

	for (i = 0; i < CG__MAX; i++) {
		if (host.base[i][0] == '\0')
			continue;
		of_job(path, i, id, "");
		(void)rmdir(path);
	}
}

void
cgroup_remove_old(bool (*lives)(const void *context, const char *id),
    const void *context)
{
	const size_t prefix = strlen(host.prefix);
	const struct dirent *entry;
	const char *id;
	size_t i;
	DIR *dir;

	for (i = 0; i < CG__MAX; i++) {
		if (host.base[i][0] == '\0' ||
		    (dir = opendir(host.base[i])) == NULL)
			continue;
		while ((entry = readdir(dir)) != NULL) {
			id = entry->d_name + prefix;
			if (str_starts(entry->d_name, host.prefix) &&
			    *id >= '1' && *id <= '9' && !lives(context, id))
				(void)unlinkat(dirfd(dir), entry->d_name,
				    AT_REMOVEDIR);
		}
		(void)closedir(dir);
	}
}

void
cgroup_release(void)
{
	char path[PATH_SIZE], text[PATH_SIZE];
	size_t i;

	path_join(path, host.base[CG_UNIFIED], "/cgroup.subtree_control");
	for (i = 0; i < LIMIT__MAX; i++) {
		(void)snprintf(text, sizeof(text), "-%s", limits[i].controller);
		if (host.limit[i] == CG_V2)
			(void)file_put(path, text);
	}
}
