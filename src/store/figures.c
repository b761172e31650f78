/* SPDX-License-Identifier: ISC */
#include "store/figures.h"

#include "store/figures.sql.h"
#include "store/store.h"

const struct store figures_store = {
	.stmts = figures_stmts,
};

const struct err *
figures_read(struct db *db, struct arena *a, struct figures *out)
{
	return db_row(db, a, &sql_figures_read, NULL, out);
}
