/* SPDX-License-Identifier: ISC */
/* Completes a checkout with the files of Git LFS. */
#include <sys/stat.h>

#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <unistd.h>

#include "core/address.h"
#include "core/file.h"
#include "core/str.h"
#include "core/time.h"
#include "job/checkout_inner.h"
#include "job/files.h"
#include "job/job.h"
#include "job/lfs.h"
#include "job/outage.h"

#define LIST_MAX ((size_t)64 << 20)
#define OBJECTS ".git/lfs/objects"
#define UNUSED_MS (INT64_C(30) * 86400 * 1000)

static const char local[] =
    "Git LFS does not fetch the files of a local repository: set its address "
    "to one over https or SSH, or lfs of the project to false.";
const char lfs_absent[] =
    "The commit has files of Git LFS, and git-lfs is not installed on the "
    "runner: an administrator must install the package git-lfs, or a "
    "maintainer must set lfs of the project to false.";

/* Files that .gitattributes gives to Git LFS. */
struct tracked {
	struct buf paths; /* each ends with NUL */
	bool remove;
};

/* Takes away those that are pointers, so that git writes them anew: to git, a
 * pointer is unchanged.  Writes a line to standard output for each. */
static const struct err *
pointers_take(void *arg)
{
	const struct tracked *t = arg;
	const char *path, *end = t->paths.data + t->paths.len;
	const struct err *e = NULL;

	for (path = t->paths.data; e == NULL && path < end;
	     path += strlen(path) + 1) {
		if (!missing_is_pointer(JOB_FD(WIRE_FD_WORKSPACE), path))
			continue;
		if (t->remove &&
		    unlinkat(JOB_FD(WIRE_FD_WORKSPACE), path, 0) == -1)
			return err_errno("remove %s", path);
		e = file_store(STDOUT_FILENO, "\n", 1);
	}
	return e;
}

/* Without git-lfs, pointers would be published in place of files.  Those that
 * .gitattributes does not name are files as they are. */
const struct err *
lfs_complete(struct fetch *f, bool *out)
{
	const char *const args[] = { "ls-files", "-z", "--",
		":(attr:filter=lfs)", NULL };
	struct tracked t = { .remove = f->git.has_lfs };
	const struct err *e;
	const char *found;

	*out = false;
	buf_init(&t.paths, LIST_MAX);
	if ((e = git_run(&f->git, &t.paths, args)) != NULL ||
	    !git_done(&f->git) || t.paths.len == 0 ||
	    (e = buf_check(&t.paths)) != NULL)
		goto out;
	if (f->git.has_lfs)
		f->touched = f->grown = true;
	if ((e = git_call(&f->git, pointers_take, &t, &found)) != NULL ||
	    !git_done(&f->git) || found[0] == '\0')
		goto out;
	if (!f->git.has_lfs)
		f->fault = lfs_absent;
	else if ((e = files_write(&f->git, f->hash)) == NULL)
		*out = git_done(&f->git);
out:
	buf_release(&t.paths);
	return e;
}

static int
object_expire(const char *path, const struct stat *st, int type,
    struct FTW *ftw)
{
	const time_t before = (time_t)((time_now_ms() - UNUSED_MS) / 1000);

	(void)ftw;
	if (type == FTW_F && st->st_atime < before && st->st_mtime < before)
		(void)unlink(path);
	return 0;
}

static const struct err *
objects_expire(void *arg)
{
	(void)arg;
	(void)nftw(OBJECTS, object_expire, 16, FTW_PHYS);
	return NULL;
}

/* Files have their content, so an object that no checkout has read for long is
 * hardly needed again.  Without this, a clone would keep each version of each
 * file. */
const struct err *
lfs_expire(struct git *g)
{
	const char *ignored;
	struct stat st;

	if (fstatat(JOB_FD(WIRE_FD_WORKSPACE), OBJECTS, &st,
		AT_SYMLINK_NOFOLLOW) == -1)
		return NULL;
	return git_call(g, objects_expire, NULL, &ignored);
}

/* "Error downloading object: PATH (OID): Smudge error: REASON", where the reason
 * can begin with "Error downloading PATH (OID): ". */
void
lfs_explain(struct fetch *f)
{
	static const char smudge[] = ": Smudge error: ",
			  download[] = "Error downloading ";
	const struct job_description *spec = &f->git.job->spec;
	const char *line = f->git.job->log.last, *path, *end, *reason, *rest;
	struct address ad;

	if (f->git.end.how != RUN_EXITED || !str_starts(line, LFS_FAILURE))
		return;
	/* it may be the server that named a disk */
	f->git.job->log.disk = 0;
	if ((f->fault = spec->offline) != NULL)
		return;
	path = line + strlen(LFS_FAILURE);
	end = strstr(path, " (");
	reason = strstr(path, smudge);
	reason = reason == NULL ? path : reason + strlen(smudge);
	rest = strstr(reason, "): ");
	if (str_starts(reason, download) && rest != NULL)
		reason = rest + strlen("): ");
	if (address_read(spec->repository, &ad) && address_is_local(&ad)) {
		f->fault = local;
		return;
	}
	f->fault = arena_printf(f->a, "Git LFS could not fetch %.*s: %s",
	    end == NULL ? 0 : (int)(end - path), path, reason);
	f->lfs_away = outage_is(line, true);
}
