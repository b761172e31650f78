/* SPDX-License-Identifier: ISC */
/*
 * Homes are the monitor's memory: a directory that only root can write contains
 * one for each job, owned by the account that the job runs under and locked by
 * the monitor in charge of it.
 */
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "core/num.h"
#include "core/str.h"
#include "monitor/monitor.h"

#define COMMAND_SIZE 1024

/* Parses DEPLOYMENT.EPOCH. */
static bool
id_parse(const char *id, int64_t *deployment, int64_t *epoch)
{
	char copy[CGROUP_ID], *dot;

	if (strlen(id) >= sizeof(copy))
		return false;
	(void)memcpy(copy, id, strlen(id) + 1);
	if ((dot = strchr(copy, '.')) == NULL)
		return false;
	*dot = '\0';
	return num_parse(copy, 1, INT64_MAX, deployment) &&
	    num_parse(dot + 1, 1, INT64_MAX, epoch);
}

/* What /proc shows about a process. */
struct seen {
	uid_t real;
	uid_t effective;
	int64_t deadline;
};

static ssize_t
proc_get(const char *pid, const char *name, char text[COMMAND_SIZE])
{
	char path[64];
	ssize_t got;
	int fd;

	text[0] = '\0';
	(void)snprintf(path, sizeof(path), "/proc/%.20s/%s", pid, name);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) == -1)
		return -1;
	got = read(fd, text, COMMAND_SIZE - 1);
	(void)close(fd);
	text[got > 0 ? got : 0] = '\0';
	return got;
}

/* Reads the users in "Uid:\tREAL\tEFFECTIVE\t…". */
static bool
users_read(char *text, struct seen *out)
{
	char *line = strstr(text, "\nUid:\t"), *word[2];
	int64_t value[2] = { -1, -1 };
	size_t i;

	if (line == NULL)
		return false;
	line += strlen("\nUid:\t");
	for (i = 0; i < 2; i++)
		if ((word[i] = strsep(&line, "\t")) == NULL ||
		    !num_parse(word[i], 0, UINT32_MAX, &value[i]))
			return false;
	out->real = (uid_t)value[0];
	out->effective = (uid_t)value[1];
	return true;
}

/* Whether the process was started as `slipway-job -i ID [-t DEADLINE] …`. */
static bool
is_called(const char *pid, const char *id, struct seen *out)
{
	char text[COMMAND_SIZE];
	const char *name, *at, *end;
	ssize_t got;

	if ((got = proc_get(pid, "cmdline", text)) <= 0)
		return false;
	end = text + got;
	name = strrchr(text, '/');
	name = name == NULL ? text : name + 1;
	at = text + strlen(text) + 1;
	if (strcmp(name, "slipway-job") != 0 || at >= end ||
	    strcmp(at, "-i") != 0 || at + 3 >= end || strcmp(at + 3, id) != 0)
		return false;
	at += 3 + strlen(id) + 1;
	out->deadline = 0;
	if (at + 3 < end && strcmp(at, "-t") == 0 &&
	    !num_parse(at + 3, 0, INT64_MAX, &out->deadline))
		out->deadline = 0;
	return true;
}

/* Whether it has that command line and its files belong to that user.  Steps
 * can start processes that pretend to be the job, but none of those has a user
 * of the watching range. */
static bool
is_job(const struct monitor *m, const char *pid, const struct slot *slot,
    struct seen *out)
{
	char text[COMMAND_SIZE];

	if (!is_called(pid, slot->id, out) ||
	    proc_get(pid, "status", text) <= 0 || !users_read(text, out) ||
	    out->effective != slot->who.uid)
		return false;
	return !m->root ||
	    uid_range_has(uid_range_watchers(&m->settings.runner), out->real);
}

static pid_t
job_find(const struct monitor *m, struct slot *slot)
{
	const struct dirent *entry;
	struct seen seen;
	int64_t pid = 0;
	DIR *dir;

	if ((dir = opendir("/proc")) == NULL)
		return 0;
	while ((entry = readdir(dir)) != NULL)
		if (num_parse(entry->d_name, 1, INT32_MAX, &pid) &&
		    is_job(m, entry->d_name, slot, &seen))
			break;
	(void)closedir(dir);
	if (entry == NULL)
		return 0;
	slot->watch = seen.real;
	slot->deadline = seen.deadline;
	return (pid_t)pid;
}

bool
monitor_job_lives(const struct slot *slot)
{
	struct seen seen;
	char pid[16], text[COMMAND_SIZE];

	(void)snprintf(pid, sizeof(pid), "%ld", (long)slot->pid);
	return is_called(pid, slot->id, &seen) &&
	    proc_get(pid, "status", text) > 0 && users_read(text, &seen) &&
	    seen.effective == slot->who.uid && seen.real == slot->watch;
}

static enum account_kind
kind_of(const struct monitor *m, uid_t uid)
{
	if (!m->root)
		return ACCOUNT_SELF;
	return uid_range_has(uid_range_projects(&m->settings.runner), uid) ?
	    ACCOUNT_RANGE :
	    ACCOUNT_NAMED;
}

/* A service manager that restarted us may have removed the limits. */
static void
limit_again(const struct monitor *m, const char *id)
{
	const struct settings_runner *conf = &m->settings.runner;
	const struct err *e;

	if ((e = cgroup_make(id, conf->memory_max, conf->pids_max)) != NULL)
		log_err(e, id);
}

static void
job_adopt(struct monitor *m, const char *id)
{
	struct slot *slot = monitor_slot_free(m);
	int64_t deployment, epoch;
	struct stat st;

	if (!id_parse(id, &deployment, &epoch) ||
	    fstatat(m->homes, id, &st, AT_SYMLINK_NOFOLLOW) == -1 ||
	    !S_ISDIR(st.st_mode))
		return;
	if (slot == NULL) {
		log_error("job %s cannot be adopted: too many jobs", id);
		return;
	}
	(void)memset(slot, 0, sizeof(*slot));
	slot->deployment = deployment;
	slot->epoch = epoch;
	(void)memcpy(slot->id, id, strlen(id) + 1);
	slot->adopted = true;
	if (monitor_home_claim(m, slot) != NULL)
		return;                  /* it belongs to a live monitor */
	if (m->root && st.st_uid == 0) { /* never handed over, so it is empty */
		(void)unlinkat(m->homes, id, AT_REMOVEDIR);
		monitor_home_unlock(m, slot);
		(void)close(slot->claim);
		return;
	}
	slot->who.uid = st.st_uid;
	slot->who.gid = st.st_gid;
	slot->kind = kind_of(m, st.st_uid);
	slot->pidfd = -1;
	slot->since = time_mono_ms();
	if ((slot->pid = job_find(m, slot)) != 0)
		slot->pidfd = (int)syscall(SYS_pidfd_open, slot->pid, 0);
	/* check again: the pidfd may refer to another process by now */
	if (slot->pid == 0 || !monitor_job_lives(slot)) {
		log_info("job %s ended while no monitor was running", id);
		if (slot->pidfd != -1)
			(void)close(slot->pidfd);
		slot->pidfd = -1;
		slot->pid = 0;
		slot->state = SLOT_SWEEPING;
		return;
	}
	slot->state = SLOT_RUNS;
	limit_again(m, id);
	log_info("job %s adopted: pid %ld, uid %u", id, (long)slot->pid,
	    slot->who.uid);
}

/* Removes a lock whose home is gone, because a monitor was killed between the
 * two. */
static void
lock_drop(const struct monitor *m, const char *name)
{
	const size_t len = strlen(name), end = strlen(MONITOR_LOCK);
	struct slot slot = { .claim = -1 };

	if (len <= end || len - end >= sizeof(slot.id) ||
	    strcmp(name + len - end, MONITOR_LOCK) != 0)
		return;
	(void)memcpy(slot.id, name, len - end);
	if (faccessat(m->homes, slot.id, F_OK, AT_SYMLINK_NOFOLLOW) == -1)
		monitor_home_unlock(m, &slot);
}

void
monitor_adopt(struct monitor *m)
{
	const struct dirent *entry;
	DIR *dir;
	int fd;

	if ((fd = fcntl(m->homes, F_DUPFD_CLOEXEC, 0)) == -1 ||
	    (dir = fdopendir(fd)) == NULL) {
		log_error("cannot list the homes of jobs");
		return;
	}
	if (flock(fd, LOCK_EX) == -1)
		log_warn("the homes of jobs cannot be locked");
	rewinddir(dir);
	while ((entry = readdir(dir)) != NULL) {
		lock_drop(m, entry->d_name);
		job_adopt(m, entry->d_name);
	}
	(void)flock(fd, LOCK_UN);
	(void)closedir(dir);
}

struct slot *
monitor_adopt_one(struct monitor *m, const char *id)
{
	int64_t deployment, epoch;

	if (!id_parse(id, &deployment, &epoch))
		return NULL;
	if (flock(m->homes, LOCK_EX) == -1)
		log_warn("the homes of jobs cannot be locked");
	job_adopt(m, id);
	(void)flock(m->homes, LOCK_UN);
	return monitor_slot(m, deployment, epoch);
}
