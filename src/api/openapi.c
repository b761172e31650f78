/* SPDX-License-Identifier: ISC */
#include "web/openapi.h"

#include "api/resources.h"

static const struct err *
api_openapi_show(struct req *rq)
{
	const struct err *e;
	const char *text;
	size_t len;

	if ((e = openapi_text(&text, &len)) != NULL)
		return e;
	answer_json(rq, text, len, 0);
	return NULL;
}

static const struct route routes[] = {
	{ .method = METHOD_GET,
	    .path = "/api/openapi.json",
	    .handler = api_openapi_show,
	    .operation = "getOpenapi",
	    .summary = "This document",
	    .status = 200,
	    .type = "application/json" },
	ROUTE_END,
};

const struct resource openapi_resource = {
	.tag = "service",
	.routes = routes,
};
