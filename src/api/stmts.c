/* SPDX-License-Identifier: ISC */
#include "api/stmts.h"

#include "store/figures.h"
#include "store/pipeline.h"
#include "store/project.h"
#include "store/user.h"

const struct stmt *const *const api_stmts[] = {
	figures_stmts,
	pipeline_stmts,
	project_stmts,
	step_stmts,
	token_stmts,
	user_stmts,
	NULL,
};
