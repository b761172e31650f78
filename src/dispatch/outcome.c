/* SPDX-License-Identifier: ISC */
#include "dispatch/outcome.h"

#include "core/log.h"
#include "core/str.h"
#include "dispatch/context.h"
#include "store/workspace.h"

void
outcome_read(struct arena *a, const struct task *t, struct outcome *out)
{
	const struct err *e;

	if ((e = result_read(t, a, out)) != NULL) {
		log_err(e, t->run.name);
		out->ended = false;
	}
	if (out->ended)
		return;
	out->time = 0;
	if (out->achieved != NULL) {
		out->reason = REASON_NONE;
		out->warnings = 1;
		out->detail = arena_printf(a,
		    "The job was killed during %s or later, when everything "
		    "that may not fail had succeeded.",
		    out->achieved);
		return;
	}
	if (t->is_canceled) {
		out->reason = REASON_CANCELED;
		out->detail = "The job did not end in time and was killed.";
	} else {
		out->reason = REASON_LOST;
		out->detail =
		    "The job was killed before it could report the outcome.";
	}
}

/* A checkout that failed may have reported nothing but the commit at which the
 * workspace was before; and a step can change the workspace afterwards. */
const struct err *
outcome_workspace(const struct dispatch *d, const struct task *t,
    const struct workspace_seen *seen)
{
	struct workspace_status status = {
		.project_id = t->run.project,
		.status = seen->status,
		.dirty = seen->dirty,
		.size_bytes = { seen->size, true },
		.runner = d->name,
		.checked_at = { time_now_ms() },
	};
	struct workspace_status before = { .branch = NULL };
	const struct err *e = NULL;

	if (seen->status == NULL || t->run.project == 0)
		return NULL;
	if (seen->hash == NULL ||
	    (!str_eq(seen->status, "ready") && !str_eq(seen->status, "error")))
		return workspace_save(d->db, &status);
	status.branch = seen->branch;
	status.commit_hash = seen->hash;
	status.commit_message = seen->message;
	if (seen->branch == NULL)
		e = workspace_by_project(d->db, d->a, t->run.project, &before);
	if (e != NULL && e->code != ERR_NOTFOUND)
		return e;
	if (str_eq(before.commit_hash, seen->hash))
		status.branch = before.branch;
	return workspace_save(d->db, &status);
}
