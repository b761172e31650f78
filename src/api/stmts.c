/* SPDX-License-Identifier: ISC */
#include "api/stmts.h"

#include "store/deployment.h"
#include "store/figures.h"
#include "store/gitrepo.h"
#include "store/gittoken.h"
#include "store/hook.h"
#include "store/idempotency.h"
#include "store/identity.h"
#include "store/joblog.h"
#include "store/pipeline.h"
#include "store/project.h"
#include "store/report.h"
#include "store/session.h"
#include "store/user.h"

const struct stmt *const *const api_stmts[] = {
	deployment_stmts,
	figures_stmts,
	gitrepo_stmts,
	gittoken_stmts,
	hook_stmts,
	idempotency_stmts,
	identity_stmts,
	joblog_stmts,
	pipeline_stmts,
	project_stmts,
	report_stmts,
	session_stmts,
	step_stmts,
	token_stmts,
	user_stmts,
	NULL,
};
