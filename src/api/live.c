/* SPDX-License-Identifier: ISC */
#include "api/live.h"

#include <string.h>

#include "core/num.h"
#include "web/answer.h"
#include "web/etag.h"

/* How often a request may wait again when a change does not concern it: each
 * time takes two internal redirects, and nginx permits ten. */
#define AGAIN 3

/* The credential, as slipway-live checks it: its kind and id; and whether its
 * user is a guest. */
static const char *
watcher_of(struct req *rq)
{
	const struct principal *who = &rq->who;
	int64_t id = who->user_id;
	char kind = 'u';

	if (who->session_id != 0) {
		kind = 's';
		id = who->session_id;
	} else if (who->token_id != 0) {
		kind = 't';
		id = who->token_id;
	}
	return arena_printf(rq->a, "kind=%c&id=%lld&guest=%d", kind,
	    (long long)id, rq->member != 0 ? 1 : 0);
}

void
live_stream(struct req *rq, int64_t project_id, int64_t deployment_id)
{
	answer_bytes(rq, "text/event-stream", "", 0);
	if (strcmp(rq->in[IN_METHOD], "HEAD") == 0)
		return;
	rq->answer.is_elsewhere = true;
	answer_header(rq, "X-Accel-Redirect",
	    "/.slipway/live?project=%lld&deployment=%lld&user=%lld&%s",
	    (long long)project_id, (long long)deployment_id,
	    (long long)rq->who.user_id, watcher_of(rq));
}

/* A number that slipway-live returned with the request. */
static int64_t
returned(const struct req *rq, enum req_header at)
{
	int64_t n = 0;

	return rq->in[at] != NULL && num_parse(rq->in[at], 0, NUM_SAFE, &n) ?
	    n :
	    0;
}

bool
live_wait(struct req *rq, const struct live_wait *wait)
{
	int64_t ms = req_int(rq, "wait") * 1000, again = AGAIN;

	if (rq->in[IN_WAIT_LEFT] != NULL) {
		ms = returned(rq, IN_WAIT_LEFT);
		again = returned(rq, IN_WAIT_AGAIN) - 1;
	}
	if (ms == 0 || again < 0)
		return false;
	answer_reset(&rq->answer);
	answer_bytes(rq, "text/plain", "", 0);
	rq->answer.is_elsewhere = true;
	answer_header(rq, "X-Accel-Redirect",
	    "/.slipway/wait?project=%lld&deployment=%lld&user=%lld&%s"
	    "&from=%lld&since=%lld&ms=%lld&again=%lld",
	    (long long)wait->project_id, (long long)wait->deployment_id,
	    (long long)rq->who.user_id, watcher_of(rq), (long long)wait->from,
	    (long long)wait->since, (long long)ms, (long long)again);
	return true;
}

void
live_wait_change(struct req *rq, const struct live_wait *wait)
{
	const char *known = rq->in[IN_IF_NONE_MATCH];

	if (known != NULL && rq->in[IN_IF_MATCH] == NULL &&
	    etag_listed(known, rq->answer.etag))
		(void)live_wait(rq, wait);
}
