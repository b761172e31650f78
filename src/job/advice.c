/* SPDX-License-Identifier: ISC */
#include "job/advice.h"

#include <string.h>

#include "core/address.h"
#include "core/str.h"
#include "job/job.h"
#include "job/outage.h"

/* The host whose key ssh(1) rejected: that of a submodule, if one was being
 * cloned. */
static const char *
host_advice(const struct job *job)
{
	const char *url = job->log.clone_of[0] != '\0' ? job->log.clone_of :
							 job->spec.repository;
	const char *plain = url;
	struct address ad;

	/* other names of the scheme, as git has them */
	if (str_starts(url, "git+ssh://") || str_starts(url, "ssh+git://"))
		plain = arena_printf(job->a, "ssh://%s",
		    url + strlen("git+ssh://"));
	if (!address_read(plain, &ad) || !address_is_ssh(&ad))
		return "The runner does not know the key of a submodule's "
		       "host, or the host has another one: an administrator "
		       "must run slipway-admin known-host add with that host";
	return arena_printf(job->a,
	    "The runner does not know the host's key, or the host has another "
	    "one: an administrator must run slipway-admin known-host add "
	    "%.*s:%lld",
	    (int)ad.host_len, ad.host, (long long)address_port(&ad));
}

/* Why a submodule was read without a credential. */
static const char *
submodule_advice(const struct job *job)
{
	const char *url = job->log.clone_of;
	struct address ad;

	if (address_read(url, &ad) && address_is_ssh(&ad))
		return "Over SSH, submodules are read only with the deploy key "
		       "of a project whose repository is read over SSH, too; "
		       "else .gitmodules must have an https or a relative "
		       "address";
	return arena_printf(job->a,
	    "A submodule at the Git server that is not public is read only if "
	    "a maintainer who can read its repository lists it in "
	    "submoduleRepositories of the project (PUT /api/projects/%lld)%s%s",
	    (long long)job->spec.project,
	    job->spec.refused == NULL ? "" : "; in that list, ",
	    job->spec.refused == NULL ? "" : job->spec.refused);
}

const char *
checkout_advice(const struct job *job, const char *detail)
{
	if (strstr(detail, "Host key verification failed") != NULL)
		return host_advice(job);
	if (job->spec.submodules == SUBMODULES_LENT &&
	    job->log.clone_of[0] != '\0' &&
	    (outage_is_denial(detail) ||
		strstr(detail, "transport 'ssh' not allowed") != NULL))
		return submodule_advice(job);
	return outage_is_denial(detail) ? job->spec.note : NULL;
}
