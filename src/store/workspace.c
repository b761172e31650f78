/* SPDX-License-Identifier: ISC */
#include "store/workspace.h"

#include "store/store.h"

static const char *const workspace_statuses[] = { "not_created", "empty",
	"no_git", "ready", "error", NULL };

#define W(m, ...) FIELD(struct workspace_status, m, __VA_ARGS__)
static const struct field workspace_fields[] = {
	W(status, FIELD_OUT, .values = workspace_statuses,
	    .named = "WorkspaceState",
	    .doc = "State of the workspace, as last reported."),
	W(branch, FIELD_OUT | FIELD_NULL, .max = 255,
	    .doc = "Checked-out branch."),
	W(commit_hash, FIELD_OUT | FIELD_NULL, .max = 64,
	    .doc = "Checked-out commit."),
	W(commit_message, FIELD_OUT | FIELD_NULL,
	    .doc = "Message of the commit."),
	W(dirty, FIELD_OUT, .doc = "Whether files differ from the commit."),
	W(size_bytes, FIELD_OUT | FIELD_NULL, .doc = "Size on disk in bytes."),
	W(runner, FIELD_OUT | FIELD_NULL, .max = 255,
	    .doc = "Runner that reported the state."),
	W(checked_at, FIELD_OUT | FIELD_NULL, .doc = "Time of the report."),
	FIELD_END,
};

const struct shape workspace_shape = {
	.name = "WorkspaceStatus",
	.fields = workspace_fields,
	.size = sizeof(struct workspace_status),
	.doc = "The workspace of a project, as a runner last reported it.",
};

#include "store/workspace.sql.h"

const struct store workspace_store = {
	.stmts = workspace_stmts,
};

const struct err *
workspace_save(struct db *db, const struct workspace_status *w)
{
	return db_exec(db, &sql_workspace_save, w, NULL);
}

const struct err *
workspace_by_project(struct db *db, struct arena *a, int64_t project_id,
    struct workspace_status *out)
{
	return db_row(db, a, &sql_workspace_by_project,
	    &(struct workspace_status){ .project_id = project_id }, out);
}
