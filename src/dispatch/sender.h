/* SPDX-License-Identifier: ISC */
/*
 * Sends the messages of an outbox.
 *
 * While anything is due, child processes send it, one message after the other,
 * and end; the loop only checks, with one cheap read every few seconds, whether
 * anything is due.  With several children, a slow receiver delays no other one.
 *
 * SENDER_FUNCTIONS() defines the functions of a part from a kind of sender, and
 * SENDER_MEMBERS() lists them.
 */
#ifndef SLIPWAY_DISPATCH_SENDER_H
#define SLIPWAY_DISPATCH_SENDER_H

#include <sys/types.h>

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "dispatch/part.h"

#define SENDER_CHILDREN ((size_t)8)
#define SENDER_PLACES (2 * SENDER_CHILDREN) /* with those that drain */
#define SENDER_TURN_MS 60000 /* then a child ends, to read new settings */
#define SENDER_HOLD                                                            \
	60 /* seconds for which a child claims a message: more than
			* it has for sending it */
#define SENDER_SEND_MS 30000

struct db;

enum sent {
	SENT,      /* or dropped, or put off */
	SENT_AWAY, /* the only receiver, or the database, cannot be reached */
};

struct sender_kind {
	const char *what; /* for messages: "commit statuses" */
	size_t children;  /* at the same time, at most SENDER_CHILDREN */
	/* At the end of its turn, a child waits for many responses.  It does not
	 * count then, so that messages do not wait for its end. */
	bool drains;
	bool (*is_enabled)(const struct dispatch *);
	/* Milliseconds until something is due, at most `max`. */
	const struct err *(*due)(struct db *, int64_t max, int64_t *out);
	/* In a child: sends the messages that are due. */
	enum sent (*send)(struct dispatch *);
};

struct sender {
	pid_t child[SENDER_PLACES];   /* 0 = none */
	int64_t until[SENDER_PLACES]; /* it claims messages */
	int64_t at;
	int64_t looked; /* when it last read whether anything is due */
	int64_t pause;
	bool is_asked; /* something may have become due since */
};

int64_t sender_next(const struct sender_kind *, const struct sender *,
    const struct dispatch *);
void sender_work(const struct sender_kind *, struct sender *, struct dispatch *,
    int64_t now);
/* A new message may be due. The sender looks at once, but at most once in a
 * quarter of a second, because each deployment announces this three times. This
 * does not shorten the pause after a receiver could not be reached; new
 * settings do. */
void sender_events(struct sender *, unsigned events);
void sender_child(struct sender *, pid_t, int status);
bool sender_is_idle(const struct sender_kind *, const struct sender *,
    const struct dispatch *, int64_t now);
/* Seconds until the next attempt, about: `first`, then twice as many each time,
 * at least `min` and at most an hour. */
int64_t sender_delay(int64_t first, int64_t attempts, int64_t min);

/* clang-format off */
#define SENDER_FUNCTIONS(name, kind)					\
	static void name##_work(struct dispatch *d, void *state,	\
	    int64_t now)						\
	{								\
		sender_work(&(kind), state, d, now);			\
	}								\
	static int64_t name##_next(const struct dispatch *d,		\
	    const void *state, int64_t now)				\
	{								\
		(void)now;						\
		return sender_next(&(kind), state, d);			\
	}								\
	static void name##_events(void *state, unsigned events)		\
	{								\
		sender_events(state, events);				\
	}								\
	static void name##_child(struct dispatch *d, void *state,	\
	    pid_t pid, int status)					\
	{								\
		(void)d;						\
		sender_child(state, pid, status);			\
	}								\
	static bool name##_is_idle(const struct dispatch *d,		\
	    const void *state, int64_t now)				\
	{								\
		return sender_is_idle(&(kind), state, d, now);		\
	}
#define SENDER_MEMBERS(name)						\
	.size = sizeof(struct sender),					\
	.work = name##_work,						\
	.next = name##_next,						\
	.events = name##_events,					\
	.child = name##_child,						\
	.is_idle = name##_is_idle,
/* clang-format on */

#endif
