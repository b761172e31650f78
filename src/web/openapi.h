/* SPDX-License-Identifier: ISC */
/*
 * The OpenAPI 3.1 document, generated from the resources, the field tables of
 * their routes and the table of errors.
 */
#ifndef SLIPWAY_WEB_OPENAPI_H
#define SLIPWAY_WEB_OPENAPI_H

#include "core/err.h"

/* The document as JSON, without routes that have ROUTE_HIDDEN.  It lives as long
 * as the process. */
MUSTCHECK const struct err *openapi_text(const char **out, size_t *len);

#endif
