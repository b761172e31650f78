/* SPDX-License-Identifier: ISC */
/*
 * Form fields of a project (envPresets), and the deployments that a push starts
 * (triggers). Both are stored as JSON text in the project's row.
 */
#ifndef SLIPWAY_STORE_PRESET_H
#define SLIPWAY_STORE_PRESET_H

#include "core/field.h"

#define PRESET_BYTES_MAX ((size_t)1 << 20) /* of both together */

struct preset_option {
	const char *label;
	const char *value;
};

/* A sealed value: the service can copy but not read it. */
struct sealed {
	const char *text; /* NULL = none */
	size_t len;       /* length of the plain value */
};

struct preset {
	const char *key;
	const char *label;
	const char *type;    /* select, multiselect, input */
	struct list options; /* struct preset_option */
	bool required;
	const char *fallback; /* "default" in JSON; a secret one is stored
			       * sealed beside the project and is NULL here */
	const char *description;
	const char *pattern;
	bool secret;
	struct sealed sealed; /* its default, set only by the API */
};

struct trigger_path {
	const char *pattern;
};

struct trigger {
	const char *branch; /* a pattern; NULL = tags */
	const char *tag;    /* the same; NULL = branches */
	int64_t pipeline_id;
	struct maybe environment_id;
	struct map env_vars; /* secret values are null */
	struct list paths;   /* struct trigger_path; none = any file */
	bool supersede;      /* newer pushes cancel older pending ones */
};

extern const struct shape preset_option_shape;
extern const struct shape preset_shape;
extern const struct shape trigger_path_shape;
extern const struct shape trigger_shape;

/* Checks a value: not empty if required, among the options, matched by the
 * pattern. */
void preset_check_value(const struct preset *, const char *value,
    const char *at, struct faults *);
/* The preset with that key; NULL if there is none. */
const struct preset *preset_find(const struct list *presets, const char *key);
/* Checks that a project fits into one response, and a change of it into
 * memory. */
void preset_sizes_check(struct json_text presets, struct json_text triggers,
    const char *pointer, struct faults *);
/* The checks that are possible for a sealed value. */
void preset_check_sealed(const struct preset *, struct sealed, const char *at,
    struct faults *);

#endif
