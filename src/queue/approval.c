/* SPDX-License-Identifier: ISC */
#include "queue/approval.h"

#include "core/str.h"
#include "queue/move.h"
#include "queue/report.h"
#include "queue/stores.h"

static const struct field request_fields[] = {
	FIELD(struct approval_request, comment,
	    FIELD_IN | FIELD_NULL | FIELD_TEXT, .max = APPROVAL_COMMENT_MAX,
	    .doc = "Why; everyone who may see the deployment can read it."),
	FIELD_END,
};
const struct shape approval_request_shape = {
	.name = "ApprovalRequest",
	.fields = request_fields,
	.size = sizeof(struct approval_request),
	.doc = "A decision on a deployment that waits for approval.",
};

#include "queue/approval.sql.h"

const struct store approval_store = {
	.stmts = approval_stmts,
};

const struct err *
approval_save(struct db *db, const struct deployment *d)
{
	const struct move denied = { .id = d->id,
		.from = STATE_PENDING,
		.to = STATE_CANCELED,
		.reason = REASON_DENIED,
		.detail = d->detail };
	const struct err *e;
	struct db_done done;
	int64_t n;

	if ((e = db_exec(db, &sql_approval_decide, d, &done)) != NULL)
		return e;
	if (done.affected == 0)
		return err_public(ERR_CONFLICT,
		    "The deployment does not wait for approval.");
	if (!str_eq(d->approval, APPROVAL_DENIED))
		return report_again(db, d->id);
	return move_deployment(db, &denied, &n);
}
