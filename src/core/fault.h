/* SPDX-License-Identifier: ISC */
/*
 * The faults of one input, collected so that all are reported at once.
 * Pointers are JSON Pointers (RFC 6901) into the body.
 */
#ifndef SLIPWAY_CORE_FAULT_H
#define SLIPWAY_CORE_FAULT_H

#include <stddef.h>

#include "core/arena.h"

#define FAULTS_MAX 100 /* later ones are counted, not kept */

struct fault {
	const char *pointer;
	const char *detail; /* what to do, for a person */
};

struct faults {
	struct arena *a;
	struct fault item[FAULTS_MAX];
	size_t n; /* all, kept or not */
};

/* The arena must outlive the list. */
void faults_init(struct faults *, struct arena *);
/* `pointer` is copied. */
void faults_add(struct faults *, const char *pointer, const char *fmt, ...)
    PRINTFLIKE(3, 4);
/* pointer + "/" + name, with ~ and / of the name escaped; in the arena. */
const char *fault_pointer(struct faults *, const char *base, const char *name);
const char *fault_index(struct faults *, const char *base, size_t index);
/* ERR_INVALID that names the first fault, NULL if there is none. */
MUSTCHECK const struct err *faults_check(const struct faults *);

#endif
