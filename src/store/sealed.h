/* SPDX-License-Identifier: ISC */
/*
 * Every stored value that is sealed: where they stand, and putting others in
 * their place beside the service that uses them.  Nothing is held while a value
 * is looked at: it is replaced if it still is the same.
 */
#ifndef SLIPWAY_STORE_SEALED_H
#define SLIPWAY_STORE_SEALED_H

#include "db/db.h"

#define SEALED_PAGE 500                   /* rows that are found at once */
#define SEALED_SIZE_MAX ((size_t)4 << 20) /* more than any real one has */

enum sealed_form {
	SEALED_BYTES,    /* one value, by the service's key */
	SEALED_NAMED,    /* an object of them by names, for the dispatcher */
	SEALED_PREFIXED, /* the same; a name stands behind a blank */
};

/* One row of a place. */
struct sealed_row {
	int64_t id;
	const char *hash; /* instead of the number, where there is none */
	struct maybe size;
	int64_t owner; /* the project's, of a deployment */
	struct blob value;
	struct json_text object; /* instead of it, by the place's form */
};

struct sealed_place {
	const char *name;
	enum sealed_form form;
	/* What a value is sealed for. */
	const char *(*purpose)(struct arena *, const struct sealed_row *,
	    const char *name);
	const struct stmt *page, *one, *put, *label;
};

/* Values are copied from the first ones into later ones, never back; ends with
 * a NULL name. */
extern const struct sealed_place sealed_places[];

/* The next rows after `after` (zeroed: the first), as id or hash and size;
 * fewer than SEALED_PAGE are the last. */
MUSTCHECK const struct err *sealed_page(struct db *, struct arena *,
    const struct sealed_place *, const struct sealed_row *after,
    struct list *out);
/* With its value; ERR_NOTFOUND if it is gone or of more than
 * SEALED_SIZE_MAX. */
MUSTCHECK const struct err *sealed_read(struct db *, struct arena *,
    const struct sealed_place *, const struct sealed_row *,
    struct sealed_row *out);
/* `fresh` in the place of `old`, of the same row; `done` tells whether that was
 * still there. */
MUSTCHECK const struct err *sealed_put(struct db *, const struct sealed_place *,
    const struct sealed_row *old, const struct sealed_row *fresh, bool *done);
/* Words for an administrator that say which row it is, in the arena. */
MUSTCHECK const struct err *sealed_label(struct db *, struct arena *,
    const struct sealed_place *, const struct sealed_row *, const char **out);
/* Waits until nobody is left who has read a project's values, or those of its
 * deployments, and may yet copy what was there before. */
MUSTCHECK const struct err *sealed_settle(struct db *);

#endif
