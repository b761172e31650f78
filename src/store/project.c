/* SPDX-License-Identifier: ISC */
#include "store/project.h"

#include <string.h>

#include "core/str.h"
#include "store/env.h"
#include "store/like.h"
#include "store/member.h"
#include "store/projectdir.h"
#include "store/store.h"

static void
project_check(const void *item, const char *pointer, struct faults *faults)
{
	const struct project *p = item;

	preset_sizes_check(p->env_presets, p->triggers, pointer, faults);
}

#define P(m, ...) FIELD(struct project, m, __VA_ARGS__)
static const struct field project_fields[] = {
	P(id, FIELD_OUT, .doc = "Id of the project."),
	P(name, FIELD_OUT | FIELD_IN | FIELD_MUST | FIELD_LINE, .min = 1,
	    .max = 100,
	    .doc = "Name, unique among projects regardless of case, accents, "
		   "width and zero-width characters; soft hyphens and spaces "
		   "count."),
	P(description, FIELD_OUT | FIELD_IN | FIELD_NULL | FIELD_TEXT,
	    .max = 500, .doc = "Description of the project."),
	P(repository, FIELD_OUT | FIELD_IN | FIELD_MUST | FIELD_LINE, .min = 1,
	    .max = 1000,
	    .doc = "URL of the Git repository. It cannot change while "
		   "deployments are pending or running. A change, or an "
		   "update that contains only this member, clears what the "
		   "service has stored about the repository."),
	P(project_dir, FIELD_OUT | FIELD_IN | FIELD_ONCE, .min = 1, .max = 255,
	    .pattern =
		"[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*",
	    .doc = "Directory of the workspace, relative to the workspace "
		   "root; the default is the name as a slug, with a number "
		   "if that is taken."),
	P(default_branch, FIELD_OUT | FIELD_IN | FIELD_NULL | FIELD_LINE,
	    .min = 1, .max = 255, .shown = FIELD_BRANCH,
	    .doc = "Branch to deploy by default."),
	P(env_presets, FIELD_OUT | FIELD_IN, .max = 100, .shape = &preset_shape,
	    .doc = "Form fields for environment variables."),
	P(extra_env, FIELD_OUT | FIELD_IN, .values = env_extra_values,
	    .named = "ExtraEnv",
	    .doc = "Who may set variables that envPresets do not name."),
	P(triggers, FIELD_OUT | FIELD_IN, .max = 100, .shape = &trigger_shape,
	    .doc = "Pipelines that pushes start."),
	P(badge, FIELD_OUT | FIELD_IN,
	    .doc = "Whether anyone can read the badge: the result of the "
		   "last deployment."),
	P(submodules, FIELD_OUT | FIELD_IN | FIELD_NULL | FIELD_TRUTH, .max = 1,
	    .doc = "Whether to fetch submodules; null = as the setting "
		   "runner.submodules says."),
	P(submodule_repositories, FIELD_OUT | FIELD_IN, .max = 20,
	    .shape = &submodule_path_shape,
	    .doc = "Repositories of the Git server that are read for "
		   "submodules, if the user who sets the list may read them "
		   "there."),
	P(lfs, FIELD_OUT | FIELD_IN | FIELD_TRUE,
	    .doc = "Whether to fetch the files of Git LFS; default true."),
	P(valid, FIELD_OUT | FIELD_NUMBER, .doc = "1; 0 if deleted."),
	P(created_at, FIELD_OUT, .doc = "Time of creation."),
	P(updated_at, FIELD_OUT, .doc = "Time of the last change."),
	P(created_by, FIELD_OUT | FIELD_NULL, .doc = "User who created it."),
	P(role, FIELD_OUT, .values = role_names, .named = "Role",
	    .doc = "Role of the caller in the project."),
	P(lock, FIELD_OUT | FIELD_ONE | FIELD_NULL, .shape = &lock_shape,
	    .doc = "The lock of the project."),
	P(workspace_status, FIELD_OUT | FIELD_DETAIL | FIELD_ONE,
	    .shape = &workspace_shape, .doc = "State of the workspace."),
	FIELD_END,
};

const struct shape project_shape = {
	.name = "Project",
	.fields = project_fields,
	.size = sizeof(struct project),
	.check = project_check,
	.doc = "A Git repository and what belongs to its deployment.",
};

struct project_query {
	int64_t reader;
	const char *like; /* part of the name */
	const char *name; /* or the complete name, compared as for uniqueness */
	int64_t member;
	int64_t limit;
	int64_t offset;
};
struct clash {
	const char *name;
	const char *project_dir;
};

#include "store/project.sql.h"

_Static_assert(SQL_PROJECT_REFS == PROJECT_REFS, "see project.sql");

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
		e = page_read(db, a, &sql_project_count_by,
		    &sql_project_page_by, &q, p, out);
	else
		e = page_read(db, a,
		    name == NULL ? &sql_project_count :
				   &sql_project_count_named,
		    name == NULL ? &sql_project_page : &sql_project_page_named,
		    &q, p, out);
	if (e == NULL)
		locks_join(out);
	return e;
}

const struct err *
project_of_repo(struct db *db, struct arena *a,
    const struct project_of_repo *which, struct list *out)
{
	const struct err *e = db_rows(db, a, &sql_project_of_repo, which, out);

	if (e == NULL)
		locks_join(out);
	return e;
}

const struct err *
project_refs(struct db *db, struct arena *a, const struct project_ref *after,
    struct list *out)
{
	return db_rows(db, a,
	    after->member != 0 ? &sql_project_refs_by : &sql_project_refs,
	    after, out);
}

const struct err *
project_by_id(struct db *db, struct arena *a, int64_t id, struct project *out)
{
	return db_row(db, a, &sql_project_by_id, &(struct project){ .id = id },
	    out);
}

const struct err *
project_lock(struct db *db, struct arena *a, int64_t id, struct project *out)
{
	return db_row(db, a, &sql_project_lock, &(struct project){ .id = id },
	    out);
}

const struct err *
project_share(struct db *db, struct arena *a, int64_t id)
{
	struct project found;

	return db_row(db, a, &sql_project_share, &(struct project){ .id = id },
	    &found);
}

const struct err *
project_queue_up(struct db *db)
{
	return db_exec(db, &sql_project_queue_up, NULL, NULL);
}

const struct err *
project_judge(struct db *db, const struct project *p, struct faults *faults)
{
	const struct err *e;
	const struct clash *other;
	struct page_count same;
	struct list list;
	size_t i;

	if ((e = db_row(db, faults->a, &sql_project_same_name, p, &same)) !=
	    NULL)
		return e;
	if (same.n > 0)
		faults_conflict(faults, "/name",
		    "another project has this name; choose another");
	if ((e = db_rows(db, faults->a, &sql_project_clashes, p, &list)) !=
	    NULL)
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
	if ((e = db_exec(db, &sql_project_insert, &row, &done)) != NULL)
		return e;
	*id = done.insert_id;
	return NULL;
}

const struct err *
project_update(struct db *db, const struct project *p)
{
	return db_exec(db, &sql_project_update, p, NULL);
}

const struct err *
project_delete(struct db *db, int64_t id)
{
	const struct project args = { .id = id };

	return db_exec(db, &sql_project_delete, &args, NULL);
}

const struct err *
project_secrets_find(struct db *db, struct arena *a, int64_t id,
    struct project_secrets *out)
{
	return db_row(db, a, &sql_project_secrets_find,
	    &(struct project_secrets){ .id = id }, out);
}

const struct err *
project_secrets_save(struct db *db, const struct project_secrets *one)
{
	return db_exec(db, &sql_project_secrets_save, one, NULL);
}

const struct err *
project_with_workspace(struct db *db, struct arena *a, int64_t id,
    struct project *out)
{
	struct project *found = arena_alloc(a, 1, sizeof(*found));
	struct project args = { .id = id };
	const struct err *e;

	(void)memset(out, 0, sizeof(*out));
	if ((e = db_row(db, a, &sql_project_with_workspace, &args, found)) !=
	    NULL)
		return e;
	if (found->workspace_row.status == NULL)
		found->workspace_row.status = "not_created";
	found->workspace_row.project_id = id;
	*out = *found;
	out->lock = lock_joined(&found->lock_row);
	out->workspace_status = (struct list){ .items = &found->workspace_row,
		.n = 1 };
	return NULL;
}
