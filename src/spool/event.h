/* SPDX-License-Identifier: ISC */
/*
 * The result of a job: what happened, one record (spool.h) for each event.  The
 * job writes them, and the dispatcher reads them.
 *
 * Both may be of different versions: a job outlives an upgrade of the
 * dispatcher.  So the form of a record does not change, and events that are not
 * known are ignored.
 */
#ifndef SLIPWAY_SPOOL_EVENT_H
#define SLIPWAY_SPOOL_EVENT_H

#include "core/buf.h"
#include "core/field.h"
#include "spool/spool.h"

enum job_event_kind {
	JOB_CHECKED_OUT, /* branch, hash, message */
	/* the same, but the checkout did not complete; the branch is empty if
	 * nothing changed */
	JOB_STAYED,
	JOB_COMMITS,      /* branch, text: records, newest commit first, of
			   * "HASH SECONDS\nAUTHOR\nEMAIL\nMESSAGE" */
	JOB_STEP_STARTED, /* position, time, log: its offset */
	JOB_STEP_ENDED,   /* position, status, exit_code, signal, time, log: the
			   * length */
	JOB_STEP_SKIPPED, /* position */
	JOB_OBJECTS,      /* text: state of the clone before the first step, for
			   * the next job */
	JOB_WORKSPACE,    /* status, dirty, size */
	/* position, text: the first of the steps that are left when only such
	 * are left that may fail.  Without an end, the job succeeded. */
	JOB_ACHIEVED,
	JOB_WARNINGS, /* size: how many steps failed that may */
	/* text: why the Git server could not be reached.  No step has started,
	 * and the deployment is to be tried again. */
	JOB_GIT_AWAY,
	JOB_NO_ROOM, /* text: how the disk failed the checkout; likewise */
	JOB_ENDED,   /* status, reason, time, text: a sentence; the last one */
	JOB_EVENT__MAX
};

/* Of the members, an event has those that its kind names. */
struct job_event {
	enum job_event_kind kind;
	int64_t position; /* of a step, from 0 */
	struct when time;
	const char *status; /* of a step, of the job or of the workspace */
	const char *reason; /* name of enum reason; NULL = none */
	struct maybe exit_code;
	struct maybe signal;
	struct maybe log;   /* bytes */
	struct maybe dirty; /* 1 or 0; not set if git cannot determine it */
	int64_t size;
	const char *branch; /* NULL = the branch or tag does not have the
			     * commit */
	const char *hash;
	const char *message;
	const char *text;
};

/* Appends an event; buf_check() reports one that is too long. */
void job_event_write(struct buf *, const struct job_event *);
/* Reads a record; strings live in the arena.  The kind of an unknown event is
 * JOB_EVENT__MAX.  ERR_INTERNAL names a record that is malformed; `kind` is
 * set nevertheless. */
MUSTCHECK const struct err *job_event_read(struct arena *,
    const struct record *, struct job_event *out);

#endif
