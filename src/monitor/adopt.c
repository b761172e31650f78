/* SPDX-License-Identifier: ISC */
/*
 * Homes are the monitor's memory: a directory that only root can write holds
 * one for each job, owned by the account that the job runs under and locked by
 * the monitor that cares for it.
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

#define COMMAND_SIZE 256

/* DEPLOYMENT.EPOCH */
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

/* Whether the process was started as `slipway-job -i ID …` and runs as that
 * user.  Only the user itself could pretend that. */
static bool
is_job(const char *pid, const char *id, uid_t uid)
{
	char path[64], text[COMMAND_SIZE], *at, *end, *line;
	const char *name;
	int64_t owner = -1;
	ssize_t got;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%.20s/cmdline", pid);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) == -1)
		return false;
	got = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	if (got <= 0)
		return false;
	text[got] = '\0';
	end = text + got;
	name = strrchr(text, '/');
	name = name == NULL ? text : name + 1;
	at = text + strlen(text) + 1;
	if (strcmp(name, "slipway-job") != 0 || at >= end ||
	    strcmp(at, "-i") != 0 || at + 3 >= end || strcmp(at + 3, id) != 0)
		return false;
	(void)snprintf(path, sizeof(path), "/proc/%.20s/status", pid);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) == -1)
		return false;
	got = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	text[got > 0 ? got : 0] = '\0';
	if ((line = strstr(text, "\nUid:\t")) == NULL)
		return false;
	line += strlen("\nUid:\t");
	line[strcspn(line, "\t")] = '\0';
	return num_parse(line, 0, UINT32_MAX, &owner) && (uid_t)owner == uid;
}

static pid_t
job_find(const char *id, uid_t uid)
{
	const struct dirent *entry;
	int64_t pid = 0;
	DIR *dir;

	if ((dir = opendir("/proc")) == NULL)
		return 0;
	while ((entry = readdir(dir)) != NULL)
		if (num_parse(entry->d_name, 1, INT32_MAX, &pid) &&
		    is_job(entry->d_name, id, uid))
			break;
	(void)closedir(dir);
	return entry == NULL ? 0 : (pid_t)pid;
}

bool
monitor_job_lives(const struct slot *slot)
{
	char pid[16];

	(void)snprintf(pid, sizeof(pid), "%ld", (long)slot->pid);
	return is_job(pid, slot->id, slot->who.uid);
}

static enum account_kind
kind_of(const struct monitor *m, uid_t uid)
{
	const struct settings_runner *conf = &m->settings.runner;

	if (!m->root)
		return ACCOUNT_SELF;
	return (int64_t)uid >= conf->uid_first &&
		(int64_t)uid < conf->uid_first + conf->uid_count ?
	    ACCOUNT_RANGE :
	    ACCOUNT_NAMED;
}

/* A manager that started us anew may have taken the limits away. */
static void
limit_again(const struct monitor *m, const char *id)
{
	const struct settings_runner *conf = &m->settings.runner;
	const struct err *e;

	if ((e = cgroup_make(id, conf->memory_max, conf->pids_max)) != NULL)
		log_err(e, id);
}

static void
adopt(struct monitor *m, const char *id)
{
	struct slot *slot = monitor_slot_free(m);
	int64_t deployment, epoch;
	struct stat st;

	if (!id_parse(id, &deployment, &epoch) ||
	    fstatat(m->homes, id, &st, AT_SYMLINK_NOFOLLOW) == -1 ||
	    !S_ISDIR(st.st_mode))
		return;
	if (slot == NULL) {
		log_error("job %s cannot be adopted: too many", id);
		return;
	}
	(void)memset(slot, 0, sizeof(*slot));
	slot->deployment = deployment;
	slot->epoch = epoch;
	(void)memcpy(slot->id, id, strlen(id) + 1);
	if (monitor_home_claim(m, slot) != NULL)
		return;                  /* of a monitor that lives */
	if (m->root && st.st_uid == 0) { /* never handed over: it is empty */
		(void)unlinkat(m->homes, id, AT_REMOVEDIR);
		(void)close(slot->claim);
		return;
	}
	slot->who.uid = st.st_uid;
	slot->who.gid = st.st_gid;
	slot->kind = kind_of(m, st.st_uid);
	slot->adopted = true;
	slot->pidfd = -1;
	slot->since = time_mono_ms();
	slot->pid = job_find(id, st.st_uid);
	if (slot->pid != 0)
		slot->pidfd = (int)syscall(SYS_pidfd_open, slot->pid, 0);
	/* again: what was opened may be another process by then */
	if (slot->pid == 0 || !monitor_job_lives(slot)) {
		log_info("job %s has ended while nobody watched", id);
		if (slot->pidfd != -1)
			(void)close(slot->pidfd);
		slot->pidfd = -1;
		slot->pid = 0;
		slot->state = SLOT_SWEEPING;
		return;
	}
	slot->state = SLOT_RUNS;
	limit_again(m, id);
	log_info("job %s is adopted: pid %ld, uid %u", id, (long)slot->pid,
	    slot->who.uid);
}

void
monitor_adopt(struct monitor *m)
{
	const struct dirent *entry;
	DIR *dir;
	int fd;

	if ((fd = fcntl(m->homes, F_DUPFD_CLOEXEC, 0)) == -1 ||
	    (dir = fdopendir(fd)) == NULL) {
		log_error("the homes of jobs cannot be listed");
		return;
	}
	if (flock(fd, LOCK_EX) == -1)
		log_warn("the homes of jobs cannot be locked");
	rewinddir(dir);
	while ((entry = readdir(dir)) != NULL)
		adopt(m, entry->d_name);
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
	adopt(m, id);
	(void)flock(m->homes, LOCK_UN);
	return monitor_slot(m, deployment, epoch);
}
