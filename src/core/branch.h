/* SPDX-License-Identifier: ISC */
/* Names of branches: one rule for the API, lists, push events and checkouts. */
#ifndef SLIPWAY_CORE_BRANCH_H
#define SLIPWAY_CORE_BRANCH_H

#define BRANCH_MAX 255 /* characters */

/* NULL if a branch may have that name, else what is wrong with it.  The rule is
 * git's (git-check-ref-format(1), with --branch): a name with a leading dash
 * can be stored in a repository, but reads as an option wherever a script
 * passes it on. */
const char *branch_fault(const char *name);

#endif
