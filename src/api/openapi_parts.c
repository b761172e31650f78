/* SPDX-License-Identifier: ISC */
#include "api/openapi_parts.h"

#include <string.h>

const struct part openapi_headers[H__MAX] = {
	[H_REQUEST_ID] = { "RequestId", "X-Request-Id",
	    "{'description':'Names the request in the logs.','required':true,"
	    "'schema':{'type':'string','minLength':1}}" },
	[H_ETAG] = { "ETag", "ETag",
	    "{'description':'Changes with the resource.','required':true,"
	    "'schema':{'type':'string','pattern':'^(?:W/)?\\\"[^\\\"]+\\\"$'}}" },
	[H_LINK] = { "Link", "Link",
	    "{'description':'Other pages (RFC 8288): first, prev, next, last; "
	    "none of an empty list.','schema':{'type':'string',"
	    "'pattern':'rel=\\\"first\\\"'}}" },
	[H_LINK_NEXT] = { "LinkNext", "Link",
	    "{'description':'Other pages (RFC 8288), where there are any.',"
	    "'schema':{'type':'string'}}" },
	[H_TOTAL] = { "TotalCount", "X-Total-Count",
	    "{'description':'All that match, on every page.',"
	    "'required':true,'schema':{'type':'integer','format':'int64','minimum':0}}" },
	[H_LOCATION] = { "Location", "Location",
	    "{'description':'Where the new resource is.','required':true,"
	    "'schema':{'type':'string','format':'uri-reference'}}" },
	[H_RETRY_AFTER] = { "RetryAfter", "Retry-After",
	    "{'description':'Seconds to wait.','required':true,"
	    "'schema':{'type':'integer','format':'int64','minimum':0}}" },
	[H_AUTHENTICATE] = { "Authenticate", "WWW-Authenticate",
	    "{'description':'How to sign in.','required':true,"
	    "'schema':{'type':'string'}}" },
	[H_LOG_SIZE] = { "LogSize", "X-Log-Size",
	    "{'description':'Bytes of the log so far.','required':true,"
	    "'schema':{'type':'integer','format':'int64','minimum':0}}" },
	[H_LOG_COMPLETE] = { "LogComplete", "X-Log-Complete",
	    "{'description':'Whether nothing will be added.',"
	    "'required':true,'schema':{'type':'string',"
	    "'enum':['true','false']}}" },
	[H_CONTENT_RANGE] = { "ContentRange", "Content-Range",
	    "{'description':'Which bytes these are.','required':true,"
	    "'schema':{'type':'string','pattern':'^bytes '}}" },
	[H_COOKIE] = { "Cookie", "Set-Cookie",
	    "{'description':'For the browser, once or more: the session "
	    "(__Host-slipway) or a sign-in that was begun "
	    "(__Host-slipway-signin-…); with Max-Age=0 it has ended.',"
	    "'required':true,'schema':{'type':'string','pattern':"
	    "'^__Host-slipway(?:-signin-[0-9a-f]{16})?=[A-Za-z0-9_-]*; '}}" },
};

const struct part openapi_sent[S__MAX] = {
	[S_IF_NONE_MATCH] = { "IfNoneMatch", NULL,
	    "{'name':'If-None-Match','in':'header','description':'ETags that "
	    "the client has: if one of them still holds, 304, and 412 of a "
	    "change.',"
	    "'schema':{'type':'string'}}" },
	[S_IF_MATCH] = { "IfMatch", NULL,
	    "{'name':'If-Match','in':'header','description':'ETag that the "
	    "resource must still have, else 412.',"
	    "'schema':{'type':'string'}}" },
	[S_RANGE] = { "Range", NULL,
	    "{'name':'Range','in':'header','description':'One range of bytes "
	    "(RFC 9110); anything else is as if it were not there.',"
	    "'schema':{'type':'string'}}" },
	[S_IDEMPOTENCY] = { "IdempotencyKey", NULL,
	    "{'name':'Idempotency-Key','in':'header','description':'The same "
	    "key, user and body give the first answer again for 24 hours.',"
	    "'schema':{'type':'string','minLength':1,'maxLength':257,"
	    "'pattern':'^(?:\\\"[\\\\x21\\\\x23-\\\\x5b\\\\x5d-\\\\x7e]{1,255}\\\"|"
	    "[\\\\x21\\\\x23-\\\\x7e][\\\\x21-\\\\x7e]{0,254})$'}}" },
};

const char openapi_info[] =
    "{'title':'slipway','summary':'Continuous deployment behind nginx.',"
    "'description':'JSON over HTTPS. HEAD works wherever GET does; OPTIONS "
    "answers Allow. Times are RFC 3339 in UTC, ids are integers up to "
    "2^53-1. A body has at most 1 MiB and 40,000 values (413), and 32 levels "
    "(422). Unknown members of a body are refused by name. A write with "
    "the session cookie must come from the same origin.',"
    "'contact':{'name':'The operators of this service'},"
    "'license':{'name':'ISC','identifier':'ISC'},'version':";

const char openapi_codes[] =
    "{'type':'string','description':'What went wrong, for programs.',"
    "'enum':[";
const char openapi_fault[] =
    "{'type':'object','description':'One thing that is wrong with a body.',"
    "'properties':{'pointer':{'type':'string',"
    "'description':'JSON Pointer into the body.'},'detail':"
    "{'type':'string','minLength':1,'description':'What is wrong with it, "
    "for people.'}},'required':['pointer','detail'],"
    "'additionalProperties':false}";
const char openapi_problem[] =
    "{'type':'object','description':'Problem details (RFC 9457).',"
    "'properties':{'type':{'type':'string','format':'uri-reference',"
    "'description':'about:blank: title and status say it all.'},"
    "'title':{'type':'string','description':'The status in words.'},"
    "'status':{'type':'integer','format':'int32','minimum':400,"
    "'maximum':599,'description':'The status code.'},"
    "'detail':{'type':'string','minLength':1,'description':'What is wrong, "
    "and what to do, for people.'},"
    "'code':{'$ref':'#/components/schemas/ErrorCode'},"
    "'requestId':{'type':'string','description':'The X-Request-Id.'},"
    "'errors':{'type':'array','items':{'$ref':'#/components/schemas/Fault'},"
    "'description':'All that is wrong with the body.'}},"
    "'required':['type','title','status','detail','code','requestId'],"
    "'additionalProperties':false}";

static const struct {
	const char *name, *text;
} abouts[] = {
	{ "ComponentStatus", "How a part of the service is." },
	{ "DeploymentReason",
	    "Why a deployment ended as it did." STATE_REASON_TEXTS },
	{ "DeploymentStatus",
	    "How far a deployment is." STATE_DEPLOYMENT_TEXTS },
	{ "DeploymentTrigger", "What started a deployment." },
	{ "EnvVars",
	    "Variables by their names. A value has at most 65536 bytes in "
	    "UTF-8. All together have at most 524288: the bytes of each name "
	    "and value, and two more for each variable. Null stands for a "
	    "secret value, which is kept elsewhere. Names that steer the "
	    "shell, the loader, git or this service are refused." },
	{ "ExtraEnv", "Who may set variables that the presets do not name." },
	{ "HealthStatus", "How the service is." },
	{ "PresetType", "How a preset is asked for." },
	{ "Role", "What a user may do; each role has the former's rights." },
	{ "RunWhen", "After what a step runs." },
	{ "StepStatus", "How far a step is." STATE_STEP_TEXTS },
	{ "TemplatePresets", "What becomes of a template's presets." },
	{ "UserStatus", "Whether a user may sign in." },
	{ "WaitingReason", "Why a pending deployment does not run yet." },
	{ "WorkspaceState", "What is in a project's directory." },
};

const char *
openapi_about(const char *named)
{
	size_t i;

	for (i = 0; i < sizeof(abouts) / sizeof(abouts[0]); i++)
		if (strcmp(abouts[i].name, named) == 0)
			return abouts[i].text;
	return named;
}

const char *const openapi_hooks[HOOK__MAX] = {
	[HOOK_GITEA_EVENT] = "Gitea: the event.",
	[HOOK_GITEA_DELIVERY] = "Gitea: the delivery.",
	[HOOK_GITEA_SIGNATURE] = "Gitea: HMAC-SHA-256 of the body, in hex.",
	[HOOK_FORGEJO_EVENT] = "Forgejo: the event.",
	[HOOK_FORGEJO_DELIVERY] = "Forgejo: the delivery.",
	[HOOK_FORGEJO_SIGNATURE] = "Forgejo: HMAC-SHA-256 of the body, in hex.",
	[HOOK_GITLAB_EVENT] = "GitLab: the event.",
	[HOOK_GITLAB_TOKEN] = "GitLab: the secret itself.",
	[HOOK_GITLAB_UUID] = "GitLab: the event's number.",
	[HOOK_GITHUB_EVENT] = "GitHub: the event.",
	[HOOK_GITHUB_DELIVERY] = "GitHub: the delivery.",
	[HOOK_HUB_SIGNATURE] =
	    "GitHub: sha256= and HMAC-SHA-256 of the body, in hex.",
	[HOOK_WEBHOOK_ID] = "Standard Webhooks: the delivery.",
	[HOOK_WEBHOOK_TIMESTAMP] =
	    "Standard Webhooks: seconds since 1970, five minutes away at most.",
	[HOOK_WEBHOOK_SIGNATURE] =
	    "Standard Webhooks: v1, and HMAC-SHA-256 in base64.",
	[HOOK_IDEMPOTENCY_KEY] = "GitLab: the delivery.",
};

const char openapi_security[] =
    "'securitySchemes':{'bearer':{'type':'http','scheme':'bearer',"
    "'description':'An API token or a session.'},'cookie':{'type':"
    "'apiKey','in':'cookie','name':'__Host-slipway','description':'The "
    "session of a browser.'}}";

/* clang-format off */
#define LIMIT								\
	"'limit':{'type':'integer','format':'int32','minimum':1,"	\
	"'maximum':100,'description':'Items on a page.'}"
#define PAGE								\
	"'page':{'type':'integer','format':'int32','minimum':1,"	\
	"'description':'Number of the page, from 1.'}," LIMIT
#define OBJECT								\
	"{'type':'object','additionalProperties':false,"		\
	"'description':'Which part of the list this is.',"
#define COUNT(name, about)						\
	"'" name "':{'type':'integer','format':'int64','minimum':0,"	\
	"'description':'" about "'}"
/* clang-format on */

const struct part openapi_paginations[] = {
	[LIST_NONE] = { NULL, NULL, NULL },
	[LIST_PAGES] = { "Pages", NULL,
	    OBJECT "'properties':{" PAGE "," COUNT("total",
		"All that match.") "," COUNT("totalPages",
		"How many pages they fill.") "},"
					     "'required':['page','limit','total','totalPages']}" },
	[LIST_KEYS] = { "Cursor", NULL,
	    OBJECT "'properties':{" LIMIT ",'next':{'type':['string','null'],"
		   "'pattern':'^[1-9][0-9]{0,15}$','description':'The cursor "
		   "of the next page; null: this is the last one.'}},"
		   "'required':['limit','next']}" },
	[LIST_MORE] = { "MorePages", NULL,
	    OBJECT "'properties':{" PAGE
		   ",'hasMore':{'type':'boolean','description':"
		   "'Whether there is a next page.'}},"
		   "'required':['page','limit','hasMore']}" },
	[LIST_BARE] = { NULL, NULL, NULL },
	[LIST_DATA] = { NULL, NULL, NULL },
};

static bool
has_etag(const struct route *rt)
{
	return rt->list == LIST_NONE &&
	    (rt->out != NULL ||
		(rt->type != NULL &&
		    strcmp(rt->type, "application/json") == 0));
}

unsigned
openapi_sent_of(const struct route *rt)
{
	unsigned bits = 0;

	if (rt->method == METHOD_GET && has_etag(rt))
		bits |= BIT(S_IF_MATCH) | BIT(S_IF_NONE_MATCH);
	if ((rt->flags & ROUTE_GUARDED) != 0)
		bits |= BIT(S_IF_MATCH) | BIT(S_IF_NONE_MATCH);
	if ((rt->flags & ROUTE_RANGE) != 0)
		bits |= BIT(S_RANGE);
	if ((rt->flags & ROUTE_IDEMPOTENT) != 0)
		bits |= BIT(S_IDEMPOTENCY);
	return bits;
}

unsigned
openapi_headers_of(const struct route *rt)
{
	static const unsigned by_list[] = {
		[LIST_NONE] = 0,
		[LIST_PAGES] = BIT(H_LINK) | BIT(H_TOTAL),
		[LIST_KEYS] = BIT(H_LINK_NEXT),
		[LIST_MORE] = BIT(H_LINK_NEXT),
		[LIST_BARE] = 0,
		[LIST_DATA] = 0,
	};
	unsigned bits = BIT(H_REQUEST_ID) | by_list[rt->list];

	if (has_etag(rt))
		bits |= BIT(H_ETAG);
	if (rt->status == 201)
		bits |= BIT(H_LOCATION);
	if ((rt->flags & ROUTE_RANGE) != 0)
		bits |= BIT(H_LOG_SIZE) | BIT(H_LOG_COMPLETE);
	if ((rt->flags & ROUTE_COOKIE) != 0)
		bits |= BIT(H_COOKIE);
	return bits;
}

unsigned
openapi_errors_of(const struct route *rt)
{
	const enum err_code *code;
	unsigned bits = BIT(ERR_BAD_REQUEST) | BIT(ERR_INTERNAL) |
	    BIT(ERR_UNAVAILABLE);

	if (rt->role != ROLE_NONE)
		bits |= BIT(ERR_UNAUTHENTICATED) | BIT(ERR_FORBIDDEN);
	if (strchr(rt->path, '{') != NULL)
		bits |= BIT(ERR_NOTFOUND);
	if (rt->in != NULL || (rt->flags & ROUTE_SIGNED) != 0)
		bits |= BIT(ERR_TOO_LARGE) | BIT(ERR_MEDIA_TYPE) |
		    BIT(ERR_INVALID);
	if ((rt->flags & ROUTE_GUARDED) != 0 ||
	    (rt->method == METHOD_GET && has_etag(rt)))
		bits |= BIT(ERR_PRECONDITION);
	if ((rt->flags & ROUTE_RANGE) != 0)
		bits |= BIT(ERR_RANGE);
	if ((rt->flags & ROUTE_IDEMPOTENT) != 0)
		bits |= BIT(ERR_INVALID);
	for (code = rt->errors; code != NULL && *code != ERR__MAX; code++)
		bits |= BIT(*code);
	return bits;
}
