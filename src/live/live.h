/* SPDX-License-Identifier: ISC */
/*
 * slipway-live(8): one process that holds the connections of clients that
 * listen, and says when a deployment changes.
 *
 * nginx hands a request over once a worker of slipway-api has authorized it, as
 * a GET over a unix socket whose query names what it may see.  Nothing else can
 * connect.  A listener gets an event when the state of a deployment or the size
 * of its log changes.
 */
#ifndef SLIPWAY_LIVE_LIVE_H
#define SLIPWAY_LIVE_LIVE_H

#include "core/arena.h"
#include "core/buf.h"
#include "core/settings.h"
#include "store/change.h"

/* What a request may see. */
struct scope {
	int64_t project_id;    /* 0 = all */
	int64_t deployment_id; /* 0 = all */
	char kind[2];          /* the credential: struct change_watcher */
	int64_t watcher_id;
	char last_id[40]; /* Last-Event-ID; "" = none */
};

struct client {
	int fd;
	bool streams; /* the request was read */
	bool ended;   /* close it */
	struct scope scope;
	int64_t opened, pinged; /* monotonic ms */
	struct buf in, out;
	struct client *next;
};

/* Reads a request; false if it is not one that nginx sends. */
bool request_read(const char *text, struct scope *out);

/* --- clients */

struct clients {
	int epoll;
	int listen_fd;
	struct client *first;
	size_t n;
	size_t streams;
};

MUSTCHECK const struct err *clients_open(struct clients *, int listen_fd);
/* Waits for `ms` (-1 = for ever) and serves what has arrived. Calls `begin` for
 * each stream that begins. */
void clients_wait(struct clients *, int ms,
    void (*begin)(struct client *, void *), void *context);
/* Queues text; a client that does not read ends. */
void client_send(struct client *, const char *text, size_t len);
/* Sends what is queued, comments to silent streams, and ends old ones. */
void clients_flush(struct clients *);
void clients_close(struct clients *);

/* --- what clients are told */

struct feed;

struct feed *feed_open(struct db *, const struct session_term *);
/* Begins a stream: what it missed after its last event if that is known, and
 * otherwise the state of each deployment that can change. */
void feed_begin(struct client *client, void *context); /* of the feed */
/* Reads what changed, if anyone listens, and queues events. Returns when to call
 * it again, in ms; -1 = when a client arrives. */
int feed_turn(struct feed *, struct clients *);

#endif
