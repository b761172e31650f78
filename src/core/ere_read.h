/* SPDX-License-Identifier: ISC */
/* A pattern as a tree; shared by the source files of ere.h. */
#ifndef SLIPWAY_CORE_ERE_READ_H
#define SLIPWAY_CORE_ERE_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/ere_limits.h"

#define ERE_NODES_MAX ((size_t)3 * ERE_BYTES_MAX)
#define ERE_FOREVER UINT32_MAX

enum ere_kind {
	ERE_EMPTY,
	ERE_CHAR,
	ERE_ANY,
	ERE_SET,
	ERE_BEGIN,
	ERE_END,
	ERE_BOTH,   /* left, then right */
	ERE_EITHER, /* left or right */
	ERE_REPEAT, /* left, `least` to `most` times */
};

struct ere_node {
	enum ere_kind kind;
	uint32_t value; /* the character, or the number of the set */
	size_t left, right;
	uint32_t least, most; /* ERE_FOREVER = unlimited */
	size_t states;        /* number of states that it compiles to */
};

struct ere_range {
	uint32_t first, last;
};

struct ere_set {
	size_t first, end; /* indexes of its ranges */
	bool negated;
};

struct ere_tree {
	struct ere_node node[ERE_NODES_MAX];
	size_t nodes;
	struct ere_range range[ERE_BYTES_MAX];
	size_t ranges;
	struct ere_set set[ERE_BYTES_MAX];
	size_t sets;
	size_t root;
};

/* Parses the pattern.  Returns NULL, or what is wrong as ere_fault() does. */
const char *ere_read(const char *ere, struct ere_tree *out);
/* Returns the character at *s and advances *s past it.  Each byte of malformed
 * UTF-8 counts as one character greater than all others. */
uint32_t ere_char(const char **s);

#endif
