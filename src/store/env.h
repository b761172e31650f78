/* SPDX-License-Identifier: ISC */
/* Validates the variables of a deployment against the rules of its project. */
#ifndef SLIPWAY_STORE_ENV_H
#define SLIPWAY_STORE_ENV_H

#include "store/env_name.h"
#include "store/preset.h"

#define ENV_VALUE_MAX ((size_t)64 * 1024)
#define ENV_TOTAL_MAX ((size_t)512 * 1024) /* names and values together */
#define ENV_COUNT_MAX 1000

/* The purpose for which a secret variable is sealed: id of the project, name of
 * the variable. */
#define ENV_PURPOSE "project %lld, variable %s"

struct env_var {
	const char *name;
	const char *value;    /* NULL if only the sealed value is known */
	struct sealed sealed; /* that value */
	bool secret;          /* its preset is secret */
};

/* The variable with this value makes a deployment a dry run, in which the steps
 * of the installed templates change nothing. */
#define ENV_DRY_RUN "DRY_RUN"
#define ENV_DRY_RUN_YES "yes"

/* Values of a project's extraEnv: who may set variables that no preset
 * names. */
#define ENV_EXTRA_NOBODY "nobody"
#define ENV_EXTRA_MAINTAINERS "maintainers" /* the default */
#define ENV_EXTRA_DEPLOYERS "deployers"
extern const char *const env_extra_values[]; /* ends with NULL */

/* The rules of a project. */
struct env_rules {
	const struct list *presets; /* struct preset */
	const struct list *base;    /* struct env_var that apply unless they are
				  * given; NULL = none */
	const char *rejection; /* why other variables are rejected; NULL = they
			      * are accepted */
	const char *steering;  /* why those of them are rejected that steer
			      * programs; NULL = they are accepted */
};

/* Checks names and sizes only; adds faults below the pointer. */
void env_check_names(const struct list *vars, const char *pointer,
    struct faults *);
/* Checks `given` (struct env_var) against the rules. `out` gets the given
 * variables, in order, then those of the base that were not given, then the
 * defaults of presets that neither has. Of the base, only those that presets
 * require are checked; a variable that is secret there is secret. */
void env_check(const struct env_rules *, const struct list *given,
    const char *pointer, struct faults *, struct list *out);

#endif
