/* SPDX-License-Identifier: ISC */
#include "dispatch/patience.h"

#include "core/log.h"
#include "core/str.h"
#include "dispatch/backoff.h"
#include "dispatch/context.h"
#include "dispatch/task.h"
#include "dispatch/unstarted.h"

#define PAUSE_MIN 1000 /* milliseconds */
#define PAUSE_MAX 30000

int64_t
patience_left(const struct settings_runner *s, const struct claim *c)
{
	const int64_t waited = c->git_waited.set ? c->git_waited.n : 0;

	return waited < s->git_patience ? s->git_patience - waited : 0;
}

void
patience_begin(const struct dispatch *d, struct task *t, const struct claim *c)
{
	t->git_waited = c->git_waited;
	t->git_until = time_mono_ms() +
	    patience_left(&d->settings.runner, c) * 1000;
}

/* Half of the time waited until now, so that it grows by a half each time. An
 * adopted task does not know its time. */
static int64_t
pause_of(const struct task *t, int64_t demanded)
{
	const int64_t now = time_mono_ms();
	int64_t pause = (t->git_waited.set ? t->git_waited.n : 0) * 500;

	if (pause < PAUSE_MIN)
		pause = PAUSE_MIN;
	if (pause > PAUSE_MAX)
		pause = PAUSE_MAX;
	pause = backoff_jitter(pause);
	if (pause < demanded * 1000)
		pause = demanded * 1000;
	/* the last try is when the time is up */
	if (t->git_until > now && pause > t->git_until - now)
		pause = t->git_until - now;
	return pause;
}

bool
patience_wait(struct dispatch *d, const struct task *t, int64_t demanded,
    const char *detail)
{
	const int64_t now = time_mono_ms(), pause = pause_of(t, demanded);
	const struct queue_wait wait = { .id = t->run.id,
		.epoch = t->run.epoch,
		.pause = pause,
		.detail = arena_printf(d->a,
		    "The Git server does not serve the repository now; it is "
		    "tried again in %lld s: %.300s",
		    (long long)(pause + 999) / 1000, detail),
		.runner = d->name };

	log_info("%s: waits %lld ms for its Git server: %s", t->run.name,
	    (long long)pause, detail);
	if (d->claim_at == 0 || now + pause < d->claim_at)
		d->claim_at = now + pause;
	return unstarted_wait(d, &wait);
}
