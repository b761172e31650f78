/* SPDX-License-Identifier: ISC */
/* Removes what an ended job left in files. */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "core/tree.h"
#include "monitor/monitor.h"

void
monitor_home_remove(struct monitor *m, const struct slot *slot)
{
	const struct err *e;

	cgroup_remove(slot->id);
	if (unlinkat(m->homes, slot->id, AT_REMOVEDIR) == -1 &&
	    errno != ENOENT) {
		/* too large to remove in time */
		if ((e = monitor_left_move(m, m->homes, slot->id, 0)) != NULL)
			log_err(e, slot->id);
		m->sweep_at = 0;
	}
	monitor_home_unlock(m, slot);
}

static _Noreturn void
cleaner_run(const struct monitor *m, const struct slot *slot)
{
	const struct err *e = NULL;
	int fd;

	proc_signals_default();
	fd = openat(m->homes, slot->id,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1)
		_exit(0);
	/* no other descriptors: the locks are the monitor's */
	if (proc_fds_place(&fd, 1) != NULL)
		_exit(1);
	fd = 3;
	if (slot->kind != ACCOUNT_SELF)
		e = proc_drop_behind(&slot->who, monitor_watch(m));
	if (e == NULL && fchmod(fd, S_IRWXU) == -1)
		e = err_errno("chmod");
	if (e == NULL)
		e = tree_empty(fd);
	if (slot->kind == ACCOUNT_RANGE && geteuid() == slot->who.uid &&
	    proc_drop_rest())
		monitor_leavings(&slot->before);
	if (e != NULL)
		log_err(e, slot->id);
	_exit(e == NULL ? 0 : 1);
}

/* Whether nothing of it can be left but its home. */
static bool
is_tidy(const struct slot *slot)
{
	return !slot->adopted && !slot->strays && slot->status == JOB_TIDY &&
	    (slot->kind != ACCOUNT_RANGE ||
		!monitor_leavings_possible(&slot->before, slot->apart));
}

bool
monitor_clean(const struct monitor *m, struct slot *slot)
{
	pid_t pid;

	if (is_tidy(slot) && unlinkat(m->homes, slot->id, AT_REMOVEDIR) == 0) {
		cgroup_remove(slot->id);
		monitor_home_unlock(m, slot);
		return true;
	}
	if ((pid = fork()) == 0)
		cleaner_run(m, slot);
	if (pid == -1) {
		log_warn("the home of job %s: %s", slot->id, strerror(errno));
		return true;
	}
	slot->cleaner = pid;
	return false;
}
