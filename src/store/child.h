/* SPDX-License-Identifier: ISC */
/*
 * Resources that belong to a project: pipelines, environments, schedules. They
 * are listed for all projects or for one, and their names are unique in a
 * project.
 *
 * A store defines them with a table that has the columns id, project_id,
 * live_name, valid, version and updated_at:
 *
 *	#define SELECT "SELECT ... FROM pipeline c"
 *	CHILD(pipeline, SELECT, pipeline_fields, "c.name, c.id", "c.name, c.id")
 *
 * This makes the statements page, page_by, page_of, count, count_by, count_of,
 * same_name, delete_one and delete_of, which CHILD_STMTS lists, and the value `child` for
 * the functions below.
 */
#ifndef SLIPWAY_STORE_CHILD_H
#define SLIPWAY_STORE_CHILD_H

#include "core/fault.h"
#include "db/db.h"
#include "store/member.h"
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
extern const struct field child_id_args[];
extern const struct field child_project_args[];
extern const struct field child_page_args[];
extern const struct field child_page_by_args[];
extern const struct field child_page_of_args[];
extern const struct field child_member_args[];
extern const struct field child_name_args[];

/* clang-format off */
/* The statements of the table; `order` and `order_of` sort the lists of all
 * projects and of one. A project that does not exist has no row of
 * same_name. */
#define CHILD(table, select, row_fields, order, order_of)		\
	CHILD_STMT(page, table, select " WHERE c.valid = 1"		\
	    " ORDER BY " order " LIMIT ? OFFSET ?",			\
	    child_page_args, row_fields, struct table)			\
	CHILD_STMT(page_by, table, select " WHERE c.valid = 1"		\
	    " AND c.project_id IN " MEMBER_PROJECTS			\
	    " ORDER BY " order " LIMIT ? OFFSET ?",			\
	    child_page_by_args, row_fields, struct table)		\
	CHILD_STMT(page_of, table, select " WHERE c.valid = 1"		\
	    " AND c.project_id = ? ORDER BY " order_of			\
	    " LIMIT ? OFFSET ?",					\
	    child_page_of_args, row_fields, struct table)		\
	CHILD_STMT(count, table,					\
	    "SELECT COUNT(*) AS n FROM " #table " WHERE valid = 1",	\
	    NULL, page_count_row, struct page_count)			\
	CHILD_STMT(count_by, table,					\
	    "SELECT COUNT(*) AS n FROM " #table " WHERE valid = 1"	\
	    " AND project_id IN " MEMBER_PROJECTS,			\
	    child_member_args, page_count_row, struct page_count)	\
	CHILD_STMT(count_of, table,					\
	    "SELECT COUNT(*) AS n FROM " #table " WHERE valid = 1"	\
	    " AND project_id = ?",					\
	    child_project_args, page_count_row, struct page_count)	\
	CHILD_STMT(same_name, table,					\
	    "SELECT COUNT(c.id) AS n FROM project p"			\
	    " LEFT JOIN " #table " c ON c.project_id = p.id"		\
	    " AND c.live_name = ? AND c.id <> ?"			\
	    " WHERE p.id = ? AND p.valid = 1 GROUP BY p.id",		\
	    child_name_args, page_count_row, struct page_count)		\
	CHILD_DELETE(delete_one, table, "id", child_id_args)		\
	CHILD_DELETE(delete_of, table, "project_id", child_project_args) \
	static const struct child child = { .noun = #table,		\
		.page = &page,						\
		.page_by = &page_by,					\
		.page_of = &page_of,					\
		.count = &count,					\
		.count_by = &count_by,					\
		.count_of = &count_of,					\
		.same_name = &same_name };
#define CHILD_STMTS							\
	&page, &page_by, &page_of, &count, &count_by, &count_of, &same_name,	\
	&delete_one, &delete_of

/* Parts of CHILD(). */
#define CHILD_STMT(which, table, text, args_, row_, type)		\
	static const struct stmt which = {				\
		.name = #table "_" #which,				\
		.sql = text,						\
		.args = args_,						\
		.row = row_,						\
		.rowsize = sizeof(type),				\
	};
#define CHILD_DELETE(which, table, key, args_)				\
	static const struct stmt which = {				\
		.name = #table "_" #which,				\
		.sql = "UPDATE " #table " SET valid = 0,"		\
		       " version = version + 1,"			\
		       " updated_at = CURRENT_TIMESTAMP(3)"		\
		       " WHERE " key " = ? AND valid = 1",		\
		.args = args_,						\
	};
/* clang-format on */

/* Reads a page of those of a project; 0 = of all projects, or of those of the
 * page's member. */
MUSTCHECK const struct err *child_read(struct db *, struct arena *,
    const struct child *, int64_t project_id, struct page *, struct list *out);
/* Adds faults: the project is unknown, or another of its children has the name.
 * `id` is 0 for a new one. Without a project, there is a fault already. */
MUSTCHECK const struct err *child_judge(struct db *, const struct child *,
    int64_t id, int64_t project_id, const char *name, struct faults *);
/* Marks the row as deleted with delete_one of CHILD(), or with delete_of those
 * of the project. */
MUSTCHECK const struct err *child_delete(struct db *, const struct stmt *,
    int64_t id);

#endif
