/* SPDX-License-Identifier: ISC */
/* Commands that start deployments and end them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/stdlib.h>

#include "cli/approval.h"
#include "cli/child.h"
#include "cli/find.h"
#include "cli/follow.h"
#include "cli/slipway.h"
#include "cli/variables.h"
#include "core/str.h"

#define BODY_MAX ((size_t)1 << 20)
#define KEY_WORDS 4

/* What to deploy. */
struct order {
	struct named project;
	struct named pipeline;    /* id 0 = the project's only one */
	struct named environment; /* the same */
	const char *branch;       /* NULL = the project's default */
	const char *tag;          /* instead of a branch; NULL = none */
	const char *commit;
};

const struct err *
slipway_follow(struct client *c, int64_t id, int64_t offset)
{
	struct http_response r;
	struct deployment d;
	const struct err *e;

	if ((e = follow_run(c, id, offset, c->json ? FOLLOW_QUIET : 0, &d,
		 &r)) != NULL)
		return err_wrap(e, "deployment %lld", (long long)id);
	if (c->json)
		client_print(&r);
	else
		(void)fprintf(stderr, "%sdeployment %lld: %s%s%s%s\n",
		    c->table && c->in_line ? "\n" : "", (long long)id, d.status,
		    str_eq(d.status, "success") && d.warnings > 0 ?
			" with warnings" :
			"",
		    d.detail == NULL ? "" : ": ",
		    d.detail == NULL ? "" : str_visible(c->a, d.detail));
	c->call->status = slipway_outcome(d.status);
	return NULL;
}

/* Prints a deployment, what it is, and its address. */
static void
line_print(const struct client *c, FILE *to, const struct deployment *d,
    const char *word)
{
	(void)fprintf(to,
	    c->table ? "deployment %lld is %s: %s\n" : "%lld\t%s\t%s\n",
	    (long long)d->id, word, client_page(c, d->id));
}

/* Prints a new deployment; with `follow`, follows it. */
static const struct err *
begin(struct client *c, const struct http_response *r, bool follow)
{
	struct deployment d = { .id = 0 };
	const struct err *e;

	if ((e = json_pick(c->a, deployment_paths, r->body, r->len, &d)) !=
	    NULL)
		return e;
	if (!follow && c->json)
		client_print(r);
	else
		line_print(c, follow ? stderr : stdout, &d, d.status);
	if (follow)
		return slipway_follow(c, d.id, 0);
	(void)fflush(stdout);
	approval_print(c, &d);
	return NULL;
}

/* Prints a deployment that was changed. */
static const struct err *
change_print(struct client *c, const struct http_response *r, const char *word)
{
	struct deployment d = { .id = 0 };
	const struct err *e;

	if (c->json) {
		client_print(r);
		return NULL;
	}
	if ((e = json_pick(c->a, deployment_paths, r->body, r->len, &d)) !=
	    NULL)
		return e;
	/* the steps of a canceled deployment need time to end */
	line_print(c, stdout, &d,
	    word != NULL                                ? word :
		c->table && str_eq(d.status, "running") ? "being canceled" :
							  d.status);
	return NULL;
}

/* A new Idempotency-Key. */
static const char *
key_make(struct arena *a)
{
	uint32_t n[KEY_WORDS];

	arc4random_buf(n, sizeof(n));
	return arena_printf(a, "%08x%08x%08x%08x", n[0], n[1], n[2], n[3]);
}

static const struct err *
post(struct client *c, const char *path, const char *body, bool follow)
{
	const struct client_request rq = { .method = HTTP_POST,
		.path = path,
		.body = body,
		.key = key_make(c->a) };
	struct http_response r;
	const struct err *e;

	if ((e = client_call(c, &rq, &r)) != NULL)
		return e;
	return begin(c, &r, follow);
}

/* Warns of commits in the checkout that the service cannot get. */
static void
unpushed_warn(const struct checkout *here)
{
	if (!here->pushed)
		(void)fprintf(stderr,
		    "slipway: warning: the branch %s may not exist on %s: push "
		    "it first\n",
		    here->branch, here->remote);
	else if (here->ahead > 0)
		(void)fprintf(stderr,
		    "slipway: warning: %lld commit%s of %s not pushed to %s, "
		    "and not deployed\n",
		    (long long)here->ahead, here->ahead == 1 ? "" : "s",
		    here->ahead == 1 ? "HEAD is" : "HEAD are", here->remote);
}

/* Without a branch, tag or commit: the branch of the checkout, if it is one of
 * the project. */
static const struct err *
order_branch(struct client *c, struct order *o)
{
	const struct deploy_options *options = c->call->options;
	struct checkout here;

	o->branch = options->branch;
	o->tag = options->tag;
	o->commit = options->commit;
	if (o->branch != NULL || o->tag != NULL || o->commit != NULL ||
	    checkout_read(c->a, &here) != NULL ||
	    !checkout_same_repository(o->project.repository, here.address))
		return NULL;
	if (here.branch == NULL)
		return err_public(ERR_METHOD,
		    "deploy: HEAD is detached: name --branch, --tag or "
		    "--commit");
	o->branch = here.branch;
	unpushed_warn(&here);
	return NULL;
}

static const struct err *
order_read(struct client *c, struct order *o)
{
	const struct deploy_options *options = c->call->options;
	const struct err *e;
	struct list list;

	*o = (struct order){ .branch = NULL };
	if ((e = find_project(c, options->project, &o->project)) != NULL ||
	    (e = order_branch(c, o)) != NULL)
		return e;
	if (options->pipeline != NULL &&
	    ((e = find_pipelines(c, o->project.id, &list)) != NULL ||
		(e = find_in(c, "pipeline", &list, options->pipeline,
		     &o->pipeline)) != NULL))
		return e;
	if (options->environment == NULL)
		return NULL;
	if ((e = find_environments(c, o->project.id, &list)) != NULL)
		return e;
	return find_in(c, "environment", &list, options->environment,
	    &o->environment);
}

static void
add_id(struct buf *body, const char *name, int64_t id)
{
	if (id != 0)
		buf_printf(body, ",\"%s\":%lld", name, (long long)id);
}

static void
add_text(struct buf *body, const char *name, const char *text)
{
	if (text == NULL)
		return;
	buf_printf(body, ",\"%s\":", name);
	json_string(body, text);
}

static void
add_variables(struct buf *body, const struct map *variables)
{
	if (variables->n == 0)
		return;
	buf_puts(body, ",\"envVars\":");
	json_write_map(body, variables);
}

static const struct err *
order_send(struct client *c, const struct order *o, const struct map *variables)
{
	const struct deploy_options *options = c->call->options;
	struct buf body;
	const struct err *e;

	buf_init(&body, BODY_MAX);
	buf_printf(&body, "{\"projectId\":%lld", (long long)o->project.id);
	add_id(&body, "pipelineId", o->pipeline.id);
	add_id(&body, "environmentId", o->environment.id);
	add_text(&body, "branch", o->branch);
	add_text(&body, "tag", o->tag);

	add_text(&body, "commitHash", o->commit);
	add_variables(&body, variables);
	buf_putc(&body, '}');
	if ((e = buf_check(&body)) == NULL)
		e = post(c, "/api/deployments", body.data, options->follow);
	buf_wipe(&body);
	return e;
}

const struct err *
slipway_deploy(void *context, struct command_call *call)
{
	const struct deploy_options *options = call->options;
	struct client *c = context;
	struct map variables;
	const struct err *e;
	struct order order;

	if ((e = order_read(c, &order)) != NULL ||
	    (e = variables_read(c, order.project.id, &options->variables,
		 &variables)) != NULL)
		return e;
	return order_send(c, &order, &variables);
}

const struct err *
slipway_retry(void *context, struct command_call *call)
{
	const struct follow_options *options = call->options;
	struct client *c = context;
	const struct err *e;
	int64_t id;

	if ((e = find_deployment(c, call->word[0], &id)) != NULL)
		return e;
	return post(c,
	    arena_printf(c->a, "/api/deployments/%lld/retry", (long long)id),
	    NULL, options->follow);
}

const struct err *
slipway_cancel(void *context, struct command_call *call)
{
	struct client *c = context;
	struct client_request rq = { .method = HTTP_POST };
	struct http_response r;
	const struct err *e;
	int64_t id;

	if ((e = find_deployment(c, call->word[0], &id)) != NULL)
		return e;
	rq.path = arena_printf(c->a, "/api/deployments/%lld/cancel",
	    (long long)id);
	if ((e = client_call(c, &rq, &r)) != NULL)
		return e;
	return change_print(c, &r, NULL);
}

/* Sends a decision, with the comment if there is one; `done` is what the
 * deployment is then. */
static const struct err *
decide(struct client *c, const char *decision, const char *done)
{
	const struct comment_options *options = c->call->options;
	struct client_request rq = { .method = HTTP_POST };
	struct http_response r;
	struct buf body;
	const struct err *e;
	int64_t id;

	if ((e = find_deployment(c, c->call->word[0], &id)) != NULL)
		return e;
	buf_init(&body, BODY_MAX);
	buf_puts(&body, "{\"comment\":");
	json_string(&body, options->comment);
	buf_putc(&body, '}');
	rq.path = arena_printf(c->a, "/api/deployments/%lld/%s", (long long)id,
	    decision);
	rq.body = body.data;
	if ((e = buf_check(&body)) == NULL &&
	    (e = client_call(c, &rq, &r)) == NULL)
		e = change_print(c, &r, done);
	buf_release(&body);
	return e;
}

const struct err *
slipway_approve(void *context, struct command_call *call)
{
	(void)call;
	return decide(context, "approve", "approved");
}

const struct err *
slipway_deny(void *context, struct command_call *call)
{
	(void)call;
	return decide(context, "deny", "denied");
}

/* The deployment to promote, and the environment of its project. */
static const struct err *
promote_find(struct client *c, struct deployment *d, struct named *environment)
{
	const struct promote_options *options = c->call->options;
	struct http_response r;
	const struct err *e;
	struct list list;
	int64_t id;

	if (options->environment == NULL)
		return err_public(ERR_METHOD,
		    "promote: --environment is required");
	if ((e = find_deployment(c, c->call->word[0], &id)) != NULL ||
	    (e = deployment_get(c, id, d, &r)) != NULL ||
	    (e = find_environments(c, d->project_id, &list)) != NULL)
		return e;
	return find_in(c, "environment", &list, options->environment,
	    environment);
}

/* Deploys to an environment what was deployed before. */
const struct err *
slipway_promote(void *context, struct command_call *call)
{
	const struct promote_options *options = call->options;
	struct client *c = context;
	struct named environment;
	struct deployment d;
	struct map variables;
	struct buf body;
	const struct err *e;

	if ((e = promote_find(c, &d, &environment)) != NULL ||
	    (e = variables_read(c, d.project_id, &options->variables,
		 &variables)) != NULL)
		return e;
	buf_init(&body, BODY_MAX);
	buf_printf(&body, "{\"environmentId\":%lld", (long long)environment.id);
	add_variables(&body, &variables);
	buf_putc(&body, '}');
	if ((e = buf_check(&body)) == NULL)
		e = post(c,
		    arena_printf(c->a, "/api/deployments/%lld/promote",
			(long long)d.id),
		    body.data, options->follow);
	buf_wipe(&body);
	return e;
}

/* The environment that the options name, or the project's only one. */
static const struct err *
rollback_place(struct client *c, struct named *out)
{
	const struct rollback_options *options = c->call->options;
	struct named project;
	const struct err *e;
	struct list list;

	if ((e = find_project(c, options->project, &project)) != NULL ||
	    (e = find_environments(c, project.id, &list)) != NULL)
		return e;
	if (options->environment != NULL)
		return find_in(c, "environment", &list, options->environment,
		    out);
	if (list.n != 1)
		return err_public(ERR_METHOD,
		    "rollback: the project \"%s\" has %zu environments: name "
		    "one with --environment",
		    project.name, list.n);
	*out = *(const struct named *)list.items;
	return NULL;
}

const struct err *
slipway_rollback(void *context, struct command_call *call)
{
	const struct rollback_options *options = call->options;
	struct client *c = context;
	struct named environment;
	struct buf body;
	const struct err *e;

	if ((e = rollback_place(c, &environment)) != NULL)
		return e;
	buf_init(&body, BODY_MAX);
	buf_puts(&body, "{\"reason\":");
	json_string(&body, options->message);
	add_id(&body, "deploymentId", options->to);
	buf_putc(&body, '}');
	if ((e = buf_check(&body)) == NULL)
		e = post(c,
		    arena_printf(c->a, "/api/environments/%lld/rollback",
			(long long)environment.id),
		    body.data, options->follow);
	buf_release(&body);
	return e;
}

const struct err *
slipway_open(void *context, struct command_call *call)
{
	struct client *c = context;
	const char *argv[] = { getenv("BROWSER"), NULL, NULL };
	const struct err *e;
	int64_t id;
	int status;

	if ((e = find_deployment(c, call->word[0], &id)) != NULL ||
	    (e = client_sign_in(c)) != NULL)
		return e;
	argv[1] = client_page(c, id);
	(void)printf("%s\n", argv[1]);
	if (!c->table)
		return NULL;
	if (argv[0] == NULL || *argv[0] == '\0')
		argv[0] = "xdg-open";
	(void)fflush(stdout);
	if ((e = child_start(argv, &status)) == NULL && status != 0)
		e = err_public(ERR_UPSTREAM,
		    "%s did not open it (exit status %d): set BROWSER", argv[0],
		    status);
	return e;
}
