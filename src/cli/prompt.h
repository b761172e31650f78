/* SPDX-License-Identifier: ISC */
/* Asks for a secret on the terminal. */
#ifndef SLIPWAY_CLI_PROMPT_H
#define SLIPWAY_CLI_PROMPT_H

#include <stdbool.h>

#include "core/arena.h"

/* Reads a line from the terminal without echo; ERR_METHOD if there is no
 * terminal. */
MUSTCHECK const struct err *prompt_secret(struct arena *, const char *what,
    const char **out);

/* Asks a question on the terminal, to which "yes" is the only consent;
 * ERR_METHOD if there is no terminal. */
MUSTCHECK const struct err *prompt_confirm(struct arena *, const char *question,
    bool *out);

/* Reads all of a file, without a line end at its end; "-" is standard input,
 * /dev/fd/N an open descriptor. */
MUSTCHECK const struct err *prompt_file(struct arena *, const char *path,
    size_t max, const char **out);

#endif
