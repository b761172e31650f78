/* SPDX-License-Identifier: ISC */
#include "store/lease.h"

#include "store/store.h"

struct left {
	int64_t ms;
};

#include "store/lease.sql.h"

const struct store lease_store = {
	.stmts = lease_stmts,
};

const struct err *
lease_left(struct db *db, struct arena *a, int64_t *out)
{
	struct left left = { .ms = 0 };
	const struct err *e;

	e = db_row(db, a, &sql_lease_left, NULL, &left);
	*out = left.ms;
	return e;
}

const struct err *
lease_look(struct db *db)
{
	return db_exec(db, &sql_lease_renew_none, NULL, NULL);
}

static const struct err *
try_body(struct db *db, void *context)
{
	(void)context;
	return db_exec(db, &sql_lease_renew_none, NULL, NULL);
}

const struct err *
lease_try(struct db *db)
{
	return db_transaction(db, try_body, NULL);
}
