/* SPDX-License-Identifier: ISC */
#include "store/projectdir.h"

#include <string.h>

#include "core/num.h"
#include "core/str.h"
#include "store/store.h"

#define COLUMNS                                                                \
	"q.id, q.project_dir, q.valid,"                                        \
	" IF(q.valid, 0, TIMESTAMPDIFF(SECOND, q.updated_at, NOW(3)))"         \
	" AS deleted_for"

#define A(m) FIELD(struct projectdir, m, 0)
static const struct field id_args[] = { A(id), FIELD_END };
static const struct field rows[] = {
	A(id),
	A(project_dir),
	A(valid),
	A(deleted_for),
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
	" ON " PROJECTDIR_OVERLAP " WHERE p.id = ?"
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

/* Directories in [slug, slug0): the slug itself, with a suffix, or with
 * subdirectories. '0' is the byte after '/'. */
static const struct field alike_args[] = { A(project_dir), A(project_dir),
	FIELD_END };
static const struct field alike_row[] = { A(project_dir), FIELD_END };
static const struct stmt alike = {
	.name = "projectdir_alike",
	.sql = "SELECT project_dir FROM project WHERE live_dir >= ?"
	       " AND live_dir < CONCAT(?, '0')",
	.args = alike_args,
	.row = alike_row,
	.rowsize = sizeof(struct projectdir),
};

static const struct stmt *const projectdir_stmts[] = { &find, &around,
	&deleted_around, &alike, NULL };

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

/* The number that a directory appends to the slug: 1 for the slug alone, 0 if
 * it does not have this form. */
static int64_t
number_of(struct arena *a, const char *dir, size_t slug)
{
	const char *part = arena_strndup(a, dir, strcspn(dir, "/"));
	int64_t n;

	if (part[slug] == '\0')
		return 1;
	if (part[slug] == '-' && num_parse(part + slug + 1, 2, NUM_SAFE, &n))
		return n;
	return 0;
}

const struct err *
projectdir_choose(struct db *db, struct arena *a, const char *name,
    const char **out)
{
	const struct projectdir args = { .project_dir = str_slug(a, name) };
	const struct projectdir *other;
	const struct err *e;
	struct list list;
	bool *taken;
	size_t i, n;

	*out = args.project_dir;
	if ((e = db_rows(db, a, &alike, &args, &list)) != NULL)
		return e;
	other = list.items;
	taken = arena_alloc(a, list.n + 2, sizeof(*taken));
	for (i = 0; i < list.n; i++) {
		n = (size_t)number_of(a, other[i].project_dir, strlen(*out));
		if (n < list.n + 2)
			taken[n] = true;
	}
	for (n = 1; taken[n]; n++)
		continue;
	if (n > 1)
		*out = arena_printf(a, "%s-%zu", args.project_dir, n);
	return NULL;
}
