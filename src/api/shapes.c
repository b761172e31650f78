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
	N(id, .doc = "Number of the project, as text."),
	N(name, .doc = "Its name."),
	FIELD_END,
};
const struct shape project_name_shape = {
	.name = "ProjectName",
	.fields = project_name_fields,
	.size = sizeof(struct project_name),
	.doc = "A project by its number and name.",
};

static const char *const component_statuses[] = { "ok", "down", NULL };
static const struct field component_fields[] = {
	C(name, 0, .doc = "Part of the service."),
	C(status, 0, .values = component_statuses, .named = "ComponentStatus",
	    .doc = "How it is."),
	C(detail, FIELD_NULL, .doc = "What is wrong with it."),
	FIELD_END,
};
static const struct shape component_shape = {
	.name = "HealthComponent",
	.fields = component_fields,
	.size = sizeof(struct component),
	.doc = "A part of the service, and how it is.",
};
static const char *const health_statuses[] = { "ok", NULL };
static const struct field health_fields[] = {
	H(status, .values = health_statuses, .named = "HealthStatus",
	    .doc = "ok; else 503 is sent."),
	H(version, .doc = "Version of the service."),
	H(components, .shape = &component_shape, .doc = "Its parts."),
	FIELD_END,
};
const struct shape health_shape = {
	.name = "Health",
	.fields = health_fields,
	.size = sizeof(struct health),
	.doc = "How the service is.",
};

static const struct field login_address_fields[] = {
	A(url, .doc = "Where the browser goes to sign in."),
	A(state, .doc = "One-time value that comes back with the code."),
	FIELD_END,
};
const struct shape login_address_shape = {
	.name = "LoginAddress",
	.fields = login_address_fields,
	.size = sizeof(struct login_address),
	.doc = "Where a sign-in begins.",
};

static const struct field login_request_fields[] = {
	R(code, .min = 1, .max = 1000, .doc = "The code of the Git server."),
	R(state, .min = 1, .max = 100, .doc = "The state it came with."),
	FIELD(struct login_request, iss, FIELD_IN | FIELD_NULL | FIELD_LINE,
	    .max = 1000,
	    .doc = "The \"iss\" it came with (RFC 9207), if any: an answer of "
		   "another server is refused."),
	FIELD_END,
};
const struct shape login_request_shape = {
	.name = "LoginRequest",
	.fields = login_request_fields,
	.size = sizeof(struct login_request),
	.doc = "What the Git server sent the browser back with.",
};

static const struct field login_fields[] = {
	L(token, 0, .doc = "Token of the session."),
	L(expires_at, 0, .doc = "When the session ends at the latest."),
	L(user, FIELD_ONE, .shape = &user_shape, .doc = "Who signed in."),
	FIELD_END,
};
const struct shape login_shape = {
	.name = "Login",
	.fields = login_fields,
	.size = sizeof(struct login),
	.doc = "A session that has begun.",
};

static const struct field git_branch_fields[] = {
	B(name, .doc = "Name of the branch."),
	B(commit_hash, .doc = "Commit at its tip."),
	B(is_protected, .outside = "protected",
	    .doc = "Whether the Git server guards it."),
	B(is_default, .outside = "default",
	    .doc = "Whether it is the repository's default."),
	FIELD_END,
};
const struct shape git_branch_shape = {
	.name = "GitBranch",
	.fields = git_branch_fields,
	.size = sizeof(struct forge_branch),
	.doc = "A branch of a repository, as the Git server has it.",
};

#define K(m, fl, ...)                                                          \
	FIELD(struct hook_access, m, FIELD_OUT | (fl), __VA_ARGS__)
static const struct field hook_access_fields[] = {
	K(secret, 0, .doc = "What the Git server signs push events with."),
	K(url, FIELD_NULL,
	    .doc = "Where it sends them; null: this service does not know how "
		   "it is reached (api.url)."),
	FIELD_END,
};
const struct shape hook_access_shape = {
	.name = "HookAccess",
	.fields = hook_access_fields,
	.size = sizeof(struct hook_access),
	.doc = "What a Git server needs to send push events.",
};

#define D(m, ...) FIELD(struct deployment, m, FIELD_OUT | __VA_ARGS__)
static const struct field hook_deployment_fields[] = {
	D(id, 0, .doc = "Number of the deployment."),
	D(project_id, 0, .doc = "Project that is deployed."),
	D(pipeline_id, 0, .doc = "Pipeline of the trigger."),
	D(branch, 0, .doc = "Branch that was pushed."),
	D(commit_hash, 0, .doc = "Commit that was pushed."),
	D(commit_message, FIELD_NULL, .doc = "Its message."),
	D(status, 0, .values = state_deployments, .named = "DeploymentStatus",
	    .doc = "How far it is."),
	D(trigger, 0, .values = deployment_triggers,
	    .named = "DeploymentTrigger", .doc = "webhook."),
	D(created_at, 0, .doc = "When it was made."),
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
	    .shown = "[a-z0-9][a-z0-9._-]*", .doc = "Template to start from."),
	T(project_id, FIELD_MUST, .min = 1, .doc = "Project that it is for."),
	T(name, FIELD_LINE | FIELD_NULL, .min = 1, .max = 100,
	    .doc = "Name of the pipeline; default: the template's."),
	T(description, FIELD_NULL | FIELD_TEXT, .max = 500,
	    .doc = "What it does; default: the template's."),
	T(presets, 0, .values = preset_choices, .named = "TemplatePresets",
	    .doc = "add, the default: the template's envPresets whose keys "
		   "the project lacks are added to it; none: the project "
		   "stays as it is."),
	FIELD_END,
};
const struct shape template_request_shape = {
	.name = "TemplateRequest",
	.fields = template_request_fields,
	.size = sizeof(struct template_request),
	.doc = "A pipeline to make from a template.",
};
