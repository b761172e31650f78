/* SPDX-License-Identifier: ISC */
/*
 * Deletes old deployments with their steps, logs and outboxes.
 *
 * These stay, however old: deployments that have not ended or that another one
 * repeats; and while the project exists, the live one of each environment, the
 * one that a rollback from there repeats, the last RETENTION_KEPT successful
 * ones of each environment, or of a project for those without one, the last of
 * a schedule, and those of a commit that is the head of a pushed branch.
 */
#ifndef SLIPWAY_QUEUE_RETENTION_H
#define SLIPWAY_QUEUE_RETENTION_H

#include "db/db.h"

#define RETENTION_KEPT 10

/* Looks at some hundred deployments after the id *after and deletes those that
 * ended more than `days` days ago and need not stay, each in a transaction of
 * its own. Sets *after to the id to continue from; 0 = all were looked at. Adds
 * to *deleted. */
MUSTCHECK const struct err *retention_sweep(struct db *, int64_t days,
    int64_t *after, int64_t *deleted);

#endif
