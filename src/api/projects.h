/* SPDX-License-Identifier: ISC */
/* The rules for requests that change a project, and changes by routes of other
 * resources. */
#ifndef SLIPWAY_API_PROJECTS_H
#define SLIPWAY_API_PROJECTS_H

#include "store/project.h"
#include "web/req.h"

#define PROJECT_MAX ((size_t)7 << 20) /* for an arena that holds triggers */

/* The judge of the routes that create or change a project (struct project). */
MUSTCHECK const struct err *project_request_judge(struct req *,
    const void *item);
/* Whether the update sets the repository, or confirms it by sending it alone;
 * the other one, the list of repositories for submodules. */
bool project_is_set(const struct req *, const struct project *,
    const char *before);
bool project_is_list_set(const struct req *, const struct project *,
    const char *before);

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
