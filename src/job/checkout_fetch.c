/* SPDX-License-Identifier: ISC */
/* Finds and fetches the commit that a deployment wants. */
#include <sys/stat.h>

#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "core/branch.h"
#include "core/str.h"
#include "job/checkout.h"
#include "job/checkout_inner.h"
#include "job/job.h"
#include "job/log.h"
#include "job/run.h"

#define REF CHECKOUT_REF
/* What a tag points to, which may be a tag object instead of a commit. */
#define TAG_REF "refs/slipway/tag"
#define OUTPUT_MAX CHECKOUT_OUTPUT

bool
commit_is_hash(const char *text)
{
	const size_t len = strlen(text);

	return len >= 4 && len <= 64 &&
	    strspn(text, "0123456789abcdefABCDEF") == len;
}

const char *
fetch_ref(const struct fetch *f)
{
	if (f->tag != NULL)
		return arena_printf(f->a, "refs/tags/%s", f->tag);
	return f->branch[0] == '\0' ?
	    "HEAD" :
	    arena_printf(f->a, "refs/heads/%s", f->branch);
}

/* It in words: "branch main", "tag v1". */
static const char *
fetch_title(const struct fetch *f)
{
	if (f->tag != NULL)
		return arena_printf(f->a, "tag %s", f->tag);
	return f->branch[0] == '\0' ?
	    "repository's HEAD" :
	    arena_printf(f->a, "branch %s", f->branch);
}

/* Fetches one refspec, from the repository to REF or the ref it names, and a
 * second one, if that is not NULL. */
static const struct err *
refs_fetch(struct fetch *f, const char *refspec, const char *more)
{
	const char *const args[] = { "fetch", "--no-tags", "--prune", "--force",
		"--no-recurse-submodules", "--no-write-fetch-head",
		"--update-shallow", "--quiet", "--",
		f->git.job->spec.repository, refspec, more, NULL };

	return git_run(&f->git, NULL, args);
}

/* Finds the branch of the repository's HEAD. */
static const struct err *
head_branch(struct fetch *f)
{
	static const char head[] = "ref: refs/heads/";
	const char *const args[] = { "ls-remote", "--symref", "--",
		f->git.job->spec.repository, "HEAD", NULL };
	const struct err *e;
	struct buf out;
	size_t len;

	buf_init(&out, OUTPUT_MAX);
	if ((e = git_run(&f->git, &out, args)) != NULL)
		goto out;
	if (!git_done(&f->git)) { /* then git's output is the reason */
		job_log_feed(&f->git.job->log, out.data, out.len);
		job_log_finish(&f->git.job->log);
	} else if (out.len > 0 && str_starts(out.data, head)) {
		len = strcspn(out.data + strlen(head), "\t\n");
		f->branch = arena_strndup(f->a, out.data + strlen(head), len);
		if (branch_fault(f->branch) != NULL)
			f->branch = "";
	}
out:
	buf_release(&out);
	return e;
}

/* Resolves a name to the full hash of a commit that exists in the clone. */
static const struct err *
commit_resolve(struct fetch *f, const char *name, const char **out)
{
	const char *const args[] = { "rev-parse", "--verify", "--quiet",
		"--end-of-options", arena_printf(f->a, "%s^{commit}", name),
		NULL };
	const struct err *e;
	struct buf text;

	*out = NULL;
	buf_init(&text, OUTPUT_MAX);
	e = git_run(&f->git, &text, args);
	if (e == NULL && git_done(&f->git) && text.len > 1)
		*out = arena_strndup(f->a, text.data, strcspn(text.data, "\n"));
	buf_release(&text);
	return e;
}

/* Reads the hash that the fetch has just written; NULL if it is elsewhere.
 * Saves a git process on the way to the first step. */
const char *
fetch_tip(const struct fetch *f)
{
	char text[66] = "";
	struct stat st;
	ssize_t got;
	int fd;

	fd = openat(JOB_FD(WIRE_FD_WORKSPACE), ".git/" REF,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd == -1)
		return NULL;
	got = fstat(fd, &st) == -1 || !S_ISREG(st.st_mode) ?
	    -1 :
	    read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	if (got != 41 && got != 65)
		return NULL;
	text[got - 1] = '\0';
	return commit_is_hash(text) ? arena_strdup(f->a, text) : NULL;
}

/* A push event may arrive late or twice: the present commit of the branch or
 * tag is newer. */
static void
push_supersede(struct fetch *f, const char *now)
{
	f->superseded = true;
	f->fault = arena_printf(f->a,
	    "The %s is now at commit %s, not at %s as in the push event. Retry "
	    "the deployment to deploy that commit anyway.",
	    fetch_title(f), now, f->git.job->spec.commit);
}

/* Finds the commit that the fetched branch or tag is at. */
static const struct err *
tip_read(struct fetch *f, const char **out)
{
	*out = f->tag == NULL ? fetch_tip(f) : NULL;
	return *out != NULL ?
	    NULL :
	    commit_resolve(f, f->tag != NULL ? TAG_REF : REF, out);
}

/* The branch has moved on, with changes that its trigger ignores. */
static void
branch_follow(struct fetch *f, const char *now)
{
	job_log_say(&f->git.job->log, "==> the %s has moved on to commit %s",
	    fetch_title(f), now);
	f->hash = now;
}

/* If the commit is superseded, the clone is restored to its state before the
 * fetch. */
static const struct err *
head_check(struct fetch *f, const char *before)
{
	const char *const back[] = { "update-ref", REF, before, NULL };
	const char *const none[] = { "update-ref", "-d", REF, NULL };
	const struct err *e;
	const char *now;

	if ((e = tip_read(f, &now)) != NULL)
		return e;
	if (now == NULL || strcasecmp(now, f->git.job->spec.commit) == 0)
		return NULL;
	if (f->git.job->spec.head_only == HEAD_FOLLOW) {
		branch_follow(f, now);
		return NULL;
	}
	push_supersede(f, now);
	return git_run(&f->git, NULL, before != NULL ? back : none);
}

/* The commit of the ref in a list of hashes and names; "" if it is not there.
 * git also lists refs that only end in the name. An annotated tag has two lines,
 * and its commit is in the one with ^{}. */
static const char *
listed_read(const struct fetch *f, const struct buf *list, const char *ref)
{
	const char *const peeled = arena_printf(f->a, "%s^{}", ref);
	char *text = arena_strndup(f->a, list->len > 0 ? list->data : "",
	    list->len);
	const char *found = "", *name;
	char *line;

	while ((line = strsep(&text, "\n")) != NULL) {
		name = line + strcspn(line, "\t");
		name += *name == '\t';
		if (str_eq(name, peeled) ||
		    (str_eq(name, ref) && *found == '\0'))
			found = arena_strndup(f->a, line, strcspn(line, "\t"));
	}
	return found;
}

const struct err *
fetch_compare(struct fetch *f)
{
	const struct job_description *spec = &f->git.job->spec;
	const char *const ref = fetch_ref(f);
	const char *const args[] = { "ls-remote", "--", spec->repository, ref,
		f->tag != NULL ? arena_printf(f->a, "%s^{}", ref) : NULL,
		NULL };
	const struct err *e;
	const char *now;
	struct buf out;

	buf_init(&out, OUTPUT_MAX);
	e = git_run(&f->git, &out, args);
	if (e != NULL || !git_done(&f->git))
		goto out;
	now = listed_read(f, &out, ref);
	if (!commit_is_hash(now)) {
		f->fault = arena_printf(f->a,
		    "The repository has no %s any more.", fetch_title(f));
		f->is_gone = true;
	} else if (spec->commit == NULL || strcasecmp(now, spec->commit) == 0)
		f->hash = now;
	else
		push_supersede(f, now);
out:
	buf_release(&out);
	return e;
}

/* Whether git rejected what it received.  It may be in the clone all the same:
 * git checks .gitmodules after it has unpacked a few objects, and another fetch
 * would not check what is there. */
static bool
is_rejected(const struct fetch *f)
{
	return !git_done(&f->git) &&
	    strstr(f->git.job->log.last, "fsck error") != NULL;
}

/* Fetches a commit that came without a branch: by its hash, which not every
 * server supports, else by fetching all branches. */
static const struct err *
fetch_commit(struct fetch *f, const char *commit)
{
	const bool full = strlen(commit) == 40 || strlen(commit) == 64;
	const struct err *e;

	f->grown = true;
	if (full) {
		if ((e = refs_fetch(f,
			 arena_printf(f->a, "+%s:refs/slipway/commit", commit),
			 NULL)) != NULL)
			return e;
		if (f->git.end.how != RUN_EXITED || is_rejected(f))
			return NULL;
	}
	if (!full || !git_done(&f->git)) {
		if ((e = refs_fetch(f, "+refs/heads/*:refs/slipway/all/*",
			 NULL)) != NULL)
			return e;
	}
	return git_done(&f->git) ? commit_resolve(f, commit, &f->hash) : NULL;
}

/* Whether the history of REF has the commit. */
static const struct err *
is_ancestor(struct fetch *f, const char *hash, bool *out)
{
	const char *const args[] = { "merge-base", "--is-ancestor", hash, REF,
		NULL };
	const struct err *e;

	e = git_run(&f->git, NULL, args);
	*out = e == NULL && git_done(&f->git);
	return e;
}

/* Whether the fetched branch has the commit, or the tag is at it. */
static const struct err *
is_contained(struct fetch *f, bool *out)
{
	const struct err *e;
	const char *now;

	if ((e = tip_read(f, &now)) != NULL)
		return e;
	*out = str_eq(now, f->hash);
	return *out || f->tag != NULL ? NULL : is_ancestor(f, f->hash, out);
}

/* A server may have commits that are on none of its branches, such as those of
 * a fork, and must not show one under the name of a branch.  An environment that
 * accepts certain branches and tags rejects it. */
static const struct err *
branch_check(struct fetch *f)
{
	const struct err *e;
	bool is_ours;

	if ((e = is_contained(f, &is_ours)) != NULL ||
	    f->git.end.how != RUN_EXITED || is_ours)
		return e;
	if (!f->git.job->spec.on_branch) {
		f->elsewhere = true;
		return NULL;
	}
	f->fault = arena_printf(f->a,
	    "Commit %s is not on the %s, and the environment accepts only "
	    "certain %s.",
	    f->hash, fetch_title(f), f->tag != NULL ? "tags" : "branches");
	f->hash = NULL;
	return NULL;
}

const struct err *
fetch_all(struct fetch *f)
{
	const struct job_description *spec = &f->git.job->spec;
	const char *before = fetch_tip(f);
	const struct err *e;

	if ((f->fault = spec->offline) != NULL)
		return NULL;
	f->tags_few = tags_are_few(f);
	if (!f->tags_few && (e = tags_hide()) != NULL)
		return e;
	if (f->branch[0] == '\0' && f->tag == NULL) {
		if ((e = head_branch(f)) != NULL || !git_done(&f->git))
			return e;
	}
	if ((e = refs_fetch(f,
		 arena_printf(f->a, "+%s:%s", fetch_ref(f),
		     f->tag != NULL ? TAG_REF : REF),
		 f->tags_few ? "+refs/tags/*:refs/tags/*" : NULL)) != NULL ||
	    !git_done(&f->git))
		return e;
	f->grown = f->tag == NULL && !str_eq(fetch_tip(f), before);
	if (spec->commit == NULL)
		return tip_read(f, &f->hash);
	if (spec->head_only != 0 &&
	    ((e = head_check(f, before)) != NULL || f->superseded ||
		f->hash != NULL))
		return e;
	if ((e = commit_resolve(f, spec->commit, &f->hash)) != NULL)
		return e;
	if (f->hash == NULL && f->git.end.how == RUN_EXITED &&
	    (e = fetch_commit(f, spec->commit)) != NULL)
		return e;
	if (f->hash == NULL && f->git.end.how == RUN_EXITED)
		f->fault = arena_printf(f->a,
		    "Commit %s was not found in the repository.", spec->commit);
	return f->hash != NULL && f->git.end.how == RUN_EXITED ?
	    branch_check(f) :
	    NULL;
}

/* Whether an earlier job saw that the branch or tag has the commit: what is in
 * the history of a commit that is on a branch is on it, too. */
static const struct err *
is_seen(struct fetch *f, const char *commit, bool *out)
{
	*out = str_eq(f->was.ref, fetch_ref(f));
	if (!*out || str_eq(f->was.commit, commit))
		return NULL;
	*out = f->tag == NULL;
	return *out ? is_ancestor(f, commit, out) : NULL;
}

const struct err *
fetch_known(struct fetch *f, const char *commit, const char **out)
{
	const char *const args[] = { "rev-list", "--objects", "--quiet", commit,
		"--not", REF, NULL };
	const struct job_description *spec = &f->git.job->spec;
	const size_t len = commit == NULL ? 0 : strlen(commit);
	const struct err *e;
	struct buf ignored;
	bool seen;

	*out = NULL;
	if ((len != 40 && len != 64) || spec->head_only != 0 ||
	    spec->on_branch || (f->branch[0] == '\0' && f->tag == NULL) ||
	    (f->was.flags & CLONE_OWN) == 0 ||
	    !str_eq(f->was.address, spec->repository) ||
	    !str_eq(f->was.commit, fetch_tip(f)))
		return NULL;
	if (str_eq(f->was.commit, commit))
		*out = f->was.commit;
	else if ((e = commit_resolve(f, commit, out)) != NULL || *out == NULL)
		return e;
	if ((e = is_seen(f, *out, &seen)) != NULL)
		return e;
	f->elsewhere = !seen;
	if (!seen && spec->rollback_to == 0 && spec->offline == NULL)
		*out = NULL;
	if (*out == NULL || str_eq(f->was.commit, *out))
		return NULL;
	buf_init(&ignored, OUTPUT_MAX);
	e = git_run(&f->git, &ignored, args);
	buf_release(&ignored);
	if (!git_done(&f->git))
		*out = NULL;
	return e;
}

void
fetch_elsewhere(struct fetch *f, struct checkout *out)
{
	struct job *job = f->git.job;

	if (job->spec.rollback_to != 0)
		return;
	job_log_say(&job->log,
	    f->moved ? "==> commit %s is not on the %s" :
		       "==> whether commit %s is on the %s is unknown",
	    f->hash, fetch_title(f));
	out->elsewhere = true;
	job->spec.tag = NULL;
}
