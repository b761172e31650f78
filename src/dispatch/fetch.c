/* SPDX-License-Identifier: ISC */
#include "dispatch/fetch.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "core/address.h"
#include "core/log.h"
#include "core/str.h"

#define HUNG_MS 30000  /* a fetch that takes longer hangs */
#define REST_MS 600000 /* a host counts as slow for so long */

void
fetch_host(const char *repository, char out[FETCH_HOST])
{
	struct address ad;
	size_t len, i;

	out[0] = '\0';
	if (!address_read(repository, &ad) || address_is_local(&ad))
		return;
	/* with the port */
	len = (size_t)(ad.path - ad.host) - (ad.scheme == ADDRESS_SCP ? 1 : 0);
	if (len >= FETCH_HOST)
		len = FETCH_HOST - 1;
	for (i = 0; i < len; i++)
		out[i] = (char)tolower((unsigned char)ad.host[i]);
	out[len] = '\0';
}

void
fetch_begin(struct fetch *f, const char *repository)
{
	fetch_host(repository, f->host);
	f->since = time_mono_ms();
	f->is_over = f->host[0] == '\0';
}

bool
fetch_hangs(const struct fetch *f)
{
	return f->host[0] != '\0' && !f->is_over &&
	    time_mono_ms() - f->since >= HUNG_MS;
}

/* The index, FETCH_SLOW if the host is not among them. */
static size_t
slow_find(const struct fetch_hosts *hosts, const char *host)
{
	size_t i;

	for (i = 0; i < FETCH_SLOW; i++)
		if (hosts->slow[i].host[0] != '\0' &&
		    strcmp(hosts->slow[i].host, host) == 0)
			break;
	return i;
}

size_t
fetch_limit(const struct fetch_hosts *hosts, const char *host, size_t slots)
{
	const size_t i = slow_find(hosts, host);

	if (i < FETCH_SLOW && hosts->slow[i].until > time_mono_ms())
		return 1;
	return (slots + 1) / 2;
}

bool
fetch_succeeded(struct fetch_hosts *hosts, struct fetch *f)
{
	size_t i;

	if (f->is_over)
		return false;
	f->is_over = true;
	if ((i = slow_find(hosts, f->host)) < FETCH_SLOW) {
		log_info("%s responds again", f->host);
		(void)memset(&hosts->slow[i], 0, sizeof(hosts->slow[i]));
	}
	return true;
}

bool
fetch_failed(struct fetch_hosts *hosts, struct fetch *f, const char *name)
{
	const bool hung = fetch_hangs(f);
	size_t i, at;

	if (f->is_over)
		return false;
	f->is_over = true;
	if (!hung)
		return true;
	if ((at = slow_find(hosts, f->host)) == FETCH_SLOW) {
		for (i = at = 0; i < FETCH_SLOW; i++)
			if (hosts->slow[i].until < hosts->slow[at].until)
				at = i;
		log_warn("%s: %s let a fetch hang: for now only one deployment"
			 " at a time fetches from it",
		    name, f->host);
	}
	(void)snprintf(hosts->slow[at].host, FETCH_HOST, "%s", f->host);
	hosts->slow[at].until = time_mono_ms() + REST_MS;
	return true;
}
