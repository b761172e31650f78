/* SPDX-License-Identifier: ISC */
/* SSH keys of type ed25519 (RFC 8709), and fingerprints of all types. */
#ifndef SLIPWAY_CRYPTO_SSH_KEY_H
#define SLIPWAY_CRYPTO_SSH_KEY_H

#include "core/arena.h"

#define SSH_KEY_PRIVATE 512 /* text of a private half with its NUL */
#define SSH_KEY_COMMENT 64  /* maximum length */

struct ssh_key {
	char private_half[SSH_KEY_PRIVATE]; /* as in a file of OpenSSH */
	const char *public_half;            /* a line: "ssh-ed25519 BASE64
					     * COMMENT" */
};

/* Creates a key.  The caller clears it with ssh_key_clear(). */
void ssh_key_make(struct arena *, const char *comment, struct ssh_key *out);
void ssh_key_clear(struct ssh_key *);
/* "SHA256:…" of a public half in base64, as ssh-keygen(1) prints it; NULL if
 * that is malformed. */
const char *ssh_key_fingerprint(struct arena *, const char *base64, size_t len);

#endif
