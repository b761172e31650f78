/* SPDX-License-Identifier: ISC */
#include "core/proc.h"

#include <sys/wait.h>

#include <signal.h>
#include <unistd.h>

#include "tap.h"

#define ROUNDS 50
#define LIMIT 60 /* seconds */

static const struct proc_account nobody = { .uid = 61234567, .gid = 61234567 };

/* Stops all of its own account, what comes to kill it as well. */
static pid_t
stopper(void)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	if (setresgid(nobody.gid, nobody.gid, nobody.gid) == -1 ||
	    setresuid(nobody.uid, nobody.uid, nobody.uid) == -1)
		_exit(1);
	for (;;)
		(void)kill(-1, SIGSTOP);
}

static void
killed(void)
{
	int round, again, ended = 0;
	pid_t pid;

	(void)alarm(LIMIT);
	for (round = 0; round < ROUNDS; round++) {
		pid = stopper();
		while (!proc_account_lives(nobody.uid))
			(void)usleep(100);
		for (again = 0; again < 1000; again++)
			if (!proc_kill_account(&nobody))
				break;
		ended += again < 1000;
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
	}
	(void)alarm(0);
	ok(ended == ROUNDS, "an account that stops its killer is killed (%d)",
	    ended);
}

int
main(void)
{
	if (geteuid() == 0)
		killed();
	else
		ok(true, "# SKIP only root can become others");
	return tap_done();
}
