/* SPDX-License-Identifier: ISC */
#include "store/projectdir.h"

#include <string.h>

#include "core/num.h"
#include "core/str.h"
#include "store/projectdir.sql.h"
#include "store/store.h"

const struct store projectdir_store = {
	.stmts = projectdir_stmts,
};

const struct err *
projectdir_find(struct db *db, struct arena *a, int64_t id,
    struct projectdir *out)
{
	const struct projectdir args = { .id = id };

	return db_row(db, a, &sql_projectdir_find, &args, out);
}

const struct err *
projectdir_around(struct db *db, struct arena *a, int64_t id, struct list *out)
{
	const struct projectdir args = { .id = id };

	return db_rows(db, a, &sql_projectdir_around, &args, out);
}

const struct err *
projectdir_deleted_around(struct db *db, struct arena *a, int64_t id,
    struct list *out)
{
	const struct projectdir args = { .id = id };

	return db_rows(db, a, &sql_projectdir_deleted_around, &args, out);
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
	if ((e = db_rows(db, a, &sql_projectdir_alike, &args, &list)) != NULL)
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
