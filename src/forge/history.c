/* SPDX-License-Identifier: ISC */
#include "core/str.h"
#include "forge/inner.h"

static const struct err *
commits_list(struct forge *f, struct arena *a, const struct forge_ask *ask,
    struct forge_page *page, struct list *out)
{
	forge_begin(f);
	return forge_list(f, a, ask,
	    &(struct forge_rows){ .paths = f->ops->path.commit,
		.size = sizeof(struct forge_commit),
		.cut = offsetof(struct forge_commit, message) },
	    page, out);
}

const struct err *
forge_history(struct forge *f, struct arena *a, const char *access,
    const struct forge_repo *repo, const char *hash, struct forge_page *page,
    struct list *out)
{
	*out = (struct list){ .items = NULL };
	page->has_more = false;
	return commits_list(f, a,
	    &(struct forge_ask){
		.url = forge_url(f, a, f->ops->form.history, repo, NULL, hash),
		.access = access },
	    page, out);
}

/* Asks for one commit; `path` is where the response has it. */
static const struct err *
commit_ask(struct forge *f, struct arena *a, const struct forge_ask *ask,
    const struct json_path *path, struct forge_commit *out)
{
	struct http_response got;
	const struct err *e;

	*out = (struct forge_commit){ .hash = NULL };
	forge_begin(f);
	if ((e = forge_ask(f, a, ask, &got)) != NULL ||
	    (e = forge_judge(f, a, &got)) != NULL)
		return e;
	return json_pick(a, path, got.body, got.len, out);
}

/* Servers also take the name of a branch or tag, which can look like a hash. */
const struct err *
forge_commit_find(struct forge *f, struct arena *a, const char *access,
    const struct forge_repo *repo, const char *hash, struct forge_commit *out)
{
	const struct forge_ask ask = {
		.url = forge_url(f, a, f->ops->form.commit, repo, NULL, hash),
		.access = access
	};
	const struct err *e;

	e = commit_ask(f, a, &ask, f->ops->path.commit, out);
	if (e != NULL)
		return e;
	return str_starts(out->hash, hash) ?
	    NULL :
	    err_public(ERR_NOTFOUND, "The repository has no such commit.");
}

static const struct err *
base_compare(struct forge *f, struct arena *a, const struct forge_ask *ask,
    const char *hash, enum forge_contains *out)
{
	struct forge_commit base;
	const struct err *e;

	if ((e = commit_ask(f, a, ask, f->ops->path.base, &base)) != NULL)
		return e;
	*out = str_eq(base.hash, hash) ? FORGE_INSIDE : FORGE_OUTSIDE;
	return NULL;
}

/* Whether the history of `hash` has commits that that of `tip` lacks. */
static const struct err *
beyond_ask(struct forge *f, struct arena *a, const struct forge_ask *ask,
    bool *out)
{
	struct forge_page page = { .page = 1, .limit = 1 };
	struct list got = { .items = NULL };
	const struct err *e;

	e = commits_list(f, a, ask, &page, &got);
	*out = got.n > 0;
	return e;
}

/* A version that ignores what to leave out lists the commit also if that is the
 * commit itself. */
static const struct err *
beyond_compare(struct forge *f, struct arena *a, struct forge_ask *ask,
    const struct forge_repo *repo, const char *hash, enum forge_contains *out)
{
	const struct err *e;
	bool has_any;

	if ((e = beyond_ask(f, a, ask, &has_any)) != NULL)
		return e;
	if (!has_any) {
		*out = FORGE_INSIDE;
		return NULL;
	}
	ask->url = forge_url(f, a, f->ops->form.beyond, repo, hash, hash);
	if ((e = beyond_ask(f, a, ask, &has_any)) == NULL && !has_any)
		*out = FORGE_OUTSIDE;
	return e;
}

const struct err *
forge_contains(struct forge *f, struct arena *a, const char *access,
    const struct forge_repo *repo, const char *tip, const char *hash,
    enum forge_contains *out)
{
	const struct forge_forms *form = &f->ops->form;
	struct forge_ask ask = { .access = access };

	*out = FORGE_UNSURE;
	if (form->base == NULL && form->beyond == NULL)
		return NULL;
	ask.url = forge_url(f, a,
	    form->base != NULL ? form->base : form->beyond, repo, tip, hash);
	return form->base != NULL ? base_compare(f, a, &ask, hash, out) :
				    beyond_compare(f, a, &ask, repo, hash, out);
}
