/* SPDX-License-Identifier: ISC */
#include "monitor/cgroup.h"

#include <sys/syscall.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "core/str.h"
#include "tap.h"

#define ID "1.1"
#define MANY 1500 /* more process ids than one read returns */
#define ROUNDS 20

static pid_t members[MANY];
static size_t strangers;

/* Replaces libc's kill: processes outside the group survive and are counted. */
int
kill(pid_t pid, int sig)
{
	size_t i;

	for (i = 0; i < MANY; i++)
		if (members[i] == pid)
			return (int)syscall(SYS_kill, pid, sig);
	strangers++;
	return 0;
}

/* As on a kernel without cgroup.kill. */
int
access(const char *path, int mode)
{
	return str_ends(path, "/cgroup.kill") ?
	    -1 :
	    faccessat(AT_FDCWD, path, mode, 0);
}

/* Starts a process that waits in the group. */
static pid_t
member(void)
{
	char byte = 0;
	int in[2];
	pid_t pid;

	if (pipe(in) == -1 || (pid = fork()) == -1)
		return -1;
	if (pid == 0) {
		if (!cgroup_enter(ID) || write(in[1], &byte, 1) != 1)
			_exit(1);
		(void)close(in[0]);
		(void)close(in[1]);
		for (;;)
			(void)pause();
	}
	(void)close(in[1]);
	if (read(in[0], &byte, 1) != 1)
		pid = -1;
	(void)close(in[0]);
	return pid;
}

static void
crowd(void)
{
	size_t n, i, ended = 0;
	int round = 0, status;

	for (n = 0; n < MANY; n++)
		if ((members[n] = member()) == -1)
			break;
	ok(n > 0, "%zu processes are in a group", n);
	while (round < ROUNDS && cgroup_kill(ID)) {
		round++;
		(void)usleep(10000);
	}
	ok(round < ROUNDS, "all of them are killed (%d rounds)", round);
	for (i = 0; i < n; i++)
		if (waitpid(members[i], &status, 0) > 0 &&
		    WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
			ended++;
	is_int((long long)ended, (long long)n, "each process is killed");
	is_int((long long)strangers, 0, "no other process is killed");
}

int
main(void)
{
	char prefix[32];

	(void)snprintf(prefix, sizeof(prefix), "slipway-t-%ld-",
	    (long)getpid());
	cgroup_init(prefix);
	if (geteuid() != 0 || !cgroup_can_kill()) {
		ok(true, "# SKIP no control group can be created here");
		return tap_done();
	}
	if (!ok(cgroup_make(ID, 0, 0) == NULL, "a group is made"))
		return tap_done();
	crowd();
	cgroup_remove(ID);
	cgroup_release();
	return tap_done();
}
