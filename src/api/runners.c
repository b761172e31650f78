/* SPDX-License-Identifier: ISC */
#include "api/resources.h"
#include "store/runner.h"

static const struct err *
page_of_list(struct req *rq, struct page *p, struct list *out)
{
	return runner_page(rq->db, rq->a, p, out);
}

static const struct err *
api_runner_list(struct req *rq)
{
	return answer_pages(rq, &runner_shape, page_of_list);
}

static const struct route routes[] = {
	LIST("/api/runners", ROLE_GUEST, route_page, api_runner_list,
	    "listRunners", "List runners, ordered by name", runner_shape),
	ROUTE_END,
};

const struct resource runners_resource = {
	.tag = "runners",
	.about = "The processes that run deployments.",
	.routes = routes,
};
