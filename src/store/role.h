/* SPDX-License-Identifier: ISC */
/* The roles of users. */
#ifndef SLIPWAY_STORE_ROLE_H
#define SLIPWAY_STORE_ROLE_H

/* In ascending order; each role includes the rights of those before it. */
enum role {
	ROLE_NONE,
	ROLE_GUEST, /* sees the projects of which the user is a member */
	ROLE_VIEWER,
	ROLE_DEPLOYER,
	ROLE_MAINTAINER,
	ROLE_ADMIN
};
extern const char *const role_names[]; /* from guest on; ends with NULL */
/* Those from viewer on. */
#define ROLE_NAMES_VIEWER (role_names + 1)
const char *role_name(enum role);
/* Returns ROLE_NONE for an unknown name. */
enum role role_of(const char *name);

#endif
