/* SPDX-License-Identifier: ISC */
#include "deploy/notified.h"

#include <string.h>

#include "core/address.h"
#include "core/str.h"
#include "json/json.h"
#include "store/environment.h"
#include "store/project.h"

#define ADDRESSES_MAX 20
#define URL_ERE "https://[!-~]+"

static bool
are_addresses(struct arena *a, const char *list)
{
	size_t n, len;

	for (n = 0; n <= ADDRESSES_MAX; n++, list += len + 1) {
		list += strspn(list, " ");
		len = strcspn(list, ",");
		if (!str_matches(arena_strndup(a, list, len), ADDRESS_MAIL_ERE))
			return false;
		if (list[len] == '\0')
			return n < ADDRESSES_MAX;
	}
	return false;
}

static void
target_judge(struct arena *a, struct faults *faults, const struct notifier *n)
{
	struct address ad;

	if (n->target == NULL || n->kind == NULL ||
	    faults_has(faults, "/target"))
		return;
	if (str_eq(n->kind, NOTIFIER_MAIL)) {
		if (!are_addresses(a, n->target))
			faults_add(faults, "/target",
			    "must be 1 to 20 mail addresses like "
			    "team@example.org, separated by commas");
	} else if (!str_matches(n->target, URL_ERE) ||
	    strpbrk(n->target, "\"\\#") != NULL ||
	    !address_read(n->target, &ad) || ad.user_len != 0) {
		faults_add(faults, "/target",
		    "must be a URL like https://chat.example.org/hook");
	}
}

static const struct err *
events_judge(struct deploy *deploy, const struct notifier *n)
{
	const char *const *names;
	const struct err *e;
	struct list list;
	size_t i, k;

	if (n->events.s == NULL)
		return NULL;
	e = json_items_sent(deploy->a, &notifier_event_shape, n->events.s,
	    &list);
	names = list.items;
	for (i = 1; e == NULL && i < list.n; i++)
		for (k = 0; k < i; k++)
			if (names[i] != NULL && str_eq(names[i], names[k]))
				faults_add(deploy->faults,
				    arena_printf(deploy->a, "/events/%zu", i),
				    "is listed twice");
	return e;
}

static const struct err *
environment_judge_of(struct deploy *deploy, const struct notifier *n)
{
	struct environment env;
	const struct err *e;

	if (!n->project_id.set) {
		faults_add(deploy->faults, "/environmentId",
		    "requires projectId");
		return NULL;
	}
	e = environment_by_id(deploy->db, deploy->a, n->environment_id.n, &env);
	if (e != NULL && e->code != ERR_NOTFOUND)
		return e;
	if (e != NULL || env.project_id != n->project_id.n)
		faults_add(deploy->faults, "/environmentId",
		    "is not an environment of the project");
	return NULL;
}

const struct err *
notified_judge(struct deploy *deploy, const struct notifier *n)
{
	const struct err *e;
	struct project p;

	target_judge(deploy->a, deploy->faults, n);
	if ((e = events_judge(deploy, n)) != NULL)
		return e;
	if (n->project_id.set) {
		e = project_by_id(deploy->db, deploy->a, n->project_id.n, &p);
		if (e != NULL && e->code != ERR_NOTFOUND)
			return e;
		if (e != NULL) {
			faults_add(deploy->faults, "/projectId", "is unknown");
			return NULL;
		}
	}
	return n->environment_id.set ? environment_judge_of(deploy, n) : NULL;
}
