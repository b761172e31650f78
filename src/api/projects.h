/* SPDX-License-Identifier: ISC */
/* Changes of a project by routes of other resources. */
#ifndef SLIPWAY_API_PROJECTS_H
#define SLIPWAY_API_PROJECTS_H

#include "web/req.h"

/* Adds faults at /presets if these envPresets cannot be added to the project.
 * An unknown project has no faults here. */
MUSTCHECK const struct err *project_presets_judge(struct req *,
    int64_t project_id, struct json_text presets);
/* Inside a transaction, after the judge: adds the presets whose keys the
 * project lacks. If there are none, the project keeps its version. */
MUSTCHECK const struct err *project_presets_add(struct req *,
    int64_t project_id, struct json_text presets);
/* Inside a transaction: locks the project's row.  ERR_NOTFOUND. */
MUSTCHECK const struct err *project_presets_lock(struct req *,
    int64_t project_id);

#endif
