/* SPDX-License-Identifier: ISC */
/*
 * Opening what was sealed for the dispatcher.  Apart from the sealing, so that
 * the API has none of it: only the dispatcher and slipway-admin include this.
 */
#ifndef SLIPWAY_CRYPTO_UNBOX_H
#define SLIPWAY_CRYPTO_UNBOX_H

#include <sys/types.h>

#include "core/arena.h"
#include "crypto/box.h"

/* The private halves, lines "ID BASE64": the first is the one in use, all
 * open.  Nobody but its owner may read the file. */
struct unbox;
MUSTCHECK const struct err *unbox_open(const char *path, struct unbox **out);
void unbox_close(struct unbox *);
/* The text, in the arena.  ERR_CONFIG if the key is missing, ERR_INTERNAL if it
 * is damaged or was sealed for another purpose; the message says what "it"
 * has, and no more. */
MUSTCHECK const struct err *unbox_text(const struct unbox *, struct arena *,
    const char *purpose, const char *sealed, const char **out);

/* To which key a public half belongs. */
enum unbox_fit { UNBOX_FIRST, UNBOX_OLDER, UNBOX_NONE };
enum unbox_fit unbox_fits(const struct unbox *, const struct box *);

/* Makes both files, or puts a new first key into the private one and takes its
 * half over into the public one: in this order, so that what is sealed in
 * between opens.  If root makes the private one it belongs to `owner`. */
MUSTCHECK const struct err *unbox_rotate(const char *path,
    const char *public_path, uid_t owner);

#endif
