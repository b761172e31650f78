/* SPDX-License-Identifier: ISC */
#include "store/capacity.h"

#include "store/capacity.sql.h"
#include "store/store.h"

const struct store capacity_store = {
	.stmts = capacity_stmts,
};

const struct err *
capacity_read(struct db *db, struct arena *a, struct capacity *out)
{
	return db_row(db, a, &sql_capacity_read, NULL, out);
}
