/* SPDX-License-Identifier: ISC */
#include "store/project.h"

#include <string.h>

#include "core/str.h"
#include "store/columns.h"
#include "store/env.h"
#include "store/like.h"
#include "store/member.h"
#include "store/projectdir.h"
#include "store/store.h"
#include "store/workspace.h"
#include "store/workspace_row.h"

#define A(m) FIELD(struct project, m, 0)

static void
project_check(const void *item, const char *pointer, struct faults *faults)
{
	const struct project *p = item;

	preset_sizes_check(p->env_presets, p->triggers, pointer, faults);
}

/* clang-format off */
#define PROJECT(X, T)							\
	X(T, KEY, id, FIELD_OUT, .doc = "Id of the project.")		\
	X(T, SET, name, FIELD_OUT | FIELD_IN | FIELD_MUST | FIELD_LINE,	\
	    .min = 1, .max = 100,					\
	    .doc = "Name, unique among projects regardless of case, accents, " \
		   "width and zero-width characters; soft hyphens and "	\
		   "spaces count.")					\
	X(T, SET, description,						\
	    FIELD_OUT | FIELD_IN | FIELD_NULL | FIELD_TEXT, .max = 500,	\
	    .doc = "Description of the project.")			\
	X(T, SET, repository, FIELD_OUT | FIELD_IN | FIELD_MUST | FIELD_LINE, \
	    .min = 1, .max = 1000,					\
	    .doc = "URL of the Git repository. It cannot change while "	\
		   "deployments are pending or running. A change, or an " \
		   "update that contains only this member, clears what " \
		   "the service has stored about the repository.")	\
	X(T, ONCE, project_dir, FIELD_OUT | FIELD_IN | FIELD_ONCE, .min = 1, \
	    .max = 255,							\
	    .pattern = "[A-Za-z0-9_][A-Za-z0-9._-]*"			\
		       "(/[A-Za-z0-9_][A-Za-z0-9._-]*)*",		\
	    .doc = "Directory of the workspace, relative to the "	\
		   "workspace root; the default is the name as a slug, " \
		   "with a number if that is taken.")			\
	X(T, SET, default_branch,					\
	    FIELD_OUT | FIELD_IN | FIELD_NULL | FIELD_LINE, .min = 1,	\
	    .max = 255, .shown = FIELD_BRANCH,				\
	    .doc = "Branch to deploy by default.")			\
	X(T, SET, env_presets, FIELD_OUT | FIELD_IN, .max = 100,	\
	    .shape = &preset_shape,					\
	    .doc = "Form fields for environment variables.")		\
	X(T, SET, extra_env, FIELD_OUT | FIELD_IN,			\
	    .values = env_extra_values, .named = "ExtraEnv",		\
	    .doc = "Who may set variables that envPresets do not name.") \
	X(T, SET, triggers, FIELD_OUT | FIELD_IN, .max = 100,		\
	    .shape = &trigger_shape, .doc = "Pipelines that pushes start.") \
	X(T, SET, badge, FIELD_OUT | FIELD_IN,				\
	    .doc = "Whether anyone can read the badge: the result of the " \
		   "last deployment.")					\
	X(T, SET, submodules,						\
	    FIELD_OUT | FIELD_IN | FIELD_NULL | FIELD_TRUTH, .max = 1,	\
	    .doc = "Whether to fetch submodules; null = as the setting "	\
		   "runner.submodules says.")				\
	X(T, SET, submodule_repositories, FIELD_OUT | FIELD_IN, .max = 20, \
	    .shape = &submodule_path_shape,				\
	    .doc = "Repositories of the Git server that are read for "	\
		   "submodules, if the user who sets the list may read "	\
		   "them there.")					\
	X(T, SET, lfs, FIELD_OUT | FIELD_IN | FIELD_TRUE,		\
	    .doc = "Whether to fetch the files of Git LFS; default true. This " \
		   "version stores it and fetches none: the log names what "	\
		   "is missing.")						\
	X(T, READ, valid, FIELD_OUT | FIELD_NUMBER,			\
	    .doc = "1; 0 if deleted.")					\
	X(T, READ, created_at, FIELD_OUT, .doc = "Time of creation.")	\
	X(T, READ, updated_at, FIELD_OUT, .doc = "Time of the last change.") \
	X(T, ONCE, created_by, FIELD_OUT | FIELD_NULL,			\
	    .doc = "User who created it.")				\
	X(T, READ, version, 0, .doc = "Number of changes.")		\
	X(T, NONE, role, FIELD_OUT, .values = role_names, .named = "Role", \
	    .doc = "Role of the caller in the project.")		\
	X(T, NONE, lock, FIELD_OUT | FIELD_ONE | FIELD_NULL,		\
	    .shape = &lock_shape, .doc = "The lock of the project.")	\
	X(T, NONE, workspace_status, FIELD_OUT | FIELD_DETAIL | FIELD_ONE, \
	    .shape = &workspace_shape,					\
	    .doc = "State of the workspace.")

static const struct field project_fields[] = {
	COLUMNS_FIELDS(PROJECT, struct project)
};
/* clang-format on */

const struct shape project_shape = {
	.name = "Project",
	.fields = project_fields,
	.size = sizeof(struct project),
	.check = project_check,
	.doc = "A Git repository and what belongs to its deployment.",
};

#define COLUMNS COLUMNS_SELECT(PROJECT)
#define COLUMNS_P COLUMNS_OF("p", PROJECT)
#define COLUMNS_W COLUMNS_OF("w", WORKSPACE_ROW)
#define JOIN_LOCK LOCK_JOIN("p.id", "0")

struct project_query {
	int64_t reader;
	const char *like; /* part of the name */
	const char *name; /* or the complete name, compared as for uniqueness */
	int64_t member;
	int64_t limit;
	int64_t offset;
};
#define Q(m) FIELD(struct project_query, m, 0, .doc = NULL)

static const struct field id_args[] = { A(id), FIELD_END };
static const struct field page_args[] = { Q(reader), Q(limit), Q(offset),
	FIELD_END };
static const struct field named_args[] = { Q(reader), Q(like), Q(name),
	Q(limit), Q(offset), FIELD_END };
static const struct field name_args[] = { Q(like), Q(name), FIELD_END };
static const struct field page_by_args[] = { Q(reader), Q(member), Q(like),
	Q(name), Q(limit), Q(offset), FIELD_END };
static const struct field count_by_args[] = { Q(member), Q(like), Q(name),
	FIELD_END };

static const struct stmt by_id = {
	.name = "project_by_id",
	.sql = "SELECT " COLUMNS " FROM project WHERE id = ? AND valid = 1",
	.args = id_args,
	.row = project_fields,
	.rowsize = sizeof(struct project),
};
/* A project with the status of its workspace. */
struct seen {
	struct project project;
	struct workspace_status workspace;
};
_Static_assert(offsetof(struct seen, project) == 0, "see COLUMNS_PART");
/* clang-format off */
static const struct field seen_row[] = {
	PROJECT(COLUMN_FIELD, struct project)
	COLUMNS_PART(struct seen, project.lock_row, LOCK_ROW)
	COLUMNS_PART(struct seen, workspace, WORKSPACE_ROW)
	FIELD_END,
};
/* A project with its lock and the role of a member. */
static const struct field page_row[] = {
	PROJECT(COLUMN_FIELD, struct project)
	FIELD(struct project, role, FIELD_NULL),
	COLUMNS_PART(struct project, lock_row, LOCK_ROW)
	FIELD_END,
};
/* clang-format on */
static const struct stmt seen = {
	.name = "project_with_workspace",
	.sql = "SELECT " COLUMNS_P ", " LOCK_COLUMNS ", " COLUMNS_W
	       " FROM project p LEFT JOIN workspace w"
	       " ON w.project_id = p.id" JOIN_LOCK
	       " WHERE p.id = ? AND p.valid = 1",
	.args = id_args,
	.row = seen_row,
	.rowsize = sizeof(struct seen),
};
static const struct stmt lock = {
	.name = "project_lock",
	.sql = "SELECT " COLUMNS
	       " FROM project WHERE id = ? AND valid = 1 FOR UPDATE",
	.args = id_args,
	.row = project_fields,
	.rowsize = sizeof(struct project),
};
static const struct stmt share = {
	.name = "project_share",
	.sql = "SELECT id FROM project WHERE id = ? AND valid = 1"
	       " LOCK IN SHARE MODE",
	.args = id_args,
	.row = id_args,
	.rowsize = sizeof(struct project),
};
#define SELECT_LOCK(hint)                                                      \
	"SELECT " COLUMNS_P ", " MEMBER_ROLE ", " LOCK_COLUMNS                 \
	" FROM project p" hint MEMBER_JOIN JOIN_LOCK
/* By name, in the order of the index: with some statistics the optimizer would
 * rather sort all projects. */
#define SELECT_ALL SELECT_LOCK(" FORCE INDEX (project_list)")
static const struct stmt page = {
	.name = "project_page",
	.sql = SELECT_ALL " WHERE p.valid = 1 ORDER BY p.name, p.id"
			  " LIMIT ? OFFSET ?",
	.args = page_args,
	.row = page_row,
	.rowsize = sizeof(struct project),
};
static const struct stmt page_named = {
	.name = "project_page_named",
	.sql = SELECT_ALL " WHERE p.valid = 1 AND (p.name LIKE ? ESCAPE '!'"
			  " OR p.name = ?) ORDER BY p.name, p.id"
			  " LIMIT ? OFFSET ?",
	.args = named_args,
	.row = page_row,
	.rowsize = sizeof(struct project),
};
/* The projects of a member, who has few: one statement serves both lists. */
#define BY                                                                     \
	" WHERE p.valid = 1 AND p.id IN " MEMBER_PROJECTS                      \
	" AND (p.name LIKE ? ESCAPE '!' OR p.name = ?)"
static const struct stmt page_by = {
	.name = "project_page_by",
	.sql = SELECT_LOCK("") BY " ORDER BY p.name, p.id LIMIT ? OFFSET ?",
	.args = page_by_args,
	.row = page_row,
	.rowsize = sizeof(struct project),
};
static const struct stmt count_by = {
	.name = "project_count_by",
	.sql = "SELECT COUNT(*) AS n FROM project p" BY,
	.args = count_by_args,
	.row = page_count_row,
	.rowsize = sizeof(struct page_count),
};
static const struct stmt count = {
	.name = "project_count",
	.sql = "SELECT COUNT(*) AS n FROM project WHERE valid = 1",
	.row = page_count_row,
	.rowsize = sizeof(struct page_count),
};
static const struct stmt count_named = {
	.name = "project_count_named",
	.sql = "SELECT COUNT(*) AS n FROM project WHERE valid = 1"
	       " AND (name LIKE ? ESCAPE '!' OR name = ?)",
	.args = name_args,
	.row = page_count_row,
	.rowsize = sizeof(struct page_count),
};

#define O(m) FIELD(struct project_of_repo, m, 0, .doc = NULL)
static const struct field of_repo_args[] = { O(reader), O(server), O(repo_id),
	O(member), O(member), FIELD_END };
static const struct stmt of_repo = {
	.name = "project_of_repo",
	.sql = "SELECT " COLUMNS_P ", " MEMBER_ROLE ", " LOCK_COLUMNS
	       " FROM git_repo g JOIN project p ON p.id = g.project_id"
	       " AND p.repository = g.repository" MEMBER_JOIN JOIN_LOCK
	       " WHERE g.server = ? AND g.repo_id = ? AND p.valid = 1"
	       " AND (? = 0 OR p.id IN " MEMBER_PROJECTS ")"
	       " ORDER BY p.name, p.id LIMIT 100",
	.args = of_repo_args,
	.row = page_row,
	.rowsize = sizeof(struct project),
};

#define R(m) FIELD(struct project_ref, m, 0)
static const struct field ref_row[] = { R(id), R(name), FIELD_END };
static const struct field ref_args[] = { R(name), R(name), R(id), FIELD_END };
static const struct field ref_by_args[] = { R(name), R(name), R(id), R(member),
	FIELD_END };
/* The unique key of live names has one column, so that MariaDB reads it from the
 * last name onwards. It may read all of project_list, which begins with `valid`,
 * for each piece. */
#define REFS(also)                                                             \
	"SELECT id, live_name AS name FROM project WHERE live_name >= ?"       \
	" AND (live_name > ? OR id > ?)" also " ORDER BY live_name LIMIT 100"
static const struct stmt refs = {
	.name = "project_refs",
	.sql = REFS(""),
	.args = ref_args,
	.row = ref_row,
	.rowsize = sizeof(struct project_ref),
};
static const struct stmt refs_by = {
	.name = "project_refs_by",
	.sql = REFS(" AND id IN " MEMBER_PROJECTS),
	.args = ref_by_args,
	.row = ref_row,
	.rowsize = sizeof(struct project_ref),
};

/* Requests that create or rename a project lock this row first. Otherwise two
 * of them could find the same name or directory unused. */
static const struct stmt queue_up = {
	.name = "project_queue_up",
	.sql = "INSERT INTO commit_token (token) VALUES ('project names')"
	       " ON DUPLICATE KEY UPDATE created_at = CURRENT_TIMESTAMP(3)",
};

static const struct field clash_args[] = {
	A(id),
	A(project_dir),
	A(project_dir),
	A(project_dir),
	A(project_dir),
	FIELD_END,
};
struct clash {
	const char *name;
	const char *project_dir;
};
#define C(m) FIELD(struct clash, m, 0)
static const struct field clash_row[] = { C(name), C(project_dir), FIELD_END };
/* '0' is the byte after '/'. */
static const struct stmt clashes = {
	.name = "project_clashes",
	.sql = "SELECT name, project_dir FROM project WHERE valid = 1"
	       " AND id <> ? AND (live_dir = ?"
	       " OR (live_dir > CONCAT(?, '/') AND live_dir < CONCAT(?, '0'))"
	       " OR LEFT(?, CHAR_LENGTH(live_dir) + 1)"
	       " = CONCAT(live_dir, '/')) LIMIT 10",
	.args = clash_args,
	.row = clash_row,
	.rowsize = sizeof(struct clash),
};

static const struct field same_args[] = { A(id), A(name), FIELD_END };
static const struct stmt same_name = {
	.name = "project_same_name",
	.sql = "SELECT COUNT(*) AS n FROM project WHERE valid = 1 AND id <> ?"
	       " AND live_name = ?",
	.args = same_args,
	.row = page_count_row,
	.rowsize = sizeof(struct page_count),
};

/* clang-format off */
static const struct field insert_args[] = {
	COLUMNS_INSERT_ARGS(PROJECT, struct project)
};
/* clang-format on */
static const struct stmt insert = {
	.name = "project_insert",
	.sql = COLUMNS_INSERT("project", PROJECT),
	.args = insert_args,
};

/* clang-format off */
static const struct field update_args[] = {
	COLUMNS_UPDATE_ARGS(PROJECT, struct project)
};
/* clang-format on */
static const struct stmt update = {
	.name = "project_update",
	.sql = COLUMNS_UPDATE("project", PROJECT),
	.args = update_args,
};

#define K(m) FIELD(struct project_secrets, m, 0)
static const struct field secrets_args[] = { K(id), FIELD_END };
static const struct field secrets_row[] = { K(id), K(secret_defaults),
	K(trigger_secrets), FIELD_END };
static const struct stmt secrets_find = {
	.name = "project_secrets_find",
	.sql = "SELECT id, secret_defaults, trigger_secrets FROM project"
	       " WHERE id = ? AND valid = 1",
	.args = secrets_args,
	.row = secrets_row,
	.rowsize = sizeof(struct project_secrets),
};
static const struct field secrets_save_args[] = { K(secret_defaults),
	K(trigger_secrets), K(id), FIELD_END };
static const struct stmt secrets_save = {
	.name = "project_secrets_save",
	.sql = "UPDATE project SET secret_defaults = ?, trigger_secrets = ?"
	       " WHERE id = ? AND valid = 1",
	.args = secrets_save_args,
};

static const struct stmt delete_project = {
	.name = "project_delete",
	.sql = "UPDATE project SET valid = 0, version = version + 1,"
	       " updated_at = CURRENT_TIMESTAMP(3) WHERE id = ? AND valid = 1",
	.args = id_args,
};

static const struct stmt *const project_stmts[] = {
	&by_id,
	&seen,
	&lock,
	&share,
	&page,
	&page_named,
	&page_by,
	&count,
	&count_named,
	&count_by,
	&of_repo,
	&refs,
	&refs_by,
	&queue_up,
	&clashes,
	&same_name,
	&insert,
	&update,
	&secrets_find,
	&secrets_save,
	&delete_project,
	NULL,
};

const struct store project_store = {
	.stmts = project_stmts,
};

static void
locks_join(const struct list *list)
{
	struct project *item = list->items;
	size_t i;

	for (i = 0; i < list->n; i++)
		item[i].lock = lock_joined(&item[i].lock_row);
}

const struct err *
project_page(struct db *db, struct arena *a, const char *name, struct page *p,
    struct list *out)
{
	const char *like = name == NULL ? "%" : like_substring(a, name);
	const struct project_query q = { .like = like,
		.name = name,
		.reader = p->reader,
		.member = p->member,
		.limit = p->limit,
		.offset = page_offset(p) };
	const struct err *e;

	if (p->member != 0)
		e = page_read(db, a, &count_by, &page_by, &q, p, out);
	else
		e = page_read(db, a, name == NULL ? &count : &count_named,
		    name == NULL ? &page : &page_named, &q, p, out);
	if (e == NULL)
		locks_join(out);
	return e;
}

const struct err *
project_of_repo(struct db *db, struct arena *a,
    const struct project_of_repo *which, struct list *out)
{
	const struct err *e = db_rows(db, a, &of_repo, which, out);

	if (e == NULL)
		locks_join(out);
	return e;
}

const struct err *
project_refs(struct db *db, struct arena *a, const struct project_ref *after,
    struct list *out)
{
	return db_rows(db, a, after->member != 0 ? &refs_by : &refs, after,
	    out);
}

const struct err *
project_by_id(struct db *db, struct arena *a, int64_t id, struct project *out)
{
	return db_row(db, a, &by_id, &(struct project){ .id = id }, out);
}

const struct err *
project_lock(struct db *db, struct arena *a, int64_t id, struct project *out)
{
	return db_row(db, a, &lock, &(struct project){ .id = id }, out);
}

const struct err *
project_share(struct db *db, struct arena *a, int64_t id)
{
	struct project found;

	return db_row(db, a, &share, &(struct project){ .id = id }, &found);
}

const struct err *
project_queue_up(struct db *db)
{
	return db_exec(db, &queue_up, NULL, NULL);
}

const struct err *
project_judge(struct db *db, const struct project *p, struct faults *faults)
{
	const struct err *e;
	const struct clash *other;
	struct page_count same;
	struct list list;
	size_t i;

	if ((e = db_row(db, faults->a, &same_name, p, &same)) != NULL)
		return e;
	if (same.n > 0)
		faults_conflict(faults, "/name",
		    "another project has this name; choose another");
	if ((e = db_rows(db, faults->a, &clashes, p, &list)) != NULL)
		return e;
	for (i = 0; i < list.n; i++) {
		other = (const struct clash *)list.items + i;
		if (str_eq(other->project_dir, p->project_dir))
			faults_conflict(faults, "/projectDir",
			    "is the directory of project \"%s\"; choose "
			    "another",
			    other->name);
		else
			faults_conflict(faults, "/projectDir",
			    "overlaps the directory \"%s\" of project \"%s\"; "
			    "choose another",
			    other->project_dir, other->name);
	}
	return NULL;
}

const struct err *
project_insert(struct db *db, struct arena *a, const struct project *p,
    int64_t *id)
{
	struct project row = *p;
	const struct err *e;
	struct db_done done;

	*id = 0;
	if (row.project_dir == NULL &&
	    (e = projectdir_choose(db, a, row.name, &row.project_dir)) != NULL)
		return e;
	if ((e = db_exec(db, &insert, &row, &done)) != NULL)
		return e;
	*id = done.insert_id;
	return NULL;
}

const struct err *
project_update(struct db *db, const struct project *p)
{
	return db_exec(db, &update, p, NULL);
}

const struct err *
project_delete(struct db *db, int64_t id)
{
	const struct project args = { .id = id };
	const struct err *e;

	if ((e = store_project_delete(db, id)) != NULL)
		return e;
	return db_exec(db, &delete_project, &args, NULL);
}

const struct err *
project_secrets_find(struct db *db, struct arena *a, int64_t id,
    struct project_secrets *out)
{
	return db_row(db, a, &secrets_find,
	    &(struct project_secrets){ .id = id }, out);
}

const struct err *
project_secrets_save(struct db *db, const struct project_secrets *one)
{
	return db_exec(db, &secrets_save, one, NULL);
}

const struct err *
project_with_workspace(struct db *db, struct arena *a, int64_t id,
    struct project *out)
{
	struct seen *found = arena_alloc(a, 1, sizeof(*found));
	struct project args = { .id = id };
	const struct err *e;

	(void)memset(out, 0, sizeof(*out));
	if ((e = db_row(db, a, &seen, &args, found)) != NULL)
		return e;
	if (found->workspace.status == NULL)
		found->workspace.status = "not_created";
	found->workspace.project_id = id;
	*out = found->project;
	out->lock = lock_joined(&found->project.lock_row);
	out->workspace_status = (struct list){ .items = &found->workspace,
		.n = 1 };
	return NULL;
}
