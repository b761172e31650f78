/* SPDX-License-Identifier: ISC */
/*
 * The parts of the OpenAPI document that are not generated from routes or
 * fields. In JSON texts here, ' is written for a double quote.
 */
#ifndef SLIPWAY_WEB_OPENAPI_PARTS_H
#define SLIPWAY_WEB_OPENAPI_PARTS_H

#include "web/route.h"

/* Response headers. */
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
/* Request headers. */
enum sent { S_IF_NONE_MATCH, S_IF_MATCH, S_RANGE, S_IDEMPOTENCY, S__MAX };

/* A component and its key. */
struct part {
	const char *key;
	const char *name; /* of the header */
	const char *text;
};
extern const struct part openapi_headers[H__MAX];
extern const struct part openapi_sent[S__MAX];
/* Indexed by enum route_list; key NULL = no schema. */
extern const struct part openapi_paginations[];

/* What a route implies, as bits: the request headers that it accepts (enum
 * sent), the headers of a successful response (enum header) and its errors
 * (enum err_code). */
#define BIT(n) (1u << (n))
unsigned openapi_sent_of(const struct route *);
unsigned openapi_headers_of(const struct route *);
unsigned openapi_errors_of(const struct route *);

/* openapi_info ends before the version, openapi_codes before the codes. */
extern const char openapi_info[], openapi_problem[], openapi_codes[],
    openapi_fault[], openapi_device_error[];
/* The description of a named schema. */
const char *openapi_about(const char *named);
extern const char openapi_security[];

#endif
