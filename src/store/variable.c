/* SPDX-License-Identifier: ISC */
#include "store/variable.h"

#include "store/env.h"
#include "store/store.h"

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

#define V(m, ...) FIELD(struct variable, m, __VA_ARGS__)
static const struct field variable_fields[] = {
	V(id, FIELD_OUT, .doc = "Id of the variable."),
	V(key, FIELD_OUT | FIELD_IN | FIELD_MUST, .max = 128,
	    .pattern = ENV_NAME_ERE, .doc = "Name of the variable."),
	V(value, FIELD_OUT | FIELD_IN | FIELD_NULL, .max = ENV_VALUE_MAX,
	    .doc = "Value. A secret one is returned as null; null keeps it."),
	V(secret, FIELD_OUT | FIELD_IN,
	    .doc = "Whether the value is encrypted and masked."),
	V(description, FIELD_OUT | FIELD_IN | FIELD_NULL | FIELD_TEXT,
	    .max = 500, .doc = "Description of the variable."),
	V(projects, FIELD_OUT | FIELD_IN, .max = VARIABLE_PROJECTS_MAX,
	    .shape = &variable_ref_shape,
	    .doc = "Projects that receive it; empty = none."),
	V(created_at, FIELD_OUT, .doc = "Time of creation."),
	V(updated_at, FIELD_OUT, .doc = "Time of the last change."),
	V(created_by, FIELD_OUT | FIELD_NULL, .doc = "User who created it."),
	FIELD_END,
};

const struct shape variable_shape = {
	.name = "Variable",
	.fields = variable_fields,
	.size = sizeof(struct variable),
	.doc = "A variable that several projects share.",
};

struct variable_query {
	int64_t limit;
	int64_t offset;
};
struct room {
	int64_t variable_id;
	int64_t most;
};

#include "store/variable.sql.h"

/* A deleted project receives nothing. */
static const struct err *
unlink_of_project(struct db *db, int64_t project_id)
{
	const struct variable_link args = { .project_id = project_id };

	return db_exec(db, &sql_variable_unlink_project, &args, NULL);
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

	return page_read(db, a, &sql_variable_count, &sql_variable_page, &q, p,
	    out);
}

const struct err *
variable_by_id(struct db *db, struct arena *a, int64_t id, struct variable *out)
{
	const struct variable args = { .id = id };

	return db_row(db, a, &sql_variable_by_id, &args, out);
}

const struct err *
variable_lock(struct db *db, struct arena *a, int64_t id, struct variable *out)
{
	const struct variable args = { .id = id };
	const struct err *e;

	if ((e = db_row(db, a, &sql_variable_lock, &args, out)) != NULL)
		return e;
	return variable_by_id(db, a, id, out);
}

const struct err *
variable_insert(struct db *db, const struct variable *v, int64_t *id)
{
	const struct err *e;
	struct db_done done;

	*id = 0;
	if ((e = db_exec(db, &sql_variable_insert, v, &done)) == NULL)
		*id = done.insert_id;
	return e;
}

const struct err *
variable_update(struct db *db, const struct variable *v)
{
	return db_exec(db, &sql_variable_update, v, NULL);
}

const struct err *
variable_delete(struct db *db, int64_t id)
{
	const struct variable args = { .id = id };
	const struct err *e;

	if ((e = variable_unlink(db, id)) != NULL)
		return e;
	return db_exec(db, &sql_variable_delete, &args, NULL);
}

const struct err *
variable_links_of_project(struct db *db, struct arena *a, int64_t project_id,
    struct list *out)
{
	const struct variable_link args = { .project_id = project_id };

	return db_rows(db, a, &sql_variable_links_of_project, &args, out);
}

const struct err *
variable_links_of(struct db *db, struct arena *a, int64_t variable_id,
    struct list *out)
{
	const struct variable_link args = { .variable_id = variable_id };

	return db_rows(db, a, &sql_variable_links_of, &args, out);
}

const struct err *
variable_link_taken(struct db *db, struct arena *a,
    const struct variable_link *one, bool *out)
{
	const struct err *e;
	struct page_count found = { .n = 0 };

	e = db_row(db, a, &sql_variable_link_taken, one, &found);
	*out = found.n > 0;
	return e;
}

const struct err *
variable_unlink(struct db *db, int64_t variable_id)
{
	const struct variable_link args = { .variable_id = variable_id };

	return db_exec(db, &sql_variable_unlink, &args, NULL);
}

const struct err *
variable_link(struct db *db, const struct variable_link *one)
{
	return db_exec(db, &sql_variable_link, one, NULL);
}

const struct err *
variable_overfull(struct db *db, struct arena *a, int64_t id, int64_t most,
    struct list *out)
{
	const struct room args = { .variable_id = id, .most = most };

	return db_rows(db, a, &sql_variable_overfull, &args, out);
}
