/* SPDX-License-Identifier: ISC */
/* Processes: switching to another account for good, and ending process
 * trees. */
#ifndef SLIPWAY_CORE_PROC_H
#define SLIPWAY_CORE_PROC_H

#include <sys/types.h>

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

#define PROC_GROUPS 64

/* An account for a process to run under. */
struct proc_account {
	uid_t uid;
	gid_t gid;
	gid_t groups[PROC_GROUPS]; /* supplementary, with gid */
	size_t ngroups;
};

/* Looks up an account and its groups; ERR_NOTFOUND if it does not exist. */
MUSTCHECK const struct err *proc_account_named(const char *name,
    struct proc_account *out);

/* Resets every signal to its default action and unblocks it, as a program
 * expects on start. */
void proc_signals_default(void);
/* Opens /dev/null as 0, 1 and 2. */
MUSTCHECK const struct err *proc_stdio_null(void);
/* Makes fds[i] descriptor 3 + i, open across exec, and closes all others except
 * 0..2.  Changes fds. */
MUSTCHECK const struct err *proc_fds_place(int *fds, size_t n);

/* Switches from root to that account for good: groups, ids, capabilities.
 * Verifies the result.  Rejects uid 0. */
MUSTCHECK const struct err *proc_drop(const struct proc_account *);
/* The same, but only the effective user id becomes the account's: the real and
 * saved ones become `real`.  Files it creates and signals it sends are the
 * account's, but the account's other processes can neither send it a signal nor
 * change its limits (kill(2), prlimit(2)). */
MUSTCHECK const struct err *proc_drop_behind(const struct proc_account *,
    uid_t real);
/* In a child of such a process: switches to the account for good.  Safe between
 * fork and exec; sets errno on failure. */
bool proc_drop_rest(void);
/* Lets only root inspect this process and those that it forks: no ptrace(2), no
 * /proc/PID/environ, no core file. */
MUSTCHECK const struct err *proc_close_up(void);
/* Prevents programs started from here from gaining privileges by their mode. */
MUSTCHECK const struct err *proc_no_new_privs(void);

/* Sends KILL to all descendants of this process, except for the trees of the
 * given ones; returns how many still live.  Needs /proc. */
size_t proc_kill_below(const pid_t *spare, size_t nspare);
/* Whether this process has a child that is not listed.  Cheap, but it can miss
 * one while another ends. */
bool proc_has_others(const pid_t *spare, size_t nspare);
/* Kills all descendants of another process; returns how many it found. */
size_t proc_kill_tree(pid_t root);
/* Whether any process of that user lives; zombies do not count. */
bool proc_account_lives(uid_t uid);
/* Whether no process has that user; finds out without a pass over all
 * processes, unless one has it as its real user. */
bool proc_account_is_idle(uid_t uid);
/* Sends KILL to every process of that account at once, from a child that
 * switches to it; returns whether any is left.  Root only. */
bool proc_kill_account(const struct proc_account *);
/* How many children to reap at a time: a swarm can end as fast as it is
 * reaped. */
#define PROC_REAP_MAX 1024
/* Reaps children that have ended, at most so many; false if there are no
 * children left. */
bool proc_reap(void);

/* Notifies the service manager, if there is one (sd_notify(3)): "READY=1". */
void proc_notify(const char *state);

#endif
