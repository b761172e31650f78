/* SPDX-License-Identifier: ISC */
#include "api/forge.h"

#include <assert.h>

const struct err *
gitserver_missing(const struct req *rq, const char *what, size_t n)
{
	const struct settings_gitserver *s = &rq->settings->gitserver;
	const struct {
		const char *name;
		const char *value;
	} all[] = {
		{ "GITSERVER_URL", s->url },
		{ "GITSERVER_CLIENT_ID", s->client_id },
		{ "GITSERVER_REDIRECT_URI", s->redirect_uri },
	};
	struct forge *forge = NULL;
	struct buf missing;
	const struct err *e;
	size_t i;

	assert(n <= sizeof(all) / sizeof(all[0]));
	buf_init(&missing, 256);
	for (i = 0; i < n; i++)
		if (all[i].value == NULL || all[i].value[0] == '\0')
			buf_printf(&missing, "%s%s",
			    missing.len > 0 ? ", " : "", all[i].name);
	if (missing.len > 0)
		e = err_public(ERR_CONFIG, "%s requires the settings %s.", what,
		    missing.data);
	else if ((e = forge_open(s, &forge)) == NULL)
		e = err_public(ERR_CONFIG,
		    "%s requires a reload: the settings have changed.", what);
	forge_close(forge);
	buf_release(&missing);
	return e;
}
