/* SPDX-License-Identifier: ISC */
/* The Git checkout that the user is in, as git(1) describes it. */
#ifndef SLIPWAY_CLI_CHECKOUT_H
#define SLIPWAY_CLI_CHECKOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"

struct checkout {
	const char *branch;  /* NULL = HEAD is detached */
	const char *commit;  /* NULL = there is none yet */
	const char *remote;  /* that the branch is pushed to; NULL = none */
	const char *address; /* of the remote; NULL = none */
	bool pushed;         /* the remote has the branch */
	int64_t ahead;       /* commits of HEAD that it does not have there */
};

/* ERR_NOTFOUND outside a checkout, or without git. */
MUSTCHECK const struct err *checkout_read(struct arena *, struct checkout *out);
/* The address without a user and a password that HTTP would take; NULL if the
 * repository is on this host, or it is no address. */
const char *checkout_plain(struct arena *, const char *address);
enum checkout_same {
	CHECKOUT_OTHER,
	CHECKOUT_SIMILAR, /* the paths differ in case, as some servers allow */
	CHECKOUT_SAME,
};
/* Whether two addresses are of the same repository, in whatever form, with or
 * without a user and a password. */
enum checkout_same checkout_same_repository(const char *, const char *);

#endif
