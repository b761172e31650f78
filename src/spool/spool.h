/* SPDX-License-Identifier: ISC */
/*
 * The spool: what dispatcher and job share, and what outlives both.
 *
 *   SPOOL/<deployment>.<epoch>/
 *     log      the output, masked and limited; only the job appends to it.
 *              After a try that ended with JOB_GIT_AWAY or JOB_NO_ROOM it
 *              begins with a hole of the size of what the tries before wrote
 *     result   events, appended by the job; the run is over when it ends with
 *              an END record
 *     lock     locked by the job (fcntl, whole file) as long as it lives; empty
 *              until a job has begun (then it has SPOOL_BEGUN bytes), or until
 *              the holder of the lock has settled that none will (then it has
 *              SPOOL_GIVEN_UP)
 *     control  a FIFO; a line "cancel" asks the job to end
 *
 *   SPOOL/objects.<project>
 *              the state of its workspace, as seen by the project's last
 *              job, for its next; one file for each project that has a
 *              directory on this host
 *
 * Records of descriptions and results are text: "NAME LENGTH\n" BYTES "\n".  A
 * name is [a-z-]+; a length is decimal, at most SPOOL_RECORD.  A record that is
 * cut short does not count as present.
 */
#ifndef SLIPWAY_SPOOL_SPOOL_H
#define SLIPWAY_SPOOL_SPOOL_H

#include <stdbool.h>

#include "core/arena.h"
#include "core/buf.h"

#define SPOOL_RECORD ((size_t)1 << 20)
#define SPOOL_BEGUN 1    /* bytes of the lock, like the next one */
#define SPOOL_GIVEN_UP 2 /* by its dispatcher: no job will begin */

struct record {
	const char *name;
	const char *value; /* NUL-terminated */
	size_t len;        /* a script contains no NUL, so this is
			    * strlen(value) */
};

void record_write(struct buf *, const char *name, const char *value,
    size_t len);
void record_printf(struct buf *, const char *name, const char *fmt, ...)
    PRINTFLIKE(3, 4);
/* Reads the next record of data[*at..len) and moves *at past it; strings live
 * in the arena.  Sets `found` to false if no complete record is left.
 * ERR_INTERNAL if it is malformed. */
MUSTCHECK const struct err *record_read(struct arena *, const char *data,
    size_t len, size_t *at, struct record *out, bool *found);

#endif
