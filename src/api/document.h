/* SPDX-License-Identifier: ISC */
/*
 * A project as one document: its members and those of all that belongs to it,
 * with names instead of ids.
 *
 * The items are the structs of the stores, of which the tables name the members
 * that a client may write, followed by the names. The limits of the members are
 * those of the resources: an import checks them.
 */
#ifndef SLIPWAY_API_DOCUMENT_H
#define SLIPWAY_API_DOCUMENT_H

#include "store/environment.h"
#include "store/notifier.h"
#include "store/pipeline.h"
#include "store/project.h"
#include "store/schedule.h"
#include "web/req.h"

struct document_trigger {
	struct trigger t;
	const char *pipeline;
	const char *environment;
};

struct document_approver {
	const char *username;
};

struct document_environment {
	struct environment e;
	struct list approvers; /* struct document_approver */
};

struct document_schedule {
	struct schedule s;
	const char *pipeline;
	const char *environment;
};

struct document_notifier {
	struct notifier n;
	const char *environment;
};

struct document {
	struct project p;
	struct list triggers;     /* struct document_trigger */
	struct list pipelines;    /* struct pipeline */
	struct list environments; /* struct document_environment */
	struct list schedules;    /* struct document_schedule */
	struct list notifiers;    /* struct document_notifier */
};

extern const struct shape document_shape;

/* An export has at most this size. An import may be larger, because clients
 * write JSON with blanks and escape sequences of their own. */
#define DOCUMENT_MAX ((size_t)4 << 20)
/* The text before the document in the body of an import. */
#define DOCUMENT_BEFORE "{\"document\":"

/* Writes the body of an import of the project: DOCUMENT_BEFORE, the document,
 * and a brace. Triggers and schedules whose pipeline or environment was deleted
 * are left out, as are deleted approvers. ERR_NOTFOUND; ERR_CONFLICT if it is
 * too large to be imported. */
MUSTCHECK const struct err *document_write(struct db *, int64_t project_id,
    struct buf *out);

#endif
