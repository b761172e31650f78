/* SPDX-License-Identifier: ISC */
#include "store/workspace.h"

#include "store/store.h"
#include "store/workspace_row.h"

static const char *const workspace_statuses[] = { "not_created", "empty",
	"no_git", "ready", "error", NULL };

/* clang-format off */
static const struct field workspace_fields[] = {
	COLUMNS_FIELDS(WORKSPACE_ROW, struct workspace_status)
};
/* clang-format on */

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
