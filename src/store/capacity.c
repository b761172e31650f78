/* SPDX-License-Identifier: ISC */
#include "store/capacity.h"

#include "store/store.h"

#define C(m) FIELD(struct capacity, m, 0, .doc = NULL)

static const struct field capacity_row[] = { C(flush_log), C(max_packet),
	C(max_connections), C(rights), C(newest_project), C(log_bytes),
	FIELD_END };

#define TOO_MUCH                                                               \
	"privilege_type IN ('ALTER', 'CREATE', 'CREATE USER', 'DROP', 'FILE'," \
	" 'SUPER')"

static const struct stmt read_stmt = {
	.name = "capacity_read",
	.sql = "SELECT @@innodb_flush_log_at_trx_commit AS flush_log,"
	       " @@max_allowed_packet AS max_packet,"
	       " @@max_connections AS max_connections,"
	       " (SELECT COUNT(*) FROM information_schema.user_privileges"
	       " WHERE " TOO_MUCH ")"
	       " + (SELECT COUNT(*) FROM information_schema.schema_privileges"
	       " WHERE DATABASE() LIKE table_schema AND " TOO_MUCH
	       ") AS rights,"
	       " (SELECT COALESCE(MAX(id), 0) FROM project) AS newest_project,"
	       " (SELECT CAST(COALESCE(SUM(data_length), 0) AS SIGNED)"
	       " FROM information_schema.tables"
	       " WHERE table_schema = DATABASE() AND table_name = 'log_chunk')"
	       " AS log_bytes",
	.row = capacity_row,
	.rowsize = sizeof(struct capacity),
};

static const struct stmt *const capacity_stmts[] = { &read_stmt, NULL };

const struct store capacity_store = {
	.stmts = capacity_stmts,
};

const struct err *
capacity_read(struct db *db, struct arena *a, struct capacity *out)
{
	return db_row(db, a, &read_stmt, NULL, out);
}
