/* SPDX-License-Identifier: ISC */
#include "store/badge.h"

#include "store/badge.sql.h"
#include "store/store.h"

const struct store badge_store = {
	.stmts = badge_stmts,
};

const struct err *
badge_find(struct db *db, struct arena *a, struct badge *badge)
{
	const struct badge args = *badge;

	return db_row(db, a,
	    args.environment == NULL ? &sql_badge_any : &sql_badge_environment,
	    &args, badge);
}
