/* SPDX-License-Identifier: ISC */
#include "dispatch/waiting.h"

#include "core/log.h"
#include "core/str.h"
#include "dispatch/context.h"
#include "queue/waiting.h"

#define AGAIN_MS 20000 /* a note expires after a minute */

void
waiting_note(struct dispatch *d, int64_t id, const char *detail)
{
	const struct waiting_note note = { .deployment_id = id,
		.reason = WAITING_SLOTS,
		.detail = detail,
		.runner = d->name };
	const int64_t now = time_mono_ms();
	struct waiting_noted *last = d->notes->last, *w, *oldest = last;

	for (w = last; w < last + WAITING_NOTED; w++) {
		if (w->id == id && w->at + AGAIN_MS > now)
			return;
		if (w->id == id || (oldest->id != id && w->at < oldest->at))
			oldest = w;
	}
	*oldest = (struct waiting_noted){ .id = id, .at = now };
	log_info("%lld waits: %s", (long long)id, detail);
	(void)database_done(&d->database, waiting_record(d->db, &note),
	    "note why a deployment waits");
}
