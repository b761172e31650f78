/* SPDX-License-Identifier: ISC */
#include "web/audited.h"

#include "json/json.h"
#include "web/row.h"

/* Names and short values of all members of one shape. */
#define CHANGES_MAX ((size_t)64 * 1024)

static const char *
changes_text(struct req *rq, const struct shape *shape, const void *old,
    const void *new, bool *some)
{
	const char *text;
	struct buf b;

	buf_init(&b, CHANGES_MAX);
	*some = json_changes(&b, shape, old, new);
	text = b.overflow ? "[]" : arena_strndup(rq->a, b.data, b.len);
	buf_release(&b);
	return text;
}

const char *
audited_via(const struct req *rq)
{
	if ((rq->route->flags & ROUTE_SIGNED) != 0)
		return AUDIT_HOOK;
	return rq->who.token_id != 0 && rq->who.session_id == 0 ? AUDIT_TOKEN :
								  AUDIT_SESSION;
}

const struct err *
audited_object(struct req *rq, const struct audit_object_ref *object)
{
	const struct principal *who = &rq->who;
	struct audit entry = { .user_id = { who->user_id, who->user_id != 0 },
		.username = who->username,
		.via = audited_via(rq),
		.token_id = { who->token_id, who->token_id != 0 },
		.address = rq->in[IN_REMOTE_ADDR],
		.action = rq->audited.action != NULL ? rq->audited.action :
						       rq->route->operation,
		.changes = { rq->audited.changes } };
	bool some;

	rq->audited.is_said = true;
	if (entry.changes.s == NULL && rq->body != NULL)
		entry.changes.s = changes_text(rq, rq->route->in, NULL,
		    rq->body, &some);
	return audit_write(rq->db, &entry, object);
}

const struct err *
audited_change(struct req *rq, enum audit_object type, int64_t id,
    int64_t project_id)
{
	const struct audit_object_ref object = { type, id, project_id };

	return audited_object(rq, &object);
}

void
audited_made(struct req *rq, const struct shape *shape, const void *made)
{
	bool some;

	rq->audited.changes = changes_text(rq, shape, NULL, made, &some);
}

void
audited_nothing(struct req *rq)
{
	rq->audited.is_said = true;
}

bool
audited_same(struct req *rq, const struct shape *shape, const void *old,
    const void *new)
{
	bool some;

	rq->audited.changes = changes_text(rq, shape, old, new, &some);
	if (!some)
		audited_nothing(rq);
	return !some;
}
