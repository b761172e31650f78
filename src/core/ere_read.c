/* SPDX-License-Identifier: ISC */
#include "core/ere_read.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/err.h"
#include "core/utf8.h"

#define STRAY_BYTE 0x110000u /* the first number beyond Unicode */
#define DEPTH_MAX 100        /* nested groups */

struct reader {
	struct ere_tree *tree;
	const char *at;
	unsigned depth;
	const char *fault; /* NULL = none; only the first one is recorded */
};

static char fault_text[160];

PRINTFLIKE(2, 3)
static void
fault(struct reader *r, const char *fmt, ...)
{
	va_list ap;

	if (r->fault != NULL)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(fault_text, sizeof(fault_text), fmt, ap);
	va_end(ap);
	r->fault = fault_text;
}

uint32_t
ere_char(const char **s)
{
	static const unsigned char lead[] = { 0, 0xff, 0x1f, 0x0f, 0x07 };
	const unsigned char *p = (const unsigned char *)*s;
	size_t len = 1, i;
	uint32_t c = *p;

	if (c >= 0xc0)
		len = c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
	if (c >= 0x80 &&
	    (strnlen(*s, len) < len || !utf8_valid(*s, len) || len == 1)) {
		(*s)++;
		return STRAY_BYTE + c;
	}
	for (c &= lead[len], i = 1; i < len; i++)
		c = c << 6 | (p[i] & 0x3fu);
	*s += len;
	return c;
}

/* Number of states that a node compiles to, as consecutive states.  A number
 * too large to represent is rejected before it overflows. */
static size_t
states_of(const struct ere_tree *t, const struct ere_node *n)
{
	size_t left = t->node[n->left].states;

	switch (n->kind) {
	case ERE_BOTH:
		return left + t->node[n->right].states;
	case ERE_EITHER:
		return left + t->node[n->right].states + 2;
	case ERE_REPEAT:
		if (n->most == 0)
			return 1;
		if (n->most != ERE_FOREVER)
			return n->most * left + (n->most - n->least);
		return n->least == 0 ? left + 2 : n->least * left + 1;
	case ERE_EMPTY:
	case ERE_CHAR:
	case ERE_ANY:
	case ERE_SET:
	case ERE_BEGIN:
	case ERE_END:
		break;
	}
	return 1;
}

/* Adds a node; returns its index, or 0 after a fault. */
static size_t
node_add(struct reader *r, const struct ere_node *n)
{
	struct ere_tree *t = r->tree;
	struct ere_node *to = &t->node[t->nodes];

	if (t->nodes == ERE_NODES_MAX) {
		fault(r, "is too long: write a shorter pattern");
		return 0;
	}
	*to = *n;
	to->states = states_of(t, n);
	if (to->states > ERE_STATES_MAX) {
		fault(r,
		    "repeats too much: with all repetitions expanded, it "
		    "may have %d characters; use smaller numbers in { }",
		    ERE_STATES_MAX);
		return 0;
	}
	return t->nodes++;
}

static size_t
leaf_add(struct reader *r, enum ere_kind kind, uint32_t value)
{
	const struct ere_node n = { .kind = kind, .value = value };

	return node_add(r, &n);
}

static size_t
pair_add(struct reader *r, enum ere_kind kind, size_t left, size_t right)
{
	const struct ere_node n = { .kind = kind,
		.left = left,
		.right = right };

	return node_add(r, &n);
}

/* What letters after a backslash mean in other dialects. */
static const struct {
	char letter;
	const char *instead;   /* in a pattern */
	const char *in_braces; /* in a bracket expression; NULL = not
			        * possible */
} escapes[] = {
	{ 'd', "[0-9]", "0-9" },
	{ 'D', "[^0-9]", NULL },
	{ 'w', "[A-Za-z0-9_]", "A-Za-z0-9_" },
	{ 'W', "[^A-Za-z0-9_]", NULL },
	{ 's', "[[:space:]]", "[:space:]" },
	{ 'S', "[^[:space:]]", NULL },
	{ 'h', "[[:blank:]]", "[:blank:]" },
	{ 'n', "the line feed itself", "the line feed itself" },
	{ 'r', "the carriage return itself", "the carriage return itself" },
	{ 't', "the tab itself", "the tab itself" },
};

static bool
is_word(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
	    (c >= 'a' && c <= 'z');
}

static void
escape_fault(struct reader *r, char c)
{
	size_t i;

	if (c == '\0')
		fault(r, "ends with a backslash: write \\\\ for the character");
	if (c >= '1' && c <= '9')
		fault(r, "must not contain a back reference such as \\%c", c);
	if (c != '\0' && strchr("AzZ`'", c) != NULL)
		fault(r,
		    "has \\%c, which POSIX does not know: leave it out, the "
		    "whole value has to match anyway",
		    c);
	if (c != '\0' && strchr("bB<>", c) != NULL)
		fault(r,
		    "has \\%c, but POSIX has no word boundaries: write which "
		    "characters may be there, such as [^[:alnum:]_]",
		    c);
	for (i = 0; i < sizeof(escapes) / sizeof(escapes[0]); i++)
		if (escapes[i].letter == c)
			fault(r,
			    "has \\%c, which POSIX does not know: write %s", c,
			    escapes[i].instead);
	fault(r, "has \\%c, which POSIX does not know: write %c for the letter",
	    c, c);
}

static size_t
escape_read(struct reader *r)
{
	char c = *++r->at;

	if (c == '\0' || is_word(c) || strchr("`'<>", c) != NULL) {
		escape_fault(r, c);
		return 0;
	}
	return leaf_add(r, ERE_CHAR, ere_char(&r->at));
}

static void
range_add(struct reader *r, uint32_t first, uint32_t last)
{
	struct ere_tree *t = r->tree;

	if (first > last)
		fault(r, "has a range whose end comes before its beginning");
	else if (t->ranges == ERE_BYTES_MAX)
		fault(r, "is too long: write a shorter pattern");
	else
		t->range[t->ranges++] = (struct ere_range){ first, last };
}

/* Reads "[:alpha:]" at r->at. */
static void
class_read(struct reader *r)
{
	static const struct {
		const char *name;
		struct ere_range range[4];
	} classes[] = {
		{ "alnum", { { '0', '9' }, { 'A', 'Z' }, { 'a', 'z' } } },
		{ "alpha", { { 'A', 'Z' }, { 'a', 'z' } } },
		{ "blank", { { '\t', '\t' }, { ' ', ' ' } } },
		{ "cntrl", { { 1, 0x1f }, { 0x7f, 0x7f } } },
		{ "digit", { { '0', '9' } } },
		{ "graph", { { '!', '~' } } },
		{ "lower", { { 'a', 'z' } } },
		{ "print", { { ' ', '~' } } },
		{ "punct",
		    { { '!', '/' }, { ':', '@' }, { '[', '`' },
			{ '{', '~' } } },
		{ "space", { { '\t', '\r' }, { ' ', ' ' } } },
		{ "upper", { { 'A', 'Z' } } },
		{ "xdigit", { { '0', '9' }, { 'A', 'F' }, { 'a', 'f' } } },
	};
	const char *name = r->at + 2;
	size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz"), i, k;

	for (i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
		if (strlen(classes[i].name) != len ||
		    strncmp(classes[i].name, name, len) != 0 ||
		    name[len] != ':' || name[len + 1] != ']')
			continue;
		for (k = 0; k < 4 && classes[i].range[k].last != 0; k++)
			range_add(r, classes[i].range[k].first,
			    classes[i].range[k].last);
		r->at = name + len + 2;
		return;
	}
	fault(r,
	    "has [:%.*s, which is not a character class such as "
	    "[:alnum:]",
	    (int)(len > 20 ? 20 : len), name);
}

/* Reads a character, [.x.] or [=x=]. */
static uint32_t
element_read(struct reader *r)
{
	const char kind = r->at[1];
	const char *s = r->at;
	uint32_t c = 0;

	if (*s == '[' && kind == ':')
		fault(r, "has a range that ends in a character class");
	if (*s != '[' || (kind != '.' && kind != '='))
		return ere_char(&r->at);
	s += 2;
	if (*s != '\0')
		c = ere_char(&s);
	if (c == 0 || s[0] != kind || s[1] != ']')
		fault(r, "has [%c with more than one character in it", kind);
	else
		r->at = s + 2;
	return c;
}

/* In a bracket expression a backslash is an ordinary character.  Rejects one
 * that is probably meant as an escape; two together are probably meant as
 * backslashes. */
static void
backslash_check(struct reader *r)
{
	const char c = r->at[1];
	size_t i;

	if (c == '\\') {
		r->at++;
		return;
	}
	if (!is_word(c))
		return;
	for (i = 0; i < sizeof(escapes) / sizeof(escapes[0]); i++)
		if (escapes[i].letter == c && escapes[i].in_braces != NULL)
			fault(r,
			    "has \\%c in [ ], which takes a backslash "
			    "literally: write %s",
			    c, escapes[i].in_braces);
	fault(r,
	    "has \\%c in [ ], which takes a backslash literally: if that is "
	    "meant, write \\\\%c",
	    c, c);
}

/* Reads what is between the brackets, up to the closing one. */
static void
members_read(struct reader *r)
{
	const char *begin = r->at;
	uint32_t first, last;

	while (r->fault == NULL && (*r->at != ']' || r->at == begin)) {
		if (*r->at == '\0') {
			fault(r, "has a [ without its ]");
			return;
		}
		if (*r->at == '\\')
			backslash_check(r);
		if (r->at[0] == '[' && r->at[1] == ':') {
			class_read(r);
			continue;
		}
		first = last = element_read(r);
		if (r->at[0] == '-' && r->at[1] != ']' && r->at[1] != '\0') {
			r->at++;
			last = element_read(r);
		}
		range_add(r, first, last);
	}
}

static size_t
bracket_read(struct reader *r)
{
	struct ere_tree *t = r->tree;
	struct ere_set s = { .first = t->ranges };

	r->at++;
	if (*r->at == '^') {
		s.negated = true;
		r->at++;
	}
	members_read(r);
	if (r->fault != NULL)
		return 0;
	r->at++;
	s.end = t->ranges;
	t->set[t->sets] = s; /* fewer sets than the pattern has bytes */
	return leaf_add(r, ERE_SET, (uint32_t)t->sets++);
}

static size_t either_read(struct reader *r);

static size_t
group_read(struct reader *r)
{
	size_t n;

	if (r->at[1] == '?') {
		fault(r,
		    "has (?, which POSIX does not know: write ( for a "
		    "group");
		return 0;
	}
	if (r->depth++ == DEPTH_MAX) {
		fault(r, "nests groups more than %d deep", DEPTH_MAX);
		return 0;
	}
	r->at++;
	n = either_read(r);
	if (r->fault == NULL && *r->at != ')')
		fault(r, "has a ( without its )");
	if (r->fault == NULL)
		r->at++;
	r->depth--;
	return n;
}

static size_t
atom_read(struct reader *r)
{
	switch (*r->at) {
	case '(':
		return group_read(r);
	case '[':
		return bracket_read(r);
	case '\\':
		return escape_read(r);
	case '.':
		r->at++;
		return leaf_add(r, ERE_ANY, 0);
	case '^':
		r->at++;
		return leaf_add(r, ERE_BEGIN, 0);
	case '$':
		r->at++;
		return leaf_add(r, ERE_END, 0);
	default:
		return leaf_add(r, ERE_CHAR, ere_char(&r->at));
	}
}

/* Reads the digits at r->at; false if there are none. */
static bool
number_read(struct reader *r, uint32_t *out)
{
	const char *begin = r->at;

	for (*out = 0; *r->at >= '0' && *r->at <= '9'; r->at++)
		if (*out <= ERE_STATES_MAX)
			*out = *out * 10 + (uint32_t)(*r->at - '0');
	if (*out > ERE_STATES_MAX)
		fault(r, "repeats more than %d times", ERE_STATES_MAX);
	return r->at > begin;
}

/* Reads "{m}", "{m,}" or "{m,n}" at r->at. */
static void
braces_read(struct reader *r, struct ere_node *n)
{
	r->at++;
	if (!number_read(r, &n->least)) {
		fault(r,
		    "has a { without a number: write \\{ for the "
		    "character, {0,n} for up to n times");
		return;
	}
	n->most = n->least;
	if (*r->at == ',') {
		r->at++;
		if (!number_read(r, &n->most))
			n->most = ERE_FOREVER;
	}
	if (*r->at != '}') {
		fault(r, "has a { without its }: write \\{ for the character");
		return;
	}
	if (n->least > n->most)
		fault(r,
		    "repeats from %u to %u times: the smaller number must "
		    "come first",
		    (unsigned)n->least, (unsigned)n->most);
	r->at++;
}

/* Wraps the node `what` in the repetition that follows it, if there is one. */
static size_t
repeat_read(struct reader *r, size_t what)
{
	struct ere_node n = { .kind = ERE_REPEAT,
		.left = what,
		.most = ERE_FOREVER };
	char c = *r->at;

	if (c == '{') {
		braces_read(r, &n);
	} else {
		n.least = c == '+' ? 1 : 0;
		n.most = c == '?' ? 1 : ERE_FOREVER;
		r->at++;
	}
	if (*r->at != '\0' && strchr("*+?{", *r->at) != NULL)
		fault(r,
		    "has %c right after a repetition, which POSIX does not "
		    "know: leave it out, or write the repetition as a group",
		    *r->at);
	return r->fault == NULL ? node_add(r, &n) : 0;
}

static size_t
both_read(struct reader *r)
{
	size_t all = leaf_add(r, ERE_EMPTY, 0), one;
	bool any = false, anchor;

	while (r->fault == NULL && *r->at != '\0' && *r->at != '|' &&
	    (*r->at != ')' || r->depth == 0)) {
		if (*r->at == ')') {
			fault(r,
			    "has a ) without its (: write \\) for the "
			    "character");
			break;
		}
		if (strchr("*+?{", *r->at) != NULL) {
			fault(r,
			    "has nothing before %c to repeat: "
			    "write \\%c for the character",
			    *r->at, *r->at);
			break;
		}
		anchor = *r->at == '^';
		one = atom_read(r);
		if (r->fault == NULL && !anchor && *r->at != '\0' &&
		    strchr("*+?{", *r->at) != NULL)
			one = repeat_read(r, one);
		all = any ? pair_add(r, ERE_BOTH, all, one) : one;
		any = true;
	}
	return all;
}

static size_t
either_read(struct reader *r)
{
	size_t all = both_read(r), one;

	while (r->fault == NULL && *r->at == '|') {
		r->at++;
		one = both_read(r);
		all = pair_add(r, ERE_EITHER, all, one);
	}
	return all;
}

const char *
ere_read(const char *ere, struct ere_tree *out)
{
	struct reader r = { .tree = out, .at = ere };

	out->nodes = out->ranges = out->sets = 0;
	out->root = 0;
	if (strlen(ere) > ERE_BYTES_MAX) {
		fault(&r, "is longer than %d bytes", ERE_BYTES_MAX);
		return r.fault;
	}
	out->root = either_read(&r);
	return r.fault;
}
