/* SPDX-License-Identifier: ISC */
/*
 * Reads what an approver is shown: whether the repository has the commit of a
 * deployment on its branch or tag, and the commit's message.
 *
 * Requests of users are compared with the repository when they arrive.  An event
 * of a push is only signed, so that whoever knows the secret can put any text in
 * it, and Git servers do not wait long for the response.
 */
#include "access/setter.h"
#include "core/log.h"
#include "core/str.h"
#include "dispatch/child.h"
#include "dispatch/context.h"
#include "dispatch/remote.h"
#include "dispatch/sender.h"
#include "store/fact.h"

#define ONE_MS 10000
#define TAGS_MAX 1000000
#define MESSAGE_MAX 4000 /* bytes */

/* In the child. */
struct factfinder {
	struct dispatch *d;
	struct arena *a;
	struct access access;
	struct fact fact;
	struct remote remote;
	struct forge_repo stored;
	struct forge_commit commit;
	enum forge_contains found;
};

/* The commit at the end of the branch, or of the tag; NULL if there is none. */
static const struct err *
tip_find(struct factfinder *x, struct forge *forge, const char *token,
    const struct forge_repo *repo, const char **out)
{
	struct settings_gitserver s = x->d->settings.gitserver;
	struct forge_page page = { .page = 1,
		.limit = x->fact.tag != NULL ? TAGS_MAX : 1 };
	const struct forge_commit *commits;
	const struct forge_branch *tags;
	const struct err *e;
	const char *address;
	struct list list;
	size_t i;

	*out = NULL;
	if (x->fact.tag == NULL) {
		e = forge_commits(forge, x->a, token, repo,
		    x->fact.branch != NULL ? x->fact.branch :
					     repo->default_branch,
		    &page, &list);
		commits = list.items;
		if (e == NULL && list.n > 0)
			*out = commits[0].hash;
		return e;
	}
	s.token = token;
	if ((e = forge_repo_at(forge, x->a, x->fact.repository, repo->path,
		 &address)) != NULL ||
	    (e = forge_ls_tags(&s, x->a, address, time_mono_ms() + ONE_MS,
		 &page, &list)) != NULL)
		return e;
	tags = list.items;
	for (i = 0; *out == NULL && i < list.n; i++)
		if (str_eq(tags[i].name, x->fact.tag))
			*out = tags[i].commit_hash;
	return NULL;
}

static const struct err *
facts_ask(struct forge *forge, struct arena *a,
    const struct access_token *token, void *context)
{
	struct factfinder *x = context;
	struct forge_repo repo = x->stored;
	const char *hash = x->fact.commit_hash, *tip;
	const struct err *e;

	if (token->text == NULL)
		repo.id = NULL;
	if ((e = forge_repo_find(forge, a, token->text, &repo)) != NULL)
		return e;
	if (x->stored.id != NULL && !str_eq(x->stored.id, repo.id))
		return err_new(ERR_NOTFOUND, "another repository is there");
	if ((e = forge_commit_find(forge, a, token->text, &repo, hash,
		 &x->commit)) != NULL ||
	    (e = tip_find(x, forge, token->text, &repo, &tip)) != NULL)
		return e;
	x->found = str_eq(tip, hash) ? FORGE_INSIDE : FORGE_OUTSIDE;
	if (tip == NULL || x->found == FORGE_INSIDE)
		return NULL;
	return forge_contains(forge, a, token->text, &repo, tip, hash,
	    &x->found);
}

/* With the access of the user on whose behalf the job will read it. */
static const struct err *
fact_read(struct factfinder *x)
{
	const struct fact *f = &x->fact;
	const struct err *e;

	x->found = FORGE_UNSURE;
	x->remote = (struct remote){ f->project_id, f->repository };
	if (f->has_left ||
	    !remote_is_known(x->access.forge, x->a, f->repository))
		return NULL;
	forge_until(x->access.forge, time_mono_ms() + ONE_MS);
	if ((e = remote_recall(x->access.forge, x->access.db, x->a, &x->remote,
		 &x->stored)) != NULL ||
	    (e = setter_check(&x->access, x->a, f->project_id,
		 f->repository)) != NULL)
		return e;
	return access_call(&x->access, x->a, f->read_by.n, facts_ask, x);
}

static enum sent
fact_handle(struct factfinder *x)
{
	struct fact *f = &x->fact;
	const struct err *e = fact_read(x);

	if (e == NULL && x->found == FORGE_INSIDE) {
		f->commit_message = x->commit.message == NULL ?
		    NULL :
		    str_clip(x->a, str_chomp(x->a, x->commit.message),
			MESSAGE_MAX);
		e = fact_save(x->access.db, f);
	} else if (e == NULL) {
		log_info("deployment %lld waits for approval: the Git server "
			 "does not confirm its commit",
		    (long long)f->id);
	}
	if (e == NULL)
		return SENT;
	log_info("deployment %lld waits for approval: its commit: %s",
	    (long long)f->id, err_words(e));
	return e->code == ERR_UNAVAILABLE ? SENT_AWAY : SENT;
}

static enum sent
facts_find(struct dispatch *d)
{
	const int64_t end = time_mono_ms() + SENDER_TURN_MS;
	struct factfinder x = { .d = d, .a = d->a };
	const struct err *e;

	if ((e = child_connect(d, &x.access)) != NULL) {
		log_err(e, "commits that wait for approval");
		return SENT_AWAY;
	}
	while (time_mono_ms() < end) {
		arena_clear(x.a);
		e = fact_take(x.access.db, x.a, &x.fact);
		if (e != NULL && e->code == ERR_NOTFOUND)
			break;
		if (e != NULL)
			log_err(e, "commits that wait for approval");
		if (e != NULL || fact_handle(&x) == SENT_AWAY)
			return SENT_AWAY;
	}
	return SENT;
}

static bool
facts_is_enabled(const struct dispatch *d)
{
	return d->forge != NULL && forge_has_api(d->forge);
}

static const struct sender_kind facts = {
	.what = "commits that wait for approval",
	.children = 1,
	.is_enabled = facts_is_enabled,
	.due = fact_due,
	.send = facts_find,
};

SENDER_FUNCTIONS(facts, facts)

const struct part facts_part = { SENDER_MEMBERS(facts) };
