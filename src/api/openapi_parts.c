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
	    "'required':true,'schema':{'type':'integer','minimum':0}}" },
	[H_LOCATION] = { "Location", "Location",
	    "{'description':'Where the new resource is.','required':true,"
	    "'schema':{'type':'string','format':'uri-reference'}}" },
	[H_RETRY_AFTER] = { "RetryAfter", "Retry-After",
	    "{'description':'Seconds to wait.','required':true,"
	    "'schema':{'type':'integer','minimum':0}}" },
	[H_AUTHENTICATE] = { "Authenticate", "WWW-Authenticate",
	    "{'description':'How to sign in.','required':true,"
	    "'schema':{'type':'string'}}" },
	[H_LOG_SIZE] = { "LogSize", "X-Log-Size",
	    "{'description':'Bytes of the log so far.','required':true,"
	    "'schema':{'type':'integer','minimum':0}}" },
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
	    "'schema':{'type':'string','minLength':1,'maxLength':255}}" },
};

const struct tag openapi_tags[] = {
	{ "projects", "Git repositories and how they are deployed." },
	{ "pipelines", "Steps in order." },
	{ "steps", "Shell scripts of pipelines." },
	{ "templates", "Pipelines to begin with." },
	{ "deployments", "Pipelines that ran, run or will run." },
	{ "users", "Who may do what." },
	{ "auth", "Signing in, and tokens for programs." },
	{ "git", "What the Git server knows, read live." },
	{ "hooks", "Push events of Git servers." },
	{ "service", "The service itself." },
	{ NULL, NULL },
};

const char openapi_info[] =
    "{'title':'slipway','summary':'Continuous deployment behind nginx.',"
    "'description':'JSON over HTTPS. HEAD works wherever GET does; OPTIONS "
    "answers Allow. Times are RFC 3339 in UTC, ids are integers up to "
    "2^53-1. Unknown members of a body are refused by name. A write with "
    "the session cookie must come from the same origin.',"
    "'license':{'name':'ISC','identifier':'ISC'},'version':";

const char openapi_problem[] =
    "{'type':'object','description':'Problem details (RFC 9457).',"
    "'properties':{'type':{'type':'string','format':'uri-reference'},"
    "'title':{'type':'string'},'status':{'type':'integer','minimum':400,"
    "'maximum':599},'detail':{'type':'string','minLength':1},"
    "'code':{'type':'string','enum':[";
const char openapi_problem_end[] =
    "]},'requestId':{'type':'string'},'errors':{'type':'array','items':"
    "{'type':'object','properties':{'pointer':{'type':'string',"
    "'description':'JSON Pointer into the body.'},'detail':"
    "{'type':'string','minLength':1}},'required':['pointer','detail'],"
    "'additionalProperties':false}}},'required':['type','title','status',"
    "'detail','code','requestId'],'additionalProperties':false}";

const char openapi_security[] =
    "'securitySchemes':{'bearer':{'type':'http','scheme':'bearer',"
    "'description':'An API token or a session.'},'cookie':{'type':"
    "'apiKey','in':'cookie','name':'__Host-slipway','description':'The "
    "session of a browser.'}}";

/* clang-format off */
#define LIMIT "'limit':{'type':'integer','minimum':1,'maximum':100}"
#define PAGE "'page':{'type':'integer','minimum':1}," LIMIT
#define OBJECT "{'type':'object','additionalProperties':false,"
/* clang-format on */

const struct part openapi_paginations[] = {
	[LIST_NONE] = { NULL, NULL, NULL },
	[LIST_PAGES] = { "Pages", NULL,
	    OBJECT "'properties':{" PAGE
		   ",'total':{'type':'integer','minimum':0},'totalPages':"
		   "{'type':'integer','minimum':0}},"
		   "'required':['page','limit','total','totalPages']}" },
	[LIST_KEYS] = { "Cursor", NULL,
	    OBJECT "'properties':{" LIMIT ",'next':{'type':['string','null'],"
		   "'description':'The cursor of the next page.'}},"
		   "'required':['limit','next']}" },
	[LIST_MORE] = { "MorePages", NULL,
	    OBJECT "'properties':{" PAGE ",'hasMore':{'type':'boolean'}},"
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
