/* SPDX-License-Identifier: ISC */
#include "store/variable.h"

#include "store/columns.h"
#include "store/env.h"
#include "store/store.h"

#define A(m) FIELD(struct variable, m, 0)
#define K(m) FIELD(struct variable_link, m, 0)

static const struct field ref_fields[] = {
	FIELD(struct variable_ref, project_id, FIELD_OUT | FIELD_IN, .min = 1,
	    .doc = "Id of a project."),
	FIELD_END,
};
const struct shape variable_ref_shape = {
	.name = "ProjectId",
	.fields = ref_fields,
	.size = sizeof(struct variable_ref),
	.bare = true,
};

/* clang-format off */
#define VARIABLE(X, T)							\
	X(T, KEY, id, FIELD_OUT, .doc = "Id of the variable.")		\
	X(T, SET, key, FIELD_OUT | FIELD_IN | FIELD_MUST, .max = 128,	\
	    .pattern = ENV_NAME_ERE, .doc = "Name of the variable.")	\
	X(T, SET, value, FIELD_OUT | FIELD_IN | FIELD_NULL,		\
	    .max = ENV_VALUE_MAX,					\
	    .doc = "Value. A secret one is returned as null; null keeps it.") \
	X(T, SET, secret, FIELD_OUT | FIELD_IN,				\
	    .doc = "Whether the value is encrypted and masked.")	\
	X(T, SET, description,						\
	    FIELD_OUT | FIELD_IN | FIELD_NULL | FIELD_TEXT, .max = 500,	\
	    .doc = "Description of the variable.")			\
	X(T, NONE, projects, FIELD_OUT | FIELD_IN,			\
	    .max = VARIABLE_PROJECTS_MAX, .shape = &variable_ref_shape,	\
	    .doc = "Projects that receive it; empty = none.")		\
	X(T, READ, created_at, FIELD_OUT, .doc = "Time of creation.")	\
	X(T, READ, updated_at, FIELD_OUT, .doc = "Time of the last change.") \
	X(T, ONCE, created_by, FIELD_OUT | FIELD_NULL,			\
	    .doc = "User who created it.")				\
	X(T, READ, version, 0, .doc = "Number of changes.")

static const struct field variable_fields[] = {
	COLUMNS_FIELDS(VARIABLE, struct variable)
};
static const struct field row_fields[] = {
	VARIABLE(COLUMN_FIELD, struct variable)
	FIELD(struct variable, projects, 0),
	FIELD_END,
};
/* clang-format on */

const struct shape variable_shape = {
	.name = "Variable",
	.fields = variable_fields,
	.size = sizeof(struct variable),
	.doc = "A variable that several projects share.",
};

#define SELECT                                                                 \
	"SELECT " COLUMNS_OF("v",                                              \
	    VARIABLE) ", COALESCE((SELECT JSON_ARRAYAGG(p.project_id"          \
		      " ORDER BY p.project_id) FROM variable_project p"        \
		      " WHERE p.variable_id = v.id), '[]') AS projects"        \
		      " FROM variable v WHERE v.valid = 1"

struct variable_query {
	int64_t limit;
	int64_t offset;
};
#define Q(m) FIELD(struct variable_query, m, 0, .doc = NULL)

static const struct field id_args[] = { A(id), FIELD_END };
static const struct field page_args[] = { Q(limit), Q(offset), FIELD_END };
static const struct stmt by_id = {
	.name = "variable_by_id",
	.sql = SELECT " AND v.id = ?",
	.args = id_args,
	.row = row_fields,
	.rowsize = sizeof(struct variable),
};
static const struct stmt lock = {
	.name = "variable_lock",
	.sql = "SELECT id FROM variable WHERE id = ? AND valid = 1 FOR UPDATE",
	.args = id_args,
	.row = id_args,
	.rowsize = sizeof(struct variable),
};
static const struct stmt page = {
	.name = "variable_page",
	.sql = SELECT " ORDER BY v.`key`, v.id LIMIT ? OFFSET ?",
	.args = page_args,
	.row = row_fields,
	.rowsize = sizeof(struct variable),
};
static const struct stmt count = {
	.name = "variable_count",
	.sql = "SELECT COUNT(*) AS n FROM variable WHERE valid = 1",
	.row = page_count_row,
	.rowsize = sizeof(struct page_count),
};
/* clang-format off */
static const struct field insert_args[] = {
	COLUMNS_INSERT_ARGS(VARIABLE, struct variable)
};
static const struct field update_args[] = {
	COLUMNS_UPDATE_ARGS(VARIABLE, struct variable)
};
/* clang-format on */
static const struct stmt insert = {
	.name = "variable_insert",
	.sql = COLUMNS_INSERT("variable", VARIABLE),
	.args = insert_args,
};
static const struct stmt update = {
	.name = "variable_update",
	.sql = COLUMNS_UPDATE("variable", VARIABLE),
	.args = update_args,
};
static const struct stmt delete_variable = {
	.name = "variable_delete",
	.sql = "UPDATE variable SET valid = 0, version = version + 1,"
	       " updated_at = CURRENT_TIMESTAMP(3) WHERE id = ? AND valid = 1",
	.args = id_args,
};

static const struct field of_args[] = { K(variable_id), FIELD_END };
static const struct field of_project_args[] = { K(project_id), FIELD_END };
static const struct field link_row[] = { K(variable_id), K(project_id), K(key),
	FIELD(struct variable_link, value, FIELD_NULL), K(secret),
	FIELD(struct variable_link, sealed, FIELD_NULL), FIELD_END };
#define LINKS                                                                  \
	"SELECT p.variable_id, p.project_id, p.`key`, v.value, v.secret,"      \
	" p.sealed FROM variable_project p"                                    \
	" JOIN variable v ON v.id = p.variable_id WHERE "
static const struct stmt links_of = {
	.name = "variable_links_of",
	.sql = LINKS "p.variable_id = ?",
	.args = of_args,
	.row = link_row,
	.rowsize = sizeof(struct variable_link),
};
static const struct stmt links_of_project = {
	.name = "variable_links_of_project",
	.sql = LINKS "p.project_id = ? ORDER BY p.`key`",
	.args = of_project_args,
	.row = link_row,
	.rowsize = sizeof(struct variable_link),
};
static const struct field taken_args[] = { K(project_id), K(key),
	K(variable_id), FIELD_END };
static const struct stmt taken = {
	.name = "variable_link_taken",
	.sql = "SELECT COUNT(*) AS n FROM variable_project"
	       " WHERE project_id = ? AND `key` = ? AND variable_id <> ?",
	.args = taken_args,
	.row = page_count_row,
	.rowsize = sizeof(struct page_count),
};
static const struct stmt unlink_all = {
	.name = "variable_unlink",
	.sql = "DELETE FROM variable_project WHERE variable_id = ?",
	.args = of_args,
};
static const struct stmt unlink_project = {
	.name = "variable_unlink_project",
	.sql = "DELETE FROM variable_project WHERE project_id = ?",
	.args = of_project_args,
};
static const struct field link_args[] = { K(variable_id), K(project_id), K(key),
	FIELD(struct variable_link, sealed, FIELD_NULL), FIELD_END };
static const struct stmt link_one = {
	.name = "variable_link",
	.sql = "INSERT INTO variable_project (variable_id, project_id, `key`,"
	       " sealed) VALUES (?, ?, ?, ?)",
	.args = link_args,
};

struct room {
	int64_t variable_id;
	int64_t most;
};
static const struct field room_args[] = { FIELD(struct room, variable_id, 0),
	FIELD(struct room, most, 0), FIELD_END };
static const struct field project_row[] = { K(project_id), FIELD_END };
static const struct stmt overfull = {
	.name = "variable_overfull",
	.sql = "SELECT p.project_id FROM variable_project m"
	       " JOIN variable_project p ON p.project_id = m.project_id"
	       " JOIN variable v ON v.id = p.variable_id"
	       " WHERE m.variable_id = ? GROUP BY p.project_id"
	       " HAVING SUM(LENGTH(p.`key`) + 2"
	       " + COALESCE(LENGTH(v.value), LENGTH(p.sealed))) > ?",
	.args = room_args,
	.row = project_row,
	.rowsize = sizeof(struct variable_link),
};

static const struct stmt *const variable_stmts[] = {
	&by_id,
	&lock,
	&page,
	&count,
	&insert,
	&update,
	&delete_variable,
	&links_of,
	&links_of_project,
	&taken,
	&unlink_all,
	&unlink_project,
	&link_one,
	&overfull,
	NULL,
};

/* A deleted project receives nothing. */
static const struct err *
unlink_of_project(struct db *db, int64_t project_id)
{
	const struct variable_link args = { .project_id = project_id };

	return db_exec(db, &unlink_project, &args, NULL);
}

const struct store variable_store = {
	.stmts = variable_stmts,
	.with_project = unlink_of_project,
};

const struct err *
variable_page(struct db *db, struct arena *a, struct page *p, struct list *out)
{
	const struct variable_query q = { .limit = p->limit,
		.offset = page_offset(p) };

	return page_read(db, a, &count, &page, &q, p, out);
}

const struct err *
variable_by_id(struct db *db, struct arena *a, int64_t id, struct variable *out)
{
	const struct variable args = { .id = id };

	return db_row(db, a, &by_id, &args, out);
}

const struct err *
variable_lock(struct db *db, struct arena *a, int64_t id, struct variable *out)
{
	const struct variable args = { .id = id };
	const struct err *e;

	if ((e = db_row(db, a, &lock, &args, out)) != NULL)
		return e;
	return variable_by_id(db, a, id, out);
}

const struct err *
variable_insert(struct db *db, const struct variable *v, int64_t *id)
{
	const struct err *e;
	struct db_done done;

	*id = 0;
	if ((e = db_exec(db, &insert, v, &done)) == NULL)
		*id = done.insert_id;
	return e;
}

const struct err *
variable_update(struct db *db, const struct variable *v)
{
	return db_exec(db, &update, v, NULL);
}

const struct err *
variable_delete(struct db *db, int64_t id)
{
	const struct variable args = { .id = id };
	const struct err *e;

	if ((e = variable_unlink(db, id)) != NULL)
		return e;
	return db_exec(db, &delete_variable, &args, NULL);
}

const struct err *
variable_links_of_project(struct db *db, struct arena *a, int64_t project_id,
    struct list *out)
{
	const struct variable_link args = { .project_id = project_id };

	return db_rows(db, a, &links_of_project, &args, out);
}

const struct err *
variable_links_of(struct db *db, struct arena *a, int64_t variable_id,
    struct list *out)
{
	const struct variable_link args = { .variable_id = variable_id };

	return db_rows(db, a, &links_of, &args, out);
}

const struct err *
variable_link_taken(struct db *db, struct arena *a,
    const struct variable_link *one, bool *out)
{
	const struct err *e;
	struct page_count found = { .n = 0 };

	e = db_row(db, a, &taken, one, &found);
	*out = found.n > 0;
	return e;
}

const struct err *
variable_unlink(struct db *db, int64_t variable_id)
{
	const struct variable_link args = { .variable_id = variable_id };

	return db_exec(db, &unlink_all, &args, NULL);
}

const struct err *
variable_link(struct db *db, const struct variable_link *one)
{
	return db_exec(db, &link_one, one, NULL);
}

const struct err *
variable_overfull(struct db *db, struct arena *a, int64_t id, int64_t most,
    struct list *out)
{
	const struct room args = { .variable_id = id, .most = most };

	return db_rows(db, a, &overfull, &args, out);
}
