/* SPDX-License-Identifier: ISC */
/*
 * Configuration files: `key = value` lines below `[section]` headers.  `#`
 * starts a comment line, blank lines are skipped, and values may be quoted with
 * "".
 *
 * The table of keys holds everything about a key: name, type, range, default,
 * and whether a reload applies it.  The environment variable
 * SLIPWAY_SECTION_KEY sets any key; a CONF_SECRET key can also be written as
 * `key_file = /path` (one line, without its newline).  The environment
 * overrides the file.
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
	C_GONE,    /* an earlier version read it: ignored, with a warning */
};

enum conf_flag {
	CONF_SECRET = 1 << 0, /* also as key_file; never printed */
	CONF_RELOAD = 1 << 1, /* a reload applies it */
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
	const char *alias;    /* additional environment variable, or NULL */
	const char *doc;      /* one sentence */
};

enum conf_how {
	CONF_ROOT_OWNED = 1 << 0, /* reject a file that users other than root
				   * can write (checked on the open
				   * descriptor) */
	CONF_NO_ENV = 1 << 1,     /* ignore the environment */
	CONF_OPTIONAL = 1 << 2,   /* treat a missing file as empty */
	CONF_NO_SECRETS = 1 << 3, /* leave CONF_SECRET keys empty and do not
				   * open their files */
};

/* Fills `out`, which the caller has zeroed, from the defaults, the file and the
 * environment, in this order.  Strings live in the arena.  ERR_CONFIG reports
 * the errors, one per line, as "path:line: key: what to do", as many as fit
 * into the detail. */
MUSTCHECK const struct err *conf_read(struct arena *, const struct conf_key *,
    const char *path, unsigned how, void *out);
/* Returns the value of a key as text, in the arena; "" if it has none. */
const char *conf_text(struct arena *, const struct conf_key *,
    const void *settings);

#endif
