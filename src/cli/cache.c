/* SPDX-License-Identifier: ISC */
/* slipway cache clear. */
#include <stdio.h>

#include "cli/find.h"
#include "cli/slipway.h"
#include "core/str.h"

const struct err *
slipway_cache_clear(void *context, struct command_call *call)
{
	const struct project_options *options = call->options;
	struct client_request rq = { .method = HTTP_DELETE };
	struct client *c = context;
	struct http_response r;
	struct named project;
	const struct err *e;

	if ((e = find_project(c, options->project, &project)) != NULL)
		return e;
	rq.path = arena_printf(c->a, "/api/projects/%lld/cache",
	    (long long)project.id);
	if ((e = client_call(c, &rq, &r)) != NULL)
		return e;
	if (!c->json)
		(void)printf("cleared the cache of project %s\n",
		    str_visible(c->a, project.name));
	return NULL;
}
