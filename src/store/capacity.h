/* SPDX-License-Identifier: ISC */
/* What the database server allows the service, and how much of it is used. */
#ifndef SLIPWAY_STORE_CAPACITY_H
#define SLIPWAY_STORE_CAPACITY_H

#include "db/db.h"

struct capacity {
	int64_t flush_log;  /* innodb_flush_log_at_trx_commit */
	int64_t max_packet; /* bytes of a statement */
	int64_t max_connections;
	int64_t rights;         /* more than the service needs */
	int64_t newest_project; /* its id; 0 = none */
	int64_t log_bytes;      /* of stored logs, by the server's statistics */
	const char *datadir;    /* of the server, on its host */
};

MUSTCHECK const struct err *capacity_read(struct db *, struct arena *,
    struct capacity *out);

#endif
