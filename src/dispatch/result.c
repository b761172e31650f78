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
#include "queue/move.h"
#include "queue/queue.h"
#include "spool/event.h"

#define RESULT_MAX ((int64_t)16 << 20)
#define DETAIL_MAX 500
#define HASH_MAX 64
#define OBJECTS_MAX 16384
#define MESSAGE_MAX 16000 /* size of the column in bytes / 4 */

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

static const struct err *
event_reject(const char *why)
{
	return err_new(ERR_INTERNAL, "an event of the result has %s", why);
}

static const struct err *
step_of(const struct task *t, const struct job_event *event,
    struct move_step *out)
{
	*out = (struct move_step){
		.deployment_id = t->run.id,
		.epoch = t->run.epoch,
		.position = event->position,
		.exit_code = event->exit_code,
		.signal = event->signal,
	};
	if (event->kind == JOB_STEP_SKIPPED) {
		out->status = STATE_SKIPPED;
	} else if (event->kind == JOB_STEP_STARTED) {
		out->status = STATE_RUNNING;
		out->started_at = event->time;
		out->log_offset = event->log;
	} else {
		out->status = state_find(event->status);
		out->finished_at = event->time;
		out->log_length = event->log;
		if (out->status == STATE__MAX ||
		    !state_kinds[out->status].is_final)
			return event_reject("an unknown state of a step");
	}
	return NULL;
}

static void
commit_set(struct arena *a, const struct job_event *event,
    struct workspace_seen *out)
{
	out->is_elsewhere = event->branch == NULL;
	out->branch = text_or_none(a, event->branch, BRANCH_MAX);
	out->hash = text_or_none(a, event->hash, HASH_MAX);
	out->message = text_clean(a, event->message, MESSAGE_MAX);
}

static const struct err *
end_set(struct arena *a, const struct job_event *event, struct outcome *out)
{
	out->reason = state_reason(event->reason);
	if (out->reason == REASON__MAX ||
	    reason_kinds[out->reason].ends != state_find(event->status))
		return event_reject("an unknown outcome");
	out->time = event->time.ms;
	out->detail = text_or_none(a, event->text, DETAIL_MAX);
	out->ended = true;
	return NULL;
}

/* Adds what an event says of the outcome. */
static const struct err *
outcome_add(struct arena *a, const struct job_event *event, struct outcome *out)
{
	switch (event->kind) {
	case JOB_CHECKED_OUT:
	case JOB_STAYED:
		commit_set(a, event, &out->workspace);
		return NULL;
	case JOB_OBJECTS: /* only jobs read it */
		if (strlen(event->text) > OBJECTS_MAX)
			return event_reject("too long a state of a clone");
		out->objects = event->text;
		return NULL;
	case JOB_WORKSPACE:
		if (!is_one_of(workspace_statuses, event->status))
			return event_reject("an unknown state of a workspace");
		out->workspace.status = event->status;
		out->workspace.dirty = event->dirty.n != 0;
		out->workspace.size = event->size;
		return NULL;
	case JOB_ACHIEVED:
		out->achieved = arena_printf(a, "step %lld (%s)",
		    (long long)event->position + 1,
		    text_clean(a, event->text, DETAIL_MAX / 2));
		return NULL;
	case JOB_WARNINGS:
		if (event->size > INT32_MAX)
			return event_reject("too many warnings");
		out->warnings = event->size;
		return NULL;
	case JOB_GIT_AWAY:
		out->git_away = text_clean(a, event->text, DETAIL_MAX);
		return NULL;
	case JOB_NO_ROOM:
		out->no_room = text_clean(a, event->text, DETAIL_MAX);
		return NULL;
	case JOB_ENDED:
		return end_set(a, event, out);
	case JOB_COMMITS:
	case JOB_STEP_STARTED:
	case JOB_STEP_ENDED:
	case JOB_STEP_SKIPPED:
	case JOB_EVENT__MAX:
		break;
	}
	return NULL;
}

/* The bytes from `from` on, and before `to`, that the file has. */
static const struct err *
result_load(const struct task *t, struct arena *a, int64_t from, int64_t to,
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

/* Reads the next event of data[*at..len) and moves *at past it. */
static const struct err *
event_next(struct arena *a, const char *data, size_t len, size_t *at,
    struct job_event *out, bool *found)
{
	const struct err *e;
	struct record r;

	out->kind = JOB_EVENT__MAX;
	if ((e = record_read(a, data, len, at, &r, found)) != NULL || !*found)
		return e;
	return job_event_read(a, &r, out);
}

/* Adds the end of the step that starts, if the event at `at` is that: then one
 * statement stores both. */
static void
step_join(struct arena *a, const char *data, size_t len, size_t *at,
    struct move_step *step)
{
	struct job_event event;
	size_t next = *at;
	bool found;

	if (step->status != STATE_RUNNING ||
	    event_next(a, data, len, &next, &event, &found) != NULL || !found ||
	    event.kind != JOB_STEP_ENDED || event.position != step->position ||
	    state_find(event.status) == STATE__MAX)
		return;
	step->status = state_find(event.status);
	step->exit_code = event.exit_code;
	step->signal = event.signal;
	step->finished_at = event.time;
	step->log_length = event.log;
	*at = next;
}

/* Writes one event to the queue, and the next one as well if they belong
 * together; `at` is the position behind the event. */
static const struct err *
event_store(struct dispatch *d, const struct task *t,
    const struct job_event *event, const char *data, size_t len, size_t *at)
{
	struct workspace_seen seen = { .status = NULL };
	struct move_step step;
	const struct err *e;

	switch (event->kind) {
	case JOB_CHECKED_OUT:
		commit_set(d->a, event, &seen);
		d->events |= EVENT_STATUS;
		return queue_commit(d->db, t->run.id, t->run.epoch,
		    seen.is_elsewhere ? "" : seen.branch, seen.hash,
		    seen.message);
	case JOB_COMMITS:
		return t->run.project == 0 ?
		    NULL :
		    commits_store(d, t->run.project, t->run.name, event);
	case JOB_STEP_STARTED:
	case JOB_STEP_ENDED:
	case JOB_STEP_SKIPPED:
		if ((e = step_of(t, event, &step)) != NULL)
			return e;
		step_join(d->a, data, len, at, &step);
		return move_step(d->db, &step);
	case JOB_STAYED:
	case JOB_OBJECTS:
	case JOB_WORKSPACE:
	case JOB_ACHIEVED:
	case JOB_WARNINGS:
	case JOB_GIT_AWAY:
	case JOB_NO_ROOM:
	case JOB_ENDED:
	case JOB_EVENT__MAX:
		break;
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

/* An event of any other kind means that the checkout failed, if it did not
 * succeed before. */
static void
fetch_note(struct dispatch *d, struct task *t, const struct job_event *event)
{
	bool changed;

	if (event->kind == JOB_CHECKED_OUT)
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
	struct job_event event;
	char *data;
	size_t len, at = 0;
	bool found;

	if ((e = result_load(t, d->a, p->result_at, p->result_end, &data,
		 &len)) != NULL)
		goto broken;
	for (;;) {
		e = event_next(d->a, data, len, &at, &event, &found);
		if (e != NULL)
			goto broken;
		if (!found)
			return NULL;
		fetch_note(d, t, &event);
		e = event_store(d, t, &event, data, len, &at);
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

/* Such events do not decide about the outcome. */
static bool
is_of_step(enum job_event_kind kind)
{
	return kind == JOB_STEP_STARTED || kind == JOB_STEP_ENDED ||
	    kind == JOB_STEP_SKIPPED;
}

const struct err *
result_read(const struct task *t, struct arena *a, struct outcome *out)
{
	struct job_event event;
	const struct err *e;
	char *data;
	size_t len, at = 0;
	bool found = true;

	(void)memset(out, 0, sizeof(*out));
	if ((e = result_load(t, a, 0, INT64_MAX, &data, &len)) != NULL)
		return e;
	while (!out->ended) {
		e = event_next(a, data, len, &at, &event, &found);
		if (!found)
			return e;
		if (e != NULL && is_of_step(event.kind))
			continue;
		if (e != NULL)
			return e;
		if ((e = outcome_add(a, &event, out)) != NULL)
			return e;
	}
	return NULL;
}
