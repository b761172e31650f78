/* SPDX-License-Identifier: ISC */
#include <errno.h>
#include <string.h>

#include <mariadb/mysqld_error.h>

#include "core/str.h"
#include "db/conn.h"

#define ARENA ((size_t)4 << 20) /* for what one check reads */

/* A row of schema_migration, and the arguments of the statements that write
 * it. */
struct applied {
	const char *name;
	const char *checksum;
	const char *state; /* started, applied */
	struct when finished_at;
};

#define F(m) FIELD(struct applied, m, 0)

static const struct field applied_row[] = {
	F(name),
	F(checksum),
	F(state),
	F(finished_at),
	FIELD_END,
};
static const struct field name_args[] = {
	F(name),
	FIELD_END,
};
static const struct field begin_args[] = {
	F(name),
	F(checksum),
	FIELD_END,
};

static const struct stmt migration_all = {
	.name = "migration_all",
	.sql = "SELECT name, checksum, state, finished_at"
	       " FROM schema_migration ORDER BY name",
	.row = applied_row,
	.rowsize = sizeof(struct applied),
};
static const struct stmt migration_any = {
	.name = "migration_any",
	.sql = "SELECT name FROM schema_migration LIMIT 1",
	.row = name_args,
	.rowsize = sizeof(struct applied),
};
static const struct stmt migration_begin = {
	.name = "migration_begin",
	.sql = "INSERT INTO schema_migration (name, checksum)"
	       " VALUES (?, ?) ON DUPLICATE KEY UPDATE"
	       " checksum = VALUES(checksum), state = 'started',"
	       " started_at = CURRENT_TIMESTAMP(3), finished_at = NULL",
	.args = begin_args,
};
static const struct stmt migration_end = {
	.name = "migration_end",
	.sql = "UPDATE schema_migration SET state = 'applied',"
	       " finished_at = CURRENT_TIMESTAMP(3) WHERE name = ?",
	.args = name_args,
};

static const char record[] =
    "CREATE TABLE IF NOT EXISTS schema_migration ("
    " name VARCHAR(100) NOT NULL PRIMARY KEY,"
    " checksum CHAR(64) NOT NULL,"
    " state ENUM('started', 'applied') NOT NULL DEFAULT 'started',"
    " started_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),"
    " finished_at DATETIME(3)"
    ") ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;";

static const struct migration *
migration_known(const char *name)
{
	const struct migration *m;

	for (m = db_migrations; m->name != NULL; m++)
		if (strcmp(m->name, name) == 0)
			return m;
	return NULL;
}

static const char *
state_of(const struct applied *row)
{
	const struct migration *m = migration_known(row->name);

	if (m == NULL)
		return "unknown";
	if (strcmp(row->state, "applied") != 0)
		return "unfinished";
	return str_eq(m->checksum, row->checksum) ? "applied" : "changed";
}

static const struct applied *
applied_find(const struct list *rows, const char *name)
{
	const struct applied *row = rows->items;
	size_t i;

	for (i = 0; i < rows->n; i++)
		if (strcmp(row[i].name, name) == 0)
			return &row[i];
	return NULL;
}

const struct err *
db_migration_states(struct db *db, struct arena *a, struct list *out)
{
	const struct migration *m;
	const struct applied *row;
	struct migration_state *states;
	struct list rows;
	const struct err *e;
	size_t n = 0, i;

	*out = (struct list){ .items = NULL };
	e = db_rows(db, a, &migration_all, NULL, &rows);
	if (e != NULL && e->sys != ER_NO_SUCH_TABLE)
		return e;
	for (m = db_migrations; m->name != NULL; m++)
		n++;
	states = arena_alloc(a, n + rows.n, sizeof(*states));
	row = rows.items;
	for (n = 0, i = 0; i < rows.n; i++, n++) {
		states[n].name = row[i].name;
		states[n].finished_at = row[i].finished_at;
		states[n].state = state_of(&row[i]);
	}
	for (m = db_migrations; m->name != NULL; m++)
		if (applied_find(&rows, m->name) == NULL) {
			states[n].name = m->name;
			states[n++].state = "pending";
		}
	out->items = states;
	out->n = n;
	return NULL;
}

const struct err *
db_migrate(struct db *db, const char *name)
{
	const struct migration *m = migration_known(name);
	struct applied row = { .name = name };
	const struct err *e;

	if (m == NULL)
		return err_new(ERR_NOTFOUND, "unknown migration %s", name);
	row.checksum = m->checksum;
	if ((e = db_script(db, record)) != NULL ||
	    (e = db_exec(db, &migration_begin, &row, NULL)) != NULL ||
	    (e = db_script(db, m->sql)) != NULL ||
	    (e = db_exec(db, &migration_end, &row, NULL)) != NULL)
		return err_wrap(e, "migration %s", name);
	return NULL;
}

/* What a state other than applied means for a program that starts. */
static const struct {
	const char *state;
	const char *advice;
} rejections[] = {
	{ "pending", "has not been applied: run slipway-admin migrate" },
	{ "unfinished", "was interrupted: run slipway-admin migrate" },
	{ "changed",
	    "was applied with a text that differs from this program's:"
	    " install the release that applied it" },
	{ "unknown",
	    "is newer than this program: install the release that"
	    " applied it" },
};

static const struct err *
migration_reject(const struct migration_state *m)
{
	size_t i;

	for (i = 0; i < sizeof(rejections) / sizeof(rejections[0]); i++)
		if (strcmp(rejections[i].state, m->state) == 0)
			return err_new(ERR_CONFIG,
			    "%s " SLIPWAY_VERSION
			    " does not fit the schema: migration %s %s",
			    program_invocation_short_name, m->name,
			    rejections[i].advice);
	return NULL;
}

const struct err *
db_check_schema(struct db *db)
{
	const struct migration_state *m;
	struct arena *a = arena_open(ARENA);
	struct list list;
	const struct err *e;
	size_t i;

	if ((e = db_migration_states(db, a, &list)) != NULL)
		goto out;
	m = list.items;
	for (i = 0; i < list.n; i++)
		if ((e = migration_reject(&m[i])) != NULL)
			break;
out:
	arena_close(a);
	return e;
}

const struct err *
db_ping(struct db *db)
{
	struct arena *a = arena_open(ARENA);
	struct applied row;
	const struct err *e;

	e = db_row(db, a, &migration_any, NULL, &row);
	arena_close(a);
	return e != NULL && e->code == ERR_NOTFOUND ? NULL : e;
}
