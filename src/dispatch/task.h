/* SPDX-License-Identifier: ISC */
/*
 * A deployment that this dispatcher has claimed or adopted, and the list of
 * all.  Times are monotonic milliseconds.
 */
#ifndef SLIPWAY_DISPATCH_TASK_H
#define SLIPWAY_DISPATCH_TASK_H

#include "dispatch/clone.h"
#include "dispatch/fetch.h"
#include "dispatch/phase.h"
#include "dispatch/run.h"

/* How much of the job's output has reached the database. */
struct progress {
	/* over which log_at was measured: it is the size in the database; 0 =
	 * it was not measured */
	int64_t connection;
	bool is_broken; /* the result cannot be read */
	int64_t log_at; /* bytes that the database has */
	/* where its last part ended when it was measured, perhaps after a gap */
	int64_t stored_end;
	bool is_torn; /* the database lost what tries before this one wrote */
	int64_t result_at;
	int chunks; /* that this dispatcher stored */
	/* sizes when they were last checked; the result is checked first, so
	 * the log that came before it is complete */
	int64_t result_end;
	int64_t log_end;
	int64_t
	    first_at; /* not before: most of a short job is stored at once */
	int64_t upload_at; /* the log, again */
	int64_t look_at;   /* the files, even if nothing reports a change */
};

struct task {
	struct run run;
	enum phase phase; /* set by task_move() alone */
	int64_t since;    /* of the phase */
	/* facts */
	bool is_adopted;  /* it came from the spool */
	bool is_canceled; /* a request to end was sent to the job */
	bool is_killed;   /* a request to kill it was sent to the monitor */
	bool is_fenced;   /* another dispatcher holds it: write nothing */
	bool is_changed;  /* its files may contain data that was not read */
	bool is_away;     /* the job waits for its Git server */
	bool is_roomless; /* this runner's disk failed its checkout */
	bool is_synced;   /* the job's output is on the disk */
	int watch;        /* of its directory, 0 or -1 = none */
	/* until it is started */
	struct buf description;
	int64_t limit;     /* seconds that its job can take, 0 = any */
	bool over_deleted; /* see struct claim, like the next one */
	int32_t cache;
	bool no_checkout;
	bool is_announced; /* that it starts, which else the checkout says */
	struct clone clone;
	struct fetch fetch;
	struct maybe git_waited; /* see struct claim; not of adopted tasks */
	int64_t git_until;       /* until when it may wait for its Git server */
	struct progress progress;
	int64_t renew_at; /* the lease */
	int64_t retry_at; /* nothing is written before, after an error */
	int64_t kill_at;  /* 0 = never */
	int64_t sweep_at; /* when to request another sweep */
};

struct tasks {
	struct task **items;
	size_t n, cap;
};

/* Adds a new task, which takes over the run's descriptors. */
struct task *task_open(struct tasks *, const struct run *);
/* NULL = none. */
struct task *task_find(const struct tasks *, int64_t id, int64_t epoch);
/* The only way to another phase; the table of phases must allow it. */
void task_move(struct task *, enum phase);
/* Whether it takes a slot. */
bool task_is_live(const struct task *);
size_t tasks_live(const struct tasks *);
/* Milliseconds between looks at its files if nothing reports a change. */
int64_t task_tick(const struct task *);
/* Frees those that are closed. */
void tasks_reap(struct tasks *);

#endif
