/* SPDX-License-Identifier: ISC */
#include "monitor/cgroup.h"

#include <sys/syscall.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "core/str.h"
#include "tap.h"

#define ID "1.1"
#define MANY 1500    /* more process ids than one read returns */
#define ROUNDS 12000 /* of 10 ms: only a failure takes that long */

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
member(pid_t (*start)(void))
{
	char byte = 0;
	int in[2];
	pid_t pid;

	if (pipe(in) == -1 || (pid = start()) == -1)
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
		if ((members[n] = member(fork)) == -1)
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

static pid_t
fork_inside(void)
{
	return cgroup_fork(ID);
}

/* The groups in which a process is, by its lines in /proc/PID/cgroup. */
static int
groups_of(pid_t pid)
{
	char path[64];
	struct buf text;
	const char *at;
	int n = 0;

	(void)snprintf(path, sizeof(path), "/proc/%ld/cgroup", (long)pid);
	buf_init(&text, 65536);
	if (file_load(path, &text) == NULL && text.len > 0)
		for (at = text.data; (at = strstr(at, "-" ID "\n")) != NULL;
		     at++)
			n++;
	buf_release(&text);
	return n;
}

/* However a process gets there, it is in the same groups. */
static void
created(void)
{
	pid_t moved = member(fork), made = member(fork_inside);
	int n = groups_of(moved);

	ok(n > 0, "a process that enters is in %d groups", n);
	is_int(groups_of(made), n,
	    "a process that is created in a group is in as many groups");
	members[0] = moved;
	members[1] = made;
	while (cgroup_kill(ID))
		(void)usleep(10000);
	(void)waitpid(moved, NULL, 0);
	(void)waitpid(made, NULL, 0);
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
	created();
	crowd();
	cgroup_remove(ID);
	cgroup_release();
	return tap_done();
}
