/* SPDX-License-Identifier: ISC */
#include "store/submodule.h"

#include "store/store.h"

static const struct field path_fields[] = {
	FIELD(struct submodule_path, path, FIELD_OUT | FIELD_IN, .min = 3,
	    .max = 255, .pattern = SUBMODULE_PATH_ERE,
	    .doc = "Path of a repository at the Git server, such as "
		   "team/theme."),
	FIELD_END,
};
const struct shape submodule_path_shape = {
	.name = "SubmoduleRepository",
	.fields = path_fields,
	.size = sizeof(struct submodule_path),
	.bare = true,
};

/* A number, and who found it. */
struct found {
	struct submodule is;
	int64_t user_id;
};

#define F(m) FIELD(struct found, m, 0)
#define S(m) FIELD(struct submodule, m, 0)

static const struct field set_args[] = { F(user_id), F(is.project_id),
	FIELD_END };
static const struct stmt set_by = {
	.name = "submodule_set_by",
	.sql = "UPDATE project SET submodules_by = ? WHERE id = ?",
	.args = set_args,
};
static const struct field forget_args[] = { F(is.project_id), FIELD_END };
static const struct stmt forget = {
	.name = "submodule_forget",
	.sql = "DELETE FROM git_submodule WHERE project_id = ?",
	.args = forget_args,
};
static const struct field find_args[] = { S(project_id), S(path), S(server),
	FIELD_END };
static const struct field submodule_row[] = { S(project_id), S(server), S(path),
	S(repo_id), FIELD_END };
static const struct stmt find = {
	.name = "submodule_find",
	.sql = "SELECT project_id, server, path, repo_id FROM git_submodule"
	       " WHERE project_id = ? AND path = ? AND server = ?",
	.args = find_args,
	.row = submodule_row,
	.rowsize = sizeof(struct submodule),
};
static const struct field confirm_args[] = { F(is.server), F(is.path),
	F(is.repo_id), F(is.project_id), F(user_id), FIELD_END };
static const struct stmt confirm = {
	.name = "submodule_confirm",
	.sql = "INSERT INTO git_submodule (project_id, server, path, repo_id)"
	       " SELECT id, ?, ?, ? FROM project WHERE id = ?"
	       " AND submodules_by = ?"
	       " ON DUPLICATE KEY UPDATE server = VALUES(server),"
	       " repo_id = VALUES(repo_id)",
	.args = confirm_args,
};

static const struct stmt *const submodule_stmts[] = {
	&set_by,
	&forget,
	&find,
	&confirm,
	NULL,
};

const struct store submodule_store = {
	.stmts = submodule_stmts,
};

const struct err *
submodule_set_by(struct db *db, int64_t project_id, int64_t user_id)
{
	const struct found args = { .is.project_id = project_id,
		.user_id = user_id };
	const struct err *e;

	if ((e = db_exec(db, &set_by, &args, NULL)) != NULL)
		return e;
	return db_exec(db, &forget, &args, NULL);
}

const struct err *
submodule_find(struct db *db, struct arena *a, const struct submodule *key,
    struct submodule *out)
{
	return db_row(db, a, &find, key, out);
}

const struct err *
submodule_confirm(struct db *db, const struct submodule *submodule,
    int64_t user_id)
{
	const struct found args = { .is = *submodule, .user_id = user_id };

	return db_exec(db, &confirm, &args, NULL);
}
