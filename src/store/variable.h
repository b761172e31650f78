/* SPDX-License-Identifier: ISC */
/* Variables that an administrator passes to several projects. */
#ifndef SLIPWAY_STORE_VARIABLE_H
#define SLIPWAY_STORE_VARIABLE_H

#include "db/db.h"
#include "store/page.h"

#define VARIABLE_PROJECTS_MAX 500

struct variable {
	int64_t id;
	const char *key;
	const char *value; /* NULL if secret */
	bool secret;
	const char *description;
	struct json_text projects; /* struct variable_ref */
	struct when created_at;
	struct when updated_at;
	struct maybe created_by;
	int64_t version;
};

struct variable_ref {
	int64_t project_id;
};

/* A variable that a project receives. */
struct variable_link {
	int64_t variable_id;
	int64_t project_id;
	const char *key;
	const char *value; /* NULL if secret */
	bool secret;
	struct json_text sealed; /* an object of the secret value */
};

extern const struct shape variable_shape;
extern const struct shape variable_ref_shape;

/* By key and id. */
MUSTCHECK const struct err *variable_page(struct db *, struct arena *,
    struct page *, struct list *out);
/* ERR_NOTFOUND if it is deleted. */
MUSTCHECK const struct err *variable_by_id(struct db *, struct arena *,
    int64_t id, struct variable *out);
/* The same, locked until the transaction ends. */
MUSTCHECK const struct err *variable_lock(struct db *, struct arena *,
    int64_t id, struct variable *out);
/* Inserts or updates the row alone. */
MUSTCHECK const struct err *variable_insert(struct db *,
    const struct variable *, int64_t *id);
MUSTCHECK const struct err *variable_update(struct db *,
    const struct variable *);
/* Deletes the variable, from all projects. */
MUSTCHECK const struct err *variable_delete(struct db *, int64_t id);

/* Lists the variables that a project receives, or those that the projects of a
 * variable receive. */
MUSTCHECK const struct err *variable_links_of_project(struct db *,
    struct arena *, int64_t project_id, struct list *out);
MUSTCHECK const struct err *variable_links_of(struct db *, struct arena *,
    int64_t variable_id, struct list *out);
/* Whether another variable with that key is passed to the project. */
MUSTCHECK const struct err *variable_link_taken(struct db *, struct arena *,
    const struct variable_link *, bool *out);
/* Lists the projects (project_id only) that receive the variable and, with all
 * that they receive, more than that many bytes of names and values. */
MUSTCHECK const struct err *variable_overfull(struct db *, struct arena *,
    int64_t variable_id, int64_t most, struct list *out);
/* Removes the variable from all projects, then passes it to one. */
MUSTCHECK const struct err *variable_unlink(struct db *, int64_t variable_id);
MUSTCHECK const struct err *variable_link(struct db *,
    const struct variable_link *);

#endif
