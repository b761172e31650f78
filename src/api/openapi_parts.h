/* SPDX-License-Identifier: ISC */
/*
 * The parts of the OpenAPI document that come from no table of routes or
 * fields.  In all texts of JSON here ' stands for a quotation mark.
 */
#ifndef SLIPWAY_API_OPENAPI_PARTS_H
#define SLIPWAY_API_OPENAPI_PARTS_H

#include "api/route.h"
#include "forge/hook.h"

/* Header fields of answers. */
enum header {
	H_REQUEST_ID,
	H_ETAG,
	H_LINK,
	H_LINK_NEXT,
	H_TOTAL,
	H_LOCATION,
	H_RETRY_AFTER,
	H_AUTHENTICATE,
	H_LOG_SIZE,
	H_LOG_COMPLETE,
	H_CONTENT_RANGE,
	H_COOKIE,
	H__MAX
};
/* Header fields of requests. */
enum sent { S_IF_NONE_MATCH, S_IF_MATCH, S_RANGE, S_IDEMPOTENCY, S__MAX };

/* One of the components, under its key. */
struct part {
	const char *key;
	const char *name; /* of the header field */
	const char *text;
};
extern const struct part openapi_headers[H__MAX];
extern const struct part openapi_sent[S__MAX];
/* By enum route_list; key NULL = that has none. */
extern const struct part openapi_paginations[];

/* What follows from a route, as bits: header fields that it takes (enum sent),
 * that its success has (enum header), errors that it may answer. */
#define BIT(n) (1u << (n))
unsigned openapi_sent_of(const struct route *);
unsigned openapi_headers_of(const struct route *);
unsigned openapi_errors_of(const struct route *);

/* Up to the version; of problem details, `openapi_codes` up to the codes. */
extern const char openapi_info[], openapi_problem[], openapi_codes[],
    openapi_fault[];
/* What the schema of that name is, in a sentence. */
const char *openapi_about(const char *named);
/* What the header fields of push events are, by enum hook_header. */
extern const char *const openapi_hooks[HOOK__MAX];
extern const char openapi_security[];

#endif
