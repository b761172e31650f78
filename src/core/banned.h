/* SPDX-License-Identifier: ISC */
/*
 * Functions that are too easy to misuse do not compile here.  Included before
 * every source by the compiler's command line (-include).  The malloc family
 * (core/arena.c only), strtol (core/num.c only) and signal, which is the name of
 * members too, are held by t/0100-tree.t.
 */
#ifndef SLIPWAY_CORE_BANNED_H
#define SLIPWAY_CORE_BANNED_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* With clang the fortified ones are macros. */
#undef sprintf
#undef vsprintf
/* clang-format off */
#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf
#pragma GCC poison strtok strtok_r gets mktemp tmpnam
#pragma GCC poison atoi atol atoll gmtime localtime ctime asctime
#pragma GCC poison system popen
/* clang-format on */

#endif
