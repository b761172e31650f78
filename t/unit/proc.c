/* SPDX-License-Identifier: ISC */
#include "core/proc.h"

#include <sys/wait.h>

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "tap.h"

#define ROUNDS 50
#define CHASES 12
#define LIMIT 600 /* seconds; only a failure takes that long */

#define FIRST_UID 61000000

/* An account that no other run of this test has: each kills its processes. */
static struct proc_account own;

static void
choose_account(void)
{
	own.uid = FIRST_UID + (uid_t)getpid();
	own.gid = FIRST_UID + (gid_t)getpid();
}

static bool
become_own(void)
{
	return setresgid(own.gid, own.gid, own.gid) == 0 &&
	    setresuid(own.uid, own.uid, own.uid) == 0;
}

/* Stops every process of the account, including those that come to kill it. */
static pid_t
stopper(void)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	if (!become_own())
		_exit(1);
	for (;;)
		(void)kill(-1, SIGSTOP);
}

/* Forks and exits all the time; the pipe is closed with the last process. */
static int
hopper(void)
{
	char byte = 0;
	int ends[2];
	pid_t pid;

	if (pipe(ends) == -1 || (pid = fork()) == -1)
		return -1;
	if (pid == 0) {
		(void)close(ends[0]);
		if (!become_own() || write(ends[1], &byte, 1) != 1)
			_exit(1);
		for (;;) {
			if (fork() != 0)
				_exit(0);
			(void)usleep(200);
		}
	}
	(void)close(ends[1]);
	(void)waitpid(pid, NULL, 0);
	if (read(ends[0], &byte, 1) != 1) {
		(void)close(ends[0]);
		return -1;
	}
	return ends[0];
}

/* Kills until no process is left; killed processes need time to end. */
static bool
all_killed(void)
{
	int again;

	for (again = 0; again < 60000; again++) {
		if (!proc_kill_account(&own))
			return true;
		(void)usleep(1000);
	}
	return false;
}

/* Whether no process is left when proc_kill says so. */
static bool
chase(void)
{
	struct pollfd fd = { .fd = hopper(), .events = POLLIN };
	bool over;
	pid_t pid;

	(void)all_killed();
	over = fd.fd != -1 && poll(&fd, 1, 60000) == 1;
	(void)close(fd.fd);
	if (over)
		return true;
	if ((pid = fork()) == 0)
		_exit(become_own() && kill(-1, SIGKILL) == 0 ? 0 : 1);
	(void)waitpid(pid, NULL, 0);
	return false;
}

static void
chased(void)
{
	int round, ended = 0;

	for (round = 0; round < CHASES; round++)
		ended += chase();
	ok(ended == CHASES, "a process that keeps forking is killed (%d)",
	    ended);
}

static void
killed(void)
{
	int round, ended = 0;
	pid_t pid;

	(void)alarm(LIMIT);
	for (round = 0; round < ROUNDS; round++) {
		pid = stopper();
		while (!proc_account_lives(own.uid))
			(void)usleep(100);
		ended += all_killed();
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
	}
	(void)alarm(0);
	ok(ended == ROUNDS, "an account that stops its killer is killed (%d)",
	    ended);
}

/* A zombie is not found to be alive. */
static void
idle(void)
{
	int ends[2];
	char byte = 0;
	pid_t pid;

	ok(proc_account_is_idle(own.uid),
	    "an account without processes is idle");
	if (pipe(ends) == -1 || (pid = fork()) == -1)
		return;
	if (pid == 0) {
		if (!become_own() || write(ends[1], &byte, 1) != 1)
			_exit(1);
		for (;;)
			(void)pause();
	}
	ok(read(ends[0], &byte, 1) == 1 && !proc_account_is_idle(own.uid),
	    "an account with a process is not");
	(void)kill(pid, SIGKILL);
	(void)waitid(P_PID, (id_t)pid, NULL, WEXITED | WNOWAIT);
	ok(proc_account_is_idle(own.uid), "a zombie does not count");
	(void)waitpid(pid, NULL, 0);
	(void)close(ends[0]);
	(void)close(ends[1]);
}

static void
others(void)
{
	pid_t pid;

	ok(!proc_has_others(NULL, 0),
	    "a process without children has no others");
	if ((pid = fork()) == 0)
		for (;;)
			(void)pause();
	ok(proc_has_others(NULL, 0), "a child is one");
	ok(!proc_has_others(&pid, 1), "a child that is listed is not");
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

int
main(void)
{
	choose_account();
	if (geteuid() == 0) {
		killed();
		chased();
		idle();
	} else {
		ok(true, "# SKIP only root can change accounts");
	}
	others();
	return tap_done();
}
