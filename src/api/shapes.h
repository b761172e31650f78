/* SPDX-License-Identifier: ISC */
/* Requests and responses that are stored in no table. */
#ifndef SLIPWAY_API_SHAPES_H
#define SLIPWAY_API_SHAPES_H

#include "core/field.h"

struct project_name { /* of GET /projects */
	const char *id;
	const char *name;
};

struct component {
	const char *name;
	const char *status; /* ok, down */
	const char *detail;
};
struct health {
	const char *status;
	const char *version;
	struct list components;
};

struct login_address {
	const char *url;
	const char *state;
};
struct login_request {
	const char *code;
	const char *state;
	const char *iss; /* RFC 9207; NULL = not sent */
};
struct login {
	const char *token;
	struct when expires_at;
	struct list user; /* one */
};

struct template_request {
	const char *template_id;
	int64_t project_id;
	const char *name;
	const char *description;
	const char *presets; /* add, none; NULL = add */
};

struct hook_access { /* settings for a webhook at the Git server */
	const char *secret;
	const char *url;
};

extern const struct shape template_request_shape;
extern const struct shape project_name_shape;
extern const struct shape health_shape;
extern const struct shape login_address_shape;
extern const struct shape login_request_shape;
extern const struct shape login_shape;
extern const struct shape git_branch_shape;
extern const struct shape hook_access_shape;
extern const struct shape hook_deployment_shape; /* struct deployment */

#endif
