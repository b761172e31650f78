/* SPDX-License-Identifier: ISC */
/*
 * The OpenAPI 3.1 document of a table of routes, made of nothing else than
 * that table, the field tables it points to, and the table of errors.
 */
#ifndef SLIPWAY_API_OPENAPI_H
#define SLIPWAY_API_OPENAPI_H

#include "api/route.h"

#define OPENAPI_MAX ((size_t)2 << 20)

/* Without the routes that have ROUTE_HIDDEN. */
void openapi_write(struct buf *, const struct route *);

#endif
