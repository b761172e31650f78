/* SPDX-License-Identifier: ISC */
/*
 * The dispatcher: takes deployments off the queue, has the monitor start their
 * jobs, and carries what the jobs write into the spool to the database.
 *
 * A job needs neither dispatcher nor database: what runs goes on without them,
 * and whoever comes up next adopts it from the spool.  Beside the files of
 * spool/spool.h a deployment's directory holds `keeper`, locked (flock) by
 * the dispatcher that cares for it, with project, boot and directory in it;
 * beside the directories lies `owner.NAME`, locked by the dispatcher whose
 * random name that is, with the boot in it.  So any number of dispatchers share
 * a spool.
 *
 * What a dispatcher holds of which there is no file here, belongs to another
 * spool, perhaps of a host with the same runner.name: it is left alone until
 * its lease runs out, as is what was held where a spool was lost.
 *
 * What was claimed by a dispatcher that died, and never ran, goes back on the
 * queue.  That is known where no directory was made since its boot (it comes
 * before the monitor is asked), and where the lock in it is still empty.  After
 * a crash of the machine files may be missing: then it is not known.
 */
#ifndef SLIPWAY_DISPATCH_DISPATCH_H
#define SLIPWAY_DISPATCH_DISPATCH_H

#include <sys/types.h>

#include <stdbool.h>
#include <stdint.h>

#include "dispatch/database.h"
#include "dispatch/phase.h"
#include "spool/spool.h"
#include "spool/wire.h"
#include "store/queue.h"

#define DISPATCH_WIRE 3 /* the monitor */
#define TASK_NAME 48    /* "DEPLOYMENT.EPOCH" */
#define FETCH_HOST 256  /* characters of a host's name and port */
#define FETCH_SLOW 16
#define WAITING_TOLD 128
#define BOOT_SIZE 40 /* of the kernel's name of this boot */

enum task_flag {
	TASK_ADOPTED = 1 << 0,  /* from the spool */
	TASK_CANCEL = 1 << 1,   /* was asked to end */
	TASK_KILLED = 1 << 2,   /* by the monitor, on our demand */
	TASK_FENCED = 1 << 3,   /* another has it: write nothing */
	TASK_MEASURED = 1 << 4, /* log_at is what the database has */
	TASK_BROKEN = 1 << 5,   /* its result cannot be read */
	TASK_BOOT = 1 << 6,     /* its directory is of this boot */
	TASK_FETCHED = 1 << 7,  /* it asks its repository for nothing more */
};

/* A deployment that this dispatcher cares for. */
struct task {
	int64_t id;
	int64_t epoch;
	int64_t project;
	char dir[WIRE_DIR]; /* of the project */
	char name[TASK_NAME];
	char host[FETCH_HOST]; /* of its repository, "" = none, unknown */
	int64_t claimed_at;
	enum phase phase;
	unsigned flags;
	int keeper;
	int log;
	int result;
	int lock;
	int64_t log_at;    /* bytes that the database has */
	int64_t result_at; /* bytes of the result that were dealt with */
	/* how far both reached when they were last looked at, result first */
	int64_t result_end;
	int64_t log_end;
	/* monotonic milliseconds */
	int64_t since;    /* of the phase */
	int64_t renew_at; /* the lease */
	int64_t upload_at;
	int64_t kill_at; /* 0 = not at all */
	int64_t retry_at;
	int64_t ask_at; /* the monitor, again */
	/* while it is PHASE_PREPARING */
	struct buf description;
	int64_t limit;         /* seconds that it can take, 0 = any */
	struct buf address;    /* where the repository is by now */
	struct buf credential; /* "user\nsecret", empty = none */
	const char *note;      /* why there is none, or another than wanted */
	const char *refusal;   /* why it must not be fetched, or NULL */
	pid_t asker;           /* 0 = none, or it is done */
	int answer;            /* what the asker says, -1 = nothing */
	int asked;             /* how it ended */
};

/* A deployment whose account was busy. */
struct refusal {
	int64_t id;
	int64_t at; /* not before */
	int64_t pause;
};

/* One that let a fetch hang. */
struct slow_host {
	char host[FETCH_HOST]; /* "" = free */
	int64_t until;
};

/* A deployment of which it was told why it waits. */
struct waiting_told {
	int64_t id;
	int64_t at;
};

struct dispatch {
	struct settings settings;
	struct arena *settings_arena;
	const char *conf;
	bool once;
	char owner[QUEUE_OWNER_SIZE];
	const char *name; /* of the runner */
	struct db *db;
	struct arena *a; /* for one turn of the loop */
	int wake;
	int spool; /* its directory */
	int owner_fd;
	char boot[BOOT_SIZE]; /* "-" if that is not known */
	pid_t packer;         /* of a large log, 0 = none */
	pid_t teller;         /* of statuses to the Git server, 0 = none */
	pid_t checker;        /* of accounts behind sessions, 0 = none */
	int64_t check_at;
	int64_t tell_at;
	int64_t tell_pause;
	struct forge *forge; /* for addresses only; NULL = no Git server */
	struct task **tasks;
	size_t n, cap;
	struct database database;
	/* when each is due */
	int64_t poll_at;
	int64_t claim_at; /* none before */
	int64_t claim_pause;
	int64_t late_until; /* a claim may arrive that was given up */
	int64_t review_at;
	int64_t doubt_at; /* no look because of a doubt before */
	int64_t scan_at;
	int64_t expire_at;
	int64_t open_since; /* whoever wanted could renew; 0 = unknown */
	int64_t refused_at; /* when not, at last */
	int64_t keep_at;
	int64_t wipe_at;
	struct refusal refused[QUEUE_AVOID];
	size_t nrefused;
	struct slow_host slow[FETCH_SLOW];
	struct waiting_told told[WAITING_TOLD];
	bool claim;  /* there may be something to claim */
	bool settle; /* rows without a job may be left of a dead dispatcher */
	bool held_back; /* from a Git server that does not answer */
	bool drained;
};

/* dispatch_spool.c */
/* The spool's directory, made if need be, and this dispatcher's own file. */
MUSTCHECK const struct err *spool_open(struct dispatch *);
void spool_close(struct dispatch *);
/* What a job is started with; all -1 if there was an error. */
MUSTCHECK const struct err *spool_make(struct dispatch *, struct task *,
    const struct buf *description, int fds[WIRE_FD__REQUEST]);
/* The control line. */
MUSTCHECK const struct err *spool_cancel(const struct dispatch *,
    const struct task *);
/* Whether the job is gone; it cannot come back after that. */
bool spool_lock_free(const struct task *);
/* Takes a directory over: ERR_CONFLICT if another cares for it, ERR_NOTFOUND
 * if it is gone. */
MUSTCHECK const struct err *spool_adopt(const struct dispatch *,
    const char *name, struct task *out);
void spool_remove(const struct dispatch *, const struct task *);
void spool_release(struct task *);
/* Whether there is such a directory. */
bool spool_has(const struct dispatch *, int64_t id, int64_t epoch);
bool spool_owner_alive(const struct dispatch *, const char *owner);
/* Clears what crashes left. Whether a dispatcher has died. */
bool spool_sweep(const struct dispatch *);
struct dead_owner {
	const char *name;
	bool booted; /* since this boot */
};
/* Those who died, until they are forgotten. */
void spool_dead(const struct dispatch *, struct arena *, struct list *out);
void spool_forget(const struct dispatch *, const struct list *dead);
/* Whether the job of an adopted task has never begun; it cannot begin then. */
bool spool_unbegun(const struct task *);
/* Calls `each` for every deployment's directory. */
void spool_each(struct dispatch *,
    void (*each)(struct dispatch *, const char *name));

/* dispatch_project.c */
/* What the last job of a project said of git's objects in its workspace, to
 * be told to the next; NULL = nothing, its clone is made anew then. */
void spool_objects_save(const struct dispatch *, int64_t project,
    const char *text);
const char *spool_objects(const struct dispatch *, struct arena *,
    int64_t project);
/* It has a directory here from now on. */
void project_mark(const struct dispatch *, int64_t project);
/* Has what deleted projects left here in the way of that one put aside. */
MUSTCHECK const struct err *project_make_room(struct dispatch *,
    int64_t project);
/* Has the directories of projects that were deleted a day ago removed. */
void project_wipes(struct dispatch *, int64_t now);
/* What the monitor said to that. */
void project_wiped(const struct dispatch *, const struct wire *);

/* dispatch_job.c: the description of a job, but for its last records.
 * ERR_CONFIG, with words for the deployment, where its secrets do not open. */
MUSTCHECK const struct err *description_write(const struct dispatch *,
    struct arena *, const struct claim *, struct buf *out);
/* Seconds after which the job must have ended by itself, cleanup and all; 0 if
 * a step may take any time. */
int64_t description_limit(const struct settings_runner *, const struct claim *);
MUSTCHECK const struct err *description_end(struct task *);

/* dispatch_clone.c: from where and with what a repository is fetched. The Git
 * server may have to be asked, which takes seconds: a process of its own does
 * that. */
/* After the settings were read. */
void clone_open(struct dispatch *);
/* Whether it lies on the Git server, so that it can be asked for commits. */
bool clone_is_known(const struct dispatch *, struct arena *,
    const char *repository);
/* The task's address and credential, as far as they are known here, or an asker
 * that finds them. */
void clone_ask(struct dispatch *, struct task *, const struct claim *);
/* Takes what the asker said; false if it is not done yet. */
bool clone_answer(struct dispatch *, struct task *);
/* Forgets all of it; secrets are wiped. */
void clone_forget(struct task *);

/* dispatch_report.c: statuses on commits, told by a process of its own. */
void teller_work(struct dispatch *, int64_t now);
/* There may be something new to tell. */
void teller_wake(struct dispatch *);
int64_t teller_due(const struct dispatch *);
void teller_ended(struct dispatch *, int status);

/* recheck.c: the accounts behind sessions */
void recheck_work(struct dispatch *, int64_t now);
int64_t recheck_due(const struct dispatch *);

/* dispatch_child.c: processes of the dispatcher's own */
/* A child in which nothing of ours is open but `keep` (-1 = none), as
 * descriptor 3; 0 there, -1 with errno. */
pid_t child_fork(int keep);
/* Takes note of those that ended. */
void child_reap(struct dispatch *);

/* dispatch_task.c: from the spool to the database */
/* An empty task, without descriptors. */
void task_init(struct task *);
struct task *task_open(struct dispatch *);
bool task_is_live(const struct task *);
struct task *task_find(const struct dispatch *, int64_t id, int64_t epoch);
/* The one way to another phase, as the table of phases allows. */
void task_move(struct task *, enum phase);
/* All that is due for it now. */
void task_work(struct dispatch *, struct task *);
void task_cancel(struct dispatch *, struct task *);
void task_kill(struct dispatch *, struct task *, const char *why);
/* The monitor has nothing of it any more. */
void task_exited(struct dispatch *, struct task *);
/* When it wants to work again, monotonic. */
int64_t task_due(const struct task *, int64_t now);
/* Forgets those that are closed. */
void task_reap(struct dispatch *);

/* dispatch_result.c: what a job's result says */
struct outcome {
	bool ended;
	enum reason reason; /* REASON_NONE: it succeeded */
	const char *detail;
	int64_t time;
	const char *objects; /* what to tell the next job of them, or NULL */
	struct workspace_seen {
		const char *status; /* NULL = not said */
		bool dirty;
		int64_t size;
		const char *branch;
		const char *hash;
		const char *message;
	} workspace;
};
/* Looks whether there is more of it; if so, how much log came before that. */
void result_look(struct task *);
/* Tells the queue of the steps and the commit that are new, as far as it was
 * looked at. */
MUSTCHECK const struct err *result_follow(struct dispatch *, struct task *);
/* Well-formed UTF-8 of at most `max` code points, whatever came. */
const char *text_clean(struct arena *, const char *, size_t max);
/* dispatch_commits.c: what cannot be read is told in the log and left. */
MUSTCHECK const struct err *commits_told(struct dispatch *, const struct task *,
    const struct record *);
/* Reads it as a whole. Strings in the arena. */
MUSTCHECK const struct err *result_read(const struct task *, struct arena *,
    struct outcome *out);

/* dispatch_claim.c: from the queue to the monitor */
/* How many jobs live. */
size_t claim_live(const struct dispatch *);
/* Whether there is a slot and may be work for it. */
/* What was refused may go now: a job has ended, whose account it may want. */
void claim_retry(struct dispatch *);
bool claim_wanted(const struct dispatch *);
/* Fills free slots, some a turn. */
void claim_work(struct dispatch *);
/* Goes on with one whose credential was asked for. */
void claim_asking(struct dispatch *, struct task *);
/* Puts back what is held and has not been started. */
void claim_leave(struct dispatch *);
/* What the monitor said of a start. */
void claim_started(struct dispatch *, struct task *, const struct wire *);
void claim_refused(struct dispatch *, struct task *, const struct wire *);
/* Reads which are held when that is due, to learn of cancels and of claims
 * whose answer was lost. */
void claim_review(struct dispatch *);
/* INT64_MAX if there is nothing to learn. */
int64_t claim_review_due(const struct dispatch *);
/* Ends rows of dispatchers of this spool that died before they had a
 * directory. */
void claim_settle(struct dispatch *);
/* Tells of those that others hold under our name. */
void claim_namesakes(struct dispatch *);

/* fetch.c */
/* The host that an address names, with its port, "" if it is a path. */
void fetch_host(const char *repository, char out[FETCH_HOST]);
/* Whether no more slots may fetch from it now. */
bool fetch_is_full(struct dispatch *, const char *host);
/* The task has its commit, or gets none any more. */
void fetch_done(struct dispatch *, struct task *);
void fetch_failed(struct dispatch *, struct task *);

/* waiting.c: tells those who ask why a deployment waits, again from time to
 * time while that is called. */
void waiting_say(struct dispatch *, int64_t id, const char *detail);

/* dispatch_house.c: what is due for all runners: leases that ran out, rows that
 * are old */
void house_keep(struct dispatch *, int64_t now);

#endif
