/* SPDX-License-Identifier: ISC */
/*
 * One request over one FastCGI connection: read with deadlines, served, and
 * answered in one go.  The only file that knows libfcgi, and the only writer.
 *
 * libfcgi reads and writes without deadlines, does not take up a call that a
 * signal broke off, and answers nothing then; so signals are blocked while it
 * works, save the one of our own deadline, which shuts the connection down.
 */
#ifndef SLIPWAY_API_FCGI_H
#define SLIPWAY_API_FCGI_H

#include "api/req.h"

/* Once per process, after the signal handlers are set. */
MUSTCHECK const struct err *fcgi_init(void);
/* Serves the request that comes over `fd` and closes it.  `rq` holds arena,
 * db, settings and what else is the process's.  False if no request came. */
bool fcgi_serve(int fd, struct req *rq);

#endif
