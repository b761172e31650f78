/* SPDX-License-Identifier: ISC */
#include "spool/description.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "core/num.h"
#include "core/str.h"
#include "spool/spool.h"

#define TEXT_MAX ((size_t)96 << 20)
#define STEPS_MAX 1000
#define VARIABLES_MAX 4096
#define NAME_SIZE 32
#define STEP "step-"
#define END "end"

const char *const job_checkouts[] = { [CHECKOUT_FRESH] = "fresh",
	[CHECKOUT_KEEP] = "keep",
	[CHECKOUT_NONE] = "none",
	NULL };
const char *const job_whens[] = { [WHEN_SUCCESS] = "success",
	[WHEN_FAILURE] = "failure",
	[WHEN_ALWAYS] = "always",
	NULL };

#define S(m, ...) FIELD(struct job_step, m, __VA_ARGS__)
static const struct field step_fields[] = {
	S(name, 0),
	S(script, 0),
	S(directory, 0),
	S(timeout, 0),
	S(when, 0, .values = job_whens),
	S(may_fail, 0),
	FIELD_END,
};

static const struct shape step_shape = {
	.name = STEP,
	.fields = step_fields,
	.size = sizeof(struct job_step),
};

#define D(m, ...) FIELD(struct job_description, m, __VA_ARGS__)
static const struct field fields[] = {
	D(deployment, 0),
	D(epoch, 0),
	D(project, 0),
	D(project_name, 0),
	D(pipeline_name, 0),
	D(environment_name, 0),
	D(rollback_to, 0),
	D(repository, 0),
	D(branch, 0),
	D(tag, 0),
	D(commit, 0),
	D(head_only, 0),
	D(on_branch, 0),
	D(credential, 0),
	D(note, 0),
	D(offline, 0),
	D(silent, 0),
	D(git_known, 0),
	D(git_patience, 0),
	D(tls_ca, 0),
	D(ssh_key, 0),
	D(known_hosts, 0),
	D(objects, 0),
	D(commits, 0),
	D(env, 0),
	D(secret, 0),
	D(steps, 0, .shape = &step_shape),
	D(timeout, 0),
	D(checkout_timeout, 0),
	D(grace, 0),
	D(cancel_grace, 0),
	D(log_max, 0),
	D(path, 0),
	D(allow_http, 0),
	D(allow_local, 0),
	D(submodules, 0),
	D(lent, 0),
	D(refused, 0),
	D(lfs, 0),
	D(checkout, 0, .values = job_checkouts),
	FIELD_END,
};

/* --- writing */

static void fields_write(struct buf *, const char *prefix, const struct field *,
    const void *item);

static void
number_write(struct buf *out, const char *name, const struct field *f,
    int64_t n)
{
	if (n != 0 && f->values != NULL)
		record_printf(out, name, "%s", f->values[n]);
	else if (n != 0)
		record_printf(out, name, "%lld", (long long)n);
}

static void
map_write(struct buf *out, const char *name, const struct map *map)
{
	const struct pair *p = map->items;
	size_t i;

	for (i = 0; i < map->n; i++)
		if (p[i].value != NULL)
			record_printf(out, name, "%s=%s", p[i].key, p[i].value);
}

static void
list_write(struct buf *out, const struct shape *shape, const struct list *list)
{
	size_t i;

	for (i = 0; i < list->n; i++)
		fields_write(out, shape->name, shape->fields,
		    (const char *)list->items + i * shape->size);
}

static void
member_write(struct buf *out, const char *name, const struct field *f,
    const void *member)
{
	const char *text;

	if (f->type == F_INT)
		number_write(out, name, f, *(const int64_t *)member);
	else if (f->type == F_BOOL)
		number_write(out, name, f, *(const bool *)member ? 1 : 0);
	else if (f->type == F_MAP)
		map_write(out, name, member);
	else if (f->type == F_LIST)
		list_write(out, f->shape, member);
	else if ((text = *(const char *const *)member) != NULL)
		record_write(out, name, text, strlen(text));
}

static void
fields_write(struct buf *out, const char *prefix, const struct field *f,
    const void *item)
{
	char name[NAME_SIZE], *c;

	for (; f->name != NULL; f++) {
		(void)snprintf(name, sizeof(name), "%s%s", prefix, f->name);
		for (c = name; *c != '\0'; c++)
			if (*c == '_')
				*c = '-';
		member_write(out, name, f, field_of(item, f));
	}
}

void
job_description_write(struct buf *out, const struct job_description *job)
{
	fields_write(out, "", fields, job);
}

void
job_description_end(struct buf *out)
{
	record_write(out, END, "", 0);
}

/* --- reading */

static const struct err *
record_reject(const struct record *r)
{
	return err_new(ERR_INTERNAL, "record %s of the job is malformed",
	    r->name);
}

static const struct err *
number_read(const struct record *r, const struct field *f, int64_t *out)
{
	int64_t i;

	if (f->values == NULL)
		return num_parse(r->value, 0, NUM_SAFE, out) ? NULL :
							       record_reject(r);
	for (i = 0; f->values[i] != NULL; i++) {
		if (strcmp(f->values[i], r->value) == 0) {
			*out = i;
			return NULL;
		}
	}
	return record_reject(r);
}

static const struct err *
flag_read(const struct record *r, bool *out)
{
	int64_t n = 0;

	if (!num_parse(r->value, 0, 1, &n))
		return record_reject(r);
	*out = n == 1;
	return NULL;
}

/* "NAME=value" with a name that is valid in a shell. */
static const struct err *
variable_read(struct arena *a, const struct record *r, struct map *out)
{
	const size_t len = strcspn(r->value, "=");

	if (r->value[len] != '=' || len == 0 || out->n == VARIABLES_MAX ||
	    strspn(r->value,
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
		"0123456789") != len ||
	    (r->value[0] >= '0' && r->value[0] <= '9'))
		return record_reject(r);
	if (out->items == NULL)
		out->items = arena_alloc(a, VARIABLES_MAX, sizeof(*out->items));
	out->items[out->n++] = (struct pair){
		.key = arena_strndup(a, r->value, len),
		.value = r->value + len + 1,
	};
	return NULL;
}

static const struct err *
member_read(struct arena *a, const struct record *r, const struct field *f,
    void *member)
{
	if (f->type == F_INT)
		return number_read(r, f, member);
	if (f->type == F_BOOL)
		return flag_read(r, member);
	if (f->type == F_MAP)
		return variable_read(a, r, member);
	*(const char **)member = r->value;
	return NULL;
}

/* A record has `-` where its member has `_`. */
static bool
record_is_of(const char *name, const char *member)
{
	for (; *name == *member || (*name == '-' && *member == '_');
	     name++, member++)
		if (*name == '\0')
			return true;
	return false;
}

/* The entry of a table that a record is of, or NULL. */
static const struct field *
entry_find(const struct field *f, const char *name)
{
	for (; f->name != NULL; f++)
		if (record_is_of(name, f->name))
			return f;
	return NULL;
}

/* The first member of a step begins it. */
static const struct err *
step_read(struct arena *a, const struct record *r, struct list *steps)
{
	const struct field *f = entry_find(step_fields, r->name + strlen(STEP));
	struct job_step *step = steps->items;

	if (f == NULL)
		return err_new(ERR_INTERNAL, "unknown record %s", r->name);
	if (f == step_fields && steps->n < STEPS_MAX)
		steps->n++;
	else if (f == step_fields || steps->n == 0)
		return record_reject(r);
	return member_read(a, r, f, field_at(step + steps->n - 1, f));
}

static const struct err *
record_set(struct arena *a, const struct record *r, struct job_description *out)
{
	const struct field *f = entry_find(fields, r->name);

	if (str_starts(r->name, STEP))
		return step_read(a, r, &out->steps);
	if (f == NULL || f->type == F_LIST)
		return err_new(ERR_INTERNAL, "unknown record %s", r->name);
	return member_read(a, r, f, field_at(out, f));
}

static const struct err *
records_read(struct arena *a, const struct buf *text,
    struct job_description *out)
{
	const struct err *e;
	struct record r;
	size_t at = 0;
	bool found;

	for (;;) {
		e = record_read(a, text->data, text->len, &at, &r, &found);
		if (e != NULL)
			return e;
		if (!found)
			return err_new(ERR_INTERNAL,
			    "the job description has no end");
		if (strcmp(r.name, END) == 0)
			return NULL;
		if ((e = record_set(a, &r, out)) != NULL)
			return e;
	}
}

static const struct err *
description_check(const struct job_description *job)
{
	const struct job_step *step = job->steps.items;
	size_t i;

	if (job->deployment == 0 || job->project_name == NULL ||
	    job->pipeline_name == NULL || job->repository == NULL ||
	    job->path == NULL || job->log_max == 0)
		return err_new(ERR_INTERNAL,
		    "the job description lacks a record");
	for (i = 0; i < job->steps.n; i++)
		if (step[i].script == NULL)
			return err_new(ERR_INTERNAL, "step %zu has no script",
			    i);
	return NULL;
}

const struct err *
job_description_read(struct arena *a, int fd, struct job_description *out)
{
	const struct err *e;
	struct buf text;

	(void)memset(out, 0, sizeof(*out));
	out->steps.items = arena_alloc(a, STEPS_MAX, sizeof(struct job_step));
	buf_init(&text, TEXT_MAX);
	if (lseek(fd, 0, SEEK_SET) == -1)
		e = err_errno("read the job");
	else if ((e = file_rest(fd, &text)) == NULL &&
	    (e = records_read(a, &text, out)) == NULL)
		e = description_check(out);
	buf_wipe(&text);
	return e;
}
