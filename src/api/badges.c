/* SPDX-License-Identifier: ISC */
/* Badges: images of the result of the last deployment, for web pages. */
#include <string.h>

#include "api/resources.h"
#include "core/state.h"
#include "core/str.h"
#include "store/badge.h"

#define IMAGE "image/svg+xml"
#define IMAGE_MAX ((size_t)4096)
#define CACHED 60 /* seconds */
#define CHARACTER 7
#define MARGIN 10

static const char *
color_of(enum state state)
{
	static const char *const colors[STATE__MAX] = {
		[STATE_SUCCESS] = "#2b7d2b",
		[STATE_FAILED] = "#b62324",
		[STATE_INTERRUPTED] = "#9a6700",
	};

	return state < STATE__MAX && colors[state] != NULL ? colors[state] :
							     "#6e7781";
}

/* A colored part with text: both consist of letters, digits and . _ - only. */
static void
part_write(struct buf *b, size_t x, const char *color, const char *text)
{
	const size_t width = strlen(text) * CHARACTER;

	buf_printf(b,
	    "<rect x=\"%zu\" width=\"%zu\" height=\"20\" fill=\"%s\"/>"
	    "<text x=\"%zu\" y=\"14\" textLength=\"%zu\">%s</text>",
	    x, width + MARGIN, color, x + MARGIN / 2, width, text);
}

static void
image_write(struct buf *b, const char *what, const char *result,
    const char *color)
{
	const size_t left = strlen(what) * CHARACTER + MARGIN,
		     right = strlen(result) * CHARACTER + MARGIN;

	buf_printf(b,
	    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%zu\""
	    " height=\"20\" role=\"img\" aria-label=\"%s: %s\">"
	    "<title>%s: %s</title><g fill=\"#fff\" font-size=\"11\""
	    " font-family=\"Verdana, DejaVu Sans, sans-serif\">",
	    left + right, what, result, what, result);
	part_write(b, 0, "#444c56", what);
	part_write(b, left, color, result);
	buf_puts(b, "</g></svg>\n");
}

static const struct err *
api_badge(struct req *rq)
{
	struct badge badge = { .project_id = rq->id[0],
		.environment = req_str(rq, "environment") };
	const struct err *e = rq->unready;
	struct buf b;

	if (e == NULL)
		e = badge_find(rq->db, rq->a, &badge);
	if (e != NULL)
		return e;
	buf_init(&b, IMAGE_MAX);
	image_write(&b,
	    badge.environment != NULL ? badge.environment : "deployment",
	    badge.status != NULL ? badge.status : "none",
	    badge.status != NULL ? color_of(state_find(badge.status)) :
				   color_of(STATE__MAX));
	if ((e = buf_check(&b)) == NULL) {
		answer_bytes(rq, IMAGE, b.data, b.len);
		answer_tag(rq);
		rq->answer.max_age = CACHED;
	}
	buf_release(&b);
	return e;
}

static const struct route_param query[] = {
	{ .name = "environment",
	    .type = PARAM_STR,
	    .min = 1,
	    .max = 50,
	    .doc = "Name of an environment; by default, deployments to all "
		   "count." },
	PARAM_END,
};
static const struct route routes[] = {
	{ .method = METHOD_GET,
	    .path = "/api/projects/{id}/badge.svg",
	    .flags = ROUTE_TAGGED,
	    .query = query,
	    .handler = api_badge,
	    .operation = "getBadge",
	    .summary = "Get an image of the result of the last deployment; 404 "
		       "unless the project's \"badge\" is true",
	    .status = 200,
	    .type = IMAGE },
	ROUTE_END,
};

const struct resource badges_resource = {
	.tag = "projects",
	.routes = routes,
};
