/* SPDX-License-Identifier: ISC */
/* Notifiers: receivers of messages about deployments and locks.  The messages
 * wait in queue/notice.h. */
#ifndef SLIPWAY_STORE_NOTIFIER_H
#define SLIPWAY_STORE_NOTIFIER_H

#include "db/db.h"
#include "store/page.h"

/* The purpose for which the secret is sealed: id of the notifier. */
#define NOTIFIER_PURPOSE "messages of notifier %lld"
#define NOTIFIER_TARGET_MAX 2000
#define NOTIFIER_ERROR_MAX 500

#define NOTIFIER_MAIL "mail"
#define NOTIFIER_TEXT "text"
#define NOTIFIER_WEBHOOK "webhook"

struct notifier {
	int64_t id;
	struct maybe project_id;     /* none = all projects */
	struct maybe environment_id; /* none = all of the project */
	const char *kind;            /* one of NOTIFIER_* */
	const char *target;
	struct json_text events; /* array of names, core/notice_event.h */
	bool active;
	const char *secret; /* only in the response that shows it */
	const char *last_error;
	struct when last_delivered_at;
	bool valid;
	struct when created_at;
	struct when updated_at;
	struct maybe created_by;
	int64_t version;
};

extern const struct shape notifier_shape;
extern const struct shape notifier_event_shape;

/* Ordered by id; those of a project, or 0 = all. */
MUSTCHECK const struct err *notifier_page(struct db *, struct arena *,
    int64_t project_id, struct page *, struct list *out);
/* ERR_NOTFOUND also if it was deleted. */
MUSTCHECK const struct err *notifier_by_id(struct db *, struct arena *,
    int64_t id, struct notifier *out);
/* The same, locked until the transaction ends. */
MUSTCHECK const struct err *notifier_lock(struct db *, struct arena *,
    int64_t id, struct notifier *out);
/* Locks the row of a notifier, deleted or not; 0 and unknown ids are ignored. */
MUSTCHECK const struct err *notifier_hold(struct db *, struct arena *,
    int64_t id);
MUSTCHECK const struct err *notifier_insert(struct db *,
    const struct notifier *, int64_t *id);
MUSTCHECK const struct err *notifier_update(struct db *,
    const struct notifier *);
/* Deletes the notifier and its undelivered messages. */
MUSTCHECK const struct err *notifier_delete(struct db *, int64_t id);
/* The same for all notifiers of an environment. */
MUSTCHECK const struct err *notifier_delete_of_environment(struct db *,
    int64_t environment_id);
/* Stores the sealed secret.  The one before signs messages, too, for a day. */
MUSTCHECK const struct err *notifier_secret_put(struct db *, int64_t id,
    struct blob secret);
/* Records the result of an attempt; NULL = delivered.  Does nothing if the
 * notifier is deleted. */
MUSTCHECK const struct err *notifier_result(struct db *, int64_t id,
    const char *last_error);
/* The receiver wants no more messages: deactivates the notifier and deletes its
 * undelivered messages.  Inside a transaction. */
MUSTCHECK const struct err *notifier_disable(struct db *, int64_t id,
    const char *last_error);

#endif
