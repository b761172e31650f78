/* SPDX-License-Identifier: ISC */
/*
 * The monitor: the only part of the runner that runs as root.  It starts the
 * dispatcher, creates workspaces, starts jobs under accounts that it alone
 * chooses, and makes sure that nothing of a job is left.
 */
#ifndef SLIPWAY_MONITOR_MONITOR_H
#define SLIPWAY_MONITOR_MONITOR_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "core/proc.h"
#include "core/settings.h"
#include "core/uid.h"
#include "monitor/cgroup.h"
#include "spool/wire.h"

#define SLOTS_MAX 256
#define OUT_MAX 1024 /* messages not yet sent to the dispatcher */
#define DIRTY_MAX 64
#define NAMED_MAX 256
#define LEAVINGS_MAX 5

enum slot_state {
	SLOT_FREE,
	SLOT_RUNS,
	SLOT_KILLING,  /* its processes are being killed */
	SLOT_SWEEPING, /* has ended; leftover processes are being killed */
	SLOT_CLEANING, /* its home is being removed */
};

enum account_kind {
	ACCOUNT_RANGE, /* used only by projects: all of its processes are the
		        * job's */
	ACCOUNT_NAMED, /* others may run under it, too */
	ACCOUNT_SELF,  /* the monitor's own, without root */
};

/* When each place that every account can write to last changed; 0 =
 * unknown. */
struct leavings {
	struct timespec changed[LEAVINGS_MAX];
};

struct slot {
	enum slot_state state;
	enum account_kind kind;
	struct proc_account who;
	unsigned apart;   /* what it does not share: a set of enum apart */
	bool hides;       /* its steps do not see the workspace */
	uid_t watch;      /* real user of the job, 0 = unknown */
	int64_t deadline; /* when to kill it, monotonic ms, 0 = never */
	int64_t deployment;
	int64_t epoch;
	char id[CGROUP_ID]; /* DEPLOYMENT.EPOCH */
	pid_t pid;          /* of the job, 0 = it has ended */
	int pidfd; /* of an adopted job, if the kernel has pidfds; else -1 */
	pid_t cleaner;
	int claim;     /* its home, locked: no other monitor adopts it */
	int status;    /* from wait(2) */
	int64_t since; /* of the state, monotonic ms */
	bool strays;   /* processes were left when it had ended */
	bool adopted;  /* the kernel does not signal its end to us */
	struct leavings before; /* the job */
	char cache[64]; /* of its project, below the workspaces; "" = none or,
			 * if adopted, unknown */
};

/* The account that a project directory is assigned to, looked up when the
 * configuration is read. */
struct named {
	char dir[WIRE_DIR];
	struct proc_account who;
};

struct monitor {
	struct settings settings;
	struct arena *arena; /* of the settings */
	const char *conf;
	const char *dispatch_path;
	const char *job_path;
	bool once;
	bool root;
	unsigned apart; /* enum apart: what jobs can have separate from the
			 * host */

	struct named named[NAMED_MAX];
	size_t nnamed;
	struct proc_account job_user; /* uid 0 = the range */
	struct proc_account user;     /* of the dispatcher */

	int workspaces; /* descriptors */
	int homes;
	char homes_path[4096];
	int signals;

	pid_t dispatcher; /* 0 = not running */
	int socket;
	int64_t started_at; /* of the dispatcher */
	int64_t counted_since;
	int counted;   /* messages from the dispatcher since then */
	int64_t delay; /* ms until it is started again */
	struct wire out[OUT_MAX];
	size_t out_first, out_n;

	struct slot slots[SLOTS_MAX];
	uid_t dirty[DIRTY_MAX];
	size_t ndirty;
	pid_t prober;  /* tries whether jobs can be started; 0 = none */
	pid_t sweeper; /* removes what deleted projects left; 0 = none */
	int64_t sweep_at;
	bool ending; /* start no more dispatchers */
	int64_t end_by;
	int exit_status;
};

/* conf.c: reads the configuration; on an error the old one stays. */
MUSTCHECK const struct err *monitor_conf(struct monitor *m);
/* Opens the directories and creates those that do not exist. */
MUSTCHECK const struct err *monitor_dirs(struct monitor *m);

/* place.c: chooses the account for a project. */
enum wire_why monitor_account(const struct monitor *m, const struct wire *w,
    struct slot *out);
/* Returns a user id for the job itself that no live job has; 0 without root. */
uid_t monitor_watch(const struct monitor *m);
bool monitor_dir_valid(const char *dir);
/* Opens a directory of ours below `at`; creates it if it does not exist. */
MUSTCHECK const struct err *monitor_dir_step(int at, const char *name,
    mode_t mode, int *out);
/* Gives a directory that we made a moment ago to the account; any other must
 * already belong to it. */
MUSTCHECK const struct err *monitor_hand_over(int fd, const char *name,
    const struct slot *slot);
/* Opens the workspace and makes sure that it belongs to the account. */
MUSTCHECK const struct err *monitor_workspace(const struct monitor *m,
    const char *dir, const struct slot *slot, int *out);
/* Creates the home of a new job, locked by the slot. */
MUSTCHECK const struct err *monitor_home(const struct monitor *m,
    struct slot *slot, int *out);
/* Locks an existing home; an error if another monitor has locked it. */
#define MONITOR_LOCK ".lock" /* after the name of the home */
MUSTCHECK const struct err *monitor_home_claim(const struct monitor *m,
    struct slot *slot);
/* Removes the lock of a home that was removed. */
void monitor_home_unlock(const struct monitor *m, const struct slot *slot);

/* Whether only projects use this account. */
bool monitor_is_projects(const struct monitor *m, uid_t uid);

/* cache.c */
/* Makes the cache that a start requests, empties others of the project, and
 * stores its path in the slot; without one, the job runs all the same. */
void monitor_cache(struct monitor *m, const struct wire *w, struct slot *slot);
/* Empties the cache if the job, which has ended, found that it has to be. */
void monitor_cache_end(struct monitor *m, const struct slot *slot);
/* Removes all caches of a project. */
void monitor_cache_drop(struct monitor *m, int64_t project);

/* sweep.c: kills the processes of a job that has ended; returns whether there
 * were any. */
bool monitor_sweep(const struct monitor *m, const struct slot *slot);

/* leavings.c: records the state of world-writable places before a job. */
void monitor_leavings_begin(struct leavings *);
/* Whether a job that is `apart` from the host in that way, and has removed its
 * keys, may have left something in those places since. */
bool monitor_leavings_possible(const struct leavings *, unsigned apart);
/* Under an account of the range: removes what the job left in those places,
 * unless they have not changed since. */
void monitor_leavings(const struct leavings *);

/* clean.c: removes what an ended job left: only its home, if the job says that it
 * left nothing else; otherwise in a process under the job's account. Returns false
 * if that process, slot->cleaner, has begun. */
bool monitor_clean(const struct monitor *m, struct slot *slot);
/* Removes a home that has been emptied, or moves it out of the way. */
void monitor_home_remove(struct monitor *m, const struct slot *slot);

/* left.c */
/* Moves a directory out of the way; it is removed `keep` ms later. */
MUSTCHECK const struct err *monitor_left_move(const struct monitor *m, int at,
    const char *name, int64_t keep);
/* For how many ms a directory is kept that makes room for another: as long as a
 * deleted project can be restored. */
int64_t monitor_left_keep(const struct monitor *m);
/* Starts the removal if it is due; returns milliseconds until it is, -1 =
 * none. */
int monitor_left_tick(struct monitor *m);
/* Records the end of its process; false if it is another process. */
bool monitor_left_reaped(struct monitor *m, pid_t pid);
/* Removes the directory of a deleted project, and reports that. */
void monitor_wipe(struct monitor *m, const struct wire *w);

/* probe.c */
/* Tries whether a job could be started, and reports that. */
void monitor_probe(struct monitor *m);
/* Records the end of its process; false if it is another process. */
bool monitor_probe_reaped(struct monitor *m, pid_t pid, int status);

/* dispatcher.c */
void monitor_dispatch_start(struct monitor *m);
void monitor_dispatch_died(struct monitor *m, int status);
/* Reads some of the waiting messages. */
void monitor_dispatch_read(struct monitor *m);
void monitor_send(struct monitor *m, const struct wire *w);
/* Sends what did not fit before. */
void monitor_flush(struct monitor *m);

/* job.c: closes the descriptors in any case. */
void monitor_job_start(struct monitor *m, const struct wire *w, int *request);
void monitor_job_kill(struct monitor *m, const struct wire *w);
/* Records the end of a child; false if it belongs to no job. */
bool monitor_job_reaped(struct monitor *m, pid_t pid, int status);
/* Continues a child that was stopped. */
void monitor_job_stopped(const struct monitor *m, pid_t pid);
/* Does what is due; returns milliseconds until more is, -1 = nothing. */
int monitor_jobs_tick(struct monitor *m);
bool monitor_jobs_live(const struct monitor *m);
/* adopt.c: adopts jobs of an earlier monitor, or of one that runs at the same
 * time; NULL if nothing of that job exists. */
void monitor_adopt(struct monitor *m);
/* Whether the process with that number is the job, not another one that has
 * received the number since. */
bool monitor_job_lives(const struct slot *slot);
struct slot *monitor_adopt_one(struct monitor *m, const char *id);
struct slot *monitor_slot(struct monitor *m, int64_t deployment, int64_t epoch);
struct slot *monitor_slot_free(struct monitor *m);

#endif
