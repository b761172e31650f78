/* SPDX-License-Identifier: ISC */
/* Changes of a project that another resource's route makes. */
#ifndef SLIPWAY_API_PROJECTS_H
#define SLIPWAY_API_PROJECTS_H

#include "api/req.h"

/* Adds to the request's faults, at /presets, why the project cannot have these
 * envPresets besides its own.  A project that does not exist has no faults. */
MUSTCHECK const struct err *project_presets_judge(struct req *,
    int64_t project_id, struct json_text presets);
/* Inside a transaction, after the judge: adds the presets whose keys the
 * project lacks.  Without any, the project keeps its version. */
MUSTCHECK const struct err *project_presets_add(struct req *,
    int64_t project_id, struct json_text presets);
/* Inside a transaction: locks the project's row.  ERR_NOTFOUND. */
MUSTCHECK const struct err *project_presets_lock(struct req *,
    int64_t project_id);

#endif
