/* SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <string.h>

#include "api/resources.h"
#include "core/log.h"
#include "core/serve.h"
#include "store/project.h"
#include "store/runner.h"
#include "web/scoreboard.h"

#define NAME_MAX_BYTES 401 /* 100 characters and a NUL */

struct project_name { /* of GET /projects */
	const char *id;
	const char *name;
};

struct component {
	const char *name;
	const char *status; /* ok, down */
	const char *detail;
};
struct health {
	const char *status;
	const char *version;
	struct list components;
	struct list runners; /* one struct runner_count */
};

#define N(m, ...) FIELD(struct project_name, m, FIELD_OUT, __VA_ARGS__)
#define C(m, fl, ...) FIELD(struct component, m, FIELD_OUT | (fl), __VA_ARGS__)
#define H(m, ...) FIELD(struct health, m, FIELD_OUT | __VA_ARGS__)

static const struct field project_name_fields[] = {
	N(id, .doc = "Id of the project, as text."),
	N(name, .doc = "Name of the project."),
	FIELD_END,
};
static const struct shape project_name_shape = {
	.name = "ProjectName",
	.fields = project_name_fields,
	.size = sizeof(struct project_name),
	.doc = "Id and name of a project.",
};

static const char *const component_statuses[] = { "ok", "down", NULL };
static const struct field component_fields[] = {
	C(name, 0, .doc = "Name of the part."),
	C(status, 0, .values = component_statuses, .named = "ComponentStatus",
	    .doc = "Status of the part."),
	C(detail, FIELD_NULL, .doc = "What is wrong with the part."),
	FIELD_END,
};
static const struct shape component_shape = {
	.name = "HealthComponent",
	.fields = component_fields,
	.size = sizeof(struct component),
	.doc = "A part of the service and its status.",
};
static const char *const health_statuses[] = { "ok", "degraded", NULL };
static const struct field health_fields[] = {
	H(status, 0, .values = health_statuses, .named = "HealthStatus",
	    .doc =
		"ok, or degraded while no runner is online, one cannot start "
		"deployments, or slipway-live does not run; a failure "
		"returns 503."),
	H(version, 0, .doc = "Version of the service."),
	H(components, 0, .shape = &component_shape,
	    .doc = "Parts of the service."),
	H(runners, FIELD_ONE, .shape = &runner_count_shape,
	    .doc = "How many runners there are."),
	FIELD_END,
};
static const struct shape health_shape = {
	.name = "Health",
	.fields = health_fields,
	.size = sizeof(struct health),
	.doc = "Health of the service.",
};

/* The service works in part. */
static void
health_degrade(struct health *health, struct component *part,
    const char *detail)
{
	health->status = "degraded";
	part->status = "down";
	part->detail = detail;
}

static const struct err *
api_service_health(struct req *rq)
{
	struct component parts[] = {
		{ .name = "api", .status = "ok" },
		{ .name = "database", .status = "ok" },
		{ .name = "runners", .status = "ok" },
		{ .name = "live", .status = "ok" },
	};
	struct runner_count count;
	struct health health = { .status = "ok",
		.version = SLIPWAY_VERSION,
		.components = { .items = parts, .n = 4 },
		.runners = { .items = &count, .n = 1 } };
	const struct err *e = rq->unready;

	if (e == NULL)
		e = db_ping(rq->db);
	if (e == NULL)
		e = runner_count(rq->db, rq->a, &count);
	if (e != NULL) {
		log_err(e, "health");
		return err_public(ERR_UNAVAILABLE,
		    "The database is not usable: %s.",
		    e->code == ERR_CONFIG ?
			"its tables do not match this version" :
			"it does not respond");
	}
	e = writable_check(&rq->scoreboard->writable, rq->db);
	if (e != NULL) {
		log_err(e, "health");
		return err_public(ERR_UNAVAILABLE,
		    "The database is not usable: it accepts no writes. Check "
		    "whether it is read-only or its disk is full.");
	}
	if (count.online == 0)
		health_degrade(&health, &parts[2],
		    "No runner is online. Start slipway-runner.");
	else if (count.sick > 0)
		health_degrade(&health, &parts[2],
		    arena_printf(rq->a,
			"%lld of %lld runners that are online cannot start "
			"deployments: GET /api/runners says why.",
			(long long)count.sick, (long long)count.online));
	if (serve_try(rq->settings->api.live_socket) != 0)
		health_degrade(&health, &parts[3],
		    "Requests cannot wait for changes. Start slipway-live.");
	answer_item(rq, &health_shape, &health, 0);
	return NULL;
}

/* The response to GET /projects, sent piece by piece because the complete list
 * may not fit into memory. A process serves one request at a time. */
static struct {
	int64_t id; /* of the last project written */
	char name[NAME_MAX_BYTES];
	size_t taken; /* bytes sent of the piece in the body */
	bool ended;
} names;

static void
name_write(struct buf *body, const struct project_ref *ref)
{
	char id[32];
	const struct project_name one = { .id = id, .name = ref->name };

	(void)snprintf(id, sizeof(id), "%lld", (long long)ref->id);
	buf_putc(body, names.id == 0 ? '[' : ',');
	json_write(body, &project_name_shape, &one, 0);
	names.id = ref->id;
	(void)snprintf(names.name, sizeof(names.name), "%s", ref->name);
}

/* Writes the next piece into the empty body. */
static const struct err *
names_write(struct req *rq)
{
	const struct project_ref after = { .id = names.id,
		.name = names.name,
		.member = rq->member };
	const struct arena_mark mark = arena_mark(rq->a);
	struct buf *body = &rq->answer.body;
	const struct project_ref *refs;
	const struct err *e;
	struct list list;
	size_t i;

	if ((e = project_refs(rq->db, rq->a, &after, &list)) != NULL)
		return e;
	refs = list.items;
	for (i = 0; i < list.n; i++)
		name_write(body, &refs[i]);
	names.ended = list.n < PROJECT_REFS;
	if (names.ended)
		buf_puts(body, names.id == 0 ? "[]\n" : "]\n");
	arena_rewind(rq->a, &mark);
	return buf_check(body);
}

static const struct err *
names_source(struct req *rq, int64_t offset, size_t max, struct blob *out)
{
	struct buf *body = &rq->answer.body;
	const struct err *e;

	(void)offset; /* the body is read only once, from its beginning */
	*out = (struct blob){ .data = NULL };
	if (names.taken == body->len) {
		if (names.ended)
			return NULL;
		buf_clear(body);
		names.taken = 0;
		if ((e = names_write(rq)) != NULL)
			return e;
	}
	out->data = body->data + names.taken;
	out->len = body->len - names.taken;
	if (out->len > max)
		out->len = max;
	names.taken += out->len;
	return NULL;
}

/* A list that ends with its first piece is sent as a whole, with its length.
 * Either way that piece is read before the status is sent, so that an error can
 * replace it. */
static const struct err *
api_project_names(struct req *rq)
{
	const struct err *e;

	(void)memset(&names, 0, sizeof(names));
	if ((e = names_write(rq)) != NULL)
		return e;
	rq->answer.type = "application/json";
	if (names.ended)
		return NULL;
	(void)memset(&names, 0, sizeof(names));
	answer_stream(rq, "application/json", names_source, 0, -1);
	return names_write(rq);
}

static const struct route routes[] = {
	{ .method = METHOD_GET,
	    .path = "/health",
	    .handler = api_service_health,
	    .operation = "getHealth",
	    .summary = "Check the health of the service",
	    .out = &health_shape,
	    .status = 200 },
	{ .method = METHOD_GET,
	    .path = "/api/health",
	    .handler = api_service_health,
	    .operation = "getApiHealth",
	    .summary = "Check the health of the service",
	    .out = &health_shape,
	    .status = 200 },
	{ .method = METHOD_GET,
	    .path = "/projects",
	    .role = ROLE_GUEST,
	    .handler = api_project_names,
	    .operation = "listProjectNames",
	    .summary = "List the ids and names of all projects",
	    .out = &project_name_shape,
	    .list = LIST_BARE,
	    .status = 200 },
	ROUTE_END,
};

const struct resource service_resource = {
	.tag = "service",
	.about = "The service itself.",
	.routes = routes,
};
