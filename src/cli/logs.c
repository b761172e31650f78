/* SPDX-License-Identifier: ISC */
/* slipway logs. */
#include <stdio.h>

#include "cli/find.h"
#include "cli/follow.h"
#include "cli/slipway.h"
#include "core/num.h"
#include "core/str.h"

static bool
is_wanted(const struct logs_options *options, const struct deployment_step *s)
{
	int64_t position;

	if (options->failed)
		return str_eq(s->status, "failed");
	return str_eq(s->name, options->step) ||
	    (num_parse(options->step, 0, NUM_SAFE, &position) &&
		position == s->position);
}

/* Prints the output of the steps that the options name. */
static const struct err *
steps_print(struct client *c, const struct deployment *d,
    const struct http_response *r)
{
	const struct logs_options *options = c->call->options;
	const struct deployment_step *s;
	const struct err *e;
	struct list steps;
	size_t i, found = 0;

	if ((e = deployment_steps(c, r, &steps)) != NULL)
		return e;
	s = steps.items;
	for (i = 0; i < steps.n; i++) {
		if (!is_wanted(options, &s[i]))
			continue;
		found++;
		if ((e = follow_print(c, d->id, s[i].log_offset,
			 s[i].log_offset + s[i].log_length)) != NULL)
			return e;
	}
	if (found > 0 || options->failed)
		return NULL;
	return err_public(ERR_NOTFOUND,
	    "deployment %lld has no step \"%s\": \"slipway status %lld\" lists "
	    "its steps",
	    (long long)d->id, options->step, (long long)d->id);
}

const struct err *
slipway_logs(void *context, struct command_call *call)
{
	const struct logs_options *options = call->options;
	const bool steps = options->step != NULL || options->failed;
	struct client *c = context;
	struct http_response r;
	struct deployment d;
	int64_t id, from = options->offset;
	const struct err *e;

	if (steps && (options->follow || options->tail > 0 || from > 0))
		return err_public(ERR_METHOD,
		    "logs: --step and --failed print the output of steps that "
		    "ended, without --follow, --tail and --offset");
	if ((e = find_deployment(c, call->word[0], &id)) != NULL ||
	    (e = deployment_get(c, id, &d, &r)) != NULL)
		return e;
	if (steps)
		return steps_print(c, &d, &r);
	if (options->tail > 0 &&
	    (e = follow_tail(c, id, d.log_size, options->tail, &from)) != NULL)
		return e;
	if (options->follow)
		return slipway_follow(c, id, from);
	return follow_print(c, id, from, d.log_size);
}
