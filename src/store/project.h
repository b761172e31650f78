/* SPDX-License-Identifier: ISC */
/* Projects: a Git repository, where it is checked out, and the form that a
 * client shows when it is deployed. */
#ifndef SLIPWAY_STORE_PROJECT_H
#define SLIPWAY_STORE_PROJECT_H

#include "db/db.h"
#include "store/page.h"
#include "store/preset.h"

struct workspace_status {
	int64_t project_id;
	const char *status;
	const char *branch;
	const char *commit_hash;
	const char *commit_message;
	bool dirty;
	struct maybe size_bytes;
	const char *runner;
	struct when checked_at;
};

struct project {
	int64_t id;
	const char *name;
	const char *description;
	const char *repository;
	const char *project_dir;
	const char *default_branch;
	struct json_text env_presets;
	const char *extra_env; /* nobody, maintainers, deployers */
	struct json_text triggers;
	bool valid;
	struct when created_at;
	struct when updated_at;
	struct maybe created_by;
	int64_t version;
	struct list workspace_status; /* one, where a single project is read */
};

/* Secret values of its presets and triggers, objects of strings, each of which
 * is sealed by itself; NULL = none. */
struct project_secrets {
	int64_t id;
	struct json_text secret_defaults;
	struct json_text trigger_secrets;
};

extern const struct shape workspace_shape;
extern const struct shape project_shape;

struct project_ref { /* of GET /projects */
	int64_t id;
	const char *name;
};

/* `name` filters by substring, NULL = all; wildcards in it are literal. */
MUSTCHECK const struct err *project_page(struct db *, struct arena *,
    const char *name, struct page *, struct list *out);
MUSTCHECK const struct err *project_refs(struct db *, struct arena *,
    struct list *out);
/* Live ones only; ERR_NOTFOUND. */
MUSTCHECK const struct err *project_by_id(struct db *, struct arena *,
    int64_t id, struct project *out);
/* The same, locked until the transaction ends. */
MUSTCHECK const struct err *project_lock(struct db *, struct arena *,
    int64_t id, struct project *out);
/* A shared lock on a live one until the transaction ends: other transactions
 * may share it, and none may change the row.  ERR_NOTFOUND. */
MUSTCHECK const struct err *project_share(struct db *, struct arena *,
    int64_t id);
/* Inside a transaction, before the names of projects are judged: until it ends
 * nobody else makes or renames one. */
MUSTCHECK const struct err *project_queue_up(struct db *);
/* Adds conflicts: a name or directory that another live project has, or a
 * directory inside another's or around it. */
MUSTCHECK const struct err *project_judge(struct db *, const struct project *,
    struct faults *);
/* Both after that. A project_dir of NULL becomes the name as a slug, with a
 * number behind it where that would clash. */
MUSTCHECK const struct err *project_insert(struct db *, struct arena *,
    const struct project *, int64_t *id);
MUSTCHECK const struct err *project_update(struct db *, const struct project *);
/* Takes its pipelines and steps along and cancels what is pending; inside a
 * transaction that holds the project's row. */
MUSTCHECK const struct err *project_delete(struct db *, int64_t id);
/* Of a live one; ERR_NOTFOUND. */
MUSTCHECK const struct err *project_secrets_find(struct db *, struct arena *,
    int64_t id, struct project_secrets *out);
/* With the row held. */
MUSTCHECK const struct err *project_secrets_save(struct db *,
    const struct project_secrets *);
MUSTCHECK const struct err *workspace_save(struct db *,
    const struct workspace_status *);
MUSTCHECK const struct err *workspace_by_project(struct db *, struct arena *,
    int64_t project_id, struct workspace_status *out);

#endif
