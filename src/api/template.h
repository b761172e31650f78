/* SPDX-License-Identifier: ISC */
/* Templates of pipelines: folders NAME/template.json with shell files beside
 * it, read once, before the workers are forked. */
#ifndef SLIPWAY_API_TEMPLATE_H
#define SLIPWAY_API_TEMPLATE_H

#include "core/field.h"
#include "core/settings.h"

struct template_step {
	const char *name;
	const char *file; /* in the folder; not in answers */
	const char *script;
	const char *run_when;
	struct maybe timeout_seconds;
};

struct template
{
	const char *id; /* name of the folder */
	const char *name;
	const char *description;
	struct json_text env_presets;
	struct list steps; /* struct template_step */
};

extern const struct shape template_shape;

/* Reads the folders of api.templates again; of two with one name the later
 * wins. One that is faulty is logged and left out. */
void template_load(const struct settings *);
/* All that were read, by id. */
const struct list *template_all(void);
/* NULL if there is none. */
const struct template *template_find(const char *id);

#endif
