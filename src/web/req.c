/* SPDX-License-Identifier: ISC */
#include "web/req.h"

#include <assert.h>
#include <poll.h>
#include <string.h>

#include "core/num.h"
#include "core/str.h"
#include "web/etag.h"
#include "web/row.h"

#define WAITED_MAX 3600000

static const struct req_value *
value_find(const struct req *rq, const char *name)
{
	const struct route_param *p = rq->route->query;
	size_t i;

	for (i = 0; p != NULL && p[i].name != NULL; i++)
		if (strcmp(p[i].name, name) == 0)
			return &rq->query[i];
	assert(0 && "unknown query parameter");
	return &rq->query[0];
}

int64_t
req_waited(const struct req *rq)
{
	const char *sent = rq->in[IN_REQUEST_MSEC];
	const char *dot = sent == NULL ? NULL : strchr(sent, '.');
	int64_t seconds, rest, waited;

	/* The leading 1 keeps the fraction's zeros: a number has none. */
	if (dot == NULL ||
	    !num_parse(arena_strndup(rq->a, sent, (size_t)(dot - sent)), 0,
		NUM_SAFE / 1000, &seconds) ||
	    !num_parse(arena_printf(rq->a, "1%s", dot + 1), 1000, 1999, &rest))
		return 0;
	waited = time_now_ms() - (seconds * 1000 + rest - 1000);
	return waited < 0 ? 0 : waited > WAITED_MAX ? WAITED_MAX : waited;
}

/* True for a peer that has closed its socket, not for one that has only
 * finished sending. */
bool
req_client_gone(const struct req *rq)
{
	struct pollfd pfd = { .fd = rq->client_fd };

	return poll(&pfd, 1, 0) == 1 &&
	    (pfd.revents & (POLLHUP | POLLERR)) != 0;
}

int64_t
req_int(const struct req *rq, const char *name)
{
	return value_find(rq, name)->n;
}

const char *
req_str(const struct req *rq, const char *name)
{
	return value_find(rq, name)->s;
}

struct page
req_page(const struct req *rq)
{
	const struct page p = { .page = req_int(rq, "page"),
		.limit = req_int(rq, "limit"),
		.member = rq->member,
		.reader = rq->who.user_id };

	return p;
}

const struct err *
req_check_audited(const struct req *rq)
{
	if (rq->audited.is_said)
		return NULL;
	return err_new(ERR_INTERNAL, "%s does not say what it changes",
	    rq->route->operation);
}

struct attempt {
	struct req *rq;
	struct arena_mark start;
	db_body *body;
	void *context;
};

static const struct err *
attempt_body(struct db *db, void *context)
{
	const struct attempt *t = context;
	struct req *rq = t->rq;
	const struct err *e;

	arena_rewind(rq->a, &t->start);
	faults_again(&rq->faults, rq->a);
	rq->audited = (struct audited_state){ .action = rq->audited.action };
	e = t->body(db, t->context);
	return e != NULL ? e : req_check_audited(rq);
}

const struct err *
req_transaction(struct req *rq, db_body *body, void *context)
{
	struct attempt t = { .rq = rq,
		.start = arena_mark(rq->a),
		.body = body,
		.context = context };

	if (db_in_transaction(rq->db))
		return attempt_body(rq->db, &t);
	return db_transaction(rq->db, attempt_body, &t);
}

const struct err *
req_match(const struct req *rq, const struct shape *shape, int64_t version)
{
	const struct etag_key key = { .kind = shape->name,
		.id = rq->id[0],
		.version = version };
	const struct err *e = NULL;

	if (version == 0)
		return rq->in[IN_IF_MATCH] == NULL ?
		    NULL :
		    err_public(ERR_PRECONDITION,
			"The resource does not exist. Repeat the request "
			"without If-Match to create it.");
	if (rq->in[IN_IF_MATCH] != NULL)
		e = etag_guard(rq->in[IN_IF_MATCH], &key);
	if (e == NULL && rq->in[IN_IF_NONE_MATCH] != NULL)
		e = etag_exclude(rq->in[IN_IF_NONE_MATCH], &key);
	return e;
}

static const struct err *
item_judge(struct req *rq, const void *item)
{
	const struct err *e;

	if (rq->route->judge != NULL &&
	    (e = rq->route->judge(rq, item)) != NULL)
		return e;
	return faults_check(&rq->faults);
}

const struct err *
req_judge(struct req *rq)
{
	faults_again(&rq->faults, rq->a);
	return item_judge(rq, rq->body);
}

const struct err *
req_update(struct req *rq, const struct shape *shape, int64_t version,
    void *item)
{
	const struct err *e;

	if ((e = req_match(rq, shape, version)) != NULL)
		return e;
	faults_again(&rq->faults, rq->a);
	e = json_read(shape, JSON_UPDATE, rq->text, rq->len, item, &rq->faults);
	return e != NULL ? e : item_judge(rq, item);
}

const struct err *
req_taken(struct req *rq, const struct err *e, const void *item)
{
	struct err room;
	const struct err *first, *judge;

	if (e == NULL || e->code != ERR_CONFLICT)
		return e;
	first = err_keep(&room, e); /* the judge creates errors, too */
	faults_again(&rq->faults, rq->a);
	judge = item_judge(rq, item);
	return judge != NULL ? judge : err_wrap(first, "name taken");
}
