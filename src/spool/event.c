/* SPDX-License-Identifier: ISC */
#include "spool/event.h"

#include <string.h>

#include "core/num.h"

#define MEMBERS 7
#define NONE "-"

/* The record of each kind: its members, and what separates them.  The last one
 * has the rest of the text.  A FIELD_NULL member that is NULL is written as
 * "-". */
#define E(m) FIELD(struct job_event, m, 0)
#define E_NULL(m) FIELD(struct job_event, m, FIELD_NULL)
static const struct {
	const char *name;
	const char *separators;
	struct field members[MEMBERS];
} kinds[JOB_EVENT__MAX] = {
	[JOB_CHECKED_OUT] = { "checked-out", "\n\n",
	    { E_NULL(branch), E(hash), E(message), FIELD_END } },
	[JOB_STAYED] = { "stayed", "\n\n",
	    { E_NULL(branch), E(hash), E(message), FIELD_END } },
	[JOB_COMMITS] = { "commits", "\n", { E(branch), E(text), FIELD_END } },
	[JOB_STEP_STARTED] = { "step-started", "  ",
	    { E(position), E(time), E(log), FIELD_END } },
	[JOB_STEP_ENDED] = { "step-ended", "     ",
	    { E(position), E(status), E(exit_code), E(signal), E(time), E(log),
		FIELD_END } },
	[JOB_STEP_SKIPPED] = { "step-skipped", "", { E(position), FIELD_END } },
	[JOB_OBJECTS] = { "objects", "", { E(text), FIELD_END } },
	[JOB_WORKSPACE] = { "workspace", "  ",
	    { E(status), E(dirty), E(size), FIELD_END } },
	[JOB_ACHIEVED] = { "achieved", " ",
	    { E(position), E(text), FIELD_END } },
	[JOB_WARNINGS] = { "warnings", "", { E(size), FIELD_END } },
	[JOB_GIT_AWAY] = { "git-away", "", { E(text), FIELD_END } },
	[JOB_NO_ROOM] = { "no-room", "", { E(text), FIELD_END } },
	[JOB_ENDED] = { "end", "  \n",
	    { E(status), E_NULL(reason), E(time), E(text), FIELD_END } },
};

static void
member_write(struct buf *out, const struct field *f, const void *member)
{
	const struct maybe *maybe = member;
	const char *text;

	if (f->type == F_INT || f->type == F_WHEN) {
		buf_printf(out, "%lld", (long long)*(const int64_t *)member);
	} else if (f->type == F_MAYBE && maybe->set) {
		buf_printf(out, "%lld", (long long)maybe->n);
	} else if (f->type == F_MAYBE) {
		buf_puts(out, NONE);
	} else {
		text = *(const char *const *)member;
		if (text == NULL)
			text = (f->flags & FIELD_NULL) != 0 ? NONE : "";
		buf_puts(out, text);
	}
}

void
job_event_write(struct buf *out, const struct job_event *event)
{
	const struct field *f = kinds[event->kind].members;
	const char *separator = kinds[event->kind].separators;
	struct buf value;

	buf_init(&value, SPOOL_RECORD);
	for (; f->name != NULL; f++) {
		member_write(&value, f, field_of(event, f));
		if (*separator != '\0')
			buf_putc(&value, *separator++);
	}
	if (value.overflow)
		out->overflow = true;
	else
		record_write(out, kinds[event->kind].name,
		    value.data == NULL ? "" : value.data, value.len);
	buf_release(&value);
}

static bool
member_read(const struct field *f, const char *text, void *member)
{
	struct maybe *maybe = member;

	if (text == NULL && f->type == F_STR && f[1].name == NULL)
		text = ""; /* only the last text may be missing */
	if (text == NULL)
		return false;
	if (f->type == F_STR) {
		if ((f->flags & FIELD_NULL) == 0 || strcmp(text, NONE) != 0)
			*(const char **)member = text;
		return true;
	}
	if (f->type != F_MAYBE)
		return num_parse(text, 0, NUM_SAFE, member);
	maybe->set = strcmp(text, NONE) != 0;
	return !maybe->set || num_parse(text, 0, NUM_SAFE, &maybe->n);
}

const struct err *
job_event_read(struct arena *a, const struct record *r, struct job_event *out)
{
	char *rest = arena_strndup(a, r->value, r->len);
	char separator[2] = "";
	const struct field *f;
	const char *text, *next;
	unsigned kind = 0;

	(void)memset(out, 0, sizeof(*out));
	while (kind < JOB_EVENT__MAX && strcmp(kinds[kind].name, r->name) != 0)
		kind++;
	out->kind = (enum job_event_kind)kind;
	if (kind == JOB_EVENT__MAX)
		return NULL;
	next = kinds[kind].separators;
	for (f = kinds[kind].members; f->name != NULL; f++) {
		separator[0] = *next == '\0' ? '\0' : *next++;
		text = strsep(&rest, separator);
		if (!member_read(f, text, field_at(out, f)))
			return err_new(ERR_INTERNAL,
			    "record %s of the result is malformed", r->name);
	}
	return NULL;
}
