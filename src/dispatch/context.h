/* SPDX-License-Identifier: ISC */
/* What all parts of the dispatcher share. */
#ifndef SLIPWAY_DISPATCH_CONTEXT_H
#define SLIPWAY_DISPATCH_CONTEXT_H

#include "core/settings.h"
#include "dispatch/avoid.h"
#include "dispatch/database.h"
#include "dispatch/sick.h"
#include "dispatch/spool.h"
#include "forge/forge.h"

#define CONTEXT_WIRE 3 /* the descriptor of the monitor's socket */

/* What one part announces to the others. */
enum event {
	EVENT_QUEUE = 1 << 0,  /* there may be something to claim */
	EVENT_STATUS = 1 << 1, /* an outbox may hold something due */
	EVENT_WAKE = 1 << 2,   /* the API queued work or a cancellation */
	EVENT_RELOAD = 1 << 3, /* the settings were read again */
};

struct waiting_notes;
struct watch;

struct dispatch {
	struct settings settings;
	bool once;        /* ends when the queue is empty */
	const char *name; /* of the runner */
	struct arena *a;  /* cleared before each part works */
	struct db *db;
	struct database database;
	struct sick sick;
	struct avoid avoid;
	struct waiting_notes *notes;
	struct spool spool;
	struct watch *watch;
	struct forge *forge; /* for addresses alone; NULL = no Git server */
	struct tasks *tasks;
	struct fetch_hosts *hosts;
	int64_t claim_at; /* when a deployment that waits for its Git server
			   * can be claimed, 0 = none; monotonic */
	unsigned events;  /* of this turn; the loop delivers them */
};

#endif
