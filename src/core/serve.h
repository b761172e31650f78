/* SPDX-License-Identifier: ISC */
/* What the servers share when they start: options, configuration, a listening
 * unix socket, and an account to run as. */
#ifndef SLIPWAY_CORE_SERVE_H
#define SLIPWAY_CORE_SERVE_H

#include <sys/types.h>

#include <stdbool.h>

#include "core/settings.h"

/* How a server was started. */
struct serve {
	const char *program; /* its name */
	const char *conf;    /* path of the configuration */
	bool check;          /* only check the configuration */
};

/* Parses the options of the server that `program` names, and prints what they
 * request or how they are used.  Returns -1, or the status to exit with. */
int serve_options(struct serve *, int argc, char **argv);
/* Reads the configuration. Both results live as long as the process, or until
 * the caller closes the arena. */
MUSTCHECK const struct err *serve_configure(const struct serve *,
    struct arena **a, struct settings **out);
/* Logs as the configuration says. */
void serve_log(const struct serve *, const struct settings *);

/* Binds a stream socket and listens, in place of one that no process serves any
 * more.  `mode` applies to `group` and `user` (NULL = those of the process); it is
 * theirs before the first connection. ERR_CONFIG if another process serves the
 * socket. */
MUSTCHECK const struct err *serve_listen(const char *path, mode_t mode,
    const char *group, const char *user, int *out);
/* Whether a process serves that unix socket: 0, or the errno of the attempt to
 * connect. */
int serve_try(const char *path);
/* If the process runs as root, switches to that account for good, unless it is
 * root. ERR_CONFIG if it is NULL or unknown. */
MUSTCHECK const struct err *serve_as(const char *user);

#endif
