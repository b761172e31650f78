/* SPDX-License-Identifier: ISC */
#include "dispatch/link.h"

#include <string.h>

const char *
link_deployment(const struct settings *s, struct arena *a, int64_t id)
{
	const char *form = s->gitserver.report_url, *base, *at;

	if (form != NULL) {
		if ((at = strstr(form, "{id}")) == NULL)
			return form;
		return arena_printf(a, "%.*s%lld%s", (int)(at - form), form,
		    (long long)id, at + strlen("{id}"));
	}
	if ((base = settings_url(s, a)) == NULL)
		return NULL;
	return arena_printf(a, "%s/slipway/deployments/%lld", base,
	    (long long)id);
}
