/* SPDX-License-Identifier: ISC */
#include "store/idempotency.h"

#include "store/store.h"

struct found {
	int64_t n;
};

#include "store/idempotency.sql.h"

const struct store idempotency_store = {
	.stmts = idempotency_stmts,
};

const struct err *
idempotency_find(struct db *db, struct arena *a, const struct idempotency *one,
    struct idempotency *out)
{
	return db_row(db, a, &sql_idempotency_find, one, out);
}

const struct err *
idempotency_save(struct db *db, const struct idempotency *one)
{
	const struct err *e;

	if ((e = db_exec(db, &sql_idempotency_expire, one, NULL)) != NULL)
		return e;
	return db_exec(db, &sql_idempotency_save, one, NULL);
}

const struct err *
idempotency_tidy(struct db *db, struct arena *a)
{
	const struct err *e;
	struct found found;

	if ((e = db_row(db, a, &sql_idempotency_old, NULL, &found)) != NULL ||
	    found.n == 0)
		return e;
	return db_exec(db, &sql_idempotency_tidy, NULL, NULL);
}
