/* SPDX-License-Identifier: ISC */
#include "queue/notice.h"

#include <string.h>

#include "queue/stores.h"
#include "queue/total.h"
#include "store/audit.h"
#include "store/notifier.h"

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

#include "queue/notice.sql.h"

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
	    &sql_notice_mail_recovery },
	[NOTICE_FAILED] = { "[\"started\", \"failed\"]",
	    &sql_notice_mail_failure },
	[NOTICE_WAITING] = { "[\"waiting_for_approval\"]", NULL },
};

const struct err *
notice_want(struct db *db, int64_t deployment_id, enum notice_event event)
{
	const struct notice_args args = { .id = deployment_id };
	struct arena *a = arena_open(SMALL_ARENA);
	const struct err *e;
	struct number found;

	e = db_row(db, a, &sql_notice_any, &args, &found);
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

	if (has_notifiers &&
	    (e = db_exec(db, &sql_notice_want, &args, NULL)) != NULL)
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

	return db_exec(db, &sql_notice_want_lock, &args, NULL);
}

const struct err *
notice_want_test(struct db *db, int64_t notifier_id, int64_t user_id)
{
	const struct notice_args args = { .notifier_id = notifier_id,
		.user_id = user_id };

	return db_exec(db, &sql_notice_want_test, &args, NULL);
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
		.how = &sql_notice_close,
		.result = NOTICE_DELIVERED });
}

const struct err *
notice_drop(struct db *db, const struct notice *n, const char *fault)
{
	const struct notice_args args = args_of(n, 0);

	if (fault == NULL)
		return db_exec(db, &sql_notice_close, &args, NULL);
	return attempt_store(db,
	    (struct attempt){ .notice = n,
		.how = &sql_notice_close,
		.result = NOTICE_DROPPED,
		.fault = fault });
}

const struct err *
notice_later(struct db *db, const struct notice *n, int64_t seconds,
    const char *fault)
{
	return attempt_store(db,
	    (struct attempt){ .notice = n,
		.how = &sql_notice_later,
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
		.how = &sql_notice_postpone,
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

	if ((e = db_row(db, a, &sql_notice_old, &args, &found)) != NULL ||
	    found.n == 0)
		return e;
	return db_exec(db, &sql_notice_tidy, &args, NULL);
}
