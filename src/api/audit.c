/* SPDX-License-Identifier: ISC */
#include "store/audit.h"

#include "api/resources.h"

static const struct err *
api_audit_list(struct req *rq)
{
	const int64_t project = req_int(rq, "projectId"),
		      limit = req_int(rq, "limit");
	const struct err *e;
	struct list list;
	int64_t next;

	if (project == 0 && rq->role < ROLE_ADMIN)
		return err_public(ERR_FORBIDDEN,
		    "Only an administrator can list the entries of all "
		    "projects. Select a project with ?projectId=.");
	e = audit_page(rq->db, rq->a, project, req_int(rq, "cursor"), limit,
	    &list, &next);
	if (e != NULL)
		return e;
	answer_cursor(rq, &audit_shape, &list, limit, next);
	return NULL;
}

static const struct route_param audit_params[] = {
	ROUTE_CURSOR,
	{ .name = "projectId",
	    .type = PARAM_INT,
	    .min = ID_MIN,
	    .doc = "Only entries of this project; required unless the caller "
		   "is an administrator." },
	PARAM_END,
};

static const struct route routes[] = {
	{ .method = METHOD_GET,
	    .path = "/api/audit",
	    .role = ROLE_MAINTAINER,
	    .query = audit_params,
	    .handler = api_audit_list,
	    .operation = "listAudit",
	    .summary = "List who changed what, newest first",
	    .out = &audit_shape,
	    .list = LIST_KEYS,
	    .status = 200 },
	ROUTE_END,
};

const struct resource audit_resource = {
	.tag = "audit",
	.about = "Who changed what.",
	.routes = routes,
};
