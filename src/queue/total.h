/* SPDX-License-Identifier: ISC */
/* Totals for monitoring: they do not shrink when rows are deleted. */
#ifndef SLIPWAY_QUEUE_TOTAL_H
#define SLIPWAY_QUEUE_TOTAL_H

#include "core/state.h"
#include "db/db.h"

#define TOTAL_LONGER 2147483647 /* the bound of the last range */

/* clang-format off */
/* Upper bounds of the ranges of times: milliseconds, and seconds as text. */
#define TOTAL_BOUNDS(X)							\
	X(100, "0.1")							\
	X(500, "0.5")							\
	X(1000, "1")							\
	X(5000, "5")							\
	X(10000, "10")							\
	X(30000, "30")							\
	X(60000, "60")							\
	X(300000, "300")						\
	X(600000, "600")						\
	X(1800000, "1800")						\
	X(3600000, "3600")
/* clang-format on */

/* Deployments that ended in the same way and took and waited for similar
 * times. */
struct deployment_total {
	const char *status;
	const char *reason; /* "" = none */
	int64_t took;       /* bound, TOTAL_LONGER, or 0 = never started */
	int64_t waited;     /* the same, from the creation or approval on */
	int64_t n;
	int64_t took_ms; /* sums */
	int64_t waited_ms;
	int64_t log_bytes;
};

enum notice_result {
	NOTICE_DELIVERED,
	NOTICE_RETRIED, /* an attempt failed; another one follows */
	NOTICE_DROPPED, /* the last attempt failed */
	NOTICE_RESULT__MAX
};
extern const char *const notice_results[NOTICE_RESULT__MAX];

struct notice_total {
	const char *kind;
	const char *result;
	int64_t n;
};

/* The shard in which this process counts, for the fragment @total_into. */
int64_t total_shard(void);
/* Inside the transaction that ends them: counts all deployments of a project
 * that ended for that reason. */
MUSTCHECK const struct err *total_ended_all(struct db *, int64_t project_id,
    enum reason);
/* Inside the transaction that records the attempt. */
MUSTCHECK const struct err *total_notice(struct db *, const char *kind,
    enum notice_result);

/* Lists of struct deployment_total and struct notice_total. */
MUSTCHECK const struct err *total_deployments(struct db *, struct arena *,
    struct list *out);
MUSTCHECK const struct err *total_notices(struct db *, struct arena *,
    struct list *out);

#endif
