/* SPDX-License-Identifier: ISC */
#include "store/workspace.h"

#include "store/store.h"

static const char *const workspace_statuses[] = { "not_created", "empty",
	"no_git", "ready", "error", NULL };

static const struct field workspace_fields[] = {
	FIELD(struct workspace_status, status, FIELD_OUT,
	    .values = workspace_statuses, .named = "WorkspaceState",
	    .doc = "State of the workspace, as last reported."),
	FIELD(struct workspace_status, branch, FIELD_OUT | FIELD_NULL,
	    .max = 255, .doc = "Checked-out branch."),
	FIELD(struct workspace_status, commit_hash, FIELD_OUT | FIELD_NULL,
	    .max = 64, .doc = "Checked-out commit."),
	FIELD(struct workspace_status, commit_message, FIELD_OUT | FIELD_NULL,
	    .doc = "Message of the commit."),
	FIELD(struct workspace_status, dirty, FIELD_OUT,
	    .doc = "Whether files differ from the commit."),
	FIELD(struct workspace_status, size_bytes, FIELD_OUT | FIELD_NULL,
	    .doc = "Size on disk in bytes."),
	FIELD(struct workspace_status, runner, FIELD_OUT | FIELD_NULL,
	    .max = 255, .doc = "Runner that reported the state."),
	FIELD(struct workspace_status, checked_at, FIELD_OUT | FIELD_NULL,
	    .doc = "Time of the report."),
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
