/* SPDX-License-Identifier: ISC */
/* The files of a workspace, and the clone among them. */
#ifndef SLIPWAY_JOB_WORKSPACE_H
#define SLIPWAY_JOB_WORKSPACE_H

#include "job/git.h"
#include "job/seen.h"
#include "spool/event.h"

/* The following handle files that steps left, each by git_call: */
/* Removes the files at the paths of submodules in a list from git ls-tree -z. */
MUSTCHECK const struct err *workspace_links_remove(struct git *g,
    struct buf *list);
/* Removes everything except files, directories and links: git would block on a
 * FIFO. */
MUSTCHECK const struct err *workspace_specials_remove(struct git *g);
/* Removes everything except the entry of that name. */
MUSTCHECK const struct err *workspace_empty(struct git *g, const char *keep);
/* Removes temporary files that git left among its objects and the objects of Git
 * LFS, or the clone. */
MUSTCHECK const struct err *workspace_rest_remove(struct git *g, bool clone);
enum checkout_format { FORMAT_SHA1, FORMAT_SHA256 };
/* How to rebuild a clone. */
struct rebuild {
	struct arena *a;
	const char *url; /* of the repository */
	enum checkout_format format;
	bool has_index; /* the old index is to be used */
	bool has_tags;  /* the old tags are */
	bool has_lfs;   /* the old objects of Git LFS are */
};
/* Creates a new .git around the existing objects.  ERR_NOTFOUND if there are
 * none: then the clone is empty, in that format. */
MUSTCHECK const struct err *checkout_rebuild(int workspace,
    const struct rebuild *);
enum workspace_how {
	WORKSPACE_SAME,    /* nothing has changed since `was` */
	WORKSPACE_INDEX,   /* rebuilt, with the old index */
	WORKSPACE_REBUILT, /* rebuilt, with the old objects */
	WORKSPACE_FOREIGN, /* new, because objects have changed */
	WORKSPACE_NONE,    /* new */
	WORKSPACE_UNKNOWN, /* the comparison did not complete */
};
/* Compares the workspace with its state after the last job.  If anything
 * differs, or `accept` is false, rebuilds the clone; removes it first if its
 * objects have changed.  A cancel ends it only after the grace period for
 * cleanup. */
MUSTCHECK const struct err *workspace_prepare(struct git *g,
    const struct clone_state *was, bool accept, enum workspace_how *how);
/* Rebuilds the clone from nothing but its objects. */
MUSTCHECK const struct err *workspace_rebuild(struct git *g,
    enum checkout_format format);
/* Looks at the workspace, within its own time limit.  If that fails, all
 * members are unknown. */
void workspace_look(struct job *, struct seen *out);

/* Removes the files of an earlier checkout, if steps run after a failed one: the
 * current user may not have access to that repository. */
MUSTCHECK const struct err *workspace_hide(struct job *);

/* The state of the workspace at present, which had been `seen` before the first
 * step. */
MUSTCHECK const struct err *job_workspace(struct job *, const struct seen *seen,
    struct job_event *out);

#endif
