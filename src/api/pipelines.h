/* SPDX-License-Identifier: ISC */
/* Making a pipeline, wherever it comes from. */
#ifndef SLIPWAY_API_PIPELINES_H
#define SLIPWAY_API_PIPELINES_H

#include "api/req.h"
#include "store/pipeline.h"

/* Stores it with its steps and answers with it, as its own route does.  In the
 * same transaction its project gets those of the presets whose keys it lacks;
 * text NULL = none. */
MUSTCHECK const struct err *pipeline_make(struct req *, const struct pipeline *,
    struct json_text presets);

#endif
