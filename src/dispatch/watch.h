/* SPDX-License-Identifier: ISC */
/*
 * Notices at once when a job writes to its files, or ends (inotify(7)).
 *
 * Without inotify, or without a watch for a run, files are checked at
 * intervals.
 */
#ifndef SLIPWAY_DISPATCH_WATCH_H
#define SLIPWAY_DISPATCH_WATCH_H

#include "dispatch/task.h"

struct watch {
	int fd;     /* -1 = the files are checked at intervals */
	int64_t at; /* monotonic milliseconds: no events are read before */
};

void watch_open(struct watch *);
void watch_close(struct watch *);
/* Watches the files of a task from now on, until its directory is removed. */
void watch_task(const struct watch *, const struct spool *, struct task *);
/* Sets `is_changed` of the tasks whose files have changed. */
void watch_read(struct watch *, struct tasks *);
/* The descriptor to wait for, -1 = none now.  A job that writes all the time
 * must not keep the dispatcher busy: `due` is brought forward to the time when
 * the next events are read. */
int watch_wait(const struct watch *, int64_t now, int64_t *due);

#endif
