/* SPDX-License-Identifier: ISC */
/* What a viewer of large logs needs: places to read from, and search. */
#include "api/log_search.h"
#include "api/resources.h"
#include "core/str.h"
#include "queue/joblog.h"
#include "queue/logline.h"
#include "web/scoreboard.h"

#define SEARCH_MS 200 /* time of one request */
#define RETRY_AFTER "1"

#define I(m, fl, ...)                                                          \
	FIELD(struct logline_place, m, FIELD_OUT | (fl), __VA_ARGS__)
static const struct field place_fields[] = {
	I(offset, 0, .doc = "Number of bytes before this place."),
	I(line, 0, .min = 1, .doc = "Number of the line here, from 1."),
	I(at, FIELD_NULL,
	    .doc = "Time at which this was written; null if unknown."),
	I(step, FIELD_NULL,
	    .doc = "Position of the step; null before the first step."),
	FIELD_END,
};
static const struct shape place_shape = {
	.name = "LogPlace",
	.fields = place_fields,
	.size = sizeof(struct logline_place),
	.doc = "A place in a log.",
};

struct log_index {
	struct list data;
};
#define LIST_MAX 1000000
static const struct field index_fields[] = {
	FIELD(struct log_index, data, FIELD_OUT, .max = LIST_MAX,
	    .shape = &place_shape, .doc = "Places, by offset."),
	FIELD_END,
};
static const struct shape index_shape = {
	.name = "LogPlaceList",
	.fields = index_fields,
	.size = sizeof(struct log_index),
	.doc = "Places in a log.",
};

#define M(m, ...) FIELD(struct log_match, m, FIELD_OUT, __VA_ARGS__)
static const struct field match_fields[] = {
	M(offset, .doc = "Number of bytes before the match."),
	M(length, .min = 1,
	    .doc = "Number of bytes, with the escape sequences inside."),
	M(line, .min = 1, .doc = "Number of its line, from 1."),
	FIELD_END,
};
static const struct shape match_shape = {
	.name = "LogMatch",
	.fields = match_fields,
	.size = sizeof(struct log_match),
	.doc = "A match in a log.",
};

struct log_rest {
	struct maybe next;
};
static const struct field rest_fields[] = {
	FIELD(struct log_rest, next, FIELD_OUT | FIELD_NULL,
	    .doc = "Offset at which to continue (\"from\"); null if the whole "
		   "log was searched."),
	FIELD_END,
};
static const struct shape rest_shape = {
	.name = "LogRest",
	.fields = rest_fields,
	.size = sizeof(struct log_rest),
	.doc = "Where a search continues.",
};

struct log_matches {
	struct list data;
	struct list pagination;
};
static const struct field matches_fields[] = {
	FIELD(struct log_matches, data, FIELD_OUT, .max = 1000,
	    .shape = &match_shape, .doc = "Matches, by offset."),
	FIELD(struct log_matches, pagination, FIELD_OUT | FIELD_ONE,
	    .shape = &rest_shape, .doc = "Where to continue."),
	FIELD_END,
};
static const struct shape matches_shape = {
	.name = "LogMatchList",
	.fields = matches_fields,
	.size = sizeof(struct log_matches),
	.doc = "Matches in a log.",
};

/* ERR_NOTFOUND if the deployment or its log does not exist. */
static const struct err *
log_look(struct req *rq, struct joblog_state *out)
{
	const struct err *e;

	if ((e = joblog_state(rq->db, rq->a, rq->id[0], out)) != NULL)
		return e;
	return out->pruned ?
	    err_public(ERR_NOTFOUND,
		"The log of this deployment was deleted to free space.") :
	    NULL;
}

static const struct err *
api_log_index(struct req *rq)
{
	struct joblog_state now;
	struct log_index index;
	const struct err *e;

	if ((e = log_look(rq, &now)) != NULL ||
	    (e = logline_index(rq->db, rq->a, rq->id[0], &index.data)) != NULL)
		return e;
	answer_item(rq, &index_shape, &index, 0);
	return NULL;
}

/* A search in progress. */
struct searching {
	struct log_search *search;
	int64_t from;
	int64_t at; /* the next byte to read */
	int64_t size;
	int64_t until;
	struct log_match *match;
	size_t n, max;
	struct log_rest rest;
};

/* Searches the next piece; *done at the end of the log, of the time or of the
 * page. */
static const struct err *
piece_search(struct req *rq, struct searching *s, bool *done)
{
	const struct arena_mark mark = arena_mark(rq->a);
	const struct err *e;
	struct blob bytes;

	e = joblog_read(rq->db, rq->a, rq->id[0], s->at, LOG_SEARCH_PIECE,
	    &bytes);
	if (e != NULL)
		return e;
	log_search_add(s->search, s->at, bytes.data, bytes.len);
	arena_rewind(rq->a, &mark);
	s->at += (int64_t)bytes.len;
	while (s->n < s->max && log_search_next(s->search, &s->match[s->n]))
		s->n++;
	*done = true;
	if (s->n == s->max)
		s->rest.next = (struct maybe){ .set = true,
			.n = s->match[s->n - 1].offset +
			    s->match[s->n - 1].length };
	else if (bytes.len == 0 || s->at >= s->size)
		return NULL;
	else if (time_mono_ms() < s->until ||
	    log_search_resume(s->search) <= s->from)
		*done = false;
	else
		s->rest.next = (struct maybe){ .set = true,
			.n = log_search_resume(s->search) };
	return NULL;
}

/* Searches until it is done, or its time is over. */
static const struct err *
search_run(struct req *rq, struct searching *s)
{
	struct joblog_state now;
	const struct err *e;
	bool done = false;
	int64_t line;

	if ((e = log_look(rq, &now)) != NULL ||
	    (e = logline_at(rq->db, rq->id[0], s->at, &line)) != NULL)
		return e;
	s->size = now.size;
	s->search = log_search_open(rq->a, req_str(rq, "q"), line);
	s->match = arena_alloc(rq->a, s->max, sizeof(*s->match));
	while (e == NULL && !done && s->at < s->size)
		e = piece_search(rq, s, &done);
	return e;
}

static const struct err *
api_log_matches(struct req *rq)
{
	struct searching s = { .from = req_int(rq, "from"),
		.at = req_int(rq, "from"),
		.until = time_mono_ms() + SEARCH_MS,
		.max = (size_t)req_int(rq, "limit") };
	struct log_matches matches;
	const struct err *e;

	if (str_has_control(req_str(rq, "q")))
		return err_public(ERR_BAD_REQUEST,
		    "The query parameter \"q\" must not contain control "
		    "characters: a match lies within one line.");
	if (scoreboard_long_begin(rq->scoreboard, rq->place, SCOREBOARD_SEARCH,
		rq->who.user_id) != SCOREBOARD_LONG_YES) {
		answer_header(rq, "Retry-After", "%s", RETRY_AFTER);
		return err_public(ERR_RATE,
		    "Too many searches are running. Try again in a moment.");
	}
	e = search_run(rq, &s);
	scoreboard_long_end(rq->place);
	if (e != NULL)
		return e;
	matches.data = (struct list){ .items = s.match, .n = s.n };
	matches.pagination = (struct list){ .items = &s.rest, .n = 1 };
	answer_item(rq, &matches_shape, &matches, 0);
	return NULL;
}

static const struct route_param match_params[] = {
	{ .name = "q",
	    .type = PARAM_STR,
	    .must = 1,
	    .min = 1,
	    .max = 200,
	    .doc = "Text to search for. The case of ASCII letters does not "
		   "matter; escape sequences of terminals are ignored." },
	{ .name = "from",
	    .type = PARAM_INT,
	    .min = 0,
	    .max = 9007199254740991,
	    .doc = "Number of bytes to skip." },
	{ .name = "limit",
	    .type = PARAM_INT,
	    .min = 1,
	    .max = 1000,
	    .fallback = 100,
	    .doc = "Maximum number of matches." },
	PARAM_END,
};

static const struct route routes[] = {
	SHOW("/api/deployments/{id}/log/index", ROLE_VIEWER, api_log_index,
	    "getLogIndex",
	    "List a place about every 256 KiB of a log, and its steps",
	    index_shape),
	{ .method = METHOD_GET,
	    .path = "/api/deployments/{id}/log/matches",
	    .role = ROLE_VIEWER,
	    .query = match_params,
	    .handler = api_log_matches,
	    .operation = "searchLog",
	    .summary = "Search the log of a deployment",
	    .doc = "A request searches for a fraction of a second. If \"next\" "
		   "is not null, repeat it with that value as \"from\", even "
		   "if there are no matches yet. A user can run two searches "
		   "at a time; a third returns 429, as does one while half "
		   "of the workers serve requests that take long.",
	    .out = &matches_shape,
	    .status = 200,
	    .errors = route_limited },
	ROUTE_END,
};

const struct resource log_index_resource = {
	.tag = "deployments",
	.routes = routes,
};
