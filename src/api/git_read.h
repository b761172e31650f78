/* SPDX-License-Identifier: ISC */
/* Reads the branches, tags and commits of a project's repository, for a request
 * or for other handlers, and lists the repositories that a project can name. */
#ifndef SLIPWAY_API_GIT_READ_H
#define SLIPWAY_API_GIT_READ_H

#include "forge/forge.h"
#include "store/gitrepo.h"
#include "store/project.h"
#include "web/req.h"

enum reading_what {
	READ_BRANCHES,
	READ_TAGS,
	READ_COMMITS,
	READ_COMMIT,
	READ_CONTAINED
};

/* A request and its result. */
struct reading {
	struct req *rq;
	struct project project;
	enum reading_what what;
	bool is_tip;        /* only the newest commit, not a stored one */
	const char *tag;    /* READ_TAGS: only this one; NULL = all */
	int64_t within;     /* milliseconds; 0 = as long as possible */
	int64_t until;      /* time_mono_ms */
	bool is_found;      /* the repository was read */
	bool is_live;       /* its commits are those of the server */
	const char *branch; /* NULL = the repository's default */
	/* READ_COMMITS from it on, if the server has an API; READ_CONTAINED: the
	 * end of the history */
	const char *tip;
	/* READ_CONTAINED: the commit; READ_COMMIT: it, or the beginning of its
	 * hash; only if the server has an API */
	const char *hash;
	enum forge_contains contained; /* the result of that */
	struct forge_repo known;       /* as stored, else by its path */
	struct forge_repo repo;
	bool trusted; /* the result may be stored for all users */
	struct forge_page page;
	struct list list; /* struct forge_branch or git_commit */
};

struct git_ref {
	const char *branch; /* NULL = the default branch, unless there is a
			     * tag */
	const char *tag;
};

/* A branch or tag and perhaps a commit that a request names, and what the
 * repository says about them. */
struct git_check {
	struct git_ref ref;
	const char *commit_hash; /* or a part; the whole hash if it is found */
	enum git_known {
		GIT_UNKNOWN, /* it cannot be known now */
		GIT_KNOWN, /* the commit is on it; without a commit, it exists */
		GIT_NO_REF,
		GIT_ELSEWHERE, /* the commit is not on it */
	} known;
	const char *message; /* of a known commit; NULL = unknown */
};
/* Asks for some seconds, with the caller's own access to the Git server. An
 * error only of the database. */
MUSTCHECK const struct err *git_check(struct req *, int64_t project_id,
    struct git_check *);

/* Finds the commit of a tag, or the newest of a branch, with the caller's own
 * access to the Git server; in the request's arena. ERR_NOTFOUND if there is no
 * such branch, tag or repository, ERR_UPSTREAM, ERR_UPSTREAM_TIMEOUT or
 * ERR_CONFIG, with a detail, if it cannot be read, and ERR_RATE if too many
 * requests wait. */
MUSTCHECK const struct err *git_tip(struct req *, int64_t project_id,
    const struct git_ref *, struct git_commit *out);
/* Reads what it describes, with the caller's own access to the Git server.
 * Errors have a detail for the client. */
MUSTCHECK const struct err *git_read(struct reading *);

/* The address of a page. Clients make a link of it, so those with other schemes
 * become NULL. */
const char *git_page_only(const char *url);

/* Stores the number and the path that the server showed to a trusted token, and
 * gives the project the new address if the repository was renamed and the role of
 * the caller there allows to change it. */
MUSTCHECK const struct err *git_follow(struct req *, enum role,
    const struct git_repo *);
/* Finds the projects that the caller sees whose repository has this address at
 * the Git server now, by its number: struct project. None if there is no such
 * repository. Errors as above. */
MUSTCHECK const struct err *git_projects(struct req *, const char *address,
    struct list *out);
/* Sets the time at which a request that asks the Git server must have its
 * response. ERR_UPSTREAM_TIMEOUT if too little is left. */
MUSTCHECK const struct err *git_until(const struct req *, int64_t *until);
/* Maps an error of the Git server to the one for the client, to whom 401 would
 * mean that its own session has expired. */
const struct err *git_error(const struct err *);

/* A repository that a project can name. */
struct git_repository {
	const char *path; /* "owner/name" */
	const char *repository;
	const char *default_branch;
	const char *url;
};

/* Lists the repositories of the caller's account at the Git server whose names
 * contain `search` (NULL = all): struct git_repository. Errors as above. */
MUSTCHECK const struct err *git_repositories(struct req *, const char *search,
    struct forge_page *, struct list *out);

#endif
