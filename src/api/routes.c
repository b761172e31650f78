/* SPDX-License-Identifier: ISC */
/* Every path there is, who may use it and what comes in and out. */
#include "api/handlers.h"
#include "api/shapes.h"
#include "api/template.h"
#include "store/deployment.h"
#include "store/gitrepo.h"
#include "store/pipeline.h"
#include "store/project.h"
#include "store/user.h"

/* clang-format off */
#define PAGE								\
	{ .name = "page", .type = PARAM_INT, .min = 1, .max = 1000000000, \
	    .fallback = 1, .doc = "Number of the page, from 1." },	\
	{ .name = "limit", .type = PARAM_INT, .min = 1, .max = 100,	\
	    .fallback = 20, .doc = "Items on a page." }
#define PARAM_END { .name = NULL }
#define ID_MIN 1, .max = 9007199254740991
/* clang-format on */

const struct route_param page_params[] = { PAGE, PARAM_END };

static const struct route_param project_params[] = {
	PAGE,
	{ .name = "name",
	    .type = PARAM_STR,
	    .max = 100,
	    .doc = "Part of the name, in which upper and lower case are the "
		   "same, or a name that counts as equal." },
	PARAM_END,
};
static const struct route_param pipeline_params[] = {
	PAGE,
	{ .name = "projectId",
	    .type = PARAM_INT,
	    .min = ID_MIN,
	    .doc = "Only those of this project." },
	PARAM_END,
};
static const struct route_param step_params[] = {
	PAGE,
	{ .name = "pipelineId",
	    .type = PARAM_INT,
	    .min = ID_MIN,
	    .doc = "Only those of this pipeline." },
	PARAM_END,
};
static const char *const user_statuses[] = { "active", "inactive", NULL };
static const struct route_param search_params[] = {
	PAGE,
	{ .name = "keyword",
	    .type = PARAM_STR,
	    .max = 100,
	    .doc = "Part of the username, name or email address." },
	{ .name = "status",
	    .type = PARAM_STR,
	    .values = user_statuses,
	    .named = "UserStatus",
	    .doc = "Only users with this status." },
	{ .name = "role",
	    .type = PARAM_STR,
	    .values = role_names,
	    .named = "Role",
	    .doc = "Only users with this role." },
	PARAM_END,
};
static const struct route_param branch_params[] = {
	PAGE,
	{ .name = "projectId",
	    .type = PARAM_INT,
	    .must = 1,
	    .min = ID_MIN,
	    .doc = "Project whose repository is read." },
	PARAM_END,
};
static const struct route_param commit_params[] = {
	PAGE,
	{ .name = "projectId",
	    .type = PARAM_INT,
	    .must = 1,
	    .min = ID_MIN,
	    .doc = "Project whose repository is read." },
	{ .name = "branch",
	    .type = PARAM_STR,
	    .max = 255,
	    .doc = "Branch; the repository's default if left out." },
	PARAM_END,
};

static const struct route_param deployment_params[] = {
	{ .name = "limit",
	    .type = PARAM_INT,
	    .min = 1,
	    .max = 100,
	    .fallback = 20,
	    .doc = "Items on a page." },
	{ .name = "cursor",
	    .type = PARAM_INT,
	    .min = 1,
	    .max = 9999999999999999,
	    .opaque = 1,
	    .doc = "Where the page before ended: its \"next\"." },
	{ .name = "projectId",
	    .type = PARAM_INT,
	    .min = ID_MIN,
	    .doc = "Only those of this project." },
	{ .name = "pipelineId",
	    .type = PARAM_INT,
	    .min = ID_MIN,
	    .doc = "Only those of this pipeline." },
	{ .name = "status",
	    .type = PARAM_STR,
	    .values = deployment_statuses,
	    .named = "DeploymentStatus",
	    .doc = "Only those with this status." },
	{ .name = "branch",
	    .type = PARAM_STR,
	    .max = 255,
	    .doc = "Only those of this branch." },
	PARAM_END,
};
static const struct route_param log_params[] = {
	{ .name = "offset",
	    .type = PARAM_INT,
	    .min = 0,
	    .max = 9007199254740991,
	    .absent = 1,
	    .doc = "Bytes to leave out, those read already; not beside "
		   "Range." },
	{ .name = "wait",
	    .type = PARAM_INT,
	    .min = 0,
	    .max = 20,
	    .doc =
		"Seconds to hold the answer back until there is more; it may "
		"come earlier with nothing. A user may wait for two logs at "
		"a time; where there is nothing to read yet, a third gets 429, "
		"and so does one where too many others wait." },
	PARAM_END,
};

static const enum err_code conflict[] = { ERR_CONFLICT, ERR__MAX };
static const enum err_code upstream[] = { ERR_NOTFOUND, ERR_RATE, ERR_UPSTREAM,
	ERR_UPSTREAM_TIMEOUT, ERR__MAX };
static const enum err_code taken[] = { ERR_UNAUTHENTICATED, ERR_RATE,
	ERR__MAX };
static const enum err_code limited[] = { ERR_RATE, ERR__MAX };
static const enum err_code signing[] = { ERR_FORBIDDEN, ERR_CONFLICT, ERR_RATE,
	ERR_UPSTREAM, ERR_UPSTREAM_TIMEOUT, ERR__MAX };

/* clang-format off */
#define LIST(p, r, q, h, op, t, sum, o)					\
	{ .method = METHOD_GET, .path = (p), .role = (r), .query = (q),	\
	    .handler = (h), .operation = (op), .tag = (t),		\
	    .summary = (sum), .out = &(o), .list = LIST_PAGES, .status = 200 }
#define SHOW(p, r, h, op, t, sum, o)					\
	{ .method = METHOD_GET, .path = (p), .role = (r), .handler = (h), \
	    .operation = (op), .tag = (t), .summary = (sum), .out = &(o), \
	    .status = 200 }
#define CREATE(p, r, h, j, op, t, sum, o)				\
	{ .method = METHOD_POST, .path = (p), .role = (r), .in = &(o),	\
	    .mode = JSON_CREATE, .handler = (h), .judge = (j),		\
	    .operation = (op), .tag = (t), .summary = (sum),		\
	    .out = &(o), .status = 201, .errors = conflict }
#define CHANGE(p, r, h, j, op, t, sum, o)				\
	{ .method = METHOD_PUT, .path = (p), .role = (r),		\
	    .flags = ROUTE_GUARDED, .in = &(o), .mode = JSON_UPDATE,	\
	    .handler = (h), .judge = (j), .operation = (op),		\
	    .tag = (t), .summary = (sum), .out = &(o), .status = 200,	\
	    .errors = conflict }
#define REMOVE(p, r, fl, h, op, t, sum, e)				\
	{ .method = METHOD_DELETE, .path = (p), .role = (r), .flags = (fl), \
	    .handler = (h), .operation = (op), .tag = (t),		\
	    .summary = (sum), .status = 204, .errors = (e) }
/* clang-format on */

const struct route routes[] = {
	LIST("/api/projects", ROLE_VIEWER, project_params, api_project_list,
	    "listProjects", "projects", "List projects by name", project_shape),
	CREATE("/api/projects", ROLE_MAINTAINER, api_project_create,
	    api_project_judge, "createProject", "projects", "Make a project",
	    project_shape),
	SHOW("/api/projects/{id}", ROLE_VIEWER, api_project_show, "getProject",
	    "projects", "Read a project and its workspace's status",
	    project_shape),
	CHANGE("/api/projects/{id}", ROLE_MAINTAINER, api_project_change,
	    api_project_judge, "updateProject", "projects", "Change a project",
	    project_shape),
	REMOVE("/api/projects/{id}", ROLE_MAINTAINER, ROUTE_GUARDED,
	    api_project_remove, "deleteProject", "projects",
	    "Delete a project, its pipelines and steps, and cancel what waits",
	    NULL),

	{ .method = METHOD_PUT,
	    .path = "/api/projects/{id}/hook-secret",
	    .role = ROLE_MAINTAINER,
	    .handler = api_hook_secret,
	    .operation = "renewHookSecret",
	    .tag = "hooks",
	    .summary = "Make a new secret for push events; it is shown this "
		       "once",
	    .out = &hook_access_shape,
	    .status = 200 },

	{ .method = METHOD_POST,
	    .path = "/api/hooks/{id}",
	    .flags = ROUTE_SIGNED,
	    .handler = api_hook_take,
	    .operation = "takePush",
	    .tag = "hooks",
	    .summary = "Take a push event of Gitea, Forgejo, GitLab or GitHub, "
		       "signed with the project's hook secret; 204: it starts "
		       "nothing",
	    .doc = "As the Git server sends it: an event by X-Gitea-Event, "
		   "X-GitHub-Event or X-Gitlab-Event, signed by "
		   "X-Gitea-Signature, X-Forgejo-Signature, "
		   "X-Hub-Signature-256, X-Gitlab-Token or webhook-signature. "
		   "The same delivery again gets the same deployments. A "
		   "commit that is no longer at the head of its branch "
		   "when the runner fetches is not deployed: the "
		   "deployment is canceled as superseded. "
		   "A signed event may have 32 MiB; those with a wrong "
		   "signature are limited, others are not.",
	    .out = &hook_deployment_shape,
	    .list = LIST_DATA,
	    .status = 202,
	    .errors = taken },

	LIST("/api/pipelines", ROLE_VIEWER, pipeline_params, api_pipeline_list,
	    "listPipelines", "pipelines", "List pipelines with their steps",
	    pipeline_shape),
	CREATE("/api/pipelines", ROLE_MAINTAINER, api_pipeline_create,
	    api_pipeline_judge, "createPipeline", "pipelines",
	    "Make a pipeline, with its steps", pipeline_shape),
	LIST("/api/pipelines/templates", ROLE_VIEWER, page_params,
	    api_template_list, "listPipelineTemplates", "templates",
	    "List templates of pipelines, as /api/templates does",
	    template_shape),
	SHOW("/api/pipelines/{id}", ROLE_VIEWER, api_pipeline_show,
	    "getPipeline", "pipelines", "Read a pipeline with its steps",
	    pipeline_shape),
	CHANGE("/api/pipelines/{id}", ROLE_MAINTAINER, api_pipeline_change,
	    api_pipeline_judge, "updatePipeline", "pipelines",
	    "Change a pipeline", pipeline_shape),
	REMOVE("/api/pipelines/{id}", ROLE_MAINTAINER, ROUTE_GUARDED,
	    api_pipeline_remove, "deletePipeline", "pipelines",
	    "Delete a pipeline and its steps", NULL),

	LIST("/api/steps", ROLE_VIEWER, step_params, api_step_list, "listSteps",
	    "steps", "List steps by position", step_shape),
	CREATE("/api/steps", ROLE_MAINTAINER, api_step_create, api_step_judge,
	    "createStep", "steps", "Make a step", step_shape),
	SHOW("/api/steps/{id}", ROLE_VIEWER, api_step_show, "getStep", "steps",
	    "Read a step", step_shape),
	CHANGE("/api/steps/{id}", ROLE_MAINTAINER, api_step_change,
	    api_step_judge, "updateStep", "steps", "Change a step, or move it",
	    step_shape),
	REMOVE("/api/steps/{id}", ROLE_MAINTAINER, ROUTE_GUARDED,
	    api_step_remove, "deleteStep", "steps", "Delete a step", NULL),

	LIST("/api/templates", ROLE_VIEWER, page_params, api_template_list,
	    "listTemplates", "templates", "List templates of pipelines",
	    template_shape),
	{ .method = METHOD_GET,
	    .path = "/api/templates/{id}",
	    .role = ROLE_VIEWER,
	    .flags = ROUTE_SLUG,
	    .handler = api_template_show,
	    .operation = "getTemplate",
	    .tag = "templates",
	    .summary = "Read a template",
	    .out = &template_shape,
	    .status = 200 },
	{ .method = METHOD_POST,
	    .path = "/api/pipelines/from-template",
	    .role = ROLE_MAINTAINER,
	    .in = &template_request_shape,
	    .mode = JSON_CREATE,
	    .handler = api_template_use,
	    .judge = api_template_judge,
	    .operation = "createPipelineFromTemplate",
	    .tag = "templates",
	    .summary = "Make a pipeline of a template",
	    .doc = "In the same transaction the template's envPresets whose "
		   "keys the project lacks are added to the project, unless "
		   "presets is none.",
	    .out = &pipeline_shape,
	    .status = 201,
	    .errors = conflict },

	{ .method = METHOD_GET,
	    .path = "/api/deployments",
	    .role = ROLE_VIEWER,
	    .query = deployment_params,
	    .handler = api_deployment_list,
	    .operation = "listDeployments",
	    .tag = "deployments",
	    .summary = "List deployments, newest first",
	    .out = &deployment_shape,
	    .list = LIST_KEYS,
	    .status = 200 },
	{ .method = METHOD_POST,
	    .path = "/api/deployments",
	    .role = ROLE_DEPLOYER,
	    .flags = ROUTE_IDEMPOTENT,
	    .in = &deployment_request_shape,
	    .mode = JSON_CREATE,
	    .handler = api_deployment_create,
	    .judge = api_deployment_judge,
	    .operation = "createDeployment",
	    .tag = "deployments",
	    .summary = "Deploy a project",
	    .out = &deployment_shape,
	    .status = 201,
	    .errors = conflict },
	SHOW("/api/deployments/{id}", ROLE_VIEWER, api_deployment_show,
	    "getDeployment", "deployments",
	    "Read a deployment and how its steps went", deployment_shape),
	{ .method = METHOD_POST,
	    .path = "/api/deployments/{id}/retry",
	    .role = ROLE_DEPLOYER,
	    .flags = ROUTE_IDEMPOTENT,
	    .handler = api_deployment_retry,
	    .operation = "retryDeployment",
	    .tag = "deployments",
	    .summary = "Deploy once more what a deployment was made of",
	    .out = &deployment_shape,
	    .status = 201,
	    .errors = conflict },
	{ .method = METHOD_POST,
	    .path = "/api/deployments/{id}/cancel",
	    .role = ROLE_DEPLOYER,
	    .handler = api_deployment_cancel,
	    .operation = "cancelDeployment",
	    .tag = "deployments",
	    .summary = "Take a deployment from the queue, or end it",
	    .out = &deployment_shape,
	    .status = 200,
	    .errors = conflict },
	{ .method = METHOD_GET,
	    .path = "/api/deployments/{id}/log",
	    .role = ROLE_VIEWER,
	    .pool = POOL_LOG,
	    .flags = ROUTE_RANGE,
	    .query = log_params,
	    .handler = api_log_show,
	    .operation = "getLog",
	    .tag = "deployments",
	    .summary = "Read or follow a deployment's log",
	    .status = 200,
	    .type = "text/plain; charset=utf-8",
	    .errors = limited },

	LIST("/api/user/list", ROLE_VIEWER, page_params, api_user_list,
	    "listUsers", "users", "List users by username", user_shape),
	LIST("/api/user/search", ROLE_VIEWER, search_params, api_user_search,
	    "searchUsers", "users", "Search users", user_shape),
	SHOW("/api/user/detail/{id}", ROLE_VIEWER, api_user_show, "getUser",
	    "users", "Read a user", user_shape),
	CREATE("/api/user", ROLE_ADMIN, api_user_create, api_user_judge,
	    "createUser", "users", "Make a user", user_shape),
	CHANGE("/api/user/{id}", ROLE_ADMIN, api_user_change, api_user_judge,
	    "updateUser", "users", "Change a user", user_shape),
	REMOVE("/api/user/{id}", ROLE_ADMIN, ROUTE_GUARDED, api_user_remove,
	    "deleteUser", "users", "Delete a user and its tokens", conflict),

	{ .method = METHOD_GET,
	    .path = "/api/auth/url",
	    .flags = ROUTE_COOKIE,
	    .handler = api_auth_url,
	    .operation = "getLoginAddress",
	    .tag = "auth",
	    .summary = "Where to sign in at the Git server",
	    .doc =
		"Binds the sign-in to this browser by the cookie "
		"__Host-slipway-signin-…, one for each sign-in, so that "
		"several windows may sign in at once. Send the browser to "
		"the url within ten minutes; it comes back to gitserver.redirect_uri with "
		"code and state, or with error and error_description where "
		"the user or the Git server refused: then show these, and "
		"begin again; there is nothing to send here.",
	    .out = &login_address_shape,
	    .status = 200,
	    .errors = limited },
	{ .method = METHOD_POST,
	    .path = "/api/auth/login",
	    .pool = POOL_SLOW,
	    .flags = ROUTE_COOKIE,
	    .in = &login_request_shape,
	    .mode = JSON_CREATE,
	    .handler = api_auth_login,
	    .operation = "login",
	    .tag = "auth",
	    .summary = "Begin a session with the Git server's code",
	    .doc = "From the browser that asked for the url. A sign-in can be "
		   "tried once: whatever comes of it, the next one begins at "
		   "the url. The session is new each time and takes the place "
		   "of the browser's last one; its token is in the answer and "
		   "in the cookie __Host-slipway.",
	    .out = &login_shape,
	    .status = 200,
	    .errors = signing },
	{ .method = METHOD_GET,
	    .path = "/api/auth/info",
	    .role = ROLE_VIEWER,
	    .handler = api_auth_info,
	    .operation = "getCurrentUser",
	    .tag = "auth",
	    .summary = "Read the user that is signed in",
	    .out = &user_shape,
	    .status = 200 },
	{ .method = METHOD_GET,
	    .path = "/api/auth/logout",
	    .role = ROLE_VIEWER,
	    .flags = ROUTE_SAME_ORIGIN | ROUTE_COOKIE,
	    .handler = api_auth_logout,
	    .operation = "logoutByGet",
	    .tag = "auth",
	    .summary = "End the session",
	    .status = 204 },
	{ .method = METHOD_POST,
	    .path = "/api/auth/logout",
	    .role = ROLE_VIEWER,
	    .flags = ROUTE_COOKIE,
	    .handler = api_auth_logout,
	    .operation = "logout",
	    .tag = "auth",
	    .summary = "End the session",
	    .status = 204 },
	{ .method = METHOD_GET,
	    .path = "/api/auth/tokens",
	    .role = ROLE_VIEWER,
	    .query = page_params,
	    .handler = api_token_list,
	    .operation = "listTokens",
	    .tag = "auth",
	    .summary = "List one's own API tokens",
	    .out = &api_token_shape,
	    .list = LIST_PAGES,
	    .status = 200 },
	{ .method = METHOD_POST,
	    .path = "/api/auth/tokens",
	    .role = ROLE_VIEWER,
	    .in = &api_token_shape,
	    .mode = JSON_CREATE,
	    .handler = api_token_create,
	    .judge = api_token_judge,
	    .operation = "createToken",
	    .tag = "auth",
	    .summary = "Make an API token; it is shown this once",
	    .out = &api_token_shape,
	    .status = 201,
	    .errors = limited },
	{ .method = METHOD_GET,
	    .path = "/api/auth/tokens/{id}",
	    .role = ROLE_VIEWER,
	    .handler = api_token_show,
	    .operation = "getToken",
	    .tag = "auth",
	    .summary = "Read one of one's own API tokens",
	    .out = &api_token_shape,
	    .status = 200 },
	{ .method = METHOD_DELETE,
	    .path = "/api/auth/tokens/{id}",
	    .role = ROLE_VIEWER,
	    .flags = ROUTE_GUARDED,
	    .handler = api_token_remove,
	    .operation = "deleteToken",
	    .tag = "auth",
	    .summary = "End one of one's own API tokens; a token ends itself "
		       "and those of its role or a lower one",
	    .status = 204 },

	{ .method = METHOD_GET,
	    .path = "/api/git/branches",
	    .role = ROLE_VIEWER,
	    .pool = POOL_SLOW,
	    .query = branch_params,
	    .handler = api_git_branches,
	    .operation = "listBranches",
	    .tag = "git",
	    .summary = "List branches of a project's repository",
	    .out = &git_branch_shape,
	    .list = LIST_MORE,
	    .status = 200,
	    .errors = upstream },
	{ .method = METHOD_GET,
	    .path = "/api/git/commits",
	    .role = ROLE_VIEWER,
	    .pool = POOL_SLOW,
	    .query = commit_params,
	    .handler = api_git_commits,
	    .operation = "listCommits",
	    .tag = "git",
	    .summary = "List commits of a project's repository",
	    .out = &git_commit_shape,
	    .list = LIST_MORE,
	    .status = 200,
	    .errors = upstream },

	{ .method = METHOD_GET,
	    .path = "/health",
	    .handler = api_service_health,
	    .operation = "getHealth",
	    .tag = "service",
	    .summary = "Whether the service works",
	    .out = &health_shape,
	    .status = 200 },
	{ .method = METHOD_GET,
	    .path = "/api/health",
	    .handler = api_service_health,
	    .operation = "getApiHealth",
	    .tag = "service",
	    .summary = "Whether the service works",
	    .out = &health_shape,
	    .status = 200 },
	{ .method = METHOD_GET,
	    .path = "/projects",
	    .role = ROLE_VIEWER,
	    .handler = api_project_names,
	    .operation = "listProjectNames",
	    .tag = "service",
	    .summary = "List all projects' numbers and names",
	    .out = &project_name_shape,
	    .list = LIST_BARE,
	    .status = 200 },
	{ .method = METHOD_GET,
	    .path = "/api/openapi.json",
	    .handler = api_openapi_show,
	    .operation = "getOpenapi",
	    .tag = "service",
	    .summary = "This document",
	    .status = 200,
	    .type = "application/json" },
	{ .method = METHOD_GET,
	    .path = "/api/metrics",
	    .handler = api_service_metrics,
	    .operation = "getMetrics",
	    .tag = "service",
	    .summary = "Figures for Prometheus",
	    .status = 200,
	    .type = "text/plain; version=0.0.4; charset=utf-8" },

	{ .path = NULL },
};
