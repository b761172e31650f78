/* SPDX-License-Identifier: ISC */
/*
 * Logs of deployments on standard output, each byte once.
 *
 * A piece is printed when it has arrived whole, and the next one is requested
 * by its offset, so that a lost connection or a restart of the service repeats
 * and omits nothing.
 */
#ifndef SLIPWAY_CLI_FOLLOW_H
#define SLIPWAY_CLI_FOLLOW_H

#include "cli/deployment.h"

/* Prints the log from an offset until the deployment has ended, and tries for
 * ten minutes to reach a service that does not respond.  With `quiet`, prints
 * nothing.  SIGINT ends the program, after a message that says how to go on
 * following; it does not touch the deployment. */
enum follow_flag {
	FOLLOW_QUIET = 1 << 0,
};
MUSTCHECK const struct err *follow_run(struct client *, int64_t id,
    int64_t offset, unsigned flags, struct deployment *out,
    struct http_response *);
/* Prints the bytes from..to-1. */
MUSTCHECK const struct err *follow_print(struct client *, int64_t id,
    int64_t from, int64_t to);
/* The offset at which the last lines begin, of a log of that size. */
MUSTCHECK const struct err *follow_tail(struct client *, int64_t id,
    int64_t size, int64_t lines, int64_t *out);

#endif
