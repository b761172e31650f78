/* SPDX-License-Identifier: ISC */
#include "cli/child.h"

#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "core/file.h"
#include "core/proc.h"

/* Becomes the program; -1 = leave that descriptor as it is. */
static void
become(const char *const argv[], int out, int error)
{
	int i;

	proc_signals_default();
	if ((out == -1 || dup2(out, STDOUT_FILENO) != -1) &&
	    (error == -1 || dup2(error, STDERR_FILENO) != -1)) {
		for (i = 3; i < 64; i++)
			(void)close(i);
		(void)execvp(argv[0], (char *const *)(const void *)argv);
	}
	_exit(127);
}

static int
wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) == -1)
		if (errno != EINTR)
			return 127;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

const struct err *
child_output(const char *const argv[], bool quiet, struct buf *out, int *status)
{
	const struct err *e;
	int ends[2], null = -1;
	pid_t pid;

	*status = 127;
	if (quiet && (null = open("/dev/null", O_WRONLY | O_CLOEXEC)) == -1)
		return err_errno("/dev/null");
	if (pipe2(ends, O_CLOEXEC) == -1) {
		e = err_errno("pipe");
		goto out;
	}
	if ((pid = fork()) == 0)
		become(argv, ends[1], null);
	e = pid == -1 ? err_errno("fork") : NULL;
	(void)close(ends[1]);
	if (e == NULL)
		e = file_rest(ends[0], out);
	(void)close(ends[0]);
	if (pid != -1)
		*status = wait_for(pid);
out:
	if (null != -1)
		(void)close(null);
	return e;
}

const struct err *
child_start(const char *const argv[], int *status)
{
	const struct err *e = NULL;
	int null;
	pid_t pid;

	*status = 127;
	if ((null = open("/dev/null", O_RDWR | O_CLOEXEC)) == -1)
		return err_errno("/dev/null");
	if ((pid = fork()) == 0)
		become(argv, null, null);
	if (pid == -1)
		e = err_errno("fork");
	else
		*status = wait_for(pid);
	(void)close(null);
	return e;
}
