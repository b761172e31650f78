/* SPDX-License-Identifier: ISC */
#include "store/lease.h"

#include "store/store.h"

struct left {
	int64_t ms;
};

static const struct field left_row[] = {
	FIELD(struct left, ms, 0, .doc = NULL),
	FIELD_END,
};
static const struct stmt first_left = {
	.name = "lease_left",
	.sql = "SELECT TIMESTAMPDIFF(MICROSECOND, NOW(3), lease_until) DIV 1000"
	       " AS ms FROM deployment WHERE status = 'running'"
	       " AND lease_until IS NOT NULL ORDER BY lease_until LIMIT 1",
	.row = left_row,
	.rowsize = sizeof(struct left),
};

/* The write of a renewal, on no row. */
static const struct stmt renew_none = {
	.name = "lease_renew_none",
	.sql = "UPDATE deployment SET owner = owner, lease_until = lease_until"
	       " WHERE id = 0 AND status = 'running'",
};

static const struct stmt *const lease_stmts[] = {
	&first_left,
	&renew_none,
	NULL,
};

const struct store lease_store = {
	.stmts = lease_stmts,
};

const struct err *
lease_left(struct db *db, struct arena *a, int64_t *out)
{
	struct left left = { .ms = 0 };
	const struct err *e;

	e = db_row(db, a, &first_left, NULL, &left);
	*out = left.ms;
	return e;
}

const struct err *
lease_look(struct db *db)
{
	return db_exec(db, &renew_none, NULL, NULL);
}

static const struct err *
try_body(struct db *db, void *context)
{
	(void)context;
	return db_exec(db, &renew_none, NULL, NULL);
}

const struct err *
lease_try(struct db *db)
{
	return db_transaction(db, try_body, NULL);
}
