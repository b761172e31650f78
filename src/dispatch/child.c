/* SPDX-License-Identifier: ISC */
/* Processes that do what takes long, so that the loop never waits. */
#include <sys/wait.h>

#include <errno.h>
#include <unistd.h>

#include "core/proc.h"
#include "dispatch/dispatch.h"

pid_t
child_fork(int keep)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	proc_signals_default();
	if (keep != -1 && keep != STDERR_FILENO + 1 &&
	    dup2(keep, STDERR_FILENO + 1) == -1)
		_exit(1);
	closefrom(STDERR_FILENO + (keep == -1 ? 1 : 2));
	return 0;
}

static void
ended(struct dispatch *d, pid_t pid, int status)
{
	size_t i;

	if (pid == d->packer)
		d->packer = 0;
	if (pid == d->checker)
		d->checker = 0;
	if (pid == d->teller)
		teller_ended(d, status);
	for (i = 0; i < d->n; i++) {
		if (d->tasks[i]->asker != pid)
			continue;
		d->tasks[i]->asker = 0;
		d->tasks[i]->asked = status;
	}
}

void
child_reap(struct dispatch *d)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		ended(d, pid, status);
}
