/* SPDX-License-Identifier: ISC */
/*
 * The faults of one input, collected so that the response reports all of them.
 * Pointers are JSON Pointers (RFC 6901) into the body.
 */
#ifndef SLIPWAY_CORE_FAULT_H
#define SLIPWAY_CORE_FAULT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/arena.h"

#define FAULTS_MAX 100 /* later ones are only counted */

struct fault {
	const char *pointer;
	const char *detail; /* says what to do */
};

struct faults {
	struct arena *a;
	struct fault item[FAULTS_MAX];
	size_t n;         /* all of them, stored or not */
	size_t conflicts; /* those that faults_conflict added */
	size_t work;      /* that patterns have taken so far */
};

/* The arena must outlive the list. */
void faults_init(struct faults *, struct arena *);
/* Empties the list to check the same input again: the work of patterns has one
 * budget for all times. */
void faults_again(struct faults *, struct arena *);
/* `pointer` is copied. */
void faults_add(struct faults *, const char *pointer, const char *fmt, ...)
    PRINTFLIKE(3, 4);
/* Adds a fault of a valid input that conflicts with another object or with the
 * current state. */
void faults_conflict(struct faults *, const char *pointer, const char *fmt, ...)
    PRINTFLIKE(3, 4);
/* Adds what was added to a copy of the list since the copy was made.  The copy
 * may use another arena. */
void faults_take(struct faults *, const struct faults *copy);
/* Whether a stored fault is at the pointer or below it. */
bool faults_has(const struct faults *, const char *pointer);
/* Whether one is at exactly this pointer, so that the whole value could not be
 * read. */
bool faults_at(const struct faults *, const char *pointer);
/* pointer + "/" + name, with ~ and / in the name escaped; in the arena. */
const char *fault_pointer(struct faults *, const char *base, const char *name);
const char *fault_index(struct faults *, const char *base, size_t index);
/* NULL if there are no faults, ERR_CONFLICT if all are conflicts, else
 * ERR_INVALID.  The error quotes the first fault. */
MUSTCHECK const struct err *faults_check(const struct faults *);

#endif
