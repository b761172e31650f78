/* SPDX-License-Identifier: ISC */
/* What git's message says about the server, and about the disk. */
#ifndef SLIPWAY_JOB_OUTAGE_H
#define SLIPWAY_JOB_OUTAGE_H

#include <stdbool.h>

/* How git-lfs begins the line that says why it did not fetch a file. */
#define LFS_FAILURE "Error downloading object: "

/* Whether the message means that the server cannot be reached, or cannot serve
 * the request now.  `known`: git has used the address before, so a host that does
 * not resolve, a redirect and a web page are an outage, too, rather than a wrong
 * address. */
bool outage_is(const char *message, bool known);
/* Whether the message means that the server wants another credential, or one at
 * all. */
bool outage_is_denial(const char *message);
/* Whether a disk has no room, or does not work: the errno is one of these. */
bool outage_is_of_disk(int error);
/* The errno of the disk that a message names, 0 = none. */
int outage_of_disk(const char *message);

#endif
