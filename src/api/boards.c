/* SPDX-License-Identifier: ISC */
#include "api/resources.h"
#include "queue/board.h"
#include "web/scope.h"

static const struct err *
page_of_board(struct req *rq, struct page *p, struct list *out)
{
	const struct err *e = board_page(rq->db, rq->a, p, out);
	struct board_project *item = out->items;
	size_t i;

	for (i = 0; e == NULL && i < out->n; i++)
		item[i].role = scope_role(rq, item[i].role);
	return e;
}

static const struct err *
api_board_show(struct req *rq)
{
	return answer_pages(rq, &board_shape, page_of_board);
}

/* All projects of most services fit on one page. */
static const struct route_param board_params[] = {
	{ .name = "page",
	    .type = PARAM_INT,
	    .min = 1,
	    .max = 1000000000,
	    .fallback = 1,
	    .doc = "Page number, from 1." },
	{ .name = "limit",
	    .type = PARAM_INT,
	    .min = 1,
	    .max = 500,
	    .fallback = 500,
	    .doc = "Number of projects on a page." },
	PARAM_END,
};

static const struct route routes[] = {
	LIST("/api/board", ROLE_GUEST, board_params, api_board_show, "getBoard",
	    "List all projects with what is live, running and waiting",
	    board_shape),
	ROUTE_END,
};

const struct resource boards_resource = {
	.tag = "board",
	.about = "What is deployed where.",
	.routes = routes,
};
