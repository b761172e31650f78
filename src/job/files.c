/* SPDX-License-Identifier: ISC */
/* Brings the files of a workspace to a commit. */
#include "job/files.h"

#include "job/git.h"
#include "job/job.h"
#include "job/run.h"
#include "job/workspace.h"

#define OUTPUT_MAX ((size_t)1 << 20)
#define DIRS_MAX ((size_t)64 << 20)

/* Empties the directories of submodules: git does not touch their content, and
 * its origin is unknown. */
static const struct err *
gitlinks_empty(struct git *g, const char *hash)
{
	const char *const args[] = { "ls-tree", "-r", "-d", "-z", hash, NULL };
	const struct err *e;
	struct buf out;

	buf_init(&out, DIRS_MAX);
	if ((e = git_run(g, &out, args)) != NULL || !git_done(g) ||
	    (e = buf_check(&out)) != NULL)
		goto out;
	if (out.len > 0)
		e = workspace_links_remove(g, &out);
out:
	buf_release(&out);
	return e;
}

static const struct err *
index_refresh(struct git *g)
{
	const char *const args[] = { "update-index", "-q", "--refresh", NULL };
	const struct err *e;
	struct buf ignored;

	buf_init(&ignored, OUTPUT_MAX);
	e = git_run(g, &ignored, args);
	buf_release(&ignored);
	return e;
}

/* Whether ignored files stay. */
static bool
keeps_ignored(const struct git *g)
{
	return g->job->spec.checkout == CHECKOUT_KEEP;
}

/* Removes files that the commit does not have. */
static const struct err *
files_clean(struct git *g)
{
	const char *const args[] = { "clean",
		keeps_ignored(g) ? "-ffdq" : "-ffdxq", NULL };

	return git_run(g, NULL, args);
}

/* Removes files in the way of those of the commit. */
static const struct err *
make_room(struct git *g, const char *hash)
{
	/* --reset preserves the data about unchanged files in an index */
	const char *const read_tree[] = { "read-tree", "--reset", hash, NULL };
	const struct err *e;

	if ((e = workspace_specials_remove(g)) != NULL ||
	    (e = git_run(g, NULL, read_tree)) != NULL || !git_done(g))
		return e;
	/* its exit status says only whether files differ */
	if ((e = index_refresh(g)) != NULL || g->end.how != RUN_EXITED)
		return e;
	if (!keeps_ignored(g) && ((e = files_clean(g)) != NULL || !git_done(g)))
		return e;
	return gitlinks_empty(g, hash);
}

/* A new clone has no index: none of the files in the workspace are its own, and
 * git has nothing to compare. git clean would give up on directories that it
 * cannot write. */
static const struct err *
index_prepare(struct git *g, const char *hash, enum files_before before)
{
	return before == FILES_FOREIGN ? workspace_empty(g, ".git") :
					 make_room(g, hash);
}

/* Without submodule.active, git fails if .gitmodules does not name all of
 * them. */
static const struct err *
submodules_update(struct git *g)
{
	const char *const args[] = { "-c", "submodule.active=.", "submodule",
		"update", "--init", "--recursive", "--force", "--checkout",
		NULL };

	const bool all = g->job->spec.submodules == SUBMODULES_FETCHED;
	const struct err *e;

	e = all ? git_run(g, NULL, args) : git_run_lent(g, args);
	/* these messages have names of the repository, even with newlines, so
	 * that none of them can be taken for one about the disk */
	g->job->log.disk = 0;
	return e;
}

const struct err *
files_write(struct git *g, const char *hash)
{
	const char *const args[] = { "checkout", "--quiet", "--detach",
		"--force", "--no-recurse-submodules", hash, "--", NULL };

	return git_run(g, NULL, args);
}

/* First removes files that do not belong there, then writes those that differ.
 * Unchanged files keep their times. */
const struct err *
files_checkout(struct git *g, const char *hash, enum files_before before)
{
	const struct err *e;

	if (before != FILES_COMMITTED &&
	    ((e = index_prepare(g, hash, before)) != NULL || !git_done(g)))
		return e;
	if ((e = files_write(g, hash)) != NULL || !git_done(g))
		return e;
	/* only now the commit's .gitignore files are in place */
	if (keeps_ignored(g) && before == FILES_UNKNOWN &&
	    ((e = files_clean(g)) != NULL || !git_done(g)))
		return e;
	return g->job->spec.submodules == SUBMODULES_NONE ?
	    NULL :
	    submodules_update(g);
}
