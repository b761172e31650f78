/* SPDX-License-Identifier: ISC */
#include "core/ere.h"

#include <assert.h>
#include <string.h>

#include "core/ere_read.h"

/* The pattern as a sequence of states, several of which are active at once
 * (Thompson's construction).  The text is read once; for each character, each
 * state is visited at most once. */
enum step {
	STEP_CHAR,
	STEP_ANY,
	STEP_SET,
	STEP_BEGIN,
	STEP_END,
	STEP_SPLIT, /* to the next state and to `to` */
	STEP_GOTO,
	STEP_MATCH,
};

/* Small, so that all states fit into the processor's first-level cache. */
struct state {
	uint32_t value; /* the character or the set */
	uint16_t to;
	uint8_t step;
};

struct places {
	uint16_t at[ERE_STATES_MAX + 1];
	size_t n;
};

/* A process has one thread, and each match ends before the next one begins. */
static struct ere_tree tree;
static struct state states[ERE_STATES_MAX + 1];
static size_t states_n;

static void
state_add(enum step step, uint32_t value, size_t to)
{
	assert(states_n <= ERE_STATES_MAX);
	states[states_n++] = (struct state){ .step = (uint8_t)step,
		.value = value,
		.to = (uint16_t)to };
}

static void emit(size_t place);

static void
emit_either(const struct ere_node *n)
{
	size_t left = tree.node[n->left].states;
	size_t right = tree.node[n->right].states;

	state_add(STEP_SPLIT, 0, states_n + left + 2);
	emit(n->left);
	state_add(STEP_GOTO, 0, states_n + right + 1);
	emit(n->right);
}

static void
emit_repeat(const struct ere_node *n)
{
	size_t begin = states_n, end = begin + n->states;
	uint32_t i;

	if (n->most == 0) {
		state_add(STEP_GOTO, 0, end);
		return;
	}
	if (n->most == ERE_FOREVER && n->least == 0) {
		state_add(STEP_SPLIT, 0, end);
		emit(n->left);
		state_add(STEP_GOTO, 0, begin);
		return;
	}
	for (i = 0; i < n->least; i++) {
		begin = states_n;
		emit(n->left);
	}
	if (n->most == ERE_FOREVER)
		state_add(STEP_SPLIT, 0, begin);
	else
		for (; i < n->most; i++) {
			state_add(STEP_SPLIT, 0, end);
			emit(n->left);
		}
}

static void
emit(size_t place)
{
	const struct ere_node *n = &tree.node[place];

	switch (n->kind) {
	case ERE_EMPTY:
		state_add(STEP_GOTO, 0, states_n + 1);
		break;
	case ERE_CHAR:
		state_add(STEP_CHAR, n->value, 0);
		break;
	case ERE_ANY:
		state_add(STEP_ANY, 0, 0);
		break;
	case ERE_SET:
		state_add(STEP_SET, n->value, 0);
		break;
	case ERE_BEGIN:
		state_add(STEP_BEGIN, 0, 0);
		break;
	case ERE_END:
		state_add(STEP_END, 0, 0);
		break;
	case ERE_BOTH:
		emit(n->left);
		emit(n->right);
		break;
	case ERE_EITHER:
		emit_either(n);
		break;
	case ERE_REPEAT:
		emit_repeat(n);
		break;
	}
}

/* The character at which each state and set was last visited. */
static size_t visits; /* of states, in the match at hand */
static uint32_t now, state_seen[ERE_STATES_MAX + 1], set_seen[ERE_BYTES_MAX];
static bool set_has[ERE_BYTES_MAX];

static bool
set_matches(uint32_t which, uint32_t c)
{
	const struct ere_set *s = &tree.set[which];
	size_t i;

	if (set_seen[which] == now)
		return set_has[which];
	for (i = s->first; i < s->end; i++)
		if (c >= tree.range[i].first && c <= tree.range[i].last)
			break;
	set_seen[which] = now;
	set_has[which] = (i < s->end) != s->negated;
	return set_has[which];
}

/* Adds a state to the list of states to visit, at most once per character. */
static inline uint16_t *
todo_add(uint16_t *end, size_t place, uint32_t step)
{
	if (state_seen[place] == step)
		return end;
	state_seen[place] = step;
	*end = (uint16_t)place;
	return end + 1;
}

/* Adds the states reachable from this one without reading a character.  Returns
 * whether one of them is a match. */
static bool
reach(struct places *to, size_t place, bool at_begin, bool at_end)
{
	static uint16_t list[ERE_STATES_MAX + 1];
	uint16_t *end = todo_add(list, place, now);
	const struct state *s;
	bool match = false;

	while (end > list) {
		visits++;
		place = *--end;
		s = &states[place];
		switch ((enum step)s->step) {
		case STEP_CHAR:
		case STEP_ANY:
		case STEP_SET:
			to->at[to->n++] = (uint16_t)place;
			break;
		case STEP_BEGIN:
			if (at_begin)
				end = todo_add(end, place + 1, now);
			break;
		case STEP_END:
			if (at_end)
				end = todo_add(end, place + 1, now);
			break;
		case STEP_SPLIT:
			end = todo_add(end, place + 1, now);
			end = todo_add(end, s->to, now);
			break;
		case STEP_GOTO:
			end = todo_add(end, s->to, now);
			break;
		case STEP_MATCH:
			match = true;
			break;
		}
	}
	return match;
}

static bool
takes(const struct state *s, uint32_t c)
{
	if (s->step == STEP_SET)
		return set_matches(s->value, c);
	return s->step == STEP_ANY || s->value == c;
}

const char *
ere_fault(const char *ere)
{
	return ere_read(ere, &tree);
}

enum ere_result
ere_match_within(const char *ere, const char *s, size_t max, size_t *work)
{
	static struct places lists[2];
	struct places *from = &lists[0], *to = &lists[1], *swap;
	uint32_t c;
	bool match;
	size_t i;

	if (ere_read(ere, &tree) != NULL)
		return ERE_NONE;
	if (now > UINT32_MAX / 2) { /* before the counter wraps around */
		(void)memset(state_seen, 0, sizeof(state_seen));
		(void)memset(set_seen, 0, sizeof(set_seen));
		now = 0;
	}
	states_n = 0;
	emit(tree.root);
	state_add(STEP_MATCH, 0, 0);
	from->n = 0;
	visits = *work;
	now++;
	match = reach(from, 0, true, *s == '\0');
	while (*s != '\0' && from->n > 0 && visits < max) {
		c = ere_char(&s);
		to->n = 0;
		now++;
		match = false;
		visits += from->n;
		for (i = 0; i < from->n; i++)
			if (takes(&states[from->at[i]], c) &&
			    reach(to, from->at[i] + 1u, false, *s == '\0'))
				match = true;
		swap = from;
		from = to;
		to = swap;
	}
	*work = visits;
	if (*s != '\0' && from->n > 0)
		return ERE_UNDECIDED;
	return match && *s == '\0' ? ERE_MATCH : ERE_NONE;
}

bool
ere_matches(const char *ere, const char *s)
{
	size_t work = 0;

	return ere_match_within(ere, s, SIZE_MAX, &work) == ERE_MATCH;
}
