/* SPDX-License-Identifier: ISC */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/num.h"
#include "core/str.h"
#include "job/job.h"

#define SPEC_MAX ((size_t)96 << 20)
#define STEPS_MAX 1000
#define ENV_MAX 4096

enum kind {
	K_TEXT,
	K_NUMBER,
	K_LIST,
	K_STEP,
	K_SCRIPT,
	K_DIRECTORY,
	K_TIMEOUT,
	K_WHEN,
	K_MAY_FAIL,
	K_CHECKOUT,
	K_END
};

struct entry {
	const char *name;
	enum kind kind;
	size_t offset; /* in struct job_spec */
};

#define AT(member) offsetof(struct job_spec, member)
static const struct entry entries[] = {
	{ "deployment", K_NUMBER, AT(deployment) },
	{ "epoch", K_NUMBER, AT(epoch) },
	{ "project", K_NUMBER, AT(project) },
	{ "project-name", K_TEXT, AT(project_name) },
	{ "pipeline-name", K_TEXT, AT(pipeline_name) },
	{ "environment-name", K_TEXT, AT(environment_name) },
	{ "rollback-to", K_NUMBER, AT(rollback_to) },
	{ "repository", K_TEXT, AT(repository) },
	{ "branch", K_TEXT, AT(branch) },
	{ "tag", K_TEXT, AT(tag) },
	{ "commit", K_TEXT, AT(commit) },
	{ "head-only", K_NUMBER, AT(head_only) },
	{ "on-branch", K_NUMBER, AT(on_branch) },
	{ "credential", K_TEXT, AT(credential) },
	{ "note", K_TEXT, AT(note) },
	{ "offline", K_TEXT, AT(offline) },
	{ "silent", K_TEXT, AT(silent) },
	{ "git-known", K_NUMBER, AT(git_known) },
	{ "git-patience", K_NUMBER, AT(git_patience) },
	{ "tls-ca", K_TEXT, AT(tls_ca) },
	{ "ssh-key", K_TEXT, AT(ssh_key) },
	{ "known-hosts", K_TEXT, AT(known_hosts) },
	{ "objects", K_TEXT, AT(objects) },
	{ "commits", K_NUMBER, AT(commits) },
	{ "env", K_LIST, AT(env) },
	{ "secret", K_LIST, AT(secret) },
	{ "step-name", K_STEP, 0 },
	{ "step-script", K_SCRIPT, 0 },
	{ "step-directory", K_DIRECTORY, 0 },
	{ "step-timeout", K_TIMEOUT, 0 },
	{ "step-when", K_WHEN, 0 },
	{ "step-may-fail", K_MAY_FAIL, 0 },
	{ "timeout", K_NUMBER, AT(timeout) },
	{ "checkout-timeout", K_NUMBER, AT(checkout_timeout) },
	{ "grace", K_NUMBER, AT(grace) },
	{ "cancel-grace", K_NUMBER, AT(cancel_grace) },
	{ "log-max", K_NUMBER, AT(log_max) },
	{ "path", K_TEXT, AT(path) },
	{ "allow-http", K_NUMBER, AT(allow_http) },
	{ "allow-local", K_NUMBER, AT(allow_local) },
	{ "submodules", K_NUMBER, AT(submodules) },
	{ "checkout", K_CHECKOUT, 0 },
	{ "end", K_END, 0 },
};

static const char *const whens[] = {
	[WHEN_SUCCESS] = "success",
	[WHEN_FAILURE] = "failure",
	[WHEN_ALWAYS] = "always",
};

static const char *const checkouts[] = {
	[CHECKOUT_FRESH] = "fresh",
	[CHECKOUT_KEEP] = "keep",
	[CHECKOUT_NONE] = "none",
};

static const struct entry *
entry_find(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(entries) / sizeof(entries[0]); i++)
		if (strcmp(entries[i].name, name) == 0)
			return &entries[i];
	return NULL;
}

static const struct err *
malformed(const struct record *r)
{
	return err_new(ERR_INTERNAL, "record %s of the job is malformed",
	    r->name);
}

static const struct err *
number(const struct record *r, int64_t *out)
{
	return num_parse(r->value, 0, NUM_SAFE, out) ? NULL : malformed(r);
}

/* "NAME=value" with a name that is valid in a shell. */
static const struct err *
list_add(struct arena *a, struct job_list *list, const struct record *r)
{
	const char *eq = strchr(r->value, '=');

	if (eq == NULL || eq == r->value || list->n == ENV_MAX ||
	    strspn(r->value,
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
		"0123456789") != (size_t)(eq - r->value) ||
	    (r->value[0] >= '0' && r->value[0] <= '9'))
		return malformed(r);
	if (list->items == NULL)
		list->items = arena_alloc(a, ENV_MAX, sizeof(*list->items));
	list->items[list->n++] = r->value;
	return NULL;
}

static const struct err *
step_set(struct job_spec *spec, enum kind kind, const struct record *r)
{
	struct job_step *step;
	size_t i;

	if (spec->nsteps == 0)
		return malformed(r);
	step = &spec->steps[spec->nsteps - 1];
	if (kind == K_TIMEOUT)
		return number(r, &step->timeout);
	if (kind == K_MAY_FAIL)
		return number(r, &step->may_fail);
	if (kind == K_SCRIPT) {
		step->script = r->value;
		step->script_len = r->len;
		return NULL;
	}
	if (kind == K_DIRECTORY) {
		step->directory = r->value;
		return NULL;
	}
	for (i = 0; i < sizeof(whens) / sizeof(whens[0]); i++) {
		if (strcmp(whens[i], r->value) == 0) {
			step->when = (enum job_when)i;
			return NULL;
		}
	}
	return malformed(r);
}

static const struct err *
checkout_set(struct job_spec *spec, const struct record *r)
{
	size_t i;

	for (i = 0; i < sizeof(checkouts) / sizeof(checkouts[0]); i++) {
		if (strcmp(checkouts[i], r->value) == 0) {
			spec->checkout = (enum job_checkout)i;
			return NULL;
		}
	}
	return malformed(r);
}

static const struct err *
set(struct arena *a, struct job_spec *spec, const struct entry *entry,
    const struct record *r)
{
	void *member = (char *)spec + entry->offset;

	switch (entry->kind) {
	case K_TEXT:
		*(const char **)member = r->value;
		return NULL;
	case K_NUMBER:
		return number(r, member);
	case K_LIST:
		return list_add(a, member, r);
	case K_STEP:
		if (spec->nsteps == STEPS_MAX)
			return malformed(r);
		spec->steps[spec->nsteps++].name = r->value;
		return NULL;
	case K_SCRIPT:
	case K_DIRECTORY:
	case K_TIMEOUT:
	case K_WHEN:
	case K_MAY_FAIL:
		return step_set(spec, entry->kind, r);
	case K_CHECKOUT:
		return checkout_set(spec, r);
	case K_END:
		break;
	}
	return NULL;
}

static const struct err *
complete(const struct job_spec *spec)
{
	size_t i;

	if (spec->deployment == 0 || spec->project_name == NULL ||
	    spec->pipeline_name == NULL || spec->repository == NULL ||
	    spec->path == NULL || spec->log_max == 0)
		return err_new(ERR_INTERNAL,
		    "the job description lacks a record");
	for (i = 0; i < spec->nsteps; i++)
		if (spec->steps[i].script == NULL)
			return err_new(ERR_INTERNAL, "step %zu has no script",
			    i);
	return NULL;
}

static const struct err *
file_read(int fd, struct buf *out)
{
	char chunk[16384];
	off_t at = 0;
	ssize_t got = 0;

	while (
	    !out->overflow && (got = pread(fd, chunk, sizeof(chunk), at)) > 0) {
		buf_add(out, chunk, (size_t)got);
		at += got;
	}
	if (got == -1)
		return err_errno("read the job");
	return buf_check(out);
}

const struct err *
job_spec_read(struct arena *a, int fd, struct job_spec *out)
{
	const struct entry *entry;
	const struct err *e;
	struct record r;
	struct buf text;
	bool found, ended = false;
	size_t at = 0;

	(void)memset(out, 0, sizeof(*out));
	out->steps = arena_alloc(a, STEPS_MAX, sizeof(*out->steps));
	buf_init(&text, SPEC_MAX);
	if ((e = file_read(fd, &text)) != NULL)
		goto out;
	while (!ended) {
		if ((e = record_read(a, text.data, text.len, &at, &r,
			 &found)) != NULL)
			goto out;
		if (!found) {
			e = err_new(ERR_INTERNAL,
			    "the job description has no end");
			goto out;
		}
		if ((entry = entry_find(r.name)) == NULL) {
			e = err_new(ERR_INTERNAL, "unknown record %s", r.name);
			goto out;
		}
		ended = entry->kind == K_END;
		if ((e = set(a, out, entry, &r)) != NULL)
			goto out;
	}
	e = complete(out);
out:
	buf_wipe(&text);
	return e;
}
