/* SPDX-License-Identifier: ISC */
/* Projects: a Git repository, and the form fields that a client shows for a
 * deployment. */
#ifndef SLIPWAY_STORE_PROJECT_H
#define SLIPWAY_STORE_PROJECT_H

#include "db/db.h"
#include "store/lock.h"
#include "store/page.h"
#include "store/preset.h"
#include "store/submodule.h"
#include "store/workspace.h"

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
	bool badge; /* the result of the last deployment is public */
	struct maybe submodules; /* not set = the setting of the runner */
	struct json_text submodule_repositories; /* struct submodule_path */
	bool lfs; /* the files of Git LFS are wanted */
	bool valid;
	struct when created_at;
	struct when updated_at;
	struct maybe created_by;
	int64_t version;
	const char *role;             /* of a member, in a page; NULL = none */
	struct list lock;             /* at most one item: lock_row */
	struct deploy_lock lock_row;  /* its memory */
	struct list workspace_status; /* one item, if a single project is
				       * read: workspace_row */
	struct workspace_status workspace_row;
};

/* Secret values of presets and triggers: objects of strings, each sealed
 * separately; NULL = none. */
struct project_secrets {
	int64_t id;
	struct json_text secret_defaults;
	struct json_text trigger_secrets;
};

extern const struct shape project_shape;

#define PROJECT_REFS 100
struct project_ref { /* of GET /projects */
	int64_t id;
	const char *name;
	int64_t member; /* as in struct page */
};

/* A repository by its number at a Git server. */
struct project_of_repo {
	const char *server;
	const char *repo_id;
	int64_t reader; /* as in struct page, like the next one */
	int64_t member;
};

/* `name` filters by substring, NULL = all; its wildcards are literal. */
MUSTCHECK const struct err *project_page(struct db *, struct arena *,
    const char *name, struct page *, struct list *out);
/* Lists the projects for which that number is stored, at most a hundred. */
MUSTCHECK const struct err *project_of_repo(struct db *, struct arena *,
    const struct project_of_repo *, struct list *out);
/* Lists the first PROJECT_REFS projects after this one, ordered by name; id 0
 * and name "" = from the beginning. */
MUSTCHECK const struct err *project_refs(struct db *, struct arena *,
    const struct project_ref *after, struct list *out);
/* Finds live projects only; ERR_NOTFOUND. */
MUSTCHECK const struct err *project_by_id(struct db *, struct arena *,
    int64_t id, struct project *out);
/* The same with workspace_status. */
MUSTCHECK const struct err *project_with_workspace(struct db *, struct arena *,
    int64_t id, struct project *out);
/* The same, locked until the transaction ends, without it. */
MUSTCHECK const struct err *project_lock(struct db *, struct arena *,
    int64_t id, struct project *out);
/* Inside a transaction: locks a live project against changes, with a shared
 * lock. ERR_NOTFOUND. */
MUSTCHECK const struct err *project_share(struct db *, struct arena *,
    int64_t id);
/* Inside a transaction, before names of projects are checked: prevents others
 * from creating or renaming projects until it ends. */
MUSTCHECK const struct err *project_queue_up(struct db *);
/* Adds conflicts: another live project has the name or the directory, or the
 * directories contain each other. */
MUSTCHECK const struct err *project_judge(struct db *, const struct project *,
    struct faults *);
/* Both require that. A project_dir of NULL becomes the name as a slug, with a
 * number if that conflicts. */
MUSTCHECK const struct err *project_insert(struct db *, struct arena *,
    const struct project *, int64_t *id);
MUSTCHECK const struct err *project_update(struct db *, const struct project *);
/* Deletes the project's own row, inside a transaction that has locked it.
 * store_project_delete() deletes what belongs to it before that. */
MUSTCHECK const struct err *project_delete(struct db *, int64_t id);
/* Of a live project; ERR_NOTFOUND. */
MUSTCHECK const struct err *project_secrets_find(struct db *, struct arena *,
    int64_t id, struct project_secrets *out);
/* Requires a locked row. */
MUSTCHECK const struct err *project_secrets_save(struct db *,
    const struct project_secrets *);

#endif
