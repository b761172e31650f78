/* SPDX-License-Identifier: ISC */
#include "web/openapi_parts.h"

#include <string.h>

#include "core/notice_event.h"

const struct part openapi_headers[H__MAX] = {
	[H_REQUEST_ID] = { "RequestId", "X-Request-Id",
	    "{'description':'Identifies the request in the logs.',"
	    "'required':true,"
	    "'schema':{'type':'string','minLength':1}}" },
	[H_ETAG] = { "ETag", "ETag",
	    "{'description':'Entity tag; changes when the resource does.',"
	    "'required':true,"
	    "'schema':{'type':'string','pattern':'^(?:W/)?\\\"[^\\\"]+\\\"$'}}" },
	[H_LINK] = { "Link", "Link",
	    "{'description':'Links to other pages (RFC 8288): first, prev, "
	    "next, last. Absent from an empty list.','schema':{'type':'string',"
	    "'pattern':'rel=\\\"first\\\"'}}" },
	[H_LINK_NEXT] = { "LinkNext", "Link",
	    "{'description':'Links to other pages (RFC 8288), if any.',"
	    "'schema':{'type':'string'}}" },
	[H_TOTAL] = { "TotalCount", "X-Total-Count",
	    "{'description':'Number of matching items on all pages.',"
	    "'required':true,'schema':{'type':'integer','format':'int64','minimum':0}}" },
	[H_LOCATION] = { "Location", "Location",
	    "{'description':'URL of the new resource.','required':true,"
	    "'schema':{'type':'string','format':'uri-reference'}}" },
	[H_RETRY_AFTER] = { "RetryAfter", "Retry-After",
	    "{'description':'Seconds to wait before the next attempt.',"
	    "'required':true,"
	    "'schema':{'type':'integer','format':'int64','minimum':0}}" },
	[H_AUTHENTICATE] = { "Authenticate", "WWW-Authenticate",
	    "{'description':'Authentication scheme.','required':true,"
	    "'schema':{'type':'string'}}" },
	[H_LOG_SIZE] = { "LogSize", "X-Log-Size",
	    "{'description':'Current size of the log in bytes.',"
	    "'required':true,"
	    "'schema':{'type':'integer','format':'int64','minimum':0}}" },
	[H_LOG_COMPLETE] = { "LogComplete", "X-Log-Complete",
	    "{'description':'Whether the log is complete.',"
	    "'required':true,'schema':{'type':'string',"
	    "'enum':['true','false']}}" },
	[H_CONTENT_RANGE] = { "ContentRange", "Content-Range",
	    "{'description':'Range of bytes in this response.','required':true,"
	    "'schema':{'type':'string','pattern':'^bytes '}}" },
	[H_COOKIE] = { "Cookie", "Set-Cookie",
	    "{'description':'Cookies for the browser, one or more: the session "
	    "(__Host-slipway) or a pending sign-in "
	    "(__Host-slipway-signin-…). Max-Age=0 deletes a cookie.',"
	    "'required':true,'schema':{'type':'string','pattern':"
	    "'^__Host-slipway(?:-signin-[0-9a-f]{16})?=[A-Za-z0-9_-]*; '}}" },
};

const struct part openapi_sent[S__MAX] = {
	[S_IF_NONE_MATCH] = { "IfNoneMatch", NULL,
	    "{'name':'If-None-Match','in':'header','description':'Entity tags "
	    "that the client has. If one still matches, a read returns 304 and "
	    "a change returns 412.',"
	    "'schema':{'type':'string'}}" },
	[S_IF_MATCH] = { "IfMatch", NULL,
	    "{'name':'If-Match','in':'header','description':'Entity tag that "
	    "the resource must still have; otherwise the response is 412.',"
	    "'schema':{'type':'string'}}" },
	[S_RANGE] = { "Range", NULL,
	    "{'name':'Range','in':'header','description':'One range of bytes "
	    "(RFC 9110). Any other value is ignored.',"
	    "'schema':{'type':'string'}}" },
	[S_IDEMPOTENCY] = { "IdempotencyKey", NULL,
	    "{'name':'Idempotency-Key','in':'header','description':'For 24 "
	    "hours, a request with the same key, user and body returns the "
	    "first response again.',"
	    "'schema':{'type':'string','minLength':1,'maxLength':257,"
	    "'pattern':'^(?:\\\"[\\\\x21\\\\x23-\\\\x5b\\\\x5d-\\\\x7e]{1,255}\\\"|"
	    "[\\\\x21\\\\x23-\\\\x7e][\\\\x21-\\\\x7e]{0,254})$'}}" },
};

const char openapi_info[] =
    "{'title':'slipway','summary':'Continuous deployment behind nginx.',"
    "'description':'JSON over HTTPS. Every path that accepts GET accepts "
    "HEAD. OPTIONS returns Allow. Times are RFC 3339 in UTC. Ids are integers "
    "up to 2^53-1. A body is limited to 1 MiB (an import of a project to 8 "
    "MiB) and 40,000 values (413), and to 32 levels (422). An unknown member "
    "of a body is an error that names it. "
    "A write with the session cookie must come from the same origin.',"
    "'contact':{'name':'The operators of this service'},"
    "'license':{'name':'ISC','identifier':'ISC'},'version':";

const char openapi_codes[] =
    "{'type':'string','description':'Error code for programs.',"
    "'enum':[";
const char openapi_fault[] =
    "{'type':'object','description':'One error in a body.',"
    "'properties':{'pointer':{'type':'string',"
    "'description':'JSON Pointer to the member.'},'detail':"
    "{'type':'string','minLength':1,'description':'What is wrong with the "
    "member.'}},'required':['pointer','detail'],"
    "'additionalProperties':false}";
const char openapi_device_error[] =
    "{'type':'string','description':'Why a device gets no token (RFC 8628, "
    "section 3.5); only in responses to POST /api/auth/device/token. "
    "authorization_pending: no user has decided yet. slow_down: no user has "
    "decided yet, and the interval is five seconds longer from now on. "
    "access_denied: a user has denied the request. expired_token: the device "
    "code is unknown, used or expired.',"
    "'enum':['authorization_pending','slow_down','access_denied',"
    "'expired_token']}";
const char openapi_problem[] =
    "{'type':'object','description':'Problem details (RFC 9457).',"
    "'properties':{'type':{'type':'string','format':'uri-reference',"
    "'description':'Always about:blank; code identifies the error.'},"
    "'title':{'type':'string','description':'Name of the HTTP status.'},"
    "'status':{'type':'integer','format':'int32','minimum':400,"
    "'maximum':599,'description':'HTTP status code.'},"
    "'detail':{'type':'string','minLength':1,'description':'What is wrong and "
    "what to do.'},"
    "'code':{'$ref':'#/components/schemas/ErrorCode'},"
    "'requestId':{'type':'string','description':'Value of X-Request-Id.'},"
    "'error':{'$ref':'#/components/schemas/DeviceError'},"
    "'errors':{'type':'array','items':{'$ref':'#/components/schemas/Fault'},"
    "'description':'All errors in the body.'}},"
    "'required':['type','title','status','detail','code','requestId'],"
    "'additionalProperties':false}";

static const struct {
	const char *name, *text;
} abouts[] = {
	{ "ComponentStatus", "Status of a part of the service." },
	{ "DeploymentReason",
	    "Why a deployment has its status." STATE_REASON_TEXTS },
	{ "DeploymentStatus",
	    "Status of a deployment." STATE_DEPLOYMENT_TEXTS },
	{ "AuditObject", "Type of the object that an audit entry is about." },
	{ "AuditVia", "Where a change came from." },
	{ "CancelThen", "What follows the cancellation of a deployment." },
	{ "Checkout", "What a pipeline checks out." },
	{ "DeploymentApproval",
	    "Whether a deployment waits for approval, was approved or was "
	    "denied." },
	{ "DeploymentTrigger", "What started a deployment." },
	{ "EnvironmentApproval",
	    "Whether deployments to an environment require approval." },
	{ "EnvVars",
	    "Environment variables by name. A value is limited to 65536 bytes "
	    "of UTF-8. All variables together are limited to 524288 bytes: the "
	    "bytes of each name and value, plus two for each variable. A null "
	    "marks a secret value, which is never returned. Names that "
	    "control the shell, the loader, git or this service are "
	    "rejected." },
	{ "ExtraEnv", "Who may set variables that the presets do not name." },
	{ "HealthStatus", "Status of the service." },
	{ "ImportAction", "What an import does with a part of a project." },
	{ "ImportType", "Type of a part of a project." },
	{ "MemberRole",
	    "What a member may do in the project. Each role includes the "
	    "rights of the one before it." },
	{ "NotifierEvent",
	    "An event of which notifiers send messages." NOTICE_EVENT_TEXTS },
	{ "NotifierKind", "Form of a notifier's messages." },
	{ "PresetType", "Kind of form field that a preset describes." },
	{ "Role",
	    "What a user may do. Each role includes the rights of the one "
	    "before it. A guest sees only the projects of which the user is a "
	    "member." },
	{ "RunWhen", "When a step runs." },
	{ "StepStatus", "Status of a step." STATE_STEP_TEXTS },
	{ "TemplatePresets",
	    "Whether to add a template's presets to the project." },
	{ "TokenRole",
	    "What an API token may do. Each role includes the rights of the "
	    "one before it." },
	{ "UserStatus", "Status of a user; a disabled user cannot sign in." },
	{ "WaitingReason", "Why a pending deployment does not run yet." },
	{ "WorkspaceState", "State of a project's workspace." },
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

const char openapi_security[] =
    "'securitySchemes':{'bearer':{'type':'http','scheme':'bearer',"
    "'description':'An API token or a session token.'},'cookie':{'type':"
    "'apiKey','in':'cookie','name':'__Host-slipway','description':'The "
    "session cookie of a browser.'}}";

/* clang-format off */
#define LIMIT								\
	"'limit':{'type':'integer','format':'int32','minimum':1,"	\
	"'maximum':500,'description':'Number of items on a page.'}"
#define PAGE								\
	"'page':{'type':'integer','format':'int32','minimum':1,"	\
	"'description':'Page number, from 1.'}," LIMIT
#define OBJECT								\
	"{'type':'object','additionalProperties':false,"		\
	"'description':'Position of this page in the list.',"
#define COUNT(name, about)						\
	"'" name "':{'type':'integer','format':'int64','minimum':0,"	\
	"'description':'" about "'}"
/* clang-format on */

const struct part openapi_paginations[] = {
	[LIST_NONE] = { NULL, NULL, NULL },
	[LIST_PAGES] = { "Pages", NULL,
	    OBJECT "'properties':{" PAGE "," COUNT("total",
		"Number of matching items.") "," COUNT("totalPages",
		"Number of pages.") "},"
				    "'required':['page','limit','total','totalPages']}" },
	[LIST_KEYS] = { "Cursor", NULL,
	    OBJECT "'properties':{" LIMIT ",'next':{'type':['string','null'],"
		   "'pattern':'^[1-9][0-9]{0,15}$','description':'Cursor "
		   "of the next page; null on the last page.'}},"
		   "'required':['limit','next']}" },
	[LIST_MORE] = { "MorePages", NULL,
	    OBJECT "'properties':{" PAGE
		   ",'hasMore':{'type':'boolean','description':"
		   "'Whether another page follows.'}},"
		   "'required':['page','limit','hasMore']}" },
	[LIST_BARE] = { NULL, NULL, NULL },
	[LIST_DATA] = { NULL, NULL, NULL },
};

static bool
has_etag(const struct route *rt)
{
	if ((rt->flags & ROUTE_TAGGED) != 0)
		return true;
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
