/* SPDX-License-Identifier: ISC */
/* Any server, or none: git's own protocol is all there is. */
#include "forge/inner.h"

const struct forge_ops forge_git = {
	.name = "git",
	.clone_user = "slipway",
	.depth = 20,
};
