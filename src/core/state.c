/* SPDX-License-Identifier: ISC */
#include "core/state.h"

#include "core/str.h"

const struct commit_kind commit_kinds[COMMIT__MAX] = {
#define X(id, called, says) [id] = { .name = (called), .text = (says) },
	STATE_COMMITS(X)
#undef X
};

const struct state_kind state_kinds[STATE__MAX] = {
#define X(id, called, final, says)                                             \
	[id] = { .name = (called), .text = (says), .is_final = (final) },
	STATE_TABLE(X, X)
#undef X
};

const struct reason_kind reason_kinds[REASON__MAX] = {
	[REASON_NONE] = { .ends = STATE_SUCCESS, .commit = COMMIT_SUCCESS },
#define X(id, called, end, status, says, before)                               \
	[id] = { .name = (called),                                             \
		.text = (says),                                                \
		.unstarted = (before),                                         \
		.ends = (end),                                                 \
		.commit = (status) },
	STATE_REASONS(X)
#undef X
};

#define NAME(id, called, ...) called,
#define NO_NAME(...)
const char *const state_deployments[] = { STATE_TABLE(NAME, NO_NAME) NULL };
const char *const state_steps[] = { STATE_TABLE(NAME, NAME) NULL };
const char *const state_reasons[] = { STATE_REASONS(NAME) NULL };

enum state
state_find(const char *name)
{
	enum state s;

	for (s = 0; s < STATE__MAX; s++)
		if (str_eq(state_kinds[s].name, name))
			break;
	return s;
}

enum reason
state_reason(const char *name)
{
	enum reason r;

	for (r = 0; r < REASON__MAX; r++)
		if (str_eq(reason_kinds[r].name, name))
			break;
	return r;
}

enum commit_state
state_commit(const char *name)
{
	enum commit_state s;

	for (s = 0; s < COMMIT__MAX; s++)
		if (str_eq(commit_kinds[s].name, name))
			break;
	return s;
}

const char *
state_unstarted(enum reason reason)
{
	const struct reason_kind *why = &reason_kinds[reason];

	return why->unstarted != NULL ? why->unstarted : why->text;
}

const char *
state_describe(enum commit_state state, enum reason reason)
{
	if ((state == COMMIT_FAILED || state == COMMIT_ERROR ||
		state == COMMIT_SKIPPED) &&
	    reason != REASON_NONE && reason < REASON__MAX)
		return reason_kinds[reason].text;
	return commit_kinds[state].text;
}
