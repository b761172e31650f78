/* SPDX-License-Identifier: ISC */
/*
 * What an account of the range can leave outside its home and workspace:
 * entries of world-writable directories, System V IPC, keys.  All of it belongs
 * to jobs, for the account has no other use.  It is removed under that account
 * itself.
 */
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/apart.h"
#include "core/file.h"
#include "core/keys.h"
#include "core/num.h"
#include "core/tree.h"
#include "monitor/monitor.h"

#define TABLE_MAX ((size_t)16 << 20)
#define COLUMNS 16

#define SETTLED_SECONDS 2 /* no file system has coarser times */

static const char *const dirs[LEAVINGS_MAX] = { "/tmp", "/var/tmp", "/dev/shm",
	"/dev/mqueue", "/run/lock" };

/* When an entry was last created or removed there, or earlier; unknown if that
 * was a moment ago, because another change could have the same time. No process
 * can set this time. */
static struct timespec
change_time(const char *path)
{
	const struct timespec unknown = { 0, 0 }, missing = { -1, 0 };
	struct stat st;

	if (stat(path, &st) == -1)
		return errno == ENOENT ? missing : unknown;
	if (st.st_ctim.tv_sec + SETTLED_SECONDS > time(NULL))
		return unknown;
	return st.st_ctim;
}

static bool
is_same(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != 0 && a->tv_sec == b->tv_sec &&
	    a->tv_nsec == b->tv_nsec;
}

void
monitor_leavings_begin(struct leavings *out)
{
	size_t i;

	for (i = 0; i < LEAVINGS_MAX; i++)
		out->changed[i] = change_time(dirs[i]);
}

static bool
has_changed(const struct leavings *before, size_t i)
{
	const struct timespec now = change_time(dirs[i]);

	return !is_same(&before->changed[i], &now);
}

bool
monitor_leavings_possible(const struct leavings *before, unsigned apart)
{
	size_t i;

	if ((apart & APART_IPC) == 0)
		return true;
	for (i = 0; i < LEAVINGS_MAX; i++)
		if (!apart_has_own(apart, dirs[i]) && has_changed(before, i))
			return true;
	return false;
}

/* Best effort; repeated after the next job. */
static void
entries_remove(const char *path)
{
	const struct dirent *entry;
	const uid_t self = geteuid();
	struct stat st;
	DIR *dir;

	if ((dir = opendir(path)) == NULL)
		return;
	while ((entry = readdir(dir)) != NULL) {
		if (strcmp(entry->d_name, ".") == 0 ||
		    strcmp(entry->d_name, "..") == 0 ||
		    fstatat(dirfd(dir), entry->d_name, &st,
			AT_SYMLINK_NOFOLLOW) == -1 ||
		    st.st_uid != self)
			continue;
		if (tree_remove(dirfd(dir), entry->d_name) != NULL)
			continue;
	}
	(void)closedir(dir);
}

enum table { T_SHM, T_SEM, T_MSG, T__MAX };
static const char *const tables[T__MAX] = {
	[T_SHM] = "/proc/sysvipc/shm",
	[T_SEM] = "/proc/sysvipc/sem",
	[T_MSG] = "/proc/sysvipc/msg",
};

static void
ipc_remove(enum table which, int id)
{
	int gone = 0;

	switch (which) {
	case T_SHM:
		gone = shmctl(id, IPC_RMID, NULL);
		break;
	case T_SEM:
		gone = semctl(id, 0, IPC_RMID);
		break;
	case T_MSG:
		gone = msgctl(id, IPC_RMID, NULL);
		break;
	case T__MAX:
		break;
	}
	(void)gone; /* another process may have removed it */
}

/* Splits a line into words; returns their number. */
static size_t
words_split(char *line, const char *out[COLUMNS])
{
	char *word;
	size_t n = 0;

	while (n < COLUMNS && (word = strsep(&line, " ")) != NULL)
		if (word[0] != '\0')
			out[n++] = word;
	return n;
}

/* The id is in the second column; the column heads show where the owner is. */
static void
table_remove(enum table which)
{
	const char *head[COLUMNS], *cell[COLUMNS];
	char *rest, *line;
	int64_t id, uid;
	struct buf text;
	size_t n, i;

	buf_init(&text, TABLE_MAX);
	if (file_load(tables[which], &text) != NULL || text.len == 0)
		goto out;
	rest = text.data;
	n = words_split(strsep(&rest, "\n"), head);
	while ((line = strsep(&rest, "\n")) != NULL) {
		if (words_split(line, cell) < n || n < 2 ||
		    !num_parse(cell[1], 0, INT32_MAX, &id))
			continue;
		for (i = 0; i < n; i++)
			if ((strcmp(head[i], "uid") == 0 ||
				strcmp(head[i], "cuid") == 0) &&
			    num_parse(cell[i], 0, UINT32_MAX, &uid) &&
			    (uid_t)uid == geteuid())
				break;
		if (i < n)
			ipc_remove(which, (int)id);
	}
out:
	buf_release(&text);
}

void
monitor_leavings(const struct leavings *before)
{
	size_t i;

	for (i = 0; i < LEAVINGS_MAX; i++)
		if (has_changed(before, i))
			entries_remove(dirs[i]);
	for (i = 0; i < T__MAX; i++)
		table_remove((enum table)i);
	keys_clear(0);
}
