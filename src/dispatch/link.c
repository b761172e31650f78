/* SPDX-License-Identifier: ISC */
#include "dispatch/link.h"

#include <string.h>

#include "core/address.h"

const char *
link_deployment(const struct settings *s, struct arena *a, int64_t id)
{
	const char *form = s->gitserver.report_url, *base = s->api.url, *at;
	struct address ad;
	size_t len;

	if (form != NULL) {
		if ((at = strstr(form, "{id}")) == NULL)
			return form;
		return arena_printf(a, "%.*s%lld%s", (int)(at - form), form,
		    (long long)id, at + strlen("{id}"));
	}
	if (base == NULL && s->gitserver.redirect_uri != NULL &&
	    address_read(s->gitserver.redirect_uri, &ad) && address_is_web(&ad))
		base = address_origin(a, &ad);
	if (base == NULL)
		return NULL;
	len = strlen(base);
	while (len > 0 && base[len - 1] == '/')
		len--;
	return arena_printf(a, "%.*s/api/deployments/%lld/log", (int)len, base,
	    (long long)id);
}
