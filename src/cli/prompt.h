/* SPDX-License-Identifier: ISC */
/* Asks for a secret on the terminal. */
#ifndef SLIPWAY_CLI_PROMPT_H
#define SLIPWAY_CLI_PROMPT_H

#include "core/arena.h"

/* Reads a line from the terminal without echo; ERR_METHOD if there is no
 * terminal. */
MUSTCHECK const struct err *prompt_secret(struct arena *, const char *what,
    const char **out);

#endif
