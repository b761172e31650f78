/* SPDX-License-Identifier: ISC */
#include "store/role.h"

#include <string.h>

const char *const role_names[] = { "guest", "viewer", "deployer", "maintainer",
	"admin", NULL };

enum role
role_of(const char *name)
{
	int i;

	for (i = 0; name != NULL && role_names[i] != NULL; i++)
		if (strcmp(role_names[i], name) == 0)
			return (enum role)(i + ROLE_GUEST);
	return ROLE_NONE;
}

const char *
role_name(enum role role)
{
	return role_names[role - ROLE_GUEST];
}
