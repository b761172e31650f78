/* SPDX-License-Identifier: ISC */
/* Strict parsing and encoding of request targets (RFC 3986). */
#ifndef SLIPWAY_WEB_URI_H
#define SLIPWAY_WEB_URI_H

#include "core/arena.h"
#include "core/buf.h"

#define URI_MAX 4096
#define URI_PAIRS 16

struct uri_pair {
	const char *name; /* NULL ends a list */
	const char *value;
};

struct uri {
	const char *path; /* decoded */
	struct uri_pair pair[URI_PAIRS];
	size_t pairs;
};

/* Decodes once. ERR_BAD_REQUEST for text that two parsers could interpret
 * differently: empty, "." or ".." segments, ";", "\", an encoded slash, control
 * bytes, invalid UTF-8, a repeated parameter. */
MUSTCHECK const struct err *uri_parse(struct arena *, const char *target,
    struct uri *out);

/* Percent-encodes all characters that are not unreserved. */
void uri_encode(struct buf *, const char *text);
/* The same, except for slashes. */
void uri_encode_path(struct buf *, const char *path);
/* Returns NULL if there is none with that name. */
const struct uri_pair *uri_pair_find(const struct uri_pair *, const char *name);

#endif
