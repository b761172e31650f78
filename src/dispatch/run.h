/* SPDX-License-Identifier: ISC */
/*
 * The directory of a deployment in the spool.
 *
 * Beside the files that spool/spool.h describes it holds `keeper`, locked
 * (flock) by the dispatcher that follows the run, with the project, the boot and
 * the project's directory in it.
 *
 * The directory is made before the monitor gets the request to start the job. A
 * claim without one never ran, if the dispatcher that held it died since the
 * machine booted; so did a run of this boot whose lock file is still empty.
 * After a crash of the machine, files may be missing, so a missing file proves
 * nothing.
 */
#ifndef SLIPWAY_DISPATCH_RUN_H
#define SLIPWAY_DISPATCH_RUN_H

#include <stdint.h>

#include "core/buf.h"
#include "dispatch/spool.h"
#include "spool/wire.h"

#define RUN_NAME 48 /* size of "DEPLOYMENT.EPOCH" */

struct run {
	int64_t id;
	int64_t epoch;
	int64_t project;    /* 0 = unknown after a crash of the machine */
	char dir[WIRE_DIR]; /* of the project */
	char name[RUN_NAME];
	int64_t log_at; /* where its log begins: after that of other tries */
	bool this_boot; /* it was adopted, and made since the machine booted */
	int keeper;
	int log;
	int result;
	int lock;
};

/* Without descriptors; `dir` is copied. */
void run_init(struct run *, int64_t id, int64_t epoch, int64_t project,
    const char *dir);
/* Closes the descriptors, and with them gives up the keeper's lock. */
void run_close(struct run *);
/* Makes the directory, and the descriptors that a job starts with, which are
 * all -1 after an error. */
MUSTCHECK const struct err *run_make(const struct spool *, struct run *,
    const struct buf *description, int fds[WIRE_FD__REQUEST]);
/* Takes over a directory: ERR_CONFLICT if another dispatcher follows it,
 * ERR_NOTFOUND if it does not exist any more. */
MUSTCHECK const struct err *run_adopt(const struct spool *, const char *name,
    struct run *out);
/* Asks the job to end, through its control FIFO. */
MUSTCHECK const struct err *run_cancel(const struct spool *,
    const struct run *);
/* Whether the job has ended. */
bool run_has_ended(const struct run *);
/* Writes the job's output through to the disk, the log first, so that a result
 * on the disk implies a complete log. */
MUSTCHECK const struct err *run_sync(const struct run *);
/* Whether the job of a run never began, which is known only of one of this boot.
 * If so, it cannot begin any more, and each later call returns true, too. */
bool run_never_began(const struct run *);
void run_remove(const struct spool *, const struct run *);
/* Removes directories whose making or removal was cut short by a crash. */
void run_sweep(struct spool *);
bool run_exists(const struct spool *, int64_t id, int64_t epoch);
/* The two numbers of a directory's name; false if it is another name. */
bool run_name_parse(const char *name, int64_t *id, int64_t *epoch);

#endif
