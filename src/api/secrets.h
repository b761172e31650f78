/* SPDX-License-Identifier: ISC */
/*
 * Secret values that a project keeps: defaults of its presets, and variables
 * of its triggers.  They are sealed beside the project, whose JSON has null in
 * their places; null that comes in keeps what is there.
 */
#ifndef SLIPWAY_API_SECRETS_H
#define SLIPWAY_API_SECRETS_H

#include "api/req.h"
#include "store/project.h"

#define SECRETS_MAX ((size_t)256 * 1024) /* bytes of either kind */
#define SECRETS_COUNT 5000

/* What is taken out of a project that is written. */
struct secrets {
	struct list defaults; /* struct json_pair */
	struct list hidden;   /* the same, of triggers */
	bool stored;          /* the project has had some */
};

/* Holds defaults and triggers against the presets, completed by what is
 * stored.  Adds a fault for each null that stands for nothing, and for a
 * stored value whose preset has another pattern by now.  ERR_UNAVAILABLE if
 * there is no key to open it with. */
MUSTCHECK const struct err *secrets_judge(struct req *, const struct project *);
/* Of what was judged good: the secrets, and the project's JSON without them,
 * in the arena. */
MUSTCHECK const struct err *secrets_take(struct req *, struct arena *,
    struct project *, struct secrets *out);
/* Stores them, with the project's row held.  ERR_UNAVAILABLE if there is no
 * key to seal with. */
MUSTCHECK const struct err *secrets_save(struct req *, struct arena *,
    const struct secrets *, int64_t project_id);

/* Fills in secret defaults of a project's presets. */
MUSTCHECK const struct err *secrets_presets(struct req *, struct arena *,
    int64_t project_id, struct list *presets);
/* envVars of the trigger at `index`, with its secrets. */
MUSTCHECK const struct err *secrets_trigger(struct req *, struct arena *,
    int64_t project_id, const struct list *triggers, size_t index,
    struct json_text *out);

/* Pairs as the text of an object, and that sealed; none become no data. */
MUSTCHECK const struct err *secrets_text(struct arena *,
    const struct list *pairs, const char **out);
MUSTCHECK const struct err *secrets_seal(struct req *, struct arena *,
    const char *purpose, const struct list *pairs, struct blob *out);

#endif
