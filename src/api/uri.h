/* SPDX-License-Identifier: ISC */
/* Request targets (RFC 3986): taken apart strictly, and written. */
#ifndef SLIPWAY_API_URI_H
#define SLIPWAY_API_URI_H

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

/* Decodes once.  ERR_BAD_REQUEST for what two readers could take differently:
 * empty, "." or ".." segments, ";", "\", an encoded slash, control bytes,
 * invalid UTF-8, a parameter given twice. */
MUSTCHECK const struct err *uri_parse(struct arena *, const char *target,
    struct uri *out);

/* Percent-encodes all but unreserved characters. */
void uri_encode(struct buf *, const char *text);
/* The same, slashes stay. */
void uri_encode_path(struct buf *, const char *path);
/* NULL if there is none of that name. */
const struct uri_pair *uri_pair_find(const struct uri_pair *, const char *name);

#endif
