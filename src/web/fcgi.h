/* SPDX-License-Identifier: ISC */
/*
 * One request over one FastCGI connection: read with deadlines, serve, write
 * the response. The only file that uses libfcgi.
 *
 * libfcgi reads and writes without deadlines, does not resume a call that a
 * signal interrupted, and then sends no response. So signals are blocked while
 * it works, except that of our own deadline, which shuts the connection down.
 */
#ifndef SLIPWAY_WEB_FCGI_H
#define SLIPWAY_WEB_FCGI_H

#include "web/req.h"

/* Call it once per process, after installing the signal handlers. */
MUSTCHECK const struct err *fcgi_init(const struct settings *);
/* Serves the request that arrives on `fd` and closes it. `rq` holds the arena,
 * db, settings and other objects of the process. False if no request
 * arrived. */
bool fcgi_serve(int fd, struct req *rq);

#endif
