/* SPDX-License-Identifier: ISC */
#include "store/projectdir.h"

#include "store/store.h"

#define COLUMNS                                                                \
	"q.id, q.project_dir, q.valid,"                                        \
	" q.valid = 0 AND q.updated_at < NOW(3) - INTERVAL 1 DAY AS due"

#define A(m) FIELD(struct projectdir, m, 0)
static const struct field id_args[] = { A(id), FIELD_END };
static const struct field rows[] = {
	A(id),
	A(project_dir),
	A(valid),
	A(due),
	FIELD_END,
};

static const struct stmt find = {
	.name = "projectdir_find",
	.sql = "SELECT " COLUMNS " FROM project q WHERE q.id = ?",
	.args = id_args,
	.row = rows,
	.rowsize = sizeof(struct projectdir),
};

#define AROUND                                                                 \
	"SELECT " COLUMNS " FROM project p JOIN project q"                     \
	" ON q.id <> p.id AND 1 IN (LOCATE(CONCAT(p.project_dir, '/'),"        \
	" CONCAT(q.project_dir, '/')), LOCATE(CONCAT(q.project_dir,"           \
	" '/'), CONCAT(p.project_dir, '/'))) WHERE p.id = ?"
static const struct stmt around = {
	.name = "projectdir_around",
	.sql = AROUND,
	.args = id_args,
	.row = rows,
	.rowsize = sizeof(struct projectdir),
};
static const struct stmt deleted_around = {
	.name = "projectdir_deleted_around",
	.sql = AROUND " AND q.valid = 0",
	.args = id_args,
	.row = rows,
	.rowsize = sizeof(struct projectdir),
};

static const struct stmt *const projectdir_stmts[] = { &find, &around,
	&deleted_around, NULL };

const struct store projectdir_store = {
	.stmts = projectdir_stmts,
};

const struct err *
projectdir_find(struct db *db, struct arena *a, int64_t id,
    struct projectdir *out)
{
	const struct projectdir args = { .id = id };

	return db_row(db, a, &find, &args, out);
}

const struct err *
projectdir_around(struct db *db, struct arena *a, int64_t id, struct list *out)
{
	const struct projectdir args = { .id = id };

	return db_rows(db, a, &around, &args, out);
}

const struct err *
projectdir_deleted_around(struct db *db, struct arena *a, int64_t id,
    struct list *out)
{
	const struct projectdir args = { .id = id };

	return db_rows(db, a, &deleted_around, &args, out);
}
