/* SPDX-License-Identifier: ISC */
/* The rows of workspaces, for the statements of this folder that read them. */
#ifndef SLIPWAY_STORE_WORKSPACE_ROW_H
#define SLIPWAY_STORE_WORKSPACE_ROW_H

#include "store/columns.h"

/* clang-format off */
#define WORKSPACE_ROW(X, T)						\
	X(T, KEY, project_id, 0, .doc = "Project of the workspace.")	\
	X(T, READ, status, FIELD_OUT, .values = workspace_statuses,	\
	    .named = "WorkspaceState",					\
	    .doc = "State of the workspace, as last reported.")		\
	X(T, READ, branch, FIELD_OUT | FIELD_NULL, .max = 255,		\
	    .doc = "Checked-out branch.")				\
	X(T, READ, commit_hash, FIELD_OUT | FIELD_NULL, .max = 64,	\
	    .doc = "Checked-out commit.")				\
	X(T, READ, commit_message, FIELD_OUT | FIELD_NULL,		\
	    .doc = "Message of the commit.")				\
	X(T, READ, dirty, FIELD_OUT,					\
	    .doc = "Whether files differ from the commit.")		\
	X(T, READ, size_bytes, FIELD_OUT | FIELD_NULL,			\
	    .doc = "Size on disk in bytes.")				\
	X(T, READ, runner, FIELD_OUT | FIELD_NULL, .max = 255,		\
	    .doc = "Runner that reported the state.")			\
	X(T, READ, checked_at, FIELD_OUT | FIELD_NULL,			\
	    .doc = "Time of the report.")
/* clang-format on */

#endif
