/* SPDX-License-Identifier: ISC */
/*
 * What a client asks for when it deploys a project (envPresets), and what a
 * push starts (triggers).  Both are kept as JSON text in the project's row.
 */
#ifndef SLIPWAY_STORE_PRESET_H
#define SLIPWAY_STORE_PRESET_H

#include "core/field.h"

#define PRESET_BYTES_MAX ((size_t)1 << 20) /* of both together */

struct preset_option {
	const char *label;
	const char *value;
};

/* A value as it is stored, which can be copied but not read. */
struct sealed {
	const char *text; /* NULL = none */
	size_t len;       /* of the value that is in it */
};

struct preset {
	const char *key;
	const char *label;
	const char *type;    /* select, multiselect, input */
	struct list options; /* struct preset_option */
	bool required;
	const char *fallback; /* "default" outside; a secret one is kept sealed
			       * beside the project and is NULL here */
	const char *description;
	const char *pattern;
	bool secret;
	struct sealed sealed; /* its default, filled in by the API alone */
};

struct trigger {
	const char *branch; /* a glob */
	int64_t pipeline_id;
	struct map env_vars; /* secrets are null, likewise */
};

extern const struct shape preset_option_shape;
extern const struct shape preset_shape;
extern const struct shape trigger_shape;

/* What no entry alone can say: options that fit the type, a pattern that
 * compiles, a default that is one of the options, a name that may be set. */
void preset_check(const void *item, const char *pointer, struct faults *);
/* A value for it: required ones are not empty, choices are among the options,
 * the pattern matches whole. */
void preset_check_value(const struct preset *, const char *value,
    const char *at, struct faults *);
/* That a project fits into one answer, and a change of it into memory. */
void preset_sizes_check(struct json_text presets, struct json_text triggers,
    const char *pointer, struct faults *);
/* The little that can be said of one that is sealed. */
void preset_check_sealed(const struct preset *, struct sealed, const char *at,
    struct faults *);
void trigger_check(const void *item, const char *pointer, struct faults *);

#endif
