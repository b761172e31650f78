/* SPDX-License-Identifier: ISC */
#include "store/sequence.h"

#include "store/store.h"

#define S(m) FIELD(struct sequence, m, 0, .doc = NULL)

static const struct field sequence_row[] = { S(name), S(next), FIELD_END };

static const struct stmt list_stmt = {
	.name = "sequence_list",
	.sql = "SELECT table_name AS name,"
	       " CAST(COALESCE(auto_increment, 1) AS SIGNED) AS next"
	       " FROM information_schema.tables"
	       " WHERE table_schema = DATABASE()"
	       " AND table_name IN ('deployment', 'environment', 'project')"
	       " ORDER BY table_name",
	.row = sequence_row,
	.rowsize = sizeof(struct sequence),
};

static const struct stmt *const sequence_stmts[] = { &list_stmt, NULL };

const struct store sequence_store = {
	.stmts = sequence_stmts,
};

const struct err *
sequence_list(struct db *db, struct arena *a, struct list *out)
{
	return db_rows(db, a, &list_stmt, NULL, out);
}

const struct err *
sequence_raise(struct db *db, struct arena *a, const struct sequence *s)
{
	return db_script(db,
	    arena_printf(a, "ALTER TABLE %s AUTO_INCREMENT = %lld;", s->name,
		(long long)s->next));
}
