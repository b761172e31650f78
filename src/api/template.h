/* SPDX-License-Identifier: ISC */
/* Pipeline templates: folders NAME/template.json and shell files, read once
 * before the workers are forked. */
#ifndef SLIPWAY_API_TEMPLATE_H
#define SLIPWAY_API_TEMPLATE_H

#include "core/field.h"
#include "core/settings.h"

struct template_step {
	const char *name;
	const char *file; /* in the folder; not in responses */
	const char *script;
	const char *directory; /* NULL = the root of the workspace */
	const char *run_when;
	bool may_fail;
	struct maybe timeout_seconds;
};

struct template
{
	const char *id; /* name of the folder */
	const char *name;
	const char *description;
	const char *checkout; /* one of pipeline_checkouts */
	struct json_text env_presets;
	struct list steps; /* struct template_step */
};

extern const struct shape template_shape;

/* Reads the folders of api.templates again. If two templates have one name, the
 * later one wins. An invalid template is logged and ignored. */
void template_load(const struct settings *);
/* All templates, ordered by id. */
const struct list *template_all(void);
/* Returns NULL if the id is unknown. */
const struct template *template_find(const char *id);

#endif
