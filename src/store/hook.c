/* SPDX-License-Identifier: ISC */
#include "store/hook.h"

#include "store/store.h"

struct found {
	int64_t n;
};
struct hook_age {
	int64_t days;
};

#include "store/hook.sql.h"

const struct store hook_store = {
	.stmts = hook_stmts,
};

const struct err *
hook_secret_find(struct db *db, struct arena *a, int64_t project_id,
    struct hook_secret *out)
{
	const struct hook_secret args = { .project_id = project_id };

	return db_row(db, a, &sql_hook_secret_find, &args, out);
}

const struct err *
hook_secret_put(struct db *db, const struct hook_secret *one)
{
	return db_exec(db, &sql_hook_secret_put, one, NULL);
}

const struct err *
hook_delivery_find(struct db *db, struct arena *a, int64_t project_id,
    const char *delivery_hash, struct hook_delivery *out)
{
	const struct hook_delivery args = { .project_id = project_id,
		.delivery_hash = delivery_hash };

	return db_row(db, a, &sql_hook_delivery_find, &args, out);
}

const struct err *
hook_delivery_insert(struct db *db, const struct hook_delivery *one)
{
	return db_exec(db, &sql_hook_delivery_insert, one, NULL);
}

const struct err *
hook_tidy(struct db *db, struct arena *a, int64_t days)
{
	const struct hook_age args = { .days = days };
	const struct err *e;
	struct found found;

	if ((e = db_row(db, a, &sql_hook_old, &args, &found)) != NULL ||
	    found.n == 0)
		return e;
	return db_exec(db, &sql_hook_tidy, &args, NULL);
}
