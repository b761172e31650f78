/* SPDX-License-Identifier: ISC */
#include "monitor/cgroup.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
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
#define MOUNTS_MAX ((size_t)4 << 20) /* containers have many */

enum hierarchy { CG_UNIFIED, CG_MEMORY, CG_PIDS, CG__MAX };

/* As /proc/self/cgroup calls them. */
static const char *const controllers[CG__MAX] = {
	[CG_UNIFIED] = "",
	[CG_MEMORY] = "memory",
	[CG_PIDS] = "pids",
};

static struct {
	char base[CG__MAX][PATH_SIZE]; /* our own group, "" = not usable */
	char prefix[CGROUP_PREFIX];
	bool kill;   /* the unified one has cgroup.kill */
	bool memory; /* and these controllers */
	bool pids;
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

/* "/a/b" of its pieces; "" if it is too long. */
static void
join(char out[PATH_SIZE], const char *a, const char *b)
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

/* Where a hierarchy is mounted, by a line of /proc/self/mounts:
 * "DEVICE PATH TYPE OPTIONS 0 0".  The first counts: later ones are copies, in
 * a chroot say, that go when they are not needed any more. */
static void
mount_read(char *line, char mounts[CG__MAX][PATH_SIZE])
{
	const char *word[4] = { "", "", "", "" };
	size_t i;

	for (i = 0; i < 4 && line != NULL; i++)
		word[i] = strsep(&line, " ");
	if (strcmp(word[2], "cgroup2") == 0 && mounts[CG_UNIFIED][0] == '\0')
		join(mounts[CG_UNIFIED], word[1], "");
	if (strcmp(word[2], "cgroup") != 0)
		return;
	for (i = CG_MEMORY; i < CG__MAX; i++)
		if (has_word(word[3], controllers[i]) && mounts[i][0] == '\0')
			join(mounts[i], word[1], "");
}

/* Our own group, by a line of /proc/self/cgroup: "N:CONTROLLERS:PATH". */
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
		if (i == CG_UNIFIED ? strcmp(number, "0") == 0 :
				      has_word(names, controllers[i]))
			join(host.base[i], mounts[i], path);
	}
}

/* Makes sure that a group can be made there. */
static void
probe(enum hierarchy which)
{
	char dir[PATH_SIZE], path[PATH_SIZE];

	if (host.base[which][0] == '\0')
		return;
	(void)snprintf(path, sizeof(path), "/%sprobe-%ld", host.prefix,
	    (long)getpid());
	join(dir, host.base[which], path);
	if (dir[0] == '\0' || mkdir(dir, 0755) == -1) {
		host.base[which][0] = '\0';
		return;
	}
	if (which == CG_UNIFIED) {
		join(path, dir, "/cgroup.kill");
		host.kill = access(path, W_OK) == 0;
	}
	(void)rmdir(dir);
}

/* Limits in the unified hierarchy: a group that hands controllers down may
 * hold no process itself, so the monitor moves into a leaf. */
static void
delegate(void)
{
	char path[PATH_SIZE], leaf[PATH_SIZE], text[FILE_SIZE];
	const char *base = host.base[CG_UNIFIED];

	join(path, base, "/cgroup.controllers");
	if (base[0] == '\0' || file_get(path, text) <= 0)
		return;
	host.memory = has_word(text, "memory");
	host.pids = has_word(text, "pids");
	if (!host.memory && !host.pids)
		return;
	join(path, base, "/cgroup.type"); /* the root has none */
	if (access(path, F_OK) == 0) {
		(void)snprintf(text, sizeof(text), "/%smonitor", host.prefix);
		join(leaf, base, text);
		if (mkdir(leaf, 0755) == -1 && errno != EEXIST)
			host.memory = host.pids = false;
		join(path, leaf, "/cgroup.procs");
		if (!file_put(path, "0"))
			host.memory = host.pids = false;
	}
	join(path, base, "/cgroup.subtree_control");
	host.memory = host.memory && file_put(path, "+memory");
	host.pids = host.pids && file_put(path, "+pids");
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
		probe((enum hierarchy)i);
	delegate();
}

void
cgroup_describe(struct buf *out)
{
	const char *memory = host.memory    ? "v2" :
	    host.base[CG_MEMORY][0] != '\0' ? "v1" :
					      "none";
	const char *pids = host.pids      ? "v2" :
	    host.base[CG_PIDS][0] != '\0' ? "v1" :
					    "none";

	buf_printf(out, "control groups: memory %s, processes %s, kill %s",
	    memory, pids, host.kill ? "yes" : "no");
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

/* The group of a job, or a file in it. */
static void
of_job(char out[PATH_SIZE], size_t which, const char *id, const char *file)
{
	char tail[PATH_SIZE];

	(void)snprintf(tail, sizeof(tail), "/%s%s%s", host.prefix, id, file);
	join(out, host.base[which], tail);
}

static bool
set_limit(size_t which, const char *id, const char *file, int64_t value)
{
	char path[PATH_SIZE], text[32];

	if (value <= 0)
		return true;
	of_job(path, which, id, file);
	(void)snprintf(text, sizeof(text), "%lld", (long long)value);
	return file_put(path, text);
}

const struct err *
cgroup_make(const char *id, int64_t memory, int64_t pids)
{
	char path[PATH_SIZE];
	bool ok = true;
	size_t i;

	for (i = 0; i < CG__MAX; i++) {
		if (host.base[i][0] == '\0')
			continue;
		of_job(path, i, id, "");
		if (mkdir(path, 0755) == -1 && errno != EEXIST)
			return err_errno("make %s", path);
	}
	if (host.memory)
		ok = set_limit(CG_UNIFIED, id, "/memory.max", memory);
	else if (host.base[CG_MEMORY][0] != '\0')
		ok = set_limit(CG_MEMORY, id, "/memory.limit_in_bytes", memory);
	if (ok && host.pids)
		ok = set_limit(CG_UNIFIED, id, "/pids.max", pids);
	else if (ok && host.base[CG_PIDS][0] != '\0')
		ok = set_limit(CG_PIDS, id, "/pids.max", pids);
	return ok ? NULL : err_errno("limits of %s", id);
}

bool
cgroup_enter(const char *id)
{
	char path[PATH_SIZE];
	size_t i;

	for (i = 0; i < CG__MAX; i++) {
		if (host.base[i][0] == '\0')
			continue;
		of_job(path, i, id, "/cgroup.procs");
		if (!file_put(path, "0"))
			return false;
	}
	return true;
}

/* Those in one group, one by one; whether there were any.  A number that is cut
 * short at the end is another process's: the next look finds its own. */
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

	if (host.kill) {
		of_job(path, CG_UNIFIED, id, "/cgroup.kill");
		(void)file_put(path, "1");
	}
	for (i = 0; i < CG__MAX; i++)
		if (host.base[i][0] != '\0')
			some = kill_members(i, id) || some;
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
cgroup_release(void)
{
	char path[PATH_SIZE];

	join(path, host.base[CG_UNIFIED], "/cgroup.subtree_control");
	if (host.memory)
		(void)file_put(path, "-memory");
	if (host.pids)
		(void)file_put(path, "-pids");
}
