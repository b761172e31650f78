/* SPDX-License-Identifier: ISC */
/*
 * Configuration files: `key = value` lines under `[section]`s, `#` starts a
 * comment line, blank lines are skipped, values may be quoted with "".
 *
 * The table of keys is the whole truth: name, type, range, default, whether a
 * reload suffices.  Every key can be set by the environment as
 * SLIPWAY_SECTION_KEY; a CONF_SECRET key also as `key_file = /path` (one line,
 * its newline is dropped).  The environment wins over the file.
 */
#ifndef SLIPWAY_CORE_CONF_H
#define SLIPWAY_CORE_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"

enum conf_type {
	C_STR,     /* const char *, NULL or the default if absent */
	C_INT,     /* int64_t in min..max */
	C_SIZE,    /* int64_t, bytes with an optional k, m, g */
	C_SECONDS, /* int64_t */
	C_BOOL,    /* bool: yes, no */
	C_MODE,    /* int64_t, octal permission bits */
	C_LIST,    /* const char *, words separated by commas or blanks */
	C_MAP,     /* struct conf_map: the whole section, any keys */
};

enum conf_flag {
	CONF_SECRET = 1 << 0, /* also as key_file; never printed */
	CONF_RELOAD = 1 << 1, /* a reload suffices */
	CONF_PATH = 1 << 2,   /* must start with / */
};

struct conf_pair {
	const char *key;
	const char *value;
};
struct conf_map {
	struct conf_pair *items;
	size_t n;
};

struct conf_key {
	const char *section;
	const char *name; /* NULL for C_MAP */
	enum conf_type type;
	unsigned flags;
	size_t offset;
	int64_t min, max;
	const char *const *values; /* C_STR: one of these */
	/* C_STR: NULL, or what is wrong with the value */
	const char *(*check)(const char *value);
	const char *fallback; /* the default, as text; NULL = none */
	const char *alias;    /* environment name of its own, or NULL */
	const char *doc;      /* one sentence */
};

enum conf_how {
	CONF_ROOT_OWNED = 1 << 0, /* refuse a file that others than root may
				   * write (checked on the open descriptor) */
	CONF_NO_ENV = 1 << 1,     /* do not look at the environment */
	CONF_OPTIONAL = 1 << 2,   /* a missing file is an empty one */
	CONF_NO_SECRETS = 1 << 3, /* leave CONF_SECRET keys empty and do not
				   * open their files */
};

/* Fills `out`, which the caller zeroed, from defaults, file, environment; strings live in
 * the arena. ERR_CONFIG tells the faults, one a line,
 * "path:line: key: what to do", as many as fit into a detail. */
MUSTCHECK const struct err *conf_read(struct arena *, const struct conf_key *,
    const char *path, unsigned how, void *out);
/* The value a key has, as text, in the arena; "" if it has none. */
const char *conf_text(struct arena *, const struct conf_key *,
    const void *settings);

#endif
