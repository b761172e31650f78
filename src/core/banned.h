/* SPDX-License-Identifier: ISC */
/*
 * Poisons functions that are too easy to misuse.  The compiler's command line
 * includes this file before every source (-include). t/0100-tree.t checks what
 * cannot be poisoned here: the malloc family (core/arena.c only), strtol
 * (core/num.c only) and signal, which is also the name of members.
 */
#ifndef SLIPWAY_CORE_BANNED_H
#define SLIPWAY_CORE_BANNED_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* With clang the fortified versions are macros. */
#undef sprintf
#undef vsprintf
/* clang-format off */
#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf
#pragma GCC poison strtok strtok_r gets mktemp tmpnam
#pragma GCC poison atoi atol atoll gmtime localtime ctime asctime
#pragma GCC poison system popen
/* clang-format on */

#endif
