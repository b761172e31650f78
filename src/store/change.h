/* SPDX-License-Identifier: ISC */
/* What slipway-live reads: the deployments that can change, and the users who
 * watch them. */
#ifndef SLIPWAY_STORE_CHANGE_H
#define SLIPWAY_STORE_CHANGE_H

#include "db/db.h"
#include "store/session.h"

struct change {
	int64_t id; /* of a deployment */
	int64_t project_id;
	const char *status;
	int64_t version; /* grows with each change of state */
	int64_t log_size;
	bool ended;
};

/* A credential: kind "s" (session), "t" (API token) or "u" (user that nginx
 * authenticated), and its id; and the project that is watched, 0 = all. */
struct change_watcher {
	const char *kind;
	int64_t id;
	int64_t project_id;
	const char *projects; /* of a guest: ",1,2,", the projects of which the
			       * user is a member; NULL = all */
};

#define CHANGE_MAX 4000 /* deployments in one list */

/* Lists by id the newest deployments, without anything but their ids. */
MUSTCHECK const struct err *change_newest(struct db *, struct arena *,
    struct list *out);
/* Lists pending and running deployments by id, the newest ones if there are
 * many. */
MUSTCHECK const struct err *change_open(struct db *, struct arena *,
    struct list *out);
/* Lists by id the deployments in `ids`, a JSON array of numbers, and those
 * newer than `newest`, with one statement. */
MUSTCHECK const struct err *change_read(struct db *, struct arena *,
    const char *ids, int64_t newest, struct list *out);
/* Lists those of `watchers`, a JSON array of ["s",1,PROJECT], that are still
 * valid and may read the project (struct change_watcher), with one statement. */
MUSTCHECK const struct err *change_watchers(struct db *, struct arena *,
    const char *watchers, const struct session_term *, struct list *out);

#endif
