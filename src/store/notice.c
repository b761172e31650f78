/* SPDX-License-Identifier: ISC */
#include "store/notice.h"

#include <string.h>

#include "store/audit.h"
#include "store/notifier.h"
#include "store/store.h"
#include "store/total.h"

#define SMALL_ARENA 4096

/* Arguments of all statements here. */
struct notice_args {
	int64_t id;
	int64_t notifier_id;
	const char *events; /* a list in JSON */
	int64_t project_id;
	int64_t environment_id;
	int64_t user_id;
	const char *text;
	int64_t seconds;
	struct when held_until;
	int64_t days;
};
struct number {
	int64_t n;
};

#define A(m) FIELD(struct notice_args, m, 0)
#define N(m) FIELD(struct notice, m, 0)
#define NULLABLE(m) FIELD(struct notice, m, FIELD_NULL)

static const struct field n_row[] = { FIELD(struct number, n, 0), FIELD_END };
static const struct field id_args[] = { A(id), FIELD_END };

#define SUBSCRIBES(event) "JSON_CONTAINS(n.events, JSON_QUOTE(" event "))"
/* Events of the deployment `d`, each once. */
#define WANT                                                                   \
	"INSERT INTO notice (notifier_id, event, project_id, environment_id,"  \
	" deployment_id, user_id) SELECT "
#define PLACE ", d.project_id, d.environment_id, d.id, "
#define ONCE " ON DUPLICATE KEY UPDATE notice.id = notice.id"
/* The deployment to the same place that ended before. */
#define BEFORE                                                                 \
	"(SELECT b.id FROM deployment b"                                       \
	" WHERE b.pipeline_id = d.pipeline_id AND b.id < d.id"                 \
	" AND b.environment_id <=> d.environment_id"                           \
	" AND b.status IN ('success', 'failed', 'interrupted')"                \
	" ORDER BY b.id DESC LIMIT 1)"
#define FAILED_BEFORE                                                          \
	"EXISTS (SELECT 1 FROM deployment o WHERE o.id = " BEFORE              \
	" AND o.status <> 'success')"
/* Usually there is none, and the next statement costs ten times as much. */
static const struct stmt any = {
	.name = "notice_any",
	.sql = "SELECT " NOTICE_ANY("?") " AS n",
	.args = id_args,
	.row = n_row,
	.rowsize = sizeof(struct number),
};
static const struct field want_args[] = { A(events), A(id), FIELD_END };
static const struct stmt want = {
	.name = "notice_want",
	.sql = WANT
	"n.id, v.event" PLACE "NULL FROM JSON_TABLE(?, '$[*]'"
	" COLUMNS (event VARCHAR(30) PATH '$')) v"
	" JOIN deployment d ON d.id = ?"
	" JOIN notifier n ON n.valid = 1 AND n.active = 1"
	" AND (n.project_id IS NULL"
	" OR n.project_id = d.project_id)"
	" AND (n.environment_id IS NULL"
	" OR n.environment_id = d.environment_id)"
	" WHERE " SUBSCRIBES(
	    "v.event") " AND CASE v.event"
		       " WHEN 'recovered' THEN " FAILED_BEFORE
		       " WHEN 'succeeded' THEN NOT (" SUBSCRIBES(
			   "'recovered'") " AND " FAILED_BEFORE ") ELSE 1 END"
					  " ORDER BY v.event = 'started' DESC" ONCE,
	.args = want_args,
};
#define TO_USER                                                                        \
	" AND u.valid = 1 AND u.status = 'active' AND u.email LIKE '%@%'"              \
	" AND " SEES("u",                                                              \
	    "d.project_id") " WHERE d.id = ? AND NOT EXISTS (SELECT 1 FROM notifier n" \
			    " WHERE n.valid = 1 AND (n.project_id IS NULL"             \
			    " OR n.project_id = d.project_id))" ONCE
static const struct stmt mail_failure = {
	.name = "notice_mail_failure",
	.sql = WANT "0, 'failed'" PLACE "u.id FROM deployment d"
		    " JOIN user u ON u.id = d.created_by" TO_USER,
	.args = id_args,
};
static const struct stmt mail_recovery = {
	.name = "notice_mail_recovery",
	.sql = WANT "0, 'recovered'" PLACE "u.id FROM deployment d"
		    " JOIN deployment o ON o.id = " BEFORE
		    " AND o.status <> 'success'"
		    " JOIN user u ON u.id = o.created_by" TO_USER,
	.args = id_args,
};
static const struct field lock_args[] = { A(project_id), A(environment_id),
	A(user_id), A(text), A(project_id), A(project_id), A(environment_id),
	A(environment_id), FIELD_END };
static const struct stmt want_lock = {
	.name = "notice_want_lock",
	.sql = "INSERT INTO notice (notifier_id, event, project_id,"
	       " environment_id, user_id, text) SELECT n.id, 'locked',"
	       " NULLIF(?, 0), NULLIF(?, 0), ?, ? FROM notifier n"
	       " WHERE n.valid = 1 AND n.active = 1"
	       " AND (? = 0 OR n.project_id IS NULL OR n.project_id = ?)"
	       " AND (? = 0 OR n.environment_id IS NULL"
	       " OR n.environment_id = ?) AND " SUBSCRIBES("'locked'"),
	.args = lock_args,
};
static const struct field test_args[] = { A(user_id), A(notifier_id),
	FIELD_END };
static const struct stmt want_test = {
	.name = "notice_want_test",
	.sql = "INSERT INTO notice (notifier_id, event, project_id,"
	       " environment_id, user_id) SELECT n.id, 'test', n.project_id,"
	       " n.environment_id, ? FROM notifier n WHERE n.id = ?",
	.args = test_args,
};

/* A delivered notice stays for a while, so that its event is not sent again. */
static const struct stmt close_one = {
	.name = "notice_close",
	.sql = "UPDATE notice SET next_at = NULL, held_until = NULL"
	       " WHERE id = ?",
	.args = id_args,
};
static const struct field later_args[] = { A(seconds), A(id), A(held_until),
	FIELD_END };
static const struct stmt later = {
	.name = "notice_later",
	.sql = "UPDATE notice SET held_until = NULL,"
	       " next_at = NOW(3) + INTERVAL ? SECOND"
	       " WHERE id = ? AND held_until <=> ?",
	.args = later_args,
};
static const struct field postpone_args[] = { A(seconds), A(notifier_id), A(id),
	A(held_until), A(seconds), FIELD_END };
static const struct stmt postpone = {
	.name = "notice_postpone",
	.sql = "UPDATE notice SET held_until = NULL,"
	       " next_at = NOW(3) + INTERVAL ? SECOND WHERE notifier_id = ?"
	       " AND ((id = ? AND held_until <=> ?)"
	       " OR (COALESCE(held_until <= NOW(3), 1)"
	       " AND next_at < NOW(3) + INTERVAL ? SECOND))",
	.args = postpone_args,
};

static const struct field days_args[] = { A(days), FIELD_END };
#define OLD " next_at IS NULL AND created_at < NOW(3) - INTERVAL ? DAY"
static const struct stmt old = {
	.name = "notice_old",
	.sql = "SELECT COUNT(*) AS n FROM (SELECT 1 FROM notice WHERE" OLD
	       " LIMIT 1) t",
	.args = days_args,
	.row = n_row,
	.rowsize = sizeof(struct number),
};
static const struct stmt tidy = {
	.name = "notice_tidy",
	.sql = "DELETE FROM notice WHERE" OLD " ORDER BY created_at LIMIT 500",
	.args = days_args,
};

static const struct stmt *const notice_stmts[] = {
	&any,
	&want,
	&mail_failure,
	&mail_recovery,
	&want_lock,
	&want_test,
	&close_one,
	&later,
	&postpone,
	&old,
	&tidy,
	NULL,
};

const struct store notice_store = {
	.stmts = notice_stmts,
};

/* The events to record, as JSON, and the mail.  The start of a short deployment
 * is recorded with its end. */
static const struct {
	const char *events;
	const struct stmt *mail;
} recorded[NOTICE__MAX] = {
	[NOTICE_STARTED] = { "[\"started\"]", NULL },
	[NOTICE_SUCCEEDED] = { "[\"started\", \"succeeded\", \"recovered\"]",
	    &mail_recovery },
	[NOTICE_FAILED] = { "[\"started\", \"failed\"]", &mail_failure },
	[NOTICE_WAITING] = { "[\"waiting_for_approval\"]", NULL },
};

const struct err *
notice_want(struct db *db, int64_t deployment_id, enum notice_event event)
{
	const struct notice_args args = { .id = deployment_id };
	struct arena *a = arena_open(SMALL_ARENA);
	const struct err *e;
	struct number found;

	e = db_row(db, a, &any, &args, &found);
	arena_close(a);
	return e != NULL ?
	    e :
	    notice_want_of(db, deployment_id, event, found.n > 0);
}

const struct err *
notice_want_of(struct db *db, int64_t deployment_id, enum notice_event event,
    bool has_notifiers)
{
	const struct notice_args args = { .id = deployment_id,
		.events = recorded[event].events };
	const struct stmt *mail = recorded[event].mail;
	const struct err *e;

	if (has_notifiers && (e = db_exec(db, &want, &args, NULL)) != NULL)
		return e;
	if (mail == NULL || db_settings(db)->mail.server == NULL)
		return NULL;
	return db_exec(db, mail, &args, NULL);
}

const struct err *
notice_want_lock(struct db *db, const struct deploy_lock *lock)
{
	const struct notice_args args = { .project_id = lock->project_id,
		.environment_id = lock->environment_id,
		.user_id = lock->locked_by.n,
		.text = lock->reason };

	return db_exec(db, &want_lock, &args, NULL);
}

const struct err *
notice_want_test(struct db *db, int64_t notifier_id, int64_t user_id)
{
	const struct notice_args args = { .notifier_id = notifier_id,
		.user_id = user_id };

	return db_exec(db, &want_test, &args, NULL);
}

static struct notice_args
args_of(const struct notice *n, int64_t seconds)
{
	return (struct notice_args){ .id = n->id,
		.notifier_id = n->notifier_id,
		.seconds = seconds,
		.held_until = n->held_until };
}

/* The result of an attempt, for a transaction. */
struct attempt {
	const struct notice *notice;
	const struct stmt *how;
	enum notice_result result;
	int64_t seconds;
	const char *runner;
	const char *fault;
};

static const struct err *
attempt_body(struct db *db, void *context)
{
	const struct attempt *t = context;
	const struct notice_args args = args_of(t->notice, t->seconds);
	const struct err *e;

	if ((e = db_exec(db, t->how, &args, NULL)) != NULL ||
	    (e = total_notice(db, t->notice->kind, t->result)) != NULL)
		return e;
	return notifier_result(db, t->notice->notifier_id, t->fault);
}

static const struct err *
attempt_store(struct db *db, struct attempt attempt)
{
	return db_transaction(db, attempt_body, &attempt);
}

const struct err *
notice_sent(struct db *db, const struct notice *n)
{
	return attempt_store(db,
	    (struct attempt){ .notice = n,
		.how = &close_one,
		.result = NOTICE_DELIVERED });
}

const struct err *
notice_drop(struct db *db, const struct notice *n, const char *fault)
{
	const struct notice_args args = args_of(n, 0);

	if (fault == NULL)
		return db_exec(db, &close_one, &args, NULL);
	return attempt_store(db,
	    (struct attempt){ .notice = n,
		.how = &close_one,
		.result = NOTICE_DROPPED,
		.fault = fault });
}

const struct err *
notice_later(struct db *db, const struct notice *n, int64_t seconds,
    const char *fault)
{
	return attempt_store(db,
	    (struct attempt){ .notice = n,
		.how = &later,
		.result = NOTICE_RETRIED,
		.seconds = seconds,
		.fault = fault });
}

const struct err *
notice_postpone(struct db *db, const struct notice *n, int64_t seconds,
    const char *fault)
{
	return attempt_store(db,
	    (struct attempt){ .notice = n,
		.how = &postpone,
		.result = NOTICE_RETRIED,
		.seconds = seconds,
		.fault = fault });
}

static const struct err *
disable_body(struct db *db, void *context)
{
	const struct attempt *t = context;
	const struct notice *n = t->notice;
	const struct audit_object_ref object = { AUDIT_OF_NOTIFIER,
		n->notifier_id, n->notifier_project_id.n };
	const struct audit entry = { .via = AUDIT_RUNNER,
		.username = t->runner,
		.action = "deactivateNotifier" };
	const struct err *e;

	if ((e = notifier_disable(db, n->notifier_id, t->fault)) != NULL ||
	    (e = total_notice(db, n->kind, NOTICE_DROPPED)) != NULL)
		return e;
	return audit_write(db, &entry, &object);
}

const struct err *
notice_disable(struct db *db, const struct notice *n, const char *runner,
    const char *fault)
{
	struct attempt attempt = { .notice = n,
		.runner = runner,
		.fault = fault };

	return db_transaction(db, disable_body, &attempt);
}

const struct err *
notice_tidy(struct db *db, struct arena *a, int64_t days)
{
	const struct notice_args args = { .days = days };
	const struct err *e;
	struct number found;

	if ((e = db_row(db, a, &old, &args, &found)) != NULL || found.n == 0)
		return e;
	return db_exec(db, &tidy, &args, NULL);
}
