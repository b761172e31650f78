/* SPDX-License-Identifier: ISC */
/*
 * How a job recognizes a workspace that nothing has changed since an earlier
 * job's checkout.  Steps own the workspace, so no file in it can prove this;
 * but no account can set the time of a status change (st_ctim, inode(7)), and
 * the dispatcher stores the state that one job saw for the next.
 */
#ifndef SLIPWAY_JOB_SEEN_H
#define SLIPWAY_JOB_SEEN_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/buf.h"

/* A workspace at one time.  Times are status changes, in nanoseconds since
 * 1970. */
struct seen {
	int64_t objects; /* the latest among git's objects, -1 = unknown */
	int64_t latest;  /* the latest of all, -1 = unknown */
	int64_t entries;
	int64_t print; /* fingerprint of names and attributes */
	int64_t index; /* of git's index, -1 = there is none */
	int64_t bytes; /* total size of the files */
	int64_t top;   /* number of entries at the top level */
	int64_t git;   /* 1 = one of these is .git */
	int64_t tags;  /* of git's packed-refs, -1 = there is none */
	int64_t lfs;   /* the latest among objects of Git LFS, -1 = none */
	bool doubtful; /* the last change of a file was after an earlier look,
			* but in the same second */
};

/* Looks at the current directory; `since` is an earlier look or NULL.  Changes
 * the access times of files that would be doubtful, which gives them a later
 * change, unless the second is not over.  After the deadline (time_mono_ms, 0 =
 * none) it gives up: `latest` and `objects` are -1, the other members are the
 * counts so far. */
void seen_take(const struct seen *since, int64_t deadline, struct seen *out);
/* Waits until a later change has a later time; false if that takes too long. */
bool seen_settle(const struct seen *);
/* Whether nothing has changed in between. */
bool seen_same(const struct seen *, const struct seen *);
/* As one line, without `doubtful`, and back; false if it is malformed. */
void seen_write(struct buf *, const struct seen *);
bool seen_read(const char *line, struct seen *out);

enum clone_flag {
	CLONE_FRESH = 1 << 0,   /* the files are those of the commit, and there
			         * are no others */
	CLONE_KEPT = 1 << 1,    /* the same, except for ignored files */
	CLONE_INDEX = 1 << 2,   /* git's index describes the commit */
	CLONE_OWN = 1 << 3,     /* all objects came from the address */
	CLONE_MESSAGE = 1 << 4, /* the message is known */
	CLONE_LFS = 1 << 5,     /* files of Git LFS may have their content */
};

/* The report of a job about its clone when the checkout has ended, for the next
 * job.  The dispatcher stores it as text, without reading it. */
struct clone_state {
	struct seen seen;
	int64_t flags;       /* enum clone_flag */
	const char *commit;  /* which is complete, "" = none */
	const char *ref;     /* full name of a branch or tag that has it, "" =
			      * none is known */
	const char *address; /* of the repository */
	const char *message; /* of the commit */
};

/* In the arena. */
const char *clone_state_write(struct arena *, const struct clone_state *);
/* NULL and malformed text are a state in which nothing is known. */
void clone_state_read(struct arena *, const char *text,
    struct clone_state *out);

#endif
