/* SPDX-License-Identifier: ISC */
/* Versions and names of Git servers. */
#include <string.h>

#include "core/num.h"
#include "forge/inner.h"

#define DIGITS 8

const char *
forge_title(const struct forge *f, struct arena *a)
{
	const char *name = f->settings->name;
	struct address ad;

	if (name == NULL)
		name = f->ops->title;
	if (!address_read(f->server, &ad))
		return name;
	return arena_printf(a, "%s (%.*s)", name, (int)(ad.path - ad.host),
	    ad.host);
}

bool
forge_version_read(const char *version, int64_t number[FORGE_VERSION])
{
	char part[DIGITS];
	size_t i, len;

	for (i = 0; i < FORGE_VERSION; i++) {
		len = strspn(version, "0123456789");
		if (len == 0 || len >= sizeof(part))
			return false;
		(void)memcpy(part, version, len);
		part[len] = '\0';
		if (!num_parse(part, 0, NUM_SAFE, &number[i]))
			return false;
		version += len + (version[len] == '.' ? 1 : 0);
	}
	return true;
}
