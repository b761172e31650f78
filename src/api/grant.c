/* SPDX-License-Identifier: ISC */
#include "api/grant.h"

#include "core/str.h"
#include "web/scope.h"

/* The highest role that a token of the caller can have. The tokens of a guest
 * have one for the projects of which the guest is or will be a member. */
static const struct err *
grant_most(struct req *rq, enum role *out)
{
	const struct err *e = scope_reach(rq, out);

	if (*out < ROLE_VIEWER)
		*out = ROLE_VIEWER;
	return e;
}

const struct err *
grant_judge(struct req *rq, const char *role, struct when expires_at)
{
	const struct err *e;
	enum role most;

	if ((e = grant_most(rq, &most)) != NULL)
		return e;
	if (role_of(role) > most)
		faults_add(&rq->faults, "/role",
		    "must not be above your own role, which is "
		    "%s",
		    role_name(most));
	if (expires_at.ms != 0 && expires_at.ms <= time_now_ms())
		faults_add(&rq->faults, "/expiresAt", "must be in the future");
	if (rq->who.expires_at.ms != 0 && expires_at.ms > rq->who.expires_at.ms)
		faults_add(&rq->faults, "/expiresAt",
		    "must not be later than the expiry of the token that "
		    "creates it");
	return NULL;
}

const struct err *
grant_fill(struct req *rq, const char **role, struct when *expires_at)
{
	const struct err *e;
	enum role most;

	if ((e = grant_most(rq, &most)) != NULL)
		return e;
	if (*role == NULL)
		*role = role_name(most);
	if (expires_at->ms == 0)
		*expires_at = rq->who.expires_at;
	return NULL;
}
