/* SPDX-License-Identifier: ISC */
/*
 * Resources that belong to a project: pipelines, environments, schedules. They
 * are listed for all projects or for one, and their names are unique in a
 * project.
 *
 * A store has these statements for a table with the columns id, project_id,
 * live_name, valid, version and updated_at.
 */
#ifndef SLIPWAY_STORE_CHILD_H
#define SLIPWAY_STORE_CHILD_H

#include "core/fault.h"
#include "db/db.h"
#include "store/page.h"

struct child {
	const char *noun;
	/* rows of all projects, of those of a member, of one project */
	const struct stmt *page, *page_by, *page_of;
	const struct stmt *count, *count_by, *count_of;
	const struct stmt *same_name;
};

/* Arguments of the statements. */
struct child_args {
	int64_t id;
	int64_t project_id;
	int64_t member;
	const char *name;
	int64_t limit;
	int64_t offset;
};

/* The value of a store, whose statements are TABLE_page and so on. A project that
 * does not exist has no row of same_name. */
#define CHILD(table)                                                           \
	{                                                                      \
		.noun = #table, .page = &sql_##table##_page,                   \
		.page_by = &sql_##table##_page_by,                             \
		.page_of = &sql_##table##_page_of,                             \
		.count = &sql_##table##_count,                                 \
		.count_by = &sql_##table##_count_by,                           \
		.count_of = &sql_##table##_count_of,                           \
		.same_name = &sql_##table##_same_name,                         \
	}

/* Reads a page of those of a project; 0 = of all projects, or of those of the
 * page's member. */
MUSTCHECK const struct err *child_read(struct db *, struct arena *,
    const struct child *, int64_t project_id, struct page *, struct list *out);
/* Adds faults: the project is unknown, or another of its children has the name.
 * `id` is 0 for a new one. Without a project, there is a fault already. */
MUSTCHECK const struct err *child_judge(struct db *, const struct child *,
    int64_t id, int64_t project_id, const char *name, struct faults *);
/* Marks the row as deleted with TABLE_delete_one, or with TABLE_delete_of those
 * of the project. */
MUSTCHECK const struct err *child_delete(struct db *, const struct stmt *,
    int64_t id);

#endif
