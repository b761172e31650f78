/* SPDX-License-Identifier: ISC */
/* Tells users why a deployment waits that this runner could take. */
#include "store/waiting.h"

#include "core/log.h"
#include "core/str.h"
#include "dispatch/dispatch.h"

#define AGAIN_MS 20000 /* it counts for a minute */

void
waiting_say(struct dispatch *d, int64_t id, const char *detail)
{
	const struct waiting_note note = { .deployment_id = id,
		.reason = WAITING_SLOTS,
		.detail = detail,
		.runner = d->name };
	const int64_t now = time_mono_ms();
	struct waiting_told *w, *oldest = d->told;

	for (w = d->told; w < d->told + WAITING_TOLD; w++) {
		if (w->id == id && w->at + AGAIN_MS > now)
			return;
		if (w->id == id || (oldest->id != id && w->at < oldest->at))
			oldest = w;
	}
	oldest->id = id;
	oldest->at = now;
	log_info("%lld waits: %s", (long long)id, detail);
	(void)database_done(&d->database, waiting_tell(d->db, &note),
	    "say why a deployment waits");
}
