/* SPDX-License-Identifier: ISC */
/* The events of which notifiers send messages. */
#ifndef SLIPWAY_CORE_NOTICE_EVENT_H
#define SLIPWAY_CORE_NOTICE_EVENT_H

/* clang-format off */
/* Event: enumerator, name, type of a webhook's message, sentence.  Notifiers
 * subscribe to those of X; every notifier gets that of T. */
#define NOTICE_EVENTS(X, T)						\
	X(NOTICE_STARTED, "started", "deployment.started",		\
	    "The deployment has started.")				\
	X(NOTICE_SUCCEEDED, "succeeded", "deployment.succeeded",	\
	    "The deployment succeeded.")				\
	X(NOTICE_FAILED, "failed", "deployment.failed",		\
	    "The deployment failed or was interrupted.")		\
	X(NOTICE_RECOVERED, "recovered", "deployment.recovered",	\
	    "The deployment succeeded after one that failed.")	\
	X(NOTICE_WAITING, "waiting_for_approval",			\
	    "deployment.waiting_for_approval",				\
	    "The deployment waits for approval.")			\
	X(NOTICE_LOCKED, "locked", "lock.set", "A lock was set.")	\
	T(NOTICE_TEST, "test", "test", "A user tests the notifier.")

/* Text for the OpenAPI document: "NAME: SENTENCE", one after another. */
#define NOTICE_NO_TEXT(...)
#define NOTICE_TEXT(id, name, type, text) " " name ": " text
#define NOTICE_EVENT_TEXTS NOTICE_EVENTS(NOTICE_TEXT, NOTICE_NO_TEXT)
/* clang-format on */

enum notice_event {
#define X(id, ...) id,
	NOTICE_EVENTS(X, X)
#undef X
	    NOTICE__MAX
};

struct notice_event_kind {
	const char *name;
	const char *type;
};
extern const struct notice_event_kind notice_events[NOTICE__MAX];

/* The names to which a notifier can subscribe; ends with NULL. */
extern const char *const notice_event_names[];

/* NOTICE__MAX if the name is unknown. */
enum notice_event notice_event_find(const char *name);

#endif
