/* SPDX-License-Identifier: ISC */
/*
 * The OpenAPI 3.1 document, made of nothing else than the resources, the field
 * tables that their routes point to, and the table of errors.
 */
#ifndef SLIPWAY_API_OPENAPI_H
#define SLIPWAY_API_OPENAPI_H

#include "core/buf.h"

#define OPENAPI_MAX ((size_t)2 << 20)

/* Without the routes that have ROUTE_HIDDEN. */
void openapi_write(struct buf *);

#endif
