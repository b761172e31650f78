/* SPDX-License-Identifier: ISC */
#include <ctype.h>
#include <string.h>

#include <curl/curl.h>

#include "core/address.h"
#include "http/inner.h"

/* One part of a URL in the arena; NULL if the URL has none. */
static const char *
part(struct arena *a, CURLU *u, CURLUPart what, unsigned flags)
{
	char *text = NULL;
	const char *copy = NULL;

	if (curl_url_get(u, what, &text, flags) == CURLUE_OK)
		copy = arena_strdup(a, text);
	curl_free(text);
	return copy;
}

static CURLU *
parse(const char *url)
{
	CURLU *u;

	if (!url_fit(url) || (u = curl_url()) == NULL)
		return NULL;
	if (curl_url_set(u, CURLUPART_URL, url, CURLU_DISALLOW_USER) ==
	    CURLUE_OK)
		return u;
	curl_url_cleanup(u);
	return NULL;
}

/* Rejects a user before the host, since what looks like the host may be the
 * user.  Rejects blanks and characters beyond ASCII, since parsers disagree on
 * them. */
bool
url_fit(const char *url)
{
	struct address ad;
	size_t i;

	for (i = 0; url[i] != '\0'; i++)
		if (url[i] <= 0x20 || url[i] >= 0x7f)
			return false;
	return address_read(url, &ad) && address_is_web(&ad) &&
	    ad.user_len == 0;
}

const char *
http_origin(struct arena *a, const char *url)
{
	struct address ad;

	return url_fit(url) && address_read(url, &ad) ? address_origin(a, &ad) :
							NULL;
}

const char *
url_resolve(struct arena *a, const char *base, const char *ref)
{
	const char *url = NULL;
	CURLU *u;

	if ((u = parse(base)) == NULL)
		return NULL;
	if (curl_url_set(u, CURLUPART_URL, ref, CURLU_DISALLOW_USER) ==
		CURLUE_OK &&
	    curl_url_set(u, CURLUPART_FRAGMENT, NULL, 0) == CURLUE_OK)
		url = part(a, u, CURLUPART_URL, 0);
	curl_url_cleanup(u);
	return url != NULL && url_fit(url) ? url : NULL;
}

const char *
http_escape(struct arena *a, const char *text)
{
	static const char hex[] = "0123456789ABCDEF";
	char *out = arena_alloc(a, strlen(text) + 1, 3);
	char *p = out;

	for (; *text != '\0'; text++) {
		unsigned char c = (unsigned char)*text;

		if (c < 0x80 && (isalnum(c) || strchr("-._~", c) != NULL)) {
			*p++ = (char)c;
			continue;
		}
		*p++ = '%';
		*p++ = hex[c >> 4];
		*p++ = hex[c & 0xf];
	}
	return out;
}
