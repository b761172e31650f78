/* SPDX-License-Identifier: ISC */
/* The audit log: who changed what. */
#ifndef SLIPWAY_STORE_AUDIT_H
#define SLIPWAY_STORE_AUDIT_H

#include "core/buf.h"
#include "core/state.h"
#include "db/db.h"

/* Values of via. */
#define AUDIT_SESSION "session"
#define AUDIT_TOKEN "token"
#define AUDIT_HOOK "hook"
#define AUDIT_CLI "cli"
#define AUDIT_RUNNER "runner"

/* What an entry is about. */
/* clang-format off */
#define AUDIT_OBJECTS(X)						\
	X(DEPLOYMENT, "deployment")					\
	X(DEVICE, "device")						\
	X(ENVIRONMENT, "environment")					\
	X(MEMBER, "member")						\
	X(NOTIFIER, "notifier")						\
	X(PIPELINE, "pipeline")						\
	X(PROJECT, "project")						\
	X(SCHEDULE, "schedule")						\
	X(SERVICE, "service")						\
	X(SESSION, "session")						\
	X(STEP, "step")							\
	X(TOKEN, "token")						\
	X(USER, "user")							\
	X(VARIABLE, "variable")
/* clang-format on */
enum audit_object {
#define X(name, text) AUDIT_OF_##name,
	AUDIT_OBJECTS(X)
#undef X
	    AUDIT_OF__MAX
};

struct audit_object_ref {
	enum audit_object type;
	int64_t id;         /* 0 = it has none */
	int64_t project_id; /* 0 = it belongs to no project */
};

/* A member that was set or changed. Values are stored only of members that
 * cannot hold a secret. */
struct audit_change {
	const char *name;
	const char *from;
	const char *to;
};

struct audit {
	int64_t id;
	struct when at;
	struct maybe user_id;
	const char *username; /* AUDIT_CLI: the account on the host;
			       * AUDIT_RUNNER: the runner's name */
	const char *via;
	struct maybe token_id; /* for audit_write(), which stores its name */
	const char *token_name;
	const char *address;
	const char *action;
	const char *object_type;
	struct maybe object_id;
	struct maybe project_id;
	struct json_text changes; /* struct audit_change; NULL = none */
};

extern const struct shape audit_shape;
extern const struct shape audit_change_shape;

/* Inside the transaction of the change: adds an entry about the object. The
 * entry's own members for that are ignored. */
MUSTCHECK const struct err *audit_write(struct db *, const struct audit *,
    const struct audit_object_ref *);
/* The same for a deployment that a runner has created. */
MUSTCHECK const struct err *audit_start(struct db *, const char *runner,
    const char *action, int64_t deployment_id, int64_t project_id);
/* These changes, in JSON. */
void audit_end_changes(struct buf *, enum state from, enum state to,
    enum reason);
/* Newest first, those of a project or of all (0), with smaller ids than `before`
 * unless that is 0. `next` = `before` of the next page; 0 = there is none. */
MUSTCHECK const struct err *audit_page(struct db *, struct arena *,
    int64_t project_id, int64_t before, int64_t limit, struct list *out,
    int64_t *next);
/* Deletes older entries, some thousands per call; 0 days = none. Writes nothing
 * if there are none. */
MUSTCHECK const struct err *audit_tidy(struct db *, struct arena *,
    int64_t days);

#endif
