/* SPDX-License-Identifier: ISC */
/* Processes: becoming somebody else for good, and ending all of a tree. */
#ifndef SLIPWAY_CORE_PROC_H
#define SLIPWAY_CORE_PROC_H

#include <sys/types.h>

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

#define PROC_GROUPS 64

/* Who a process is to be. */
struct proc_account {
	uid_t uid;
	gid_t gid;
	gid_t groups[PROC_GROUPS]; /* supplementary, with gid */
	size_t ngroups;
};

/* The account of that name with its groups; ERR_NOTFOUND if there is none. */
MUSTCHECK const struct err *proc_account_named(const char *name,
    struct proc_account *out);

/* Every signal to its default and unblocked, as a stranger expects it. */
void proc_signals_default(void);
/* Opens /dev/null as 0, 1 and 2. */
MUSTCHECK const struct err *proc_stdio_null(void);
/* Makes fds[i] descriptor 3 + i, kept over exec, and closes all others but
 * 0..2.  Changes fds. */
MUSTCHECK const struct err *proc_fds_place(int *fds, size_t n);

/* From root to that account, never back: groups, ids, capabilities.  Proves
 * that it is so. uid 0 is refused. */
MUSTCHECK const struct err *proc_drop(const struct proc_account *);
/* The same, but only the effective user is that account's: the real and the
 * saved one are `real`.  Files, and signals that it sends, are the account's;
 * the account's other processes may neither send it a signal nor change its
 * limits (kill(2), prlimit(2)). */
MUSTCHECK const struct err *proc_drop_behind(const struct proc_account *,
    uid_t real);
/* In a child of such a process: becomes the account for good.  Safe between
 * fork and exec; errno on failure. */
bool proc_drop_rest(void);
/* Replaces the inherited session keyring (session-keyring(7)) by an empty one;
 * no error where the kernel has no keys. */
MUSTCHECK const struct err *proc_session_keyring(void);
/* Nobody but root may look into this process or those that it forks: no
 * ptrace(2), no /proc/PID/environ, no core file. */
MUSTCHECK const struct err *proc_close_up(void);
/* No program started from here gains rights by its file's mode. */
MUSTCHECK const struct err *proc_no_new_privs(void);

/* Sends KILL to all that descend from this process, but for the trees of
 * those named; the number of them that still live. Needs /proc. */
size_t proc_kill_below(const pid_t *spare, size_t nspare);
/* As above, below another process. */
size_t proc_kill_tree(pid_t root);
/* Whether any process of that user lives; zombies do not. */
bool proc_account_lives(uid_t uid);
/* Sends KILL to every process of that account, at once, by a child that
 * becomes it; whether any was left after that. Root only. */
bool proc_kill_account(const struct proc_account *);
/* Collects children that ended until none is ready; false if there is no
 * child at all any more. */
bool proc_reap(void);

/* Tells the service manager, if there is one (sd_notify(3)): "READY=1". */
void proc_notify(const char *state);

#endif
