/* SPDX-License-Identifier: ISC */
/* Runners: each reports its presence, and lists show who is online. */
#ifndef SLIPWAY_STORE_RUNNER_H
#define SLIPWAY_STORE_RUNNER_H

#include "db/db.h"
#include "store/page.h"

#define RUNNER_REASON_MAX 500 /* characters of sick_reason */
/* Seconds between two reports of a runner. */
#define RUNNER_REPORT 60

struct runner_label {
	const char *text;
};

struct runner {
	const char *name;
	struct json_text labels; /* struct runner_label */
	const char *version;
	int64_t slots;
	int64_t running;        /* deployments */
	struct when started_at; /* of its dispatcher */
	struct when seen_at;
	bool online;
	bool sick;
	struct when sick_since;  /* none = it is well */
	const char *sick_reason; /* NULL = the same */
};

struct runner_count {
	int64_t online;
	int64_t total;
	int64_t sick; /* of those online; not in responses */
};

extern const struct shape runner_shape;
extern const struct shape runner_label_shape;
extern const struct shape runner_count_shape;

/* SQL: whether no runner is online that may run it. */

/* Ordered by name. */
MUSTCHECK const struct err *runner_page(struct db *, struct arena *,
    struct page *, struct list *out);
MUSTCHECK const struct err *runner_count(struct db *, struct arena *,
    struct runner_count *out);
/* The database's clock, and why the runner of that name was sick when it
 * reported last; NULL = it was well, or is unknown. */
struct runner_past {
	struct when now;
	const char *sick_reason;
};
MUSTCHECK const struct err *runner_recall(struct db *, struct arena *,
    const char *name, struct runner_past *out);
/* Stores a runner's report of itself: the members up to `started_at`, and
 * `sick_reason`. */
MUSTCHECK const struct err *runner_report(struct db *, const struct runner *);
/* The runner stops: it is offline, unless another process has reported under
 * its name since. */
MUSTCHECK const struct err *runner_withdraw(struct db *, const struct runner *);
/* Deletes runners that have been offline for a week; writes nothing if there
 * are none. */
MUSTCHECK const struct err *runner_tidy(struct db *, struct arena *);

#endif
