/* SPDX-License-Identifier: ISC */
/* Deployments of the projects of which a user is a member. */
#ifndef SLIPWAY_QUEUE_DEPLOYMENT_SEEN_H
#define SLIPWAY_QUEUE_DEPLOYMENT_SEEN_H

#include "queue/deployment.h"

/* The same as deployment_page(), for a filter without a project. */
MUSTCHECK const struct err *deployment_page_seen(struct db *, struct arena *,
    int64_t user_id, const struct deployment_filter *, struct list *out,
    int64_t *next);

#endif
