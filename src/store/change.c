/* SPDX-License-Identifier: ISC */
#include "store/change.h"

#include "store/store.h"

struct change_args {
	const char *ids;
	int64_t newest;
	int64_t idle;
	int64_t max;
	bool remote_user;
};

#include "store/change.sql.h"

_Static_assert(SQL_CHANGE_MAX == CHANGE_MAX, "see change.sql");

const struct store change_store = {
	.stmts = change_stmts,
};

const struct err *
change_newest(struct db *db, struct arena *a, struct list *out)
{
	return db_rows(db, a, &sql_change_newest, NULL, out);
}

const struct err *
change_open(struct db *db, struct arena *a, struct list *out)
{
	return db_rows(db, a, &sql_change_open, NULL, out);
}

const struct err *
change_read(struct db *db, struct arena *a, const char *ids, int64_t newest,
    struct list *out)
{
	const struct change_args args = { .ids = ids, .newest = newest };

	return db_rows(db, a, &sql_change_read, &args, out);
}

const struct err *
change_watchers(struct db *db, struct arena *a, const char *watchers,
    const struct session_term *term, struct list *out)
{
	const struct change_args args = { .ids = watchers,
		.idle = term->idle,
		.max = term->max,
		.remote_user = term->remote_user };

	return db_rows(db, a, &sql_change_watchers, &args, out);
}
