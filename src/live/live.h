/* SPDX-License-Identifier: ISC */
/*
 * slipway-live(8): one process that holds the connections of clients that
 * listen or wait.
 *
 * nginx hands a request over once a worker of slipway-api has authorized it, as
 * a GET over a unix socket whose query names its scope.  Nothing else can
 * connect.  A listener gets an event when the state of a deployment or the size
 * of its log changes.  A request that waits is returned to a worker when there
 * is something new for it, or when its time is over.
 */
#ifndef SLIPWAY_LIVE_LIVE_H
#define SLIPWAY_LIVE_LIVE_H

#include <signal.h>

#include "core/arena.h"
#include "core/buf.h"
#include "core/settings.h"
#include "store/change.h"

/* The deployments that a request may see. */
struct scope {
	bool waits;            /* it is returned; otherwise it is a stream */
	int64_t project_id;    /* 0 = all */
	int64_t deployment_id; /* 0 = all */
	int64_t user_id;
	char kind[2]; /* the credential: struct change_watcher */
	int64_t watcher_id;
	bool is_guest; /* only of the projects of which the user is a member */
	/* of a stream */
	char last_id[40]; /* Last-Event-ID; "" = none */
	/* of a wait */
	int64_t from;  /* for more than this of a log; -1 = for a change… */
	int64_t since; /* …after this time, monotonic ms */
	int64_t ms;    /* at most so long */
	int64_t again; /* is returned with it */
};

enum client_state {
	CLIENT_NEW,    /* its request was not read completely */
	CLIENT_STREAM, /* listens */
	CLIENT_FRESH,  /* waits, and no change was read since it came */
	CLIENT_WAIT,   /* waits */
	CLIENT_READY,  /* there is something new: it is returned soon */
	CLIENT_ENDED,  /* close it */
};

struct client {
	int fd;
	enum client_state state;
	bool begun; /* its request was read */
	struct scope scope;
	int64_t opened, pinged; /* monotonic ms */
	struct buf in, out;
	struct buf projects; /* of a guest: ",1,2," */
	struct client *next;
};

/* Reads a request; false if it is not one that nginx sends. */
bool request_read(const char *text, struct scope *out);

/* --- clients */

struct clients {
	int epoll;
	int listen_fd;
	int wake_fd;   /* -1 = none; silent while no request was read */
	bool hears;    /* whether wake_fd is in the set */
	sigset_t mask; /* of signals while it waits: none */
	struct client *first, **end; /* in the order of their arrival */
	size_t n;
	size_t begun;
	size_t user_max;  /* clients of one user */
	int64_t returned; /* monotonic ms; when waits were returned last */
	int64_t due;      /* monotonic ms; when to flush again at the latest */
};

/* `user_max` is how many clients a user may have; more are rejected with 429. */
MUSTCHECK const struct err *clients_open(struct clients *, int listen_fd,
    int wake_fd, size_t user_max);
/* Waits for `ms` (-1 = for ever) or a signal, and serves the clients that have
 * sent something. Calls `begin` for each request that was read. Returns whether
 * a change was announced. */
bool clients_wait(struct clients *, int ms,
    void (*begin)(struct client *, void *), void *context);
/* Queues text; a client that does not read ends. */
void client_send(struct client *, const char *text, size_t len);
/* Sends queued text, sends comments to silent streams, ends old streams, and
 * returns waits that are over. Waits that a change has ended return at a
 * limited rate, which leaves the workers time for other requests. */
void clients_flush(struct clients *);
void clients_close(struct clients *);

/* --- what clients get */

struct feed;

struct feed *feed_open(struct db *, const struct session_term *);
/* Begins a stream: with the events after its last one if that is known,
 * otherwise with the state of each deployment that can change. Or begins a
 * wait. */
void feed_begin(struct client *client, void *context); /* of the feed */
/* Something has changed, so the next turn is due. */
void feed_wake(struct feed *);
/* Reads the changes, if there are clients, queues events and marks waits.
 * Returns when to call it again, in ms; -1 = when a client arrives. */
int feed_turn(struct feed *, struct clients *);

#endif
