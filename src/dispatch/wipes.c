/* SPDX-License-Identifier: ISC */
/* Has the directories of projects removed runner.workspace_days after the project
 * was deleted. */
#include "core/log.h"
#include "dispatch/context.h"
#include "dispatch/part.h"
#include "dispatch/project.h"
#include "dispatch/wipe.h"

#define LOOK_MS 3600000 /* between looks for deleted projects */
#define ASK_MAX 500     /* requests in one look */
#define DAY_SECONDS 86400

struct wipes {
	int64_t at;
};

struct look {
	const struct dispatch *d;
	const struct err *e;
	int asked;
};

static bool
look_at(void *context, int64_t project)
{
	struct look *look = context;
	const struct dispatch *d = look->d;
	const int64_t days = d->settings.runner.workspace_days;
	struct projectdir gone;
	const struct err *e;

	arena_clear(d->a);
	e = projectdir_find(d->db, d->a, project, &gone);
	if (e != NULL && e->code == ERR_NOTFOUND)
		return true;
	if (e == NULL &&
	    (gone.valid != 0 || gone.deleted_for < days * DAY_SECONDS))
		return true;
	if (e == NULL)
		e = wipe_ask(d, &gone, WIRE_WIPE_NOW, 0);
	look->e = e;
	return e == NULL && ++look->asked < ASK_MAX;
}

static void
wipes_work(struct dispatch *d, void *state, int64_t now)
{
	struct wipes *w = state;
	struct look look = { .d = d };

	if (now < w->at)
		return;
	w->at = now + LOOK_MS;
	if (d->settings.runner.workspace_days == 0)
		return;
	project_each(&d->spool, look_at, &look);
	(void)database_done(&d->database, look.e, "look for deleted projects");
}

static int64_t
wipes_next(const struct dispatch *d, const void *state, int64_t now)
{
	const struct wipes *w = state;

	(void)d;
	(void)now;
	return w->at;
}

/* The next look repeats what failed. */
static void
wipes_message(struct dispatch *d, void *state, const struct wire *msg)
{
	(void)state;
	if (msg->type == WIRE_WIPED && msg->status == 0)
		project_unmark(&d->spool, msg->project);
}

const struct part wipes_part = {
	.size = sizeof(struct wipes),
	.work = wipes_work,
	.next = wipes_next,
	.message = wipes_message,
};
