/* SPDX-License-Identifier: ISC */
/*
 * The outbox of notifiers: messages to deliver, and those delivered lately.
 *
 * A notice is written in the transaction that causes the event.  An event of a
 * deployment has one notice per notifier, however often it is recorded.  Each
 * has an id that all attempts to deliver it send.
 *
 * If no notifier covers a project and [mail] server is set, the user who
 * started a failed deployment gets a mail, and another one on recovery.  These
 * notices belong to notifier 0.
 */
#ifndef SLIPWAY_QUEUE_NOTICE_H
#define SLIPWAY_QUEUE_NOTICE_H

#include "core/notice_event.h"
#include "db/db.h"
#include "store/lock_row.h"

/* A due notice, its receiver and the content of its message.  Members are NULL
 * or not set if the event has no such object. */
struct notice {
	int64_t id;
	const char *message_id;
	int64_t notifier_id; /* 0 = a mail to the user of `email` */
	const char *event;
	const char *text; /* why there is a lock */
	int64_t attempts; /* including this one */
	int64_t age;      /* seconds since the event */
	struct when created_at;
	struct when held_until;
	const char *kind; /* NULL if it has no receiver any more */
	const char *target;
	struct maybe notifier_project_id; /* not set = of all projects */
	struct blob secret;               /* sealed */
	struct blob old_secret;           /* signs, too; len 0 = none */
	const char *last_error;
	const char *email;
	struct maybe project_id;
	const char *project;
	struct maybe environment_id;
	const char *environment;
	const char *environment_url;
	struct maybe deployment_id;
	struct maybe pipeline_id;
	const char *pipeline;
	const char *branch;
	const char *tag; /* in place of the branch */
	const char *commit_hash;
	const char *commit_message;
	struct json_text env_vars_sent; /* keys that the request set */
	const char *status;
	const char *reason;
	const char *detail;
	struct maybe warnings; /* steps that failed and may */
	const char *trigger;
	const char *user; /* who started the deployment or set the lock */
	const char *url;  /* not in rows */
};

/* Inside the transaction in which the deployment's event happens: one of
 * NOTICE_STARTED, NOTICE_SUCCEEDED, NOTICE_FAILED, NOTICE_WAITING.  A success
 * after a failure is NOTICE_RECOVERED for notifiers that subscribe to it.  A
 * deployment that ends has started. */
MUSTCHECK const struct err *notice_want(struct db *, int64_t deployment_id,
    enum notice_event);
/* The same, if the caller has looked whether the project has notifiers: the
 * fragment @notice_any, for the id of a deployment. */
MUSTCHECK const struct err *notice_want_of(struct db *, int64_t deployment_id,
    enum notice_event, bool has_notifiers);
/* Inside the transaction that sets the lock. */
MUSTCHECK const struct err *notice_want_lock(struct db *,
    const struct deploy_lock *);
/* A test message by that user. */
MUSTCHECK const struct err *notice_want_test(struct db *, int64_t notifier_id,
    int64_t user_id);

/* Mails go to one server, all others to servers of their own. */
/* Claims the mail that has waited longest for `seconds`; ERR_NOTFOUND,
 * without a write, if none is due.  While a notice of a notifier is claimed,
 * its others are not due. */
MUSTCHECK const struct err *notice_claim_mail(struct db *, struct arena *,
    int64_t seconds, struct notice *out);
#define NOTICE_CLAIMS 128 /* at a time */
/* Notices to claim that are no mails. */
struct notice_claims {
	int64_t seconds;
	size_t max; /* at most NOTICE_CLAIMS */
	size_t
	    failing_max; /* the same of notifiers whose last message failed */
	int64_t ids[NOTICE_CLAIMS];
	size_t n;
};
/* Claims one notice of each notifier that has any: first of those that delivered
 * their last message, then of new ones, then of those that failed. */
MUSTCHECK const struct err *notice_claim_some(struct db *, struct arena *,
    struct notice_claims *);
/* Claims a few that stand apart, by their project, their host or their time, and
 * says whether any is due.  `failing_max` is not used.  It reads all that are due. */
MUSTCHECK const struct err *notice_claim_spread(struct db *, struct arena *,
    struct notice_claims *, bool *is_due);
/* Reads those that were claimed as struct notice, in their order. */
MUSTCHECK const struct err *notice_load(struct db *, struct arena *,
    const struct notice_claims *, struct list *out);
/* Copies one with its texts. */
void notice_copy(struct arena *, const struct notice *from, struct notice *to);
/* The receiver has accepted the message. */
MUSTCHECK const struct err *notice_sent(struct db *, const struct notice *);
/* Gives up, or there is no receiver any more; `fault` may be NULL. */
MUSTCHECK const struct err *notice_drop(struct db *, const struct notice *,
    const char *fault);
/* Records a failure: tries again in `seconds`.  Does nothing if another process
 * has claimed the notice since. */
MUSTCHECK const struct err *notice_later(struct db *, const struct notice *,
    int64_t seconds, const char *fault);
/* The same for all notices of the notifier, in their order. */
MUSTCHECK const struct err *notice_postpone(struct db *, const struct notice *,
    int64_t seconds, const char *fault);
/* The receiver wants no more messages: deactivates the notifier and drops its
 * notices. The audit log names the runner. */
MUSTCHECK const struct err *notice_disable(struct db *, const struct notice *,
    const char *runner, const char *fault);
/* Milliseconds until a mail, or any other notice, is due, at most `max`; reads
 * only. */
MUSTCHECK const struct err *notice_due_mail(struct db *, int64_t max,
    int64_t *out);
MUSTCHECK const struct err *notice_due_other(struct db *, int64_t max,
    int64_t *out);
/* The same, until one has been due for `ms`. */
MUSTCHECK const struct err *notice_due_since(struct db *, int64_t ms,
    int64_t max, int64_t *out);
/* Deletes delivered notices that are older than `days`, some hundreds per call;
 * writes nothing if there are none. */
MUSTCHECK const struct err *notice_tidy(struct db *, struct arena *,
    int64_t days);

#endif
