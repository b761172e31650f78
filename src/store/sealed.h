/* SPDX-License-Identifier: ISC */
/*
 * All stored values that are sealed: lists them, and replaces them while the
 * service runs. Nothing is locked while a value is processed: it is replaced
 * only if it has not changed.
 */
#ifndef SLIPWAY_STORE_SEALED_H
#define SLIPWAY_STORE_SEALED_H

#include "db/db.h"

#define SEALED_PAGE 500                   /* rows per page */
#define SEALED_SIZE_MAX ((size_t)4 << 20) /* more than any valid value has */

enum sealed_form {
	SEALED_BYTES,    /* one value, sealed with the service's key */
	SEALED_NAMED,    /* an object of values by name, for the dispatcher */
	SEALED_PREFIXED, /* the same; the name follows a space */
	SEALED_TEXT,     /* one value, for the dispatcher */
};

/* One row of a place. */
struct sealed_row {
	int64_t id;
	const char *hash; /* in place of the id, if there is none */
	struct maybe size;
	int64_t owner; /* project of a deployment */
	struct blob value;
	struct json_text object; /* in place of value, depending on the form;
				  * SEALED_TEXT: the value */
};

struct sealed_place {
	const char *name;
	enum sealed_form form;
	/* The purpose for which a value is sealed. */
	const char *(*purpose)(struct arena *, const struct sealed_row *,
	    const char *name);
	const struct stmt *page, *one, *put, *label;
};

/* Values are copied from earlier places to later ones, never back. Ends with a
 * NULL name. */
extern const struct sealed_place sealed_places[];

/* Lists the rows after `after` (zeroed = from the first), with id or hash and
 * size. Fewer than SEALED_PAGE rows are the last ones. */
MUSTCHECK const struct err *sealed_page(struct db *, struct arena *,
    const struct sealed_place *, const struct sealed_row *after,
    struct list *out);
/* Reads the value; ERR_NOTFOUND if it was deleted or has more than
 * SEALED_SIZE_MAX bytes. */
MUSTCHECK const struct err *sealed_read(struct db *, struct arena *,
    const struct sealed_place *, const struct sealed_row *,
    struct sealed_row *out);
/* Replaces `old` by `fresh` in a row; `done` is set if `old` was still
 * there. */
MUSTCHECK const struct err *sealed_put(struct db *, const struct sealed_place *,
    const struct sealed_row *old, const struct sealed_row *fresh, bool *done);
/* Describes the row for an administrator, in the arena. */
MUSTCHECK const struct err *sealed_label(struct db *, struct arena *,
    const struct sealed_place *, const struct sealed_row *, const char **out);
/* Waits for all transactions that have read a project's values, or those of its
 * deployments, and may still copy the old ones. */
MUSTCHECK const struct err *sealed_settle(struct db *);

#endif
