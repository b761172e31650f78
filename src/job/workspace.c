/* SPDX-License-Identifier: ISC */
/*
 * The workspace with what steps left in it: FIFOs, endless trees, a forged
 * .git.  Child processes with a deadline inspect and empty it.
 */
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
#include "job/checkout.h"

#define OBJECTS ".git/objects"
#define OUTPUT_MAX ((size_t)1 << 20)
#define STATUS_MS 10000
#define SIZE_MS 5000
#define OBJECTS_MS 60000
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

struct rebuild {
	struct arena *a;
	enum checkout_format format;
};

static const struct err *
rebuild(void *arg)
{
	const struct rebuild *r = arg;

	return checkout_rebuild(r->a, JOB_FD(WIRE_FD_WORKSPACE), r->format);
}

const struct err *
workspace_rebuild(struct git *g, enum checkout_format format)
{
	struct rebuild r = { g->job->a, format };
	const char *ignored;

	return git_call(g, rebuild, &r, &ignored);
}

static const struct err *
objects_look(void *arg)
{
	char now[32];

	(void)arg;
	(void)snprintf(now, sizeof(now), "%lld",
	    (long long)tree_changed(OBJECTS));
	return file_store(STDOUT_FILENO, now, strlen(now));
}

/* Git does not check that an object's content matches its name, and steps can
 * write anything under any name: objects are reused only if nothing among them
 * has changed since they were fetched. */
static const struct err *
foreign_remove(void *arg)
{
	static const char removed[] = "removed";
	const int workspace = JOB_FD(WIRE_FD_WORKSPACE);
	const struct job *job = arg;
	const struct err *e;
	struct stat st;
	char now[32];

	if (fstatat(workspace, OBJECTS, &st, AT_SYMLINK_NOFOLLOW) == -1)
		return NULL;
	(void)snprintf(now, sizeof(now), "%lld",
	    (long long)tree_changed(OBJECTS));
	if (str_eq(job->spec.objects, now))
		return NULL;
	if ((e = file_store(STDOUT_FILENO, removed, strlen(removed))) != NULL)
		return e;
	return tree_remove(workspace, ".git");
}

const struct err *
workspace_foreign_remove(struct git *g, bool *removed)
{
	const struct err *e;
	const char *text;

	e = git_call(g, foreign_remove, g->job, &text);
	*removed = text[0] != '\0';
	return e;
}

int64_t
workspace_objects(struct job *job)
{
	int64_t at = -1;
	const char *text;

	if (job_call_within(job, OBJECTS_MS, objects_look, NULL, &text) !=
		NULL ||
	    !num_parse(text, 0, INT64_MAX, &at))
		return -1;
	return at;
}

/* "BYTES ENTRIES GIT" of the workspace. */
static const struct err *
workspace_size(void *arg)
{
	int64_t bytes, entries;
	struct stat st;
	char text[64];

	(void)arg;
	if (fchdir(JOB_FD(WIRE_FD_WORKSPACE)) == -1)
		return err_errno("enter the workspace");
	tree_size(time_mono_ms() + SIZE_MS, &bytes, &entries);
	(void)snprintf(text, sizeof(text), "%lld %s", (long long)bytes,
	    fstatat(AT_FDCWD, ".git", &st, AT_SYMLINK_NOFOLLOW) == 0 ? "git" :
		entries == 0                                         ? "empty" :
								       "no_git");
	return file_store(STDOUT_FILENO, text, strlen(text));
}

/* Whether the files match the commit, according to git. */
static const struct err *
workspace_status(struct job *job, const char **out)
{
	static const char none[] = "## No commits yet on ";
	const char *const args[] = { "status", "--porcelain", "--branch",
		"--untracked-files=no", "--ignore-submodules=all", NULL };
	const struct err *e;
	struct git git;
	struct buf text;

	*out = "error -";
	if ((e = git_open_bare(job, time_mono_ms() + STATUS_MS, &git)) != NULL)
		return e;
	buf_init(&text, OUTPUT_MAX);
	if ((e = git_run(&git, &text, args)) == NULL && git_done(&git) &&
	    text.len > 0) {
		if (str_starts(text.data, none))
			*out = "empty -";
		else
			*out = strchr(text.data, '\n') ==
				text.data + text.len - 1 ?
			    "ready 0" :
			    "ready 1";
	}
	buf_release(&text);
	return e;
}

const struct err *
job_workspace(struct job *job, const char **out)
{
	const char *text, *status;
	const struct err *e;
	size_t digits;

	*out = NULL;
	if ((e = job_call_within(job, SIZE_MS + LATE_MS, workspace_size, NULL,
		 &text)) != NULL)
		return e;
	digits = strspn(text, "0123456789");
	if (digits == 0 || text[digits] != ' ')
		return err_new(ERR_INTERNAL, "malformed size of the workspace");
	if (strcmp(text + digits + 1, "git") != 0)
		status = arena_printf(job->a, "%s -", text + digits + 1);
	else if ((e = workspace_status(job, &status)) != NULL)
		return e;
	*out = arena_printf(job->a, "%s %.*s", status, (int)digits, text);
	return NULL;
}
