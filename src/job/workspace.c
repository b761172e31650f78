/* SPDX-License-Identifier: ISC */
/*
 * The workspace, in which steps may have left anything: FIFOs, endless trees, a
 * forged .git. Child processes with a deadline inspect and empty it.
 */
#include "job/workspace.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "core/num.h"
#include "core/str.h"
#include "core/tree.h"
#include "job/git.h"
#include "job/job.h"
#include "job/run.h"
#include "job/seen.h"

#define OBJECTS ".git/objects"
#define LFS ".git/lfs"
#define OUTPUT_MAX ((size_t)1 << 20)
#define STATUS_MS 10000
#define SIZE_MS 5000
#define OBJECTS_MS 60000
#define HIDE_MS 300000
#define LATE_MS 2000 /* for a call with its own time limit */

/* Entries of git ls-tree -z, each terminated by NUL. */
static const struct err *
links_remove(void *arg)
{
	static const char link[] = "160000 ";
	const struct buf *list = arg;
	const struct err *e = NULL;
	const char *entry, *path;

	for (entry = list->data; e == NULL && entry < list->data + list->len;
	     entry += strlen(entry) + 1) {
		path = strchr(entry, '\t');
		if (path != NULL && str_starts(entry, link))
			e = tree_remove(JOB_FD(WIRE_FD_WORKSPACE), path + 1);
	}
	return e;
}

const struct err *
workspace_links_remove(struct git *g, struct buf *list)
{
	const char *ignored;

	return git_call(g, links_remove, list, &ignored);
}

/* Removes everything except files, directories and links. */
static int
special_remove(const char *path, const struct stat *st, int type,
    struct FTW *ftw)
{
	char dir[PATH_MAX];

	if (type == FTW_DNR && (st->st_mode & S_IRWXU) != S_IRWXU &&
	    chmod(path, (st->st_mode & 07777) | S_IRWXU) == 0)
		return nftw(path, special_remove, 16, FTW_PHYS);
	if (type != FTW_F || S_ISREG(st->st_mode) || unlink(path) == 0)
		return 0;
	if (ftw->base <= 0 || (size_t)ftw->base >= sizeof(dir))
		return -1;
	(void)memcpy(dir, path, (size_t)ftw->base);
	dir[ftw->base] = '\0';
	if (chmod(dir, S_IRWXU) == 0 && unlink(path) == 0)
		return 0;
	return -1;
}

static const struct err *
specials_remove(void *arg)
{
	const int workspace = JOB_FD(WIRE_FD_WORKSPACE);

	(void)arg;
	if (fchdir(workspace) == -1)
		return err_errno("enter the workspace");
	if (nftw(".", special_remove, 16, FTW_PHYS) == 0)
		return NULL;
	/* too deep to inspect */
	return tree_empty_but(workspace, ".git");
}

const struct err *
workspace_specials_remove(struct git *g)
{
	const char *ignored;

	return git_call(g, specials_remove, NULL, &ignored);
}

static int
temporary_remove(const char *path, const struct stat *st, int type,
    struct FTW *ftw)
{
	(void)st;
	if (type == FTW_F && str_starts(path + ftw->base, "tmp_"))
		(void)unlink(path);
	return 0;
}

static const struct err *
rest_remove(void *arg)
{
	const bool *clone = arg;
	const int workspace = JOB_FD(WIRE_FD_WORKSPACE);

	if (*clone)
		return tree_remove(workspace, ".git");
	if (fchdir(workspace) == -1 ||
	    nftw(OBJECTS, temporary_remove, 16, FTW_PHYS) == -1)
		return err_errno("remove temporary files");
	return tree_remove(workspace, LFS);
}

const struct err *
workspace_rest_remove(struct git *g, bool clone)
{
	const char *ignored;

	return git_call(g, rest_remove, &clone, &ignored);
}

struct emptying {
	const char *keep;
};

static const struct err *
files_empty(void *arg)
{
	const struct emptying *what = arg;

	return tree_empty_but(JOB_FD(WIRE_FD_WORKSPACE), what->keep);
}

const struct err *
workspace_empty(struct git *g, const char *keep)
{
	struct emptying what = { keep };
	const char *ignored;

	return git_call(g, files_empty, &what, &ignored);
}

static const struct err *
rebuild_call(void *arg)
{
	return checkout_rebuild(JOB_FD(WIRE_FD_WORKSPACE), arg);
}

const struct err *
workspace_rebuild(struct git *g, enum checkout_format format)
{
	struct rebuild r = { .a = g->job->a,
		.url = g->job->spec.repository,
		.format = format };
	const char *ignored;

	return git_call(g, rebuild_call, &r, &ignored);
}

struct preparation {
	struct rebuild rebuild;
	const struct clone_state *was;
	bool accept;
};

/* Writes a digit to standard output, because it runs in a child process; the
 * last digit counts. */
static const struct err *
how_write(enum workspace_how how)
{
	const char letter = (char)('0' + how);

	return file_store(STDOUT_FILENO, &letter, 1);
}

/* Git does not check that an object's content matches its name, and steps can
 * write anything under any name: objects are reused only if nothing among them
 * has changed since they were fetched. */
static const struct err *
prepare_call(void *arg)
{
	struct preparation *p = arg;
	const struct seen *was = &p->was->seen;
	const int workspace = JOB_FD(WIRE_FD_WORKSPACE);
	enum workspace_how how = WORKSPACE_REBUILT;
	const struct err *e;
	struct seen now;
	struct stat st;

	seen_take(was, 0, &now);
	if (fstatat(workspace, OBJECTS, &st, AT_SYMLINK_NOFOLLOW) == -1)
		how = WORKSPACE_NONE;
	else if (now.objects == -1 || now.objects != was->objects)
		how = WORKSPACE_FOREIGN;
	else if (p->accept && seen_same(was, &now))
		how = WORKSPACE_SAME;
	/* git compares times of status changes in seconds only */
	else if ((p->was->flags & CLONE_INDEX) != 0 && now.index != -1 &&
	    now.index == was->index && was->latest != -1 && !now.doubtful)
		how = WORKSPACE_INDEX;
	if ((e = how_write(how)) != NULL || how == WORKSPACE_SAME)
		return e;
	if (how == WORKSPACE_FOREIGN &&
	    (e = tree_remove(workspace, ".git")) != NULL)
		return e;
	p->rebuild.has_index = how == WORKSPACE_INDEX;
	p->rebuild.has_tags = now.tags != -1 && now.tags == was->tags;
	p->rebuild.has_lfs = now.lfs != -1 && now.lfs == was->lfs &&
	    str_eq(p->was->address, p->rebuild.url);
	e = checkout_rebuild(workspace, &p->rebuild);
	if (e == NULL || e->code != ERR_NOTFOUND)
		return e;
	return how == WORKSPACE_FOREIGN ? NULL : how_write(WORKSPACE_NONE);
}

const struct err *
workspace_prepare(struct git *g, const struct clone_state *was, bool accept,
    enum workspace_how *how)
{
	struct preparation p = { .rebuild = { .a = g->job->a,
				     .url = g->job->spec.repository },
		.was = was,
		.accept = accept };
	const unsigned flags = g->flags;
	const struct err *e;
	const char *text;
	size_t len;

	*how = WORKSPACE_UNKNOWN;
	/* half a rebuild would lose the clone and its commit */
	g->flags = RUN_CANCEL_LIMITS_IT;
	e = git_call(g, prepare_call, &p, &text);
	g->flags = flags;
	len = strlen(text);
	if (e == NULL && git_done(g) && len > 0 && text[len - 1] >= '0' &&
	    text[len - 1] <= '0' + WORKSPACE_NONE)
		*how = (enum workspace_how)(text[len - 1] - '0');
	return e;
}

struct looking {
	int64_t ms;
	bool settle;
};

static const struct err *
seen_say(void *arg)
{
	const struct looking *how = arg;
	const struct err *e;
	struct seen seen;
	struct buf text;

	if (fchdir(JOB_FD(WIRE_FD_WORKSPACE)) == -1)
		return err_errno("enter the workspace");
	seen_take(NULL, time_mono_ms() + how->ms, &seen);
	if (how->settle && !seen_settle(&seen))
		seen.latest = seen.objects = -1;
	buf_init(&text, OUTPUT_MAX);
	seen_write(&text, &seen);
	if ((e = buf_check(&text)) == NULL)
		e = file_store(STDOUT_FILENO, text.data, text.len);
	buf_release(&text);
	return e;
}

void
workspace_look(struct job *job, struct seen *out)
{
	struct looking how = { .ms = OBJECTS_MS, .settle = true };
	const char *text;

	if (job_call_within(job, OBJECTS_MS + LATE_MS, seen_say, &how, &text) !=
		NULL ||
	    !seen_read(text, out))
		*out = (struct seen){ .objects = -1, .latest = -1 };
}

/* Whether the files match the commit, according to git. */
static const struct err *
workspace_status(struct job *job, struct job_event *out)
{
	static const char none[] = "## No commits yet on ";
	const char *const args[] = { "status", "--porcelain", "--branch",
		"--untracked-files=no", "--ignore-submodules=all", NULL };
	const struct err *e;
	struct git git;
	struct buf text;

	out->status = "error";
	if ((e = git_open_bare(job, time_mono_ms() + STATUS_MS, &git)) != NULL)
		return e;
	buf_init(&text, OUTPUT_MAX);
	if ((e = git_run(&git, &text, args)) == NULL && git_done(&git) &&
	    text.len > 0) {
		out->status = str_starts(text.data, none) ? "empty" : "ready";
		out->dirty.set = str_eq(out->status, "ready");
		out->dirty.n = strchr(text.data, '\n') ==
			text.data + text.len - 1 ?
		    0 :
		    1;
	}
	buf_release(&text);
	return e;
}

const struct err *
job_workspace(struct job *job, const struct seen *before, struct job_event *out)
{
	struct looking how = { .ms = SIZE_MS };
	const struct err *e;
	const char *text;
	struct seen now;

	*out = (struct job_event){ .kind = JOB_WORKSPACE };
	if ((e = job_call_within(job, SIZE_MS + LATE_MS, seen_say, &how,
		 &text)) != NULL)
		return e;
	if (!seen_read(text, &now))
		return err_new(ERR_INTERNAL, "malformed size of the workspace");
	out->size = now.bytes;
	out->dirty.set = seen_same(before, &now);
	if (out->dirty.set)
		out->status = "ready";
	else if (now.top == 0)
		out->status = "empty";
	else if (now.git == 0)
		out->status = "no_git";
	else
		return workspace_status(job, out);
	return NULL;
}

static const struct err *
files_remove(void *arg)
{
	(void)arg;
	return tree_empty(JOB_FD(WIRE_FD_WORKSPACE));
}

const struct err *
workspace_hide(struct job *job)
{
	const char *ignored;
	size_t i;

	for (i = 0; i < job->spec.steps.n; i++)
		if (job_step_at(job, i)->when != WHEN_SUCCESS)
			return job_call_within(job, HIDE_MS, files_remove, NULL,
			    &ignored);
	return NULL;
}
