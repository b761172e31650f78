/* SPDX-License-Identifier: ISC */
#include "cli/approval.h"

#include <stdio.h>
#include <string.h>

#include "core/num.h"
#include "core/str.h"

#define NAMES 5 /* as many approvers are named */

/* Rules of an environment. */
struct rules {
	const char *name;
	const char *approvers; /* ids with commas between them */
};
static const struct json_path rules_paths[] = {
	JSON_PATH(struct rules, name, "name", .must = true),
	JSON_PATH(struct rules, approvers, "approvers", .joined = ""),
	JSON_PATH_END,
};

struct approver {
	const char *username;
};
static const struct json_path approver_paths[] = {
	JSON_PATH(struct approver, username, "username", .must = true),
	JSON_PATH_END,
};

/* The user who cannot approve it; 0 = there is none. */
static int64_t
starter_of(const struct deployment *d)
{
	return str_eq(d->trigger, "webhook") || str_eq(d->trigger, "schedule") ?
	    0 :
	    d->created_by;
}

/* NULL if the service does not name that user to the caller. */
static const char *
name_of(struct client *c, int64_t id)
{
	const char *path = arena_printf(c->a, "/api/user/detail/%lld",
	    (long long)id);
	struct http_response r;
	struct approver user;

	return client_object(c, path, approver_paths, &user, &r) == NULL ?
	    user.username :
	    NULL;
}

/* Fills in the names of users who can approve, and returns how many there are;
 * there may be more users than names. */
static size_t
approvers_find(struct client *c, const char *ids, int64_t starter,
    const char *names[NAMES], size_t *named)
{
	const char *name;
	size_t n = 0, len;
	int64_t id;

	*named = 0;
	for (; *ids != '\0'; ids += len + (ids[len] == ',')) {
		len = strcspn(ids, ",");
		if (!num_parse(arena_strndup(c->a, ids, len), 1, NUM_SAFE,
			&id) ||
		    id == starter)
			continue;
		n++;
		if (*named < NAMES && (name = name_of(c, id)) != NULL)
			names[(*named)++] = str_visible(c->a, name);
	}
	return n;
}

/* "ann, bob or another approver" */
static const char *
approvers_text(struct client *c, const struct rules *rules,
    const struct deployment *d)
{
	const char *names[NAMES], *text = "";
	size_t n, named, i;

	if (*rules->approvers == '\0')
		return starter_of(d) == 0 ?
		    "a maintainer" :
		    "a maintainer other than the user who started it";
	n = approvers_find(c, rules->approvers, starter_of(d), names, &named);
	if (named == 0)
		return "an approver of the environment";
	for (i = 0; i < named; i++)
		text = arena_printf(c->a, "%s%s%s", text,
		    i == 0                           ? "" :
			i + 1 == named && n == named ? " or " :
						       ", ",
		    names[i]);
	return n == named ? text :
			    arena_printf(c->a, "%s or another approver", text);
}

void
approval_print(struct client *c, const struct deployment *d)
{
	const struct client_settings *settings = c->call->settings;
	struct rules rules = { .approvers = NULL };
	const char *by = "an approver of the environment";
	struct http_response r;
	bool known;

	if (!str_eq(d->approval, "required") || !str_eq(d->status, "pending"))
		return;
	known = client_object(c,
		    arena_printf(c->a, "/api/environments/%lld",
			(long long)d->environment_id),
		    rules_paths, &rules, &r) == NULL &&
	    rules.approvers != NULL;
	if (known)
		by = approvers_text(c, &rules, d);
	(void)fprintf(stderr,
	    "deployment %lld%s%s waits for approval by %s. To approve it:\n"
	    "  slipway approve %lld%s%s\n",
	    (long long)d->id, known ? " to " : "",
	    known ? str_visible(c->a, rules.name) : "", by, (long long)d->id,
	    settings->host == NULL ? "" : " -H ",
	    settings->host == NULL ? "" : settings->host);
}

void
approval_name(struct client *c, struct deployment *d)
{
	if (d->approval_by == 0)
		return;
	d->approver = name_of(c, d->approval_by);
	if (d->approver == NULL)
		d->approver = arena_printf(c->a, "user %lld",
		    (long long)d->approval_by);
}
