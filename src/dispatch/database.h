/* SPDX-License-Identifier: ISC */
/*
 * Whether the database can be queried.
 *
 * After an error that means an outage no statement is sent for a while, and the
 * pause grows.  The database counts as back when it has accepted every
 * statement for some seconds: a server in trouble may take some and reject
 * others.
 */
#ifndef SLIPWAY_DISPATCH_DATABASE_H
#define SLIPWAY_DISPATCH_DATABASE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"

struct db;

/* Times are monotonic milliseconds. */
struct database {
	int64_t since; /* of the first success after an outage; 0 = none yet */
	int64_t lost;  /* start of the outage, while `since` is 0 */
	int64_t at;    /* no statement before */
	int64_t pause;
	int64_t log_at; /* the outage is logged again */
	int64_t log_pause;
	bool is_checked; /* the schema is this program's */
	/* A write may have happened although it failed here: the queue's rows
	 * have to be read.  The reader clears it. */
	bool is_doubtful;
};

/* From now on; nothing is known of the database yet. */
void database_init(struct database *);
/* Whether statements can be sent now. */
bool database_is_ready(const struct database *);
/* The same, and the schema was checked. */
bool database_is_usable(const struct database *);
/* Records the result of a statement, and logs an error once. Returns whether
 * the statement succeeded.  `what` names the subject in the log. */
bool database_done(struct database *, const struct err *, const char *what);
/* Checks the schema until that has succeeded once.  An error means that the
 * program cannot work: the schema is not this program's, or, with `once`, the
 * server rejects access. */
MUSTCHECK const struct err *database_check(struct database *, struct db *,
    bool once);

#endif
