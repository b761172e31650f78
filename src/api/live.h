/* SPDX-License-Identifier: ISC */
/*
 * Hands requests over to slipway-live(8) by an internal redirect of nginx, so
 * that no worker waits.  A worker has authorized them before.
 *
 * slipway-live holds a stream until it ends.  It returns a request that waits:
 * nginx sends the same request to a worker again, with the rest of its time, and
 * the worker responds as if the request had just arrived.
 */
#ifndef SLIPWAY_API_LIVE_H
#define SLIPWAY_API_LIVE_H

#include "web/route.h"

/* The parameter of a request that can wait. */
#define LIVE_WAIT_PARAM                                                         \
	{                                                                       \
		.name = "wait", .type = PARAM_INT, .min = 0, .max = 20,         \
		.doc =                                                          \
		    "Seconds by which the response may be delayed until there " \
		    "is something new."                                         \
	}

/* What a request waits for: more than `from` bytes of the log of a deployment or
 * its end; or, if `from` is -1, a change after `since`. */
struct live_wait {
	int64_t project_id;    /* 0 = any */
	int64_t deployment_id; /* 0 = any; of both, changes of this one and of
				* the state of others in the project */
	int64_t from;
	int64_t since; /* time_mono_ms() before the caller read the state */
};

/* Responds with a stream of the events of a deployment of a project, or, if
 * `deployment_id` is 0, of the project; 0 = of all.  It ends when the caller
 * loses the role of a viewer there. */
void live_stream(struct req *, int64_t project_id, int64_t deployment_id);
/* Hands the request over, in place of a response, to wait as long as its
 * parameter "wait" says.  Returns false if that time is over. */
bool live_wait(struct req *, const struct live_wait *);
/* The same, if the client has the response that was prepared already. */
void live_wait_change(struct req *, const struct live_wait *);

#endif
