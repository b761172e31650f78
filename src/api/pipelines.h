/* SPDX-License-Identifier: ISC */
/* Creating a pipeline, for several routes. */
#ifndef SLIPWAY_API_PIPELINES_H
#define SLIPWAY_API_PIPELINES_H

#include "store/pipeline.h"
#include "web/req.h"

/* Stores the pipeline with its steps and responds with it, as POST
 * /api/pipelines does. The same transaction adds those presets to the project
 * whose keys it lacks; text NULL = none. */
MUSTCHECK const struct err *pipeline_make(struct req *, const struct pipeline *,
    struct json_text presets);

#endif
