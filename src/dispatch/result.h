/* SPDX-License-Identifier: ISC */
/* The result that a job writes into the spool. */
#ifndef SLIPWAY_DISPATCH_RESULT_H
#define SLIPWAY_DISPATCH_RESULT_H

#include "core/state.h"
#include "dispatch/task.h"

struct dispatch;

struct outcome {
	bool ended;           /* the job reported the rest */
	const char *achieved; /* if not: the step that ran when all that was
			       * required had succeeded; NULL = none */
	enum reason reason;   /* REASON_NONE: success */
	const char *detail;
	int64_t warnings; /* steps that failed and may */
	int64_t time;
	const char *objects;  /* for the project's next job, or NULL */
	const char *git_away; /* why the job could not reach the Git server and
			       * started no step, or NULL */
	const char *no_room;  /* the same of the disk */
	struct workspace_seen {
		const char *status; /* NULL = not reported */
		bool dirty;
		int64_t size;
		bool is_elsewhere; /* the branch or tag lacks the commit */
		const char *branch;
		const char *hash;
		const char *message;
	} workspace;
};

/* Notes the size of the result, and of the log that came before it. */
void result_check(struct task *);
/* Writes the new steps and the commit to the queue, as far as the result was
 * checked.  A malformed result marks the task's progress as broken, and is no
 * error. */
MUSTCHECK const struct err *result_follow(struct dispatch *, struct task *);
/* Reads the whole result; strings in the arena. */
MUSTCHECK const struct err *result_read(const struct task *, struct arena *,
    struct outcome *out);

#endif
