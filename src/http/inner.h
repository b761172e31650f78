/* SPDX-License-Identifier: ISC */
/* Shared by the files of this folder alone. */
#ifndef SLIPWAY_HTTP_INNER_H
#define SLIPWAY_HTTP_INNER_H

#include "core/buf.h"
#include "http/http.h"

/* What a server's texts may take: status line and all headers, also those of
 * interim answers. */
#define HTTP_HEAD_MAX ((size_t)64 << 10)

/* Servers that did not answer, by origin. */
#define BREAKER_SERVERS 8
#define BREAKER_ORIGIN 300

struct breaker {
	struct {
		char origin[BREAKER_ORIGIN];
		int failed;       /* times in a row */
		int64_t until;    /* not asked before (time_mono_ms) */
		int64_t asked_at; /* the oldest makes room */
	} server[BREAKER_SERVERS];
};

/* Milliseconds until that server may be asked; 0 = now. */
int64_t breaker_wait(struct breaker *, const char *origin);
void breaker_answered(struct breaker *, const char *origin);
void breaker_failed(struct breaker *, const char *origin);

/* A reference as seen from an absolute URL (RFC 3986 5), without its fragment;
 * NULL if it leads nowhere. */
const char *url_resolve(struct arena *, const char *base, const char *ref);
/* Whether it is an http or https URL of printable ASCII without blanks and
 * without a user in it. */
bool url_fit(const char *url);
/* Whether it is a name of a header (RFC 9110 5.1). */
bool header_name_fit(const char *name);
/* Header lines as they came ("Name: value\r\n"…) to a list; those that are
 * folded or have control bytes are left out. */
void header_list(struct arena *, const struct buf *lines, struct list *out);
/* Without parameters, in lower case; NULL if empty. */
const char *header_media_type(struct arena *, const char *value);

#endif
