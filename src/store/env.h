/* SPDX-License-Identifier: ISC */
/* The variables that a deployment sets, held against what its project asks
 * for. */
#ifndef SLIPWAY_STORE_ENV_H
#define SLIPWAY_STORE_ENV_H

#include "store/preset.h"

#define ENV_NAME_ERE "[A-Za-z_][A-Za-z0-9_]{0,127}"
#define ENV_VALUE_MAX ((size_t)64 * 1024)
#define ENV_TOTAL_MAX ((size_t)512 * 1024) /* names and values together */
#define ENV_COUNT_MAX 1000

/* What the sealed value of a secret variable is bound to: number of the
 * project, name of the variable. */
#define ENV_PURPOSE "project %lld, variable %s"

struct env_var {
	const char *name;
	const char *value;    /* NULL where it is known sealed only */
	struct sealed sealed; /* then this is it */
	bool secret;          /* of a preset that says so */
};

/* Values of a project's extraEnv: who may set variables beside the presets. */
#define ENV_EXTRA_NOBODY "nobody"
#define ENV_EXTRA_MAINTAINERS "maintainers" /* the default */
#define ENV_EXTRA_DEPLOYERS "deployers"
extern const char *const env_extra_values[]; /* ends with NULL */

/* What a project demands. */
struct env_rules {
	const struct list *presets; /* struct preset */
	const char *refusal; /* why others are rejected; NULL = they are not */
};

/* What is wrong with a variable's name: its form, or that it steers the shell,
 * the loader, git or this service. NULL if nothing is. */
const char *env_name_fault(const char *name);
/* Names and sizes alone; faults are added below the pointer. */
void env_check_names(const struct list *vars, const char *pointer,
    struct faults *);
/* All of it: `given` (struct env_var) against the rules.  `out` holds the
 * variables given, in their order, then the defaults of presets that were left
 * out. */
void env_check(const struct env_rules *, const struct list *given,
    const char *pointer, struct faults *, struct list *out);

#endif
