/* SPDX-License-Identifier: ISC */
/*
 * The function that serves the routes, the rows of the tables that row.h
 * describes.
 */
#ifndef SLIPWAY_WEB_ROUTE_H
#define SLIPWAY_WEB_ROUTE_H

#include "web/req.h"
#include "web/row.h"

extern const char *const route_methods[METHOD__MAX];

/* The maximum size of the body, according to method, path and headers. */
size_t route_body_max(const struct req *);
/* Serves one request. `rq` holds arena, db, settings, keyring and in[];
 * afterwards rq->answer always holds a response. `body` is complete. */
void route_serve(struct req *, const char *body, size_t len);
/* Inside the transaction of a request, for another one to `rq->route`: parses the
 * body and calls the handler. Both need the same role. */
MUSTCHECK const struct err *route_call(struct req *, const char *body,
    size_t len);
/* Responds with an error to a request that could not be read. */
void route_reject(struct req *, const struct err *);

#endif
