/* SPDX-License-Identifier: ISC */
/*
 * The parts of an import: each is created or changed by a request of its own,
 * inside the transaction of the import.
 */
#ifndef SLIPWAY_API_PART_H
#define SLIPWAY_API_PART_H

#include "api/document.h"

#define PART_CREATED "created"
#define PART_CHANGED "changed"
#define PART_UNCHANGED "unchanged"
#define PART_BODY ((size_t)4 << 20) /* limit of the body of a request */
#define PART_MISSING 1000           /* secrets that the response lists */

struct import_item {
	const char *type;
	const char *name;
	const char *action;
	struct json_text changes; /* struct audit_change */
	int64_t id;               /* not in responses; 0 = none yet */
};

struct import_missing {
	const char *pointer;
};

struct import_result {
	struct maybe project_id;
	bool dry_run;
	struct list items;   /* struct import_item */
	struct list missing; /* struct import_missing */
};

/* An import. Its transaction may run again. */
struct import {
	struct req *rq;
	struct arena *a;       /* of the result */
	struct arena *work;    /* of one part */
	struct arena *scratch; /* of one request */
	const struct document *doc;
	int64_t project_id;
	bool is_new;
	bool is_done;
	size_t matched; /* work of patterns, as in struct faults */
	struct import_result result;
};

/* A part of the document. */
struct part {
	struct import *im;
	const char *at; /* its pointer */
	struct import_item *item;
	int64_t id; /* 0 = it does not exist yet */
};

/* The pointer of an item of the document. */
const char *part_pointer(const struct import *, const char *list, size_t index);
/* Adds a part to the result, which is unchanged at first. */
struct part part_begin(struct import *, const char *type, const char *name,
    const char *at);
/* Adds a secret that is not known. */
void part_missing(struct import *, const char *at);
/* Adds to the changes of a part (NULL = none), which become those of an existing
 * one. */
void part_changed(const struct part *, const char *changes);
/* Sends a request of the operation with the members of the item that a client
 * may write. Its faults become those of the import, and no error. */
MUSTCHECK const struct err *part_send(struct part *, const char *operation,
    const struct shape *, const void *item, int64_t id);
/* Creates the part, if it has no id, or changes it. */
MUSTCHECK const struct err *part_put(struct part *, const char *create,
    const char *update, const struct shape *, const void *item);
/* Adds a fault to that member, and returns false, if an earlier part of the
 * document has the id: an import must not depend on which comes last. */
bool part_is_once(const struct part *, const char *member);
/* The ids of the pipeline and the environment that a part names (NULL = none);
 * a fault if they do not exist. */
MUSTCHECK const struct err *part_targets(const struct part *,
    const char *pipeline, const char *environment, int64_t *pipeline_id,
    struct maybe *environment_id);
/* Copies a text into the arena, and releases the buffer. */
MUSTCHECK const struct err *part_text(struct arena *, struct buf *,
    struct json_text *out);

/* Reads the project `old`, or creates it without triggers, which name its
 * pipelines. The lock on the project keeps other requests from changing its
 * parts. */
MUSTCHECK const struct err *import_project_begin(struct part *,
    struct project *old);
/* Makes the project match the document, with its triggers. */
MUSTCHECK const struct err *import_project_put(struct part *,
    const struct project *old);

#endif
