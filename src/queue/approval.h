/* SPDX-License-Identifier: ISC */
/* Decisions on deployments that wait for approval. */
#ifndef SLIPWAY_QUEUE_APPROVAL_H
#define SLIPWAY_QUEUE_APPROVAL_H

#include "db/db.h"
#include "queue/deployment.h"

#define APPROVAL_COMMENT_MAX 500

/* The body of a request to approve or deny. */
struct approval_request {
	const char *comment; /* NULL = none */
};
extern const struct shape approval_request_shape;

/* Inside a transaction: stores approval, approval_by and approval_comment of
 * the deployment, which waits for approval, with the time. An approved one takes
 * its place in the queue; a denied one is canceled with the detail. ERR_CONFLICT
 * if it does not wait for approval. */
MUSTCHECK const struct err *approval_save(struct db *,
    const struct deployment *);

#endif
