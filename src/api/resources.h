/* SPDX-License-Identifier: ISC */
/* The resources of the API. To add one, add a line to the list below. */
#ifndef SLIPWAY_API_RESOURCES_H
#define SLIPWAY_API_RESOURCES_H

#include "web/resource.h"

/* In the order of the OpenAPI document. */
/* clang-format off */
#define RESOURCES(X)							\
	X(boards)							\
	X(projects)							\
	X(imports)							\
	X(members)							\
	X(badges)							\
	X(deploy_keys)							\
	X(pipelines)							\
	X(steps)							\
	X(templates)							\
	X(environments)							\
	X(variables)							\
	X(locks)							\
	X(schedules)							\
	X(notifiers)							\
	X(deployment_reads)						\
	X(deployments)							\
	X(runners)							\
	X(log)								\
	X(log_index)								\
	X(events)							\
	X(audit)							\
	X(users)							\
	X(signin)							\
	X(tokens)							\
	X(devices)							\
	X(git)								\
	X(hooks)							\
	X(service)							\
	X(metrics)							\
	X(openapi)
/* clang-format on */

#define X(name) extern const struct resource name##_resource;
RESOURCES(X)
#undef X

#endif
