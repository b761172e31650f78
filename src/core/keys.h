/* SPDX-License-Identifier: ISC */
/* Keyrings of the kernel (keyrings(7)). */
#ifndef SLIPWAY_CORE_KEYS_H
#define SLIPWAY_CORE_KEYS_H

#include <stdint.h>

#include "core/err.h"

/* Replaces the inherited session keyring (session-keyring(7)) by an empty one;
 * succeeds if the kernel has no keys. */
MUSTCHECK const struct err *keys_session(void);
/* Removes the keys of this process's user that outlive a session: the user's
 * own (user-keyring(7)), and those kept for its next session
 * (persistent-keyring(7)). Does nothing if /proc/key-users shows that the
 * effective user has at most `own` keys, those that end with this process. */
void keys_clear(int64_t own);

#endif
