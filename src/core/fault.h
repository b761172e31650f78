/* SPDX-License-Identifier: ISC */
/*
 * The faults of one input, collected so that all are reported at once.
 * Pointers are JSON Pointers (RFC 6901) into the body.
 */
#ifndef SLIPWAY_CORE_FAULT_H
#define SLIPWAY_CORE_FAULT_H

#include <stdbool.h>
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
	size_t n;         /* all, kept or not */
	size_t conflicts; /* those of them that others' state causes */
};

/* The arena must outlive the list. */
void faults_init(struct faults *, struct arena *);
/* `pointer` is copied. */
void faults_add(struct faults *, const char *pointer, const char *fmt, ...)
    PRINTFLIKE(3, 4);
/* What is wrong only because another has it, or because of how things stand. */
void faults_conflict(struct faults *, const char *pointer, const char *fmt, ...)
    PRINTFLIKE(3, 4);
/* Adds what was added to a copy of the list since it was made; the copy may
 * have another arena. */
void faults_take(struct faults *, const struct faults *copy);
/* Whether one of those kept is at the pointer or below it. */
bool faults_has(const struct faults *, const char *pointer);
/* Whether one is at the very pointer: the whole of it could not be read. */
bool faults_at(const struct faults *, const char *pointer);
/* pointer + "/" + name, with ~ and / of the name escaped; in the arena. */
const char *fault_pointer(struct faults *, const char *base, const char *name);
const char *fault_index(struct faults *, const char *base, size_t index);
/* NULL if there is none, ERR_CONFLICT if all are conflicts, else ERR_INVALID;
 * it names the first. */
MUSTCHECK const struct err *faults_check(const struct faults *);

#endif
