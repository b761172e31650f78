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
#include "crypto/crypto.h"

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

/* Names of all keys, by their public halves, the first one first; how many. */
size_t unbox_names(const struct unbox *, struct key_name out[CRYPTO_KEYS]);
/* The same text sealed with the public half; it is not left in memory. */
MUSTCHECK const struct err *unbox_reseal(const struct unbox *,
    const struct box *, struct arena *, const char *purpose, const char *sealed,
    const char **out);

/* To which key a public half belongs. */
enum unbox_fit { UNBOX_FIRST, UNBOX_OLDER, UNBOX_NONE };
enum unbox_fit unbox_fits(const struct unbox *, const struct box *);

/* Makes both files, or puts a new first key into the private one and takes its
 * half over into the public one: in this order, so that what is sealed in
 * between opens.  If root makes the private one it belongs to `owner`. */
MUSTCHECK const struct err *unbox_rotate(const char *path,
    const char *public_path, uid_t owner);
/* Leaves the first key alone in the private one, on the disk when it returns;
 * ERR_CONFLICT if that is not the one that is named. */
MUSTCHECK const struct err *unbox_prune(const char *path,
    const struct key_name *first);
/* So that but one process changes key files, or works by them: ERR_CONFLICT
 * while another does.  Held until `out` is closed; -1 if there is no file
 * yet. */
MUSTCHECK const struct err *unbox_lock(const char *path, int *out);

#endif
