/* SPDX-License-Identifier: ISC */
#include "api/shapes.h"

#include "forge/forge.h"
#include "store/deployment.h"
#include "store/user.h"

#define N(m, ...) FIELD(struct project_name, m, FIELD_OUT, __VA_ARGS__)
#define C(m, fl, ...) FIELD(struct component, m, FIELD_OUT | (fl), __VA_ARGS__)
#define H(m, ...) FIELD(struct health, m, FIELD_OUT, __VA_ARGS__)
#define A(m, ...) FIELD(struct login_address, m, FIELD_OUT, __VA_ARGS__)
#define R(m, ...)                                                              \
	FIELD(struct login_request, m, FIELD_IN | FIELD_MUST | FIELD_LINE,     \
	    __VA_ARGS__)
#define L(m, fl, ...) FIELD(struct login, m, FIELD_OUT | (fl), __VA_ARGS__)
#define B(m, ...) FIELD(struct forge_branch, m, FIELD_OUT, __VA_ARGS__)

static const struct field project_name_fields[] = {
	N(id, .doc = "Id of the project, as text."),
	N(name, .doc = "Name of the project."),
	FIELD_END,
};
const struct shape project_name_shape = {
	.name = "ProjectName",
	.fields = project_name_fields,
	.size = sizeof(struct project_name),
	.doc = "Id and name of a project.",
};

static const char *const component_statuses[] = { "ok", "down", NULL };
static const struct field component_fields[] = {
	C(name, 0, .doc = "Name of the part."),
	C(status, 0, .values = component_statuses, .named = "ComponentStatus",
	    .doc = "Status of the part."),
	C(detail, FIELD_NULL, .doc = "What is wrong with the part."),
	FIELD_END,
};
static const struct shape component_shape = {
	.name = "HealthComponent",
	.fields = component_fields,
	.size = sizeof(struct component),
	.doc = "A part of the service and its status.",
};
static const char *const health_statuses[] = { "ok", NULL };
static const struct field health_fields[] = {
	H(status, .values = health_statuses, .named = "HealthStatus",
	    .doc = "Always ok; a failure returns 503."),
	H(version, .doc = "Version of the service."),
	H(components, .shape = &component_shape,
	    .doc = "Parts of the "
		   "service."),
	FIELD_END,
};
const struct shape health_shape = {
	.name = "Health",
	.fields = health_fields,
	.size = sizeof(struct health),
	.doc = "Health of the service.",
};

static const struct field login_address_fields[] = {
	A(url, .doc = "URL that the browser opens to sign in."),
	A(state,
	    .doc = "One-time value that the Git server returns with the "
		   "code."),
	FIELD_END,
};
const struct shape login_address_shape = {
	.name = "LoginAddress",
	.fields = login_address_fields,
	.size = sizeof(struct login_address),
	.doc = "URL to start a sign-in.",
};

static const struct field login_request_fields[] = {
	R(code, .min = 1, .max = 1000,
	    .doc = "Authorization code from the Git "
		   "server."),
	R(state, .min = 1, .max = 100,
	    .doc = "State from the Git server's "
		   "redirect."),
	FIELD(struct login_request, iss, FIELD_IN | FIELD_NULL | FIELD_LINE,
	    .max = 1000,
	    .doc = "Parameter \"iss\" from the redirect (RFC 9207), if "
		   "present. A value that does not belong to the Git server is "
		   "rejected."),
	FIELD_END,
};
const struct shape login_request_shape = {
	.name = "LoginRequest",
	.fields = login_request_fields,
	.size = sizeof(struct login_request),
	.doc = "Parameters with which the Git server redirected the browser.",
};

static const struct field login_fields[] = {
	L(token, 0, .doc = "Session token."),
	L(expires_at, 0, .doc = "When the session expires at the latest."),
	L(user, FIELD_ONE, .shape = &user_shape, .doc = "The signed-in user."),
	FIELD_END,
};
const struct shape login_shape = {
	.name = "Login",
	.fields = login_fields,
	.size = sizeof(struct login),
	.doc = "A new session.",
};

static const struct field git_branch_fields[] = {
	B(name, .doc = "Name of the branch."),
	B(commit_hash, .doc = "Commit at the tip of the branch."),
	B(is_protected, .outside = "protected",
	    .doc = "Whether the Git server protects the branch."),
	B(is_default, .outside = "default",
	    .doc = "Whether it is the default branch of the repository."),
	FIELD_END,
};
const struct shape git_branch_shape = {
	.name = "GitBranch",
	.fields = git_branch_fields,
	.size = sizeof(struct forge_branch),
	.doc = "A branch as the Git server reports it.",
};

#define K(m, fl, ...)                                                          \
	FIELD(struct hook_access, m, FIELD_OUT | (fl), __VA_ARGS__)
static const struct field hook_access_fields[] = {
	K(secret, 0,
	    .doc = "Secret with which the Git server signs push "
		   "events."),
	K(url, FIELD_NULL,
	    .doc = "URL for push events; null if the service does not know its "
		   "own URL (api.url)."),
	FIELD_END,
};
const struct shape hook_access_shape = {
	.name = "HookAccess",
	.fields = hook_access_fields,
	.size = sizeof(struct hook_access),
	.doc = "Settings for the webhook at the Git server.",
};

#define D(m, ...) FIELD(struct deployment, m, FIELD_OUT | __VA_ARGS__)
static const struct field hook_deployment_fields[] = {
	D(id, 0, .doc = "Id of the deployment."),
	D(project_id, 0, .doc = "Project to deploy."),
	D(pipeline_id, 0, .doc = "Pipeline of the trigger."),
	D(branch, 0, .doc = "Pushed branch."),
	D(commit_hash, 0, .doc = "Pushed commit."),
	D(commit_message, FIELD_NULL, .doc = "Message of the commit."),
	D(status, 0, .values = state_deployments, .named = "DeploymentStatus",
	    .doc = "Status of the deployment."),
	D(trigger, 0, .values = deployment_triggers,
	    .named = "DeploymentTrigger", .doc = "Always webhook."),
	D(created_at, 0, .doc = "Time of creation."),
	FIELD_END,
};
const struct shape hook_deployment_shape = {
	.name = "HookDeployment",
	.fields = hook_deployment_fields,
	.size = sizeof(struct deployment),
	.doc = "A deployment that a push started.",
};

#define T(m, fl, ...)                                                          \
	FIELD(struct template_request, m, FIELD_IN | (fl), __VA_ARGS__)
static const char *const preset_choices[] = { "add", "none", NULL };
static const struct field template_request_fields[] = {
	T(template_id, FIELD_MUST, .min = 1, .max = 64,
	    .shown = "[a-z0-9][a-z0-9._-]*", .doc = "Template to use."),
	T(project_id, FIELD_MUST, .min = 1,
	    .doc = "Project of the new "
		   "pipeline."),
	T(name, FIELD_LINE | FIELD_NULL, .min = 1, .max = 100,
	    .doc = "Name of the pipeline; the default is the template's name."),
	T(description, FIELD_NULL | FIELD_TEXT, .max = 500,
	    .doc = "Description of the pipeline; the default is the "
		   "template's."),
	T(presets, 0, .values = preset_choices, .named = "TemplatePresets",
	    .doc = "add (the default) adds those envPresets of the template "
		   "whose keys the project lacks; none leaves the project "
		   "unchanged."),
	FIELD_END,
};
const struct shape template_request_shape = {
	.name = "TemplateRequest",
	.fields = template_request_fields,
	.size = sizeof(struct template_request),
	.doc = "A pipeline to create from a template.",
};
