/* SPDX-License-Identifier: ISC */
#include "dispatch/description.h"

#include <string.h>

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
#include "spool/description.h"
#include "spool/spool.h"
#include "store/env.h"
#include "store/pipeline.h"

#define COMMITS 100 /* of a branch, that the job reports */
/* Seconds beyond the limits that are set: for a job to start, to measure the
 * cache and to end, to end each step, and for a cleanup step that has no limit. */
#define LIMIT_EXTRA 660
#define LIMIT_STEP 90
#define LIMIT_CLEANUP 300

/* The text of a file, or NULL.  Logs one that cannot be read; the deployment's
 * log contains git's error. */
static const char *
file_text(struct arena *a, const char *path)
{
	const char *text = NULL;
	const struct err *e;
	struct buf file;

	if (path == NULL)
		return NULL;
	buf_init(&file, SPOOL_RECORD);
	if ((e = file_load(path, &file)) != NULL)
		log_err(e, "gitserver");
	else if (file.len > 0)
		text = arena_strndup(a, file.data, file.len);
	buf_wipe(&file);
	return text;
}

/* Which key git uses, for the case that the server rejects it. */
static const char *
ssh_note(const struct dispatch *d, const struct claim *c)
{
	if (c->deploy_key != NULL)
		return arena_printf(d->a,
		    "The project's deploy key is %s: add its public half to "
		    "the repository at the Git server, if it is not there.",
		    c->deploy_key_print);
	if (d->settings.gitserver.ssh_key_file != NULL)
		return "The project has no deploy key, so the key of the "
		       "service was used (gitserver.ssh_key_file).";
	return "The project has no deploy key: create one in its settings, and "
	       "add the public half to the repository at the Git server.";
}

/* The arena would keep it until its memory is used again. */
static void
key_wipe(const char *key)
{
	if (key != NULL)
		explicit_bzero((char *)(uintptr_t)key, strlen(key));
}

/* The project's deploy key replaces the key of the service. */
static const struct err *
ssh_fill(const struct dispatch *d, const struct claim *c,
    struct job_description *job)
{
	const struct settings_gitserver *g = &d->settings.gitserver;

	job->note = ssh_note(d, c);
	job->known_hosts = file_text(d->a, g->ssh_known_hosts);
	if (c->deploy_key != NULL)
		return deploy_key_open(&d->settings, d->a, c->project_id,
		    c->deploy_key, &job->ssh_key);
	job->ssh_key = file_text(d->a, g->ssh_key_file);
	return NULL;
}

/* The members that only git needs, limited to those that this address requires. */
static const struct err *
repository_fill(const struct dispatch *d, const struct claim *c,
    struct job_description *job)
{
	const struct err *e;
	struct address ad;

	if (address_read(c->repository, &ad)) {
		if (ad.scheme == ADDRESS_HTTPS)
			job->tls_ca = file_text(d->a,
			    d->settings.gitserver.tls_ca);
		else if (address_is_ssh(&ad) &&
		    (e = ssh_fill(d, c, job)) != NULL)
			return e;
	}
	job->objects = project_objects(&d->spool, d->a, c->project_id);
	job->git_patience = patience_left(&d->settings.runner, c);
	if (!remote_is_known(d->forge, d->a, c->repository))
		job->commits = COMMITS;
	return NULL;
}

/* Each variable was sealed for its own name. */
static const struct err *
secrets_open(const struct settings *s, struct arena *a, const struct claim *c,
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

/* Which of the words it is; the first one if it is none of them. */
static int64_t
word_index(const char *const *words, const char *word)
{
	int64_t i;

	for (i = 0; words[i] != NULL; i++)
		if (str_eq(words[i], word))
			return i;
	return 0;
}

static struct list
job_steps_of(struct arena *a, const struct settings_runner *s,
    const struct list *steps)
{
	const struct deployment_step *step = steps->items;
	struct job_step *out = arena_alloc(a, steps->n, sizeof(*out));
	size_t i;

	for (i = 0; i < steps->n; i++)
		out[i] = (struct job_step){
			.name = step[i].name,
			.script = step[i].script,
			.directory = step[i].directory,
			.timeout = step_limit(s, &step[i]),
			.when = word_index(job_whens, step[i].run_when),
			.may_fail = step[i].may_fail,
		};
	return (struct list){ .items = out, .n = steps->n };
}

const struct err *
description_write(const struct dispatch *d, const struct claim *c,
    struct buf *out)
{
	const struct settings_gitserver *g = &d->settings.gitserver;
	const struct settings_runner *r = &d->settings.runner;
	struct job_description job = {
		.deployment = c->id,
		.epoch = c->epoch,
		.project = c->project_id,
		.project_name = c->project_name,
		.pipeline_name = c->pipeline_name,
		.environment_name = c->environment_name,
		.rollback_to = c->rollback_to.n,
		.branch = c->branch,
		.tag = c->tag,
		.commit = c->commit_hash,
		.head_only = c->head_only,
		.on_branch = c->on_branch,
		.checkout = word_index(job_checkouts, c->checkout),
		.lfs = c->lfs,
		.steps = job_steps_of(d->a, r, &c->steps),
		.timeout = c->timeout_seconds.set ? c->timeout_seconds.n :
						    r->pipeline_timeout,
		.checkout_timeout = r->checkout_timeout,
		.grace = r->grace,
		.cancel_grace = r->cancel_grace,
		.log_max = r->log_max,
		.path = r->path,
		.allow_http = g->allow_http || settings_plain(g, c->repository),
		.allow_local = g->allow_local,
	};
	const struct err *e;

	if ((e = json_map(d->a, c->env_vars.s, &job.env)) != NULL ||
	    (e = secrets_open(&d->settings, d->a, c, &job.secret)) != NULL ||
	    (clone_is_needed(c) && (e = repository_fill(d, c, &job)) != NULL))
		return e;
	job_description_write(out, &job);
	key_wipe(job.ssh_key);
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

const struct err *
description_end(struct buf *out, const struct clone *clone)
{
	const struct job_description job = {
		.repository = clone->address.data,
		.credential = clone->credential.len > 0 ?
		    clone->credential.data :
		    NULL,
		.note = clone->note,
		.offline = clone->offline,
		.silent = clone->silent,
		.git_known = clone->is_bound,
		.submodules = clone->submodules,
		.lent = clone->lent.len > 0 ? clone->lent.data : NULL,
		.refused = clone->refused.len > 0 ? clone->refused.data : NULL,
	};

	job_description_write(out, &job);
	job_description_end(out);
	return buf_check(out);
}
