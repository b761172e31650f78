/* SPDX-License-Identifier: ISC */
/* What the files of the checkout share. */
#ifndef SLIPWAY_JOB_CHECKOUT_INNER_H
#define SLIPWAY_JOB_CHECKOUT_INNER_H

#include "job/checkout.h"
#include "job/job.h"
#include "job/workspace.h"

/* The commit that was last checked out. */
#define CHECKOUT_REF "refs/slipway/tip"
#define CHECKOUT_OUTPUT ((size_t)1 << 20)

/* State of one fetch and checkout. */
struct fetch {
	struct git git;
	struct arena *a;
	const char *branch; /* "" = none */
	const char *tag;    /* in place of the branch; NULL = none */
	const char *hash;
	const char *fault;   /* shown to the user */
	const char *no_room; /* how the disk failed it; NULL = it did not */
	bool is_gone;        /* the branch or tag, as the fault says */
	bool superseded;     /* the reason for the failure */
	bool lfs_away;       /* the fault is that of the server, and may pass */
	bool tags_apart;     /* tags must not be fetched with the branch */
	bool tags_few;       /* they were */
	char *tags_old;      /* git's packed-refs from before; NULL = none */
	bool elsewhere;      /* the branch or tag lacks the commit */
	bool touched;        /* the files are changing to `hash` */
	bool moved;          /* the fetch may have written to the clone */
	bool grown;          /* it may have other objects than the commit's */
	const char *before;  /* commit they were at, NULL = none */
	struct clone_state was; /* as the last job reported it */
	enum workspace_how how; /* of the workspace that it left */
};

/* The full name of the branch or tag at the repository; "HEAD" if there is
 * none. */
const char *fetch_ref(const struct fetch *);
/* Four to 64 hexadecimal digits. */
bool commit_is_hash(const char *text);
/* The commit that CHECKOUT_REF names, read without git, in the arena; NULL if
 * it is stored elsewhere. */
const char *fetch_tip(const struct fetch *);
/* Whether the clone has this commit and all that it consists of, so that the
 * server is not needed: `out` is its full hash or NULL.  It is NULL for a push
 * event, which may be outdated, for a request without a branch or tag, whose name
 * only the server has, and unless an earlier job saw on that branch or tag that
 * it contains the commit.  A rollback was checked when the deployment that it
 * repeats ran. */
MUSTCHECK const struct err *fetch_known(struct fetch *, const char *commit,
    const char **out);
/* Compares the commit of a push with its branch or tag, as the server lists them
 * without a fetch; sets `superseded` and `fault` if that is at another commit,
 * and `hash` if it is at the same. */
MUSTCHECK const struct err *fetch_compare(struct fetch *);
/* Fetches the commit of the deployment and sets `hash` and `branch`.  If `hash`
 * is NULL afterwards, `fault` or the end of the last command says why. */
MUSTCHECK const struct err *fetch_all(struct fetch *);
/* Reports that the branch or tag lacks the commit: it is not shown under that name.
 * A rollback keeps the names of the deployment that it repeats: they had the commit
 * then. */
void fetch_elsewhere(struct fetch *, struct checkout *out);
/* Whether the clone has so few tags that they are fetched with the branch. */
bool tags_are_few(struct fetch *);
/* Afterwards: stores them as one file. */
MUSTCHECK const struct err *tags_pack(struct fetch *);
/* Otherwise: before the fetch, hides the tags from git; after it, brings those
 * whose commits the clone has, and reports a failure in the log only. */
MUSTCHECK const struct err *tags_hide(void);
MUSTCHECK const struct err *tags_list(struct fetch *);
/* Gives back what a checkout has taken that did not fit, so that others find
 * room.  Whether that succeeds changes nothing. */
void room_make(struct fetch *);
/* Completes the files of Git LFS, or sets `fault`; names in the log the submodules
 * and files that the workspace still lacks. */
MUSTCHECK const struct err *checkout_missing(struct fetch *);
/* Whether the file below a directory is a pointer of Git LFS. */
bool missing_is_pointer(int dir, const char *path);
/* Writes the files of Git LFS anew that are pointers, or sets `fault`; `out` says
 * whether there were any. */
MUSTCHECK const struct err *lfs_complete(struct fetch *, bool *out);
/* Removes objects of Git LFS that were not used for 30 days. */
MUSTCHECK const struct err *lfs_expire(struct git *);
/* Sets `fault` and `lfs_away` if git-lfs said why git failed. */
void lfs_explain(struct fetch *);
/* The fault if git-lfs is not installed. */
extern const char lfs_absent[];

#endif
