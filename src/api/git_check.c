/* SPDX-License-Identifier: ISC */
/* Whether a repository has the branch, tag and commit that a request names. */
#include <string.h>
#include <strings.h>

#include "api/git_read.h"
#include "core/address.h"
#include "core/log.h"
#include "core/str.h"
#include "web/scoreboard.h"

#define CHECK_MS 3000
#define CHECK_PAGES 3 /* of commits */
#define CHECK_PAGE 100

/* Whether an answer is to be had: that a local path has no such branch is no
 * news for a service that reads it itself. */
static bool
is_asked(const struct reading *r)
{
	const struct req *rq = r->rq;
	struct address ad;

	return address_read(r->project.repository, &ad) &&
	    !address_is_local(&ad) &&
	    (rq->access->forge != NULL ||
		str_eq(rq->settings->gitserver.type, "git"));
}

static bool
is_start(const char *part, const char *hash)
{
	return part == NULL || strncasecmp(hash, part, strlen(part)) == 0;
}

/* Finds the commit in the part of the list that was read. */
static bool
commit_take(const struct reading *r, struct git_check *c)
{
	const struct git_commit *one = r->list.items;
	size_t i;

	for (i = 0; i < r->list.n; i++)
		if (is_start(c->commit_hash, one[i].hash)) {
			c->known = GIT_KNOWN;
			c->message = one[i].message;
			if (c->commit_hash != NULL)
				c->commit_hash = one[i].hash;
			return true;
		}
	return false;
}

/* Reads one page of a history; sets *done if the question is answered, or cannot
 * be. If the head is given, the list is of use only if it begins with it. */
static const struct err *
page_look(struct reading *r, struct git_check *c, const char *head, bool *done)
{
	const struct git_commit *first;
	const struct err *e;

	*done = true;
	if ((e = git_read(r)) != NULL)
		return e;
	first = r->list.items;
	if (r->page.page == 1 && head != NULL &&
	    (r->list.n == 0 || !str_eq(first->hash, head)))
		return NULL;
	if (commit_take(r, c) || !r->is_live)
		return NULL;
	if (!r->page.has_more)
		c->known = c->commit_hash == NULL ? GIT_NO_REF : GIT_ELSEWHERE;
	else
		*done = false;
	return NULL;
}

static const char *
lower_copy(struct arena *a, const char *hash)
{
	char *out = arena_strdup(a, hash);
	size_t i;

	for (i = 0; out[i] != '\0'; i++)
		if (out[i] >= 'A' && out[i] <= 'F')
			out[i] = (char)(out[i] - 'A' + 'a');
	return out;
}

/* Asks the server for the commit, of which a part of the hash is enough, and to
 * compare it with the head of a long history. An error answers nothing: the
 * server may not know the commit. */
static void
history_ask(const struct reading *of, struct git_check *c, const char *head)
{
	struct reading r = *of;
	const struct git_commit *found;
	const struct err *e;

	if (c->commit_hash == NULL || !of->is_live)
		return;
	r.what = READ_COMMIT;
	r.hash = lower_copy(of->rq->a, c->commit_hash);
	e = git_read(&r);
	found = r.list.items;
	if (e == NULL) {
		r.what = READ_CONTAINED;
		r.hash = found->hash;
		r.tip = head;
		e = git_read(&r);
	}
	if (e == NULL && r.contained == FORGE_OUTSIDE)
		c->known = GIT_ELSEWHERE;
	if (e == NULL && r.contained == FORGE_INSIDE) {
		c->known = GIT_KNOWN;
		c->commit_hash = found->hash;
		c->message = found->message;
	}
	if (e != NULL)
		log_debug("whether a branch has commit %s: %s", c->commit_hash,
		    err_words(e));
}

/* Looks for the commit in the history; only a server can say that it is not
 * there. */
static const struct err *
commit_look(struct reading *r, struct git_check *c, const char *head)
{
	const struct err *e;
	bool done = false;

	r->what = READ_COMMITS;
	r->is_tip = c->commit_hash == NULL;
	r->page.limit = r->is_tip ? 1 : CHECK_PAGE;
	for (r->page.page = 1; r->page.page <= CHECK_PAGES; r->page.page++) {
		if ((e = page_look(r, c, head, &done)) != NULL || done)
			return e;
		if (r->page.page == 1 && r->list.n > 0)
			history_ask(r, c,
			    ((const struct git_commit *)r->list.items)->hash);
		if (c->known != GIT_UNKNOWN)
			return NULL;
	}
	return NULL;
}

static const struct err *
ref_look(struct reading *r, struct git_check *c)
{
	const struct err *e;
	const char *head;

	if (c->ref.tag == NULL)
		return commit_look(r, c, NULL);
	r->what = READ_TAGS;
	if ((e = git_read(r)) != NULL)
		return e;
	if (r->list.n == 0) {
		c->known = GIT_NO_REF;
		return NULL;
	}
	head = ((const struct forge_branch *)r->list.items)->commit_hash;
	if (is_start(c->commit_hash, head))
		c->known = GIT_KNOWN;
	if (c->known == GIT_KNOWN && c->commit_hash != NULL)
		c->commit_hash = head;
	/* without an API, as a branch: it can have the name of the tag */
	r->branch = c->ref.tag;
	r->tip = head;
	return commit_look(r, c, head);
}

const struct err *
git_check(struct req *rq, int64_t project_id, struct git_check *c)
{
	struct reading r = { .rq = rq,
		.branch = c->ref.branch,
		.tag = c->ref.tag,
		.within = CHECK_MS,
		.page = { .page = 1, .limit = 1 } };
	const struct err *e;

	c->known = GIT_UNKNOWN;
	c->message = NULL;
	e = project_by_id(rq->db, rq->a, project_id, &r.project);
	if (e != NULL)
		return e->code == ERR_NOTFOUND ? NULL : e;
	if (r.branch == NULL && r.tag == NULL)
		r.branch = r.project.default_branch;
	if (!is_asked(&r) ||
	    scoreboard_long_begin(rq->scoreboard, rq->place, SCOREBOARD_GIT,
		rq->who.user_id) != SCOREBOARD_LONG_YES)
		return NULL;
	e = ref_look(&r, c);
	scoreboard_long_end(rq->place);
	if (e != NULL && e->code == ERR_NOTFOUND && r.is_found &&
	    r.what == READ_COMMITS && c->ref.tag == NULL)
		c->known = GIT_NO_REF;
	else if (e != NULL)
		log_debug("project %lld: whether it has a branch or tag: %s",
		    (long long)project_id, err_words(e));
	return NULL;
}
