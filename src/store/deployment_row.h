/* SPDX-License-Identifier: ISC */
/* What lists of deployments share with the read of one. */
#ifndef SLIPWAY_STORE_DEPLOYMENT_ROW_H
#define SLIPWAY_STORE_DEPLOYMENT_ROW_H

#include "store/deployment.h"

/* The columns of a row, without two that may be large: commit_message and
 * env_vars, which a statement selects between these. */
/* clang-format off */
#define DEPLOYMENT_KEYS							\
	"d.id, d.project_id, d.pipeline_id, d.environment_id, d.branch," \
	" d.tag, d.commit_hash, "
#define DEPLOYMENT_COLUMNS						\
	", d.status, d.reason, d.detail, d.`trigger`, d.retry_of,"	\
	" d.created_by, d.approval, d.approval_by, d.approval_at,"	\
	" d.approval_comment, d.rollback_reason, d.runner,"		\
	" d.created_at, d.started_at, d.finished_at, d.log_size,"	\
	" d.env_role, d.checkout"
/* clang-format on */

/* Reads the row only: without steps and the size of a growing log. */
MUSTCHECK const struct err *deployment_row(struct db *, struct arena *,
    int64_t id, struct deployment *out);
/* Fills in the size of the logs that are still growing. */
MUSTCHECK const struct err *deployment_logs_measure(struct db *, struct arena *,
    struct list *);

#endif
