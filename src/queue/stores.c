/* SPDX-License-Identifier: ISC */
#include "queue/stores.h"

#define X(name) &name##_store,
const struct store *const stores[] = { QUEUE_STORES(X) STORES(X) NULL };
#undef X

const struct err *
store_check(struct db *db)
{
	const struct store *const *s;
	const struct err *e;

	if ((e = db_check_schema(db)) != NULL)
		return e;
	for (s = stores; *s != NULL; s++)
		if ((e = db_check(db, (*s)->stmts)) != NULL)
			return e;
	return NULL;
}

const struct err *
store_project_delete(struct db *db, int64_t project_id)
{
	const struct store *const *s;
	const struct err *e;

	for (s = stores; *s != NULL; s++)
		if ((*s)->with_project != NULL &&
		    (e = (*s)->with_project(db, project_id)) != NULL)
			return e;
	return NULL;
}
