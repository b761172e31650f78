/* SPDX-License-Identifier: ISC */
/* slipway lock and unlock. */
#include <stdio.h>
#include <string.h>

#include "cli/find.h"
#include "cli/slipway.h"
#include "core/num.h"
#include "core/str.h"

#define BODY_MAX ((size_t)64 << 10)
#define SPAN_MAX 100000

/* What is locked. */
struct place {
	const char *path;
	const char *name; /* for messages */
};

static const struct err *
place_find(struct client *c, const struct lock_options *options,
    struct place *out)
{
	struct named project, environment;
	const struct err *e;
	struct list list;

	if (options->service) {
		*out = (struct place){ "/api/lock", "the whole service" };
		return NULL;
	}
	if ((e = find_project(c, options->project, &project)) != NULL)
		return e;
	if (options->environment == NULL) {
		out->path = arena_printf(c->a, "/api/projects/%lld/lock",
		    (long long)project.id);
		out->name = arena_printf(c->a, "project %s", project.name);
		return NULL;
	}
	if ((e = find_environments(c, project.id, &list)) != NULL ||
	    (e = find_in(c, "environment", &list, options->environment,
		 &environment)) != NULL)
		return e;
	out->path = arena_printf(c->a, "/api/environments/%lld/lock",
	    (long long)environment.id);
	out->name = arena_printf(c->a, "environment %s of project %s",
	    environment.name, project.name);
	return NULL;
}

/* Converts "90m", "2h" or "3d" to a time that far from now; the service judges
 * any other text. */
static const char *
until_of(struct arena *a, const char *text)
{
	static const struct {
		char unit;
		int64_t seconds;
	} units[] = { { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 } };
	const size_t len = strlen(text);
	char time[STR_TIME_SIZE];
	int64_t n;
	size_t i;

	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (len < 2 || text[len - 1] != units[i].unit ||
		    !num_parse(arena_strndup(a, text, len - 1), 1, SPAN_MAX,
			&n))
			continue;
		str_time(time, time_now_ms() + n * units[i].seconds * 1000);
		return arena_strdup(a, time);
	}
	return text;
}

/* Sends the request and says what it did to the place. */
static const struct err *
place_change(struct client *c, const struct client_request *rq,
    const struct place *place, const char *what)
{
	struct http_response r;
	const struct err *e;

	if ((e = client_call(c, rq, &r)) != NULL)
		return e;
	if (c->json && r.len > 0)
		client_print(&r);
	else if (!c->json)
		(void)printf("%s %s\n", what, str_visible(c->a, place->name));
	return NULL;
}

const struct err *
slipway_lock(void *context, struct command_call *call)
{
	const struct lock_options *options = call->options;
	struct client_request rq = { .method = HTTP_PUT };
	struct client *c = context;
	struct place place;
	struct buf body;
	const struct err *e;

	if (options->message == NULL)
		return err_public(ERR_METHOD,
		    "lock: --message is required: say why");
	if ((e = place_find(c, options, &place)) != NULL)
		return e;
	buf_init(&body, BODY_MAX);
	buf_puts(&body, "{\"reason\":");
	json_string(&body, options->message);
	buf_puts(&body, ",\"until\":");
	json_string(&body,
	    options->until == NULL ? NULL : until_of(c->a, options->until));
	buf_putc(&body, '}');
	rq.path = place.path;
	rq.body = body.data;
	if ((e = buf_check(&body)) == NULL)
		e = place_change(c, &rq, &place, "locked");
	buf_release(&body);
	return e;
}

const struct err *
slipway_unlock(void *context, struct command_call *call)
{
	struct client_request rq = { .method = HTTP_DELETE };
	struct client *c = context;
	struct place place;
	const struct err *e;

	if ((e = place_find(c, call->options, &place)) != NULL)
		return e;
	rq.path = place.path;
	return place_change(c, &rq, &place, "unlocked");
}
