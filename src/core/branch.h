/* SPDX-License-Identifier: ISC */
/* Names of branches and tags: one rule for the API, lists, push events and
 * checkouts. */
#ifndef SLIPWAY_CORE_BRANCH_H
#define SLIPWAY_CORE_BRANCH_H

#define BRANCH_MAX 255 /* characters */

/* Returns NULL if the name of a branch or tag is valid, else what is wrong with it.  The
 * rule is git's (git-check-ref-format(1), with --branch).  A repository can
 * hold a name with a leading dash, but scripts would pass it on as an
 * option. */
const char *branch_fault(const char *name);

#endif
