/* SPDX-License-Identifier: ISC */
/* Finds projects, pipelines, environments and deployments by name or id. */
#ifndef SLIPWAY_CLI_FIND_H
#define SLIPWAY_CLI_FIND_H

#include "cli/checkout.h"
#include "cli/client.h"

/* A project, pipeline or environment. */
struct named {
	int64_t id;
	int64_t project_id; /* 0 of a project */
	const char *name;
	const char *repository; /* of a project */
};

/* Lists all projects, or the pipelines or environments of a project (0 = of
 * all). */
MUSTCHECK const struct err *find_projects(struct client *, struct list *out);
MUSTCHECK const struct err *find_pipelines(struct client *, int64_t project,
    struct list *out);
MUSTCHECK const struct err *find_environments(struct client *, int64_t project,
    struct list *out);
/* The name of an id in such a list; NULL if it is not there. */
const char *find_name(const struct list *, int64_t id);

/* Finds one by its name or id; ERR_NOTFOUND suggests a similar name. */
MUSTCHECK const struct err *find_in(struct client *, const char *what,
    const struct list *, const char *name, struct named *out);
/* The project of that name or, if it is NULL, of the checkout that the user is
 * in.  ERR_NOTFOUND, ERR_CONFLICT if several projects have its repository. */
MUSTCHECK const struct err *find_project(struct client *, const char *name,
    struct named *out);
/* The id of a deployment; without `text`, of the latest one of the project of
 * the checkout. */
MUSTCHECK const struct err *find_deployment(struct client *, const char *text,
    int64_t *out);

/* For completion. */
command_known known_projects, known_pipelines, known_environments;
command_known known_deployments;

#endif
