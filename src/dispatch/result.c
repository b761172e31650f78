/* SPDX-License-Identifier: ISC */
#include "dispatch/result.h"

#include <sys/stat.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/branch.h"
#include "core/log.h"
#include "core/num.h"
#include "core/str.h"
#include "dispatch/commits.h"
#include "dispatch/context.h"
#include "dispatch/text.h"
#include "spool/spool.h"
#include "store/move.h"
#include "store/queue.h"

#define RESULT_MAX ((int64_t)16 << 20)
#define WORDS 8
#define DETAIL_MAX 500
#define HASH_MAX 64
#define OBJECTS_MAX 16384
#define MESSAGE_MAX 16000 /* size of the column in bytes / 4 */

/* Names of records, by enumerator. */
enum result_record {
#define X(id, name) R_##id,
	SPOOL_RESULT_RECORDS(X)
#undef X
	    R__MAX
};
static const char *const names[R__MAX] = {
#define X(id, name) [R_##id] = (name),
	SPOOL_RESULT_RECORDS(X)
#undef X
};

static const char *const workspace_statuses[] = { "not_created", "empty",
	"no_git", "ready", "error", NULL };

static bool
is_one_of(const char *const *list, const char *word)
{
	for (; *list != NULL; list++)
		if (strcmp(*list, word) == 0)
			return true;
	return false;
}

/* NULL for "" and "-". */
static const char *
text_or_none(struct arena *a, const char *s, size_t max)
{
	if (s == NULL || s[0] == '\0' || strcmp(s, "-") == 0)
		return NULL;
	return text_clean(a, s, max);
}

/* Splits a copy of the text at `sep`; how many words there are.  The last one
 * has all the rest. */
static size_t
split(struct arena *a, const char *text, const char *sep, size_t max,
    char *words[WORDS])
{
	char *rest = arena_strdup(a, text);
	size_t n = 0;

	(void)memset(words, 0, WORDS * sizeof(*words));
	while (n + 1 < max && (words[n] = strsep(&rest, sep)) != NULL)
		n++;
	if (rest != NULL)
		words[n++] = rest;
	return n;
}

static bool
number(const char *s, int64_t *out)
{
	return s != NULL && num_parse(s, 0, NUM_SAFE, out);
}

/* A number, or "-". */
static bool
maybe(const char *s, struct maybe *out)
{
	if (s != NULL && strcmp(s, "-") == 0)
		return true;
	out->set = true;
	return number(s, &out->n);
}

static const struct err *
malformed(const struct record *r)
{
	return err_new(ERR_INTERNAL, "record %s of the result is malformed",
	    r->name);
}

static const struct err *
step_started(struct arena *a, const struct record *r, struct move_step *out)
{
	char *words[WORDS];

	if (split(a, r->value, " ", 4, words) != 3 ||
	    !number(words[0], &out->position) ||
	    !number(words[1], &out->started_at.ms) ||
	    !maybe(words[2], &out->log_offset))
		return malformed(r);
	out->status = STATE_RUNNING;
	return NULL;
}

static const struct err *
step_ended(struct arena *a, const struct record *r, struct move_step *out)
{
	char *words[WORDS];

	if (split(a, r->value, " ", 7, words) != 6 ||
	    !number(words[0], &out->position) ||
	    (out->status = state_find(words[1])) == STATE__MAX ||
	    !state_kinds[out->status].is_final ||
	    !maybe(words[2], &out->exit_code) ||
	    !maybe(words[3], &out->signal) ||
	    !number(words[4], &out->finished_at.ms) ||
	    !maybe(words[5], &out->log_length))
		return malformed(r);
	return NULL;
}

static const struct err *
step_skipped(struct arena *a, const struct record *r, struct move_step *out)
{
	(void)a;
	out->status = STATE_SKIPPED;
	return number(r->value, &out->position) ? NULL : malformed(r);
}

static const struct {
	enum result_record record;
	const struct err *(
	    *read)(struct arena *, const struct record *, struct move_step *);
} step_records[] = {
	{ R_STEP_STARTED, step_started },
	{ R_STEP_ENDED, step_ended },
	{ R_STEP_SKIPPED, step_skipped },
};

/* "BRANCH\nHASH\nMESSAGE" */
static const struct err *
checked_out(struct arena *a, const struct record *r, struct outcome *out)
{
	char *words[WORDS];

	if (split(a, r->value, "\n", 3, words) < 2)
		return malformed(r);
	out->workspace.is_elsewhere = str_eq(words[0], SPOOL_ELSEWHERE);
	out->workspace.branch = out->workspace.is_elsewhere ?
	    NULL :
	    text_or_none(a, words[0], BRANCH_MAX);
	out->workspace.hash = text_or_none(a, words[1], HASH_MAX);
	out->workspace.message = text_clean(a, words[2] == NULL ? "" : words[2],
	    MESSAGE_MAX);
	return NULL;
}

/* Only jobs read it. */
static const struct err *
objects(struct arena *a, const struct record *r, struct outcome *out)
{
	if (r->len > OBJECTS_MAX)
		return malformed(r);
	out->objects = arena_strdup(a, r->value);
	return NULL;
}

static const struct err *
git_away(struct arena *a, const struct record *r, struct outcome *out)
{
	out->git_away = text_clean(a, r->value, DETAIL_MAX);
	return NULL;
}

/* "STATUS DIRTY SIZE" */
static const struct err *
workspace(struct arena *a, const struct record *r, struct outcome *out)
{
	struct maybe dirty = { .set = false };
	char *words[WORDS];

	if (split(a, r->value, " ", 4, words) != 3 ||
	    !is_one_of(workspace_statuses, words[0]) ||
	    !maybe(words[1], &dirty) || !number(words[2], &out->workspace.size))
		return malformed(r);
	out->workspace.status = words[0];
	out->workspace.dirty = dirty.n != 0;
	return NULL;
}

/* "POSITION NAME" */
static const struct err *
achieved(struct arena *a, const struct record *r, struct outcome *out)
{
	char *words[WORDS];
	int64_t position;

	if (split(a, r->value, " ", 2, words) != 2 ||
	    !number(words[0], &position))
		return malformed(r);
	out->achieved = arena_printf(a, "step %lld (%s)",
	    (long long)position + 1, text_clean(a, words[1], DETAIL_MAX / 2));
	return NULL;
}

static const struct err *
warnings(struct arena *a, const struct record *r, struct outcome *out)
{
	(void)a;
	return num_parse(r->value, 0, INT32_MAX, &out->warnings) ? NULL :
								   malformed(r);
}

/* "STATUS REASON TIME\nDETAIL" */
static const struct err *
end(struct arena *a, const struct record *r, struct outcome *out)
{
	char *lines[WORDS], *words[WORDS];

	(void)split(a, r->value, "\n", 2, lines);
	if (split(a, lines[0] == NULL ? "" : lines[0], " ", 4, words) != 3 ||
	    !number(words[2], &out->time))
		return malformed(r);
	out->reason = state_reason(
	    strcmp(words[1], "-") == 0 ? NULL : words[1]);
	if (out->reason == REASON__MAX ||
	    reason_kinds[out->reason].ends != state_find(words[0]))
		return malformed(r);
	out->detail = text_or_none(a, lines[1], DETAIL_MAX);
	out->ended = true;
	return NULL;
}

/* The bytes from `from` on, and before `to`, that the file has. */
static const struct err *
load(const struct task *t, struct arena *a, int64_t from, int64_t to,
    char **out, size_t *len)
{
	struct stat st;
	ssize_t got;

	*out = NULL;
	*len = 0;
	if (fstat(t->run.result, &st) == -1)
		return err_errno("%s: result", t->run.name);
	if (st.st_size > RESULT_MAX)
		return err_new(ERR_INTERNAL, "%s: the result is too large",
		    t->run.name);
	if (to > st.st_size)
		to = st.st_size;
	if (to <= from)
		return NULL;
	*out = arena_alloc(a, (size_t)(to - from), 1);
	while (*len < (size_t)(to - from)) {
		got = pread(t->run.result, *out + *len,
		    (size_t)(to - from) - *len, from + (off_t)*len);
		if (got == -1 && errno == EINTR)
			continue;
		if (got == -1)
			return err_errno("%s: result", t->run.name);
		if (got == 0)
			break;
		*len += (size_t)got;
	}
	return NULL;
}

/* Adds the end of the step that starts, if the record at `at` is that: then one
 * statement stores both. */
static void
step_join(struct arena *a, const char *data, size_t len, size_t *at,
    struct move_step *event)
{
	struct move_step both = *event;
	size_t next = *at;
	struct record r;
	bool found;

	if (event->status != STATE_RUNNING ||
	    record_read(a, data, len, &next, &r, &found) != NULL || !found ||
	    strcmp(r.name, names[R_STEP_ENDED]) != 0 ||
	    step_ended(a, &r, &both) != NULL ||
	    both.position != event->position)
		return;
	*event = both;
	*at = next;
}

/* Writes one record to the queue, and the next one as well if they belong
 * together; `at` is the position behind the record. */
static const struct err *
record_store(struct dispatch *d, const struct task *t, const struct record *r,
    const char *data, size_t len, size_t *at)
{
	struct move_step event = { .deployment_id = t->run.id,
		.epoch = t->run.epoch };
	struct outcome seen = { .ended = false };
	const struct err *e;
	size_t i;

	if (strcmp(r->name, names[R_CHECKED_OUT]) == 0) {
		if ((e = checked_out(d->a, r, &seen)) != NULL)
			return e;
		d->events |= EVENT_STATUS;
		return queue_commit(d->db, t->run.id, t->run.epoch,
		    seen.workspace.is_elsewhere ? "" : seen.workspace.branch,
		    seen.workspace.hash, seen.workspace.message);
	}
	if (strcmp(r->name, names[R_COMMITS_SEEN]) == 0)
		return t->run.project == 0 ?
		    NULL :
		    commits_store(d, t->run.project, t->run.name, r->value);
	for (i = 0; i < sizeof(step_records) / sizeof(step_records[0]); i++) {
		if (strcmp(r->name, names[step_records[i].record]) != 0)
			continue;
		if ((e = step_records[i].read(d->a, r, &event)) != NULL)
			return e;
		step_join(d->a, data, len, at, &event);
		return move_step(d->db, &event);
	}
	return NULL;
}

/* A job writes the output of a step before it writes that the step ended. */
void
result_check(struct task *t)
{
	struct progress *p = &t->progress;
	struct stat result, log;

	if (fstat(t->run.result, &result) == 0 &&
	    fstat(t->run.log, &log) == 0 && result.st_size > p->result_end) {
		p->result_end = result.st_size;
		p->log_end = log.st_size;
	}
}

/* A record of any other kind means that the checkout failed, if it did not
 * succeed before. */
static void
fetch_note(struct dispatch *d, struct task *t, const struct record *r)
{
	bool changed;

	if (strcmp(r->name, names[R_CHECKED_OUT]) == 0)
		changed = fetch_succeeded(d->hosts, &t->fetch);
	else
		changed = fetch_failed(d->hosts, &t->fetch, t->run.name);
	if (changed)
		d->events |= EVENT_QUEUE;
}

const struct err *
result_follow(struct dispatch *d, struct task *t)
{
	struct progress *p = &t->progress;
	const struct err *e;
	struct record r;
	char *data;
	size_t len, at = 0;
	bool found;

	if ((e = load(t, d->a, p->result_at, p->result_end, &data, &len)) !=
	    NULL)
		goto broken;
	for (;;) {
		if ((e = record_read(d->a, data, len, &at, &r, &found)) != NULL)
			goto broken;
		if (!found)
			return NULL;
		fetch_note(d, t, &r);
		e = record_store(d, t, &r, data, len, &at);
		if (e == NULL) {
			p->result_at += (int64_t)(at);
			data += at;
			len -= at;
			at = 0;
			continue;
		}
		if (e->code == ERR_UNAVAILABLE || e->code == ERR_CONFIG ||
		    e->code == ERR_PRECONDITION)
			return e;
		goto broken;
	}
broken:
	p->is_broken = true;
	log_err(e, t->run.name);
	return NULL;
}

const struct err *
result_read(const struct task *t, struct arena *a, struct outcome *out)
{
	static const struct {
		enum result_record record;
		const struct err *(*read)(struct arena *, const struct record *,
		    struct outcome *);
	} readers[] = {
		{ R_CHECKED_OUT, checked_out },
		{ R_STAYED, checked_out },
		{ R_OBJECTS_SEEN, objects },
		{ R_WORKSPACE, workspace },
		{ R_ACHIEVED, achieved },
		{ R_WARNINGS, warnings },
		{ R_GIT_AWAY, git_away },
		{ R_RESULT_END, end },
	};
	const struct err *e;
	struct record r;
	char *data;
	size_t len, at = 0, i;
	bool found = true;

	(void)memset(out, 0, sizeof(*out));
	if ((e = load(t, a, 0, INT64_MAX, &data, &len)) != NULL)
		return e;
	while (!out->ended) {
		if ((e = record_read(a, data, len, &at, &r, &found)) != NULL ||
		    !found)
			return e;
		for (i = 0; i < sizeof(readers) / sizeof(readers[0]); i++)
			if (strcmp(r.name, names[readers[i].record]) == 0 &&
			    (e = readers[i].read(a, &r, out)) != NULL)
				return e;
	}
	return NULL;
}
