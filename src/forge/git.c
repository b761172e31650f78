/* SPDX-License-Identifier: ISC */
/* Any other server: the Git protocol only. */
#include "forge/inner.h"

const struct forge_ops forge_git = {
	.name = "git",
	.title = "Git",
	.clone_user = "slipway",
	.depth = 20,
};
