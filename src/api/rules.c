/* SPDX-License-Identifier: ISC */
#include "api/rules.h"

struct deploy
rules_context(struct req *rq, struct arena *a)
{
	return (struct deploy){ .db = rq->db,
		.a = a,
		.settings = rq->settings,
		.public_key = rq->public_key,
		.faults = &rq->faults };
}
