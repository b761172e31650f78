/* SPDX-License-Identifier: ISC */
#include "store/sequence.h"

#include "store/sequence.sql.h"
#include "store/store.h"

const struct store sequence_store = {
	.stmts = sequence_stmts,
};

const struct err *
sequence_list(struct db *db, struct arena *a, struct list *out)
{
	return db_rows(db, a, &sql_sequence_list, NULL, out);
}

const struct err *
sequence_raise(struct db *db, struct arena *a, const struct sequence *s)
{
	return db_script(db,
	    arena_printf(a, "ALTER TABLE %s AUTO_INCREMENT = %lld;", s->name,
		(long long)s->next));
}
