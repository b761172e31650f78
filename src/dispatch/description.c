/* SPDX-License-Identifier: ISC */
#include "dispatch/description.h"

#include <string.h>

#include "access/access.h"
#include "core/address.h"
#include "core/file.h"
#include "core/log.h"
#include "core/str.h"
#include "crypto/private_keyring.h"
#include "dispatch/context.h"
#include "dispatch/deploy_key.h"
#include "dispatch/patience.h"
#include "dispatch/project.h"
#include "dispatch/remote.h"
#include "json/json.h"
#include "spool/spool.h"
#include "store/env.h"
#include "store/pipeline.h"

#define COMMITS 100 /* of a branch, that the job reports */
/* Seconds beyond the limits that are set: for a job to start, to measure the
 * cache and to end, to end each step, and for a cleanup step that has no limit. */
#define LIMIT_EXTRA 660
#define LIMIT_STEP 90
#define LIMIT_CLEANUP 300

/* Names of records, by enumerator. */
enum job_record {
#define X(id, name) R_##id,
	SPOOL_JOB_RECORDS(X)
#undef X
	    R__MAX
};
static const char *const names[R__MAX] = {
#define X(id, name) [R_##id] = (name),
	SPOOL_JOB_RECORDS(X)
#undef X
};

static void
put(struct buf *b, enum job_record which, const char *text)
{
	if (text != NULL)
		record_write(b, names[which], text, strlen(text));
}

static void
put_number(struct buf *b, enum job_record which, int64_t n)
{
	record_printf(b, names[which], "%lld", (long long)n);
}

/* Logs a file that cannot be read; the deployment's log contains git's error. */
static void
put_file(struct buf *b, enum job_record which, const char *path)
{
	const struct err *e;
	struct buf text;

	if (path == NULL)
		return;
	buf_init(&text, SPOOL_RECORD);
	if ((e = file_load(path, &text)) != NULL)
		log_err(e, "gitserver");
	else if (text.len > 0)
		record_write(b, names[which], text.data, text.len);
	buf_wipe(&text);
}

/* Which key git uses, for the case that the server rejects it. */
static void
put_ssh_note(struct buf *b, const struct dispatch *d, const struct claim *c)
{
	const char *note;

	if (c->deploy_key != NULL)
		note = arena_printf(d->a,
		    "The project's deploy key is %s: add its public half to "
		    "the repository at the Git server, if it is not there.",
		    c->deploy_key_print);
	else if (d->settings.gitserver.ssh_key_file != NULL)
		note = "The project has no deploy key, so the key of the "
		       "service was used (gitserver.ssh_key_file).";
	else
		note = "The project has no deploy key: create one in its "
		       "settings, and add the public half to the repository "
		       "at the Git server.";
	put(b, R_NOTE, note);
}

/* The project's deploy key replaces the key of the service. */
static const struct err *
put_ssh(struct buf *b, const struct dispatch *d, const struct claim *c)
{
	const struct settings_gitserver *g = &d->settings.gitserver;
	const struct err *e;
	const char *text;

	put_ssh_note(b, d, c);
	if (c->deploy_key == NULL) {
		put_file(b, R_SSH_KEY, g->ssh_key_file);
	} else {
		e = deploy_key_open(&d->settings, d->a, c->project_id,
		    c->deploy_key, &text);
		if (e != NULL)
			return e;
		put(b, R_SSH_KEY, text);
	}
	put_file(b, R_KNOWN_HOSTS, g->ssh_known_hosts);
	return NULL;
}

/* The members that only git needs, limited to those that this address requires. */
static const struct err *
put_repository(const struct dispatch *d, const struct claim *c, struct buf *b)
{
	const struct err *e;
	struct address ad;

	if (address_read(c->repository, &ad)) {
		if (ad.scheme == ADDRESS_HTTPS)
			put_file(b, R_TLS_CA, d->settings.gitserver.tls_ca);
		else if (address_is_ssh(&ad) && (e = put_ssh(b, d, c)) != NULL)
			return e;
	}
	put(b, R_OBJECTS, project_objects(&d->spool, d->a, c->project_id));
	put_number(b, R_GIT_PATIENCE, patience_left(&d->settings.runner, c));
	if (!remote_is_known(d->forge, d->a, c->repository))
		put_number(b, R_COMMITS, COMMITS);
	return NULL;
}

static void
put_map(struct buf *b, enum job_record which, const struct map *map)
{
	const struct pair *p = map->items;
	size_t i;

	for (i = 0; i < map->n; i++)
		if (p[i].value != NULL)
			record_printf(b, names[which], "%s=%s", p[i].key,
			    p[i].value);
}

/* Each variable was sealed for its own name. */
static const struct err *
secrets(const struct settings *s, struct arena *a, const struct claim *c,
    struct map *out)
{
	struct private_keyring *keys = NULL;
	const struct err *e;
	struct pair *p;
	size_t i;

	*out = (struct map){ .items = NULL };
	if (c->secret_vars.s == NULL)
		return NULL;
	if ((e = json_map(a, c->secret_vars.s, out)) != NULL)
		return e;
	e = private_keyring_open(settings_deploy_key(a, &s->secrets), &keys);
	if (e != NULL)
		return err_explain(e, ERR_CONFIG,
		    "Its secret variables cannot be decrypted: the runner "
		    "cannot read the key file, see the runner's log.");
	p = out->items;
	for (i = 0; i < out->n && e == NULL; i++) {
		e = private_keyring_unseal(keys, a,
		    arena_printf(a, ENV_PURPOSE, (long long)c->project_id,
			p[i].key),
		    p[i].value == NULL ? "" : p[i].value, &p[i].value);
		if (e != NULL)
			e = err_public(ERR_CONFIG,
			    "Its secret variable %.128s cannot be decrypted (%s): "
			    "set the value again.",
			    p[i].key, e->msg);
	}
	private_keyring_close(keys);
	return e;
}

static int64_t
step_limit(const struct settings_runner *r, const struct deployment_step *step)
{
	return step->timeout_seconds.set ? step->timeout_seconds.n :
					   r->step_timeout;
}

static void
put_steps(struct buf *b, const struct settings_runner *s,
    const struct list *steps)
{
	const struct deployment_step *step = steps->items;
	size_t i;

	for (i = 0; i < steps->n; i++) {
		put(b, R_STEP_NAME, step[i].name);
		put(b, R_STEP_SCRIPT, step[i].script);
		put(b, R_STEP_DIRECTORY, step[i].directory);
		put_number(b, R_STEP_TIMEOUT, step_limit(s, &step[i]));
		put(b, R_STEP_WHEN, step[i].run_when);
		if (step[i].may_fail)
			put_number(b, R_STEP_MAY_FAIL, 1);
	}
}

const struct err *
description_write(const struct dispatch *d, const struct claim *c,
    struct buf *out)
{
	const struct settings *s = &d->settings;
	const struct settings_runner *r = &s->runner;
	const struct err *e;
	struct arena *a = d->a;
	struct map env, secret;

	if ((e = json_map(a, c->env_vars.s, &env)) != NULL ||
	    (e = secrets(s, a, c, &secret)) != NULL)
		return e;
	put_number(out, R_DEPLOYMENT, c->id);
	put_number(out, R_EPOCH, c->epoch);
	put_number(out, R_PROJECT, c->project_id);
	put(out, R_PROJECT_NAME, c->project_name);
	put(out, R_PIPELINE_NAME, c->pipeline_name);
	put(out, R_ENVIRONMENT_NAME, c->environment_name);
	if (c->rollback_to.set)
		put_number(out, R_ROLLBACK_TO, c->rollback_to.n);
	put(out, R_BRANCH, c->branch);
	put(out, R_TAG, c->tag);
	put(out, R_COMMIT, c->commit_hash);
	put_number(out, R_HEAD_ONLY, c->head_only);
	put_number(out, R_ON_BRANCH, c->on_branch ? 1 : 0);
	put(out, R_CHECKOUT, c->checkout);
	if (clone_is_needed(c) && (e = put_repository(d, c, out)) != NULL)
		return e;
	put_map(out, R_ENV, &env);
	put_map(out, R_SECRET, &secret);
	put_steps(out, r, &c->steps);
	put_number(out, R_TIMEOUT,
	    c->timeout_seconds.set ? c->timeout_seconds.n :
				     r->pipeline_timeout);
	put_number(out, R_CHECKOUT_TIMEOUT, r->checkout_timeout);
	put_number(out, R_GRACE, r->grace);
	put_number(out, R_CANCEL_GRACE, r->cancel_grace);
	put_number(out, R_LOG_MAX, r->log_max);
	put(out, R_PATH, r->path);
	put_number(out, R_ALLOW_HTTP,
	    s->gitserver.allow_http ||
		    settings_plain(&s->gitserver, c->repository) ?
		1 :
		0);
	put_number(out, R_ALLOW_LOCAL, s->gitserver.allow_local ? 1 : 0);
	return buf_check(out);
}

int64_t
description_limit(const struct settings_runner *r, const struct claim *c)
{
	const struct deployment_step *step = c->steps.items;
	const int64_t all = c->timeout_seconds.set ? c->timeout_seconds.n :
						     r->pipeline_timeout;
	int64_t limit = LIMIT_EXTRA, each = 2 * r->grace + LIMIT_STEP, own;
	size_t i;

	limit += all != 0 ? all : r->checkout_timeout;
	if (all == 0 && r->checkout_timeout == 0)
		return 0;
	for (i = 0; i < c->steps.n; i++) {
		limit += each;
		own = step_limit(r, &step[i]);
		if (!str_eq(step[i].run_when, "success")) {
			own = own > LIMIT_CLEANUP ? own : LIMIT_CLEANUP;
			limit += own > r->cancel_grace ? own : r->cancel_grace;
		} else if (all == 0 && own == 0) {
			return 0;
		} else if (all == 0) {
			limit += own;
		}
	}
	return limit;
}

/* A submodule is what the repository names, so the Git server showed it to
 * nobody: where users have rights there, the service's credentials do not read
 * it. */
static enum spool_submodules
submodules_of(const struct dispatch *d, const struct clone *clone)
{
	if (!clone->has_submodules)
		return SUBMODULES_NONE;
	return clone->is_service && access_is_personal(d->forge) ?
	    SUBMODULES_PUBLIC :
	    SUBMODULES_FETCHED;
}

const struct err *
description_end(const struct dispatch *d, struct buf *out,
    const struct clone *clone)
{
	put(out, R_REPOSITORY, clone->address.data);
	if (clone->credential.len > 0)
		record_write(out, names[R_CREDENTIAL], clone->credential.data,
		    clone->credential.len);
	put(out, R_NOTE, clone->note);
	put(out, R_OFFLINE, clone->offline);
	put(out, R_SILENT, clone->silent);
	put_number(out, R_GIT_KNOWN, clone->is_bound ? 1 : 0);
	put_number(out, R_SUBMODULES, submodules_of(d, clone));
	put(out, R_JOB_END, "");
	return buf_check(out);
}
