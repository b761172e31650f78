/* SPDX-License-Identifier: ISC */
/*
 * The OpenAPI 3.1 document, generated from the resources, the field tables of
 * their routes and the table of errors.
 */
#ifndef SLIPWAY_API_OPENAPI_H
#define SLIPWAY_API_OPENAPI_H

#include "core/buf.h"

#define OPENAPI_MAX ((size_t)2 << 20)

/* Routes with ROUTE_HIDDEN are left out. */
void openapi_write(struct buf *);

#endif
