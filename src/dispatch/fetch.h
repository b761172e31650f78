/* SPDX-License-Identifier: ISC */
/*
 * A Git server that hangs holds each job that fetches from it until its
 * checkout times out.  To keep it from taking every slot, at most half of the
 * slots fetch from one host at a time, and only one from a host that recently
 * let a fetch hang.  A fetch that hangs takes no slot.
 */
#ifndef SLIPWAY_DISPATCH_FETCH_H
#define SLIPWAY_DISPATCH_FETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FETCH_HOST 256 /* size of a host's name and port */
#define FETCH_SLOW 16

/* Of one task. */
struct fetch {
	char host[FETCH_HOST]; /* "" = unknown, or the repository is a path */
	int64_t since;         /* monotonic milliseconds */
	bool is_over;          /* it fetches nothing more */
};

/* Hosts that let a fetch hang. */
struct fetch_hosts {
	struct fetch_slow {
		char host[FETCH_HOST]; /* "" = unused */
		int64_t until;
	} slow[FETCH_SLOW];
};

void fetch_begin(struct fetch *, const char *repository);
/* The host in an address, with its port, in lower case; "" for a path. */
void fetch_host(const char *repository, char out[FETCH_HOST]);
/* Whether it has lasted so long that its server probably does not respond. */
bool fetch_hangs(const struct fetch *);
/* How many of `slots` jobs can fetch from that host at a time. */
size_t fetch_limit(const struct fetch_hosts *, const char *host, size_t slots);
/* The fetch succeeded, or the task ended without one. Returns whether this
 * changed the state. `name` is the task's, for the log. */
bool fetch_succeeded(struct fetch_hosts *, struct fetch *);
bool fetch_failed(struct fetch_hosts *, struct fetch *, const char *name);

#endif
