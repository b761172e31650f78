/* SPDX-License-Identifier: ISC */
/*
 * A Git server that hangs holds each job that fetches from it until its
 * checkout times out.  So that it does not hold all slots, at most half of them
 * fetch from one host at a time, and one alone from a host that let a fetch hang
 * a short while ago.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "core/address.h"
#include "core/log.h"
#include "core/str.h"
#include "dispatch/dispatch.h"

#define HUNG_MS 30000  /* a fetch that takes longer, and fails, has hung */
#define REST_MS 600000 /* for so long that is remembered */

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

static struct slow_host *
slow_find(struct dispatch *d, const char *host)
{
	struct slow_host *s;

	for (s = d->slow; s < d->slow + FETCH_SLOW; s++)
		if (s->host[0] != '\0' && strcmp(s->host, host) == 0)
			return s;
	return NULL;
}

static size_t
most(struct dispatch *d, const char *host)
{
	const struct slow_host *s = slow_find(d, host);

	if (s != NULL && s->until > time_mono_ms())
		return 1;
	return ((size_t)d->settings.runner.slots + 1) / 2;
}

bool
fetch_is_full(struct dispatch *d, const char *host)
{
	const struct task *t;
	size_t i, n = 0;

	for (i = 0; i < d->n; i++) {
		t = d->tasks[i];
		if (task_is_live(t) && (t->flags & TASK_FETCHED) == 0 &&
		    strcmp(t->host, host) == 0)
			n++;
	}
	return host[0] != '\0' && n >= most(d, host);
}

static bool
is_over(struct dispatch *d, struct task *t)
{
	if ((t->flags & TASK_FETCHED) != 0)
		return false;
	t->flags |= TASK_FETCHED;
	d->claim = true;
	return t->host[0] != '\0';
}

void
fetch_done(struct dispatch *d, struct task *t)
{
	struct slow_host *s;

	if (!is_over(d, t) || (s = slow_find(d, t->host)) == NULL)
		return;
	log_info("%s answers again", t->host);
	(void)memset(s, 0, sizeof(*s));
}

void
fetch_failed(struct dispatch *d, struct task *t)
{
	const int64_t now = time_mono_ms();
	struct slow_host *s, *oldest = d->slow;

	if (!is_over(d, t) || now - t->claimed_at < HUNG_MS)
		return;
	if ((s = slow_find(d, t->host)) == NULL) {
		for (s = d->slow; s < d->slow + FETCH_SLOW; s++)
			if (s->until < oldest->until)
				oldest = s;
		s = oldest;
		log_warn("%s: %s let a fetch hang: one deployment at a time"
			 " tries it for now",
		    t->name, t->host);
	}
	(void)snprintf(s->host, sizeof(s->host), "%s", t->host);
	s->until = now + REST_MS;
}
