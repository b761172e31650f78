/* SPDX-License-Identifier: ISC */
#include <string.h>
#include <strings.h>

#include "api/live.h"
#include "api/resources.h"
#include "core/num.h"
#include "core/str.h"
#include "queue/joblog.h"

#define TYPE "text/plain; charset=utf-8"

/* The part of the log being sent. A compressed chunk is inflated once, though
 * it is sent in smaller pieces. */
static struct {
	struct arena_mark before; /* the request's arena, without it */
	struct blob bytes;
	int64_t start;
	int64_t end; /* of what is sent */
} window;

/* The requested range. */
struct span {
	int64_t start;
	int64_t end;    /* exclusive; -1 = end of the log */
	int64_t suffix; /* length of a suffix range; 0 = not a suffix */
	bool is_range;
};

/* Parses the first `len` bytes as a number; false if they are not one. */
static bool
number_before(struct arena *a, const char *s, size_t len, int64_t *out)
{
	return num_parse(arena_strndup(a, s, len), 0, NUM_SAFE, out);
}

/* Parses a single byte range (RFC 9110, section 14.1.2). Any other header is
 * ignored, as the RFC allows. */
static void
range_read(struct arena *a, const char *header, struct span *out)
{
	struct span s = { .end = -1, .is_range = true };
	const char *dash;
	size_t len;

	if (strncasecmp(header, "bytes=", 6) != 0)
		return;
	header += 6;
	if ((dash = strchr(header, '-')) == NULL)
		return;
	len = strlen(dash + 1);
	if (dash == header) {
		if (number_before(a, dash + 1, len, &s.suffix) && s.suffix > 0)
			*out = s;
		return;
	}
	if (!number_before(a, header, (size_t)(dash - header), &s.start))
		return;
	if (len > 0) {
		if (!number_before(a, dash + 1, len, &s.end) || s.end < s.start)
			return;
		s.end++;
	}
	*out = s;
}

/* Only GET supports ranges. A log has no entity tag or date, so If-Range never
 * matches (RFC 9110, sections 13.1.5 and 14.2). */
static const char *
range_sent(const struct req *rq)
{
	if (rq->in[IN_IF_RANGE] != NULL ||
	    strcmp(rq->in[IN_METHOD], "GET") != 0)
		return NULL;
	return rq->in[IN_RANGE];
}

static const struct err *
span_read(struct req *rq, struct span *out)
{
	const char *range = range_sent(rq);

	*out = (struct span){ .end = -1 };
	if (req_str(rq, "offset") == NULL) {
		if (range != NULL)
			range_read(rq->a, range, out);
		return NULL;
	}
	if (range != NULL)
		return err_public(ERR_BAD_REQUEST,
		    "Send either \"offset\" or Range, not both.");
	out->start = req_int(rq, "offset");
	return NULL;
}

static const struct err *
source(struct req *rq, int64_t offset, size_t max, struct blob *out)
{
	const struct err *e;
	int64_t skip = offset - window.start;
	const size_t left = (size_t)(window.end - offset);

	*out = (struct blob){ .data = NULL };
	if (window.bytes.data == NULL)
		window.before = arena_mark(rq->a);
	if (skip < 0 || skip >= (int64_t)window.bytes.len) {
		arena_rewind(rq->a, &window.before);
		e = joblog_read(rq->db, rq->a, rq->id[0], offset,
		    left < JOBLOG_PACKED ? left : JOBLOG_PACKED, &window.bytes);
		if (e != NULL)
			return e;
		window.start = offset;
		skip = 0;
	}
	out->data = (const char *)window.bytes.data + skip;
	out->len = window.bytes.len - (size_t)skip;
	if (out->len > max)
		out->len = max;
	return NULL;
}

/* Adjusts the requested range to the size of the log; ERR_RANGE. */
static const struct err *
span_fit(struct req *rq, int64_t size, struct span *s)
{
	if (s->suffix > 0)
		s->start = s->suffix < size ? size - s->suffix : 0;
	if (s->end < 0 || s->end > size)
		s->end = size;
	if (s->is_range ? s->start < size : s->start <= size)
		return NULL;
	answer_header(rq, "Content-Range", "bytes */%lld", (long long)size);
	return err_public(ERR_RANGE, "The log has only %lld bytes.",
	    (long long)size);
}

/* Whether the request waits, because there is nothing to read from there. */
static bool
is_waiting(struct req *rq, const struct joblog_state *now, int64_t start)
{
	const struct live_wait wait = { .deployment_id = rq->id[0],
		.from = start };

	return !now->complete && now->size <= start && live_wait(rq, &wait);
}

static const struct err *
api_log_show(struct req *rq)
{
	struct joblog_state now;
	struct span s;
	const struct err *e;

	if ((e = span_read(rq, &s)) != NULL ||
	    (e = joblog_state(rq->db, rq->a, rq->id[0], &now)) != NULL)
		return e;
	if (now.pruned)
		return err_public(ERR_NOTFOUND,
		    "The log of this deployment was deleted to free space.");
	if (is_waiting(rq, &now, s.start))
		return NULL;
	answer_header(rq, "X-Log-Size", "%lld", (long long)now.size);
	answer_header(rq, "X-Log-Complete", "%s",
	    now.complete ? "true" : "false");
	answer_header(rq, "Accept-Ranges", "bytes");
	if ((e = span_fit(rq, now.size, &s)) != NULL)
		return e;
	if (s.is_range) {
		answer_status(rq, 206);
		answer_header(rq, "Content-Range", "bytes %lld-%lld/%s",
		    (long long)s.start, (long long)s.end - 1,
		    now.complete ?
			arena_printf(rq->a, "%lld", (long long)now.size) :
			"*");
	}
	window.bytes = (struct blob){ .data = NULL };
	window.end = s.end;
	answer_stream(rq, TYPE, source, s.start, s.end - s.start);
	return NULL;
}

static const struct route_param log_params[] = {
	{ .name = "offset",
	    .type = PARAM_INT,
	    .min = 0,
	    .max = 9007199254740991,
	    .absent = 1,
	    .doc = "Number of bytes to skip, usually those already read. Not "
		   "allowed with Range." },
	LIVE_WAIT_PARAM,
	PARAM_END,
};

static const struct route routes[] = {
	{ .method = METHOD_GET,
	    .path = "/api/deployments/{id}/log",
	    .role = ROLE_VIEWER,
	    .flags = ROUTE_RANGE,
	    .query = log_params,
	    .handler = api_log_show,
	    .operation = "getLog",
	    .summary = "Read or follow the log of a deployment",
	    .status = 200,
	    .type = "text/plain; charset=utf-8",
	    .doc =
		"With \"wait\", the response is delayed until there is more of "
		"the log or the log is complete, at most for that time. It can "
		"be empty. A user can read two responses of more than 4 MiB at "
		"a time; a third returns 429, as does one while half of the "
		"workers serve requests that take long. To read more at a "
		"time, request parts.",
	    .errors = route_limited },
	ROUTE_END,
};

const struct resource log_resource = {
	.tag = "deployments",
	.routes = routes,
};
