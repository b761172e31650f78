/* SPDX-License-Identifier: ISC */
/*
 * Whether this runner is sick: it cannot start deployments, whichever they are.
 *
 * It claims nothing until a probe has succeeded (probes.c).  The first probe
 * comes at once, others after growing pauses, which end when a deployment has
 * run.
 */
#ifndef SLIPWAY_DISPATCH_SICK_H
#define SLIPWAY_DISPATCH_SICK_H

#include <stdbool.h>
#include <stdint.h>

#define SICK_WHY 400

/* Times are monotonic milliseconds. */
struct sick {
	int64_t since;   /* 0 = it is well */
	int64_t at;      /* of the next probe */
	int64_t pause;   /* before it; 0 = a deployment has run since */
	int64_t project; /* whose deployment the disk failed last, 0 = none */
	bool is_asked;   /* the monitor probes */
	bool is_told;    /* the database has its present state */
	char why[SICK_WHY];
};

/* Something failed that every deployment needs. */
void sick_report(struct sick *, const char *why);
/* The disk failed a deployment of that project.  The pause does not grow if it is
 * the same project again: what it needs may be too large for a disk on which all
 * others have room. */
void sick_suspect(struct sick *, int64_t project, const char *why);
/* A probe has succeeded. */
void sick_recover(struct sick *);
/* A deployment has run. */
void sick_over(struct sick *);

#endif
