/* SPDX-License-Identifier: ISC */
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

const char *
checkout_advice(const struct job *job, const char *detail)
{
	if (strstr(detail, "Host key verification failed") != NULL)
		return host_advice(job);
	return outage_is_denial(detail) ? job->spec.note : NULL;
}
