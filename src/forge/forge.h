/* SPDX-License-Identifier: ISC */
/*
 * The interface to Git servers.
 *
 * A kind of server is a struct forge_ops in a file of its own (gitea, gitlab,
 * github, git): tables of URL forms and of JSON paths, and a few functions. To
 * add one, add its file, its name in forge_kinds[] and in the values of
 * gitserver.type, and a line in the Makefile; if its push events have a form of
 * their own, also a row in the table of those.
 *
 * Every call ends within gitserver.timeout. Errors say to the client what the
 * server reported: ERR_UPSTREAM (502; `sys` = the status of its response, 0 =
 * none), ERR_UPSTREAM_TIMEOUT (504); ERR_UNAUTHENTICATED if it rejected the
 * token (401), ERR_NOTFOUND if the repository or branch is unknown or not
 * visible to the token, ERR_RATE if its rate limit is exceeded (`sys` = seconds
 * to wait, 0 = unknown), ERR_CONFIG if a setting is missing. No error contains
 * a token, code or verifier.
 */
#ifndef SLIPWAY_FORGE_FORGE_H
#define SLIPWAY_FORGE_FORGE_H

#include "core/arena.h"
#include "core/field.h"
#include "core/settings.h"
#include "core/state.h"

#define FORGE_BODY ((size_t)1 << 20) /* limit of a response */

struct forge;

/* RFC 6749 5.1 */
struct forge_token {
	const char *access;
	const char *refresh;    /* NULL = cannot be refreshed */
	struct when expires_at; /* none = it does not expire */
	const char *scope;      /* as granted; NULL = as requested */
};

struct forge_account {
	const char *id; /* the server's id in decimal */
	const char *login;
	const char *name;
	const char *email;
	const char *avatar_url;
};

/* A repository as the server names it. */
struct forge_repo {
	const char *id;   /* decimal; NULL = unknown */
	const char *path; /* "owner/name", "group/sub/name" */
	const char *default_branch;
	const char *url; /* web page */
	bool empty;
};

struct forge_branch {
	const char *name;
	const char *commit_hash;
	bool is_protected;
	bool is_default;
};

struct forge_commit {
	const char *hash;
	const char *message;
	const char *author_name;
	const char *author_email;
	struct when committed_at;
	const char *url;
};

/* The requested part of a list; the call sets `has_more`. */
struct forge_page {
	int64_t page;  /* from 1 */
	int64_t limit; /* 1..100 */
	bool has_more;
};

struct forge_status {
	enum commit_state state;
	const char *commit_hash;
	const char *ref;         /* branch or tag; NULL = unknown */
	const char *context;     /* "slipway/PLACE" */
	const char *description; /* at most 140 characters */
	const char *url;         /* NULL = none */
};

/* The credentials of git over HTTPS. */
struct forge_credential {
	const char *user;
	const char *secret;
};

/* The settings must outlive it. ERR_CONFIG, naming the setting: unknown type,
 * or a missing or invalid URL. */
MUSTCHECK const struct err *forge_open(const struct settings_gitserver *,
    struct forge **out);
void forge_close(struct forge *);
/* Limits all further calls to that time (time_mono_ms), for a sequence of
 * calls; 0 = each has gitserver.timeout. */
void forge_until(struct forge *, int64_t when_ms);
/* Milliseconds available to the next call. */
int64_t forge_left(const struct forge *);
/* "https://git.example.org", in lower case, without a trailing slash. Together
 * with the account id it identifies a person. */
const char *forge_server(const struct forge *);
/* "Gitea (git.example.org)", for people. */
const char *forge_title(const struct forge *, struct arena *);
/* Whether it has an API (type git has none). */
bool forge_has_api(const struct forge *);

/* Whether such a server responds at all; `clock` is its time, or none. */
MUSTCHECK const struct err *forge_check(struct forge *, struct arena *,
    struct when *clock);
/* The server's version; NULL if it does not reveal it. `access` may be NULL. */
MUSTCHECK const struct err *forge_version(struct forge *, struct arena *,
    const char *access, const char **out);
/* Whether a server of that version loses the PKCE challenge on its consent
 * page, which clients without a secret see at every sign-in. */
bool forge_forgets_challenge(const struct forge *, const char *version);
/* Whether client id and secret belong to an application on the server;
 * ERR_CONFIG with the server's message if not. */
MUSTCHECK const struct err *forge_check_client(struct forge *, struct arena *);
/* Whether that check covers the redirect address, too; other servers report it
 * in the browser only. */
bool forge_checks_redirect(const struct forge *);

/* OAuth 2.0 (RFC 6749) with PKCE S256 (RFC 7636). */
/* ERR_CONFIG names the settings that are missing for sign-in. */
MUSTCHECK const struct err *forge_can_sign_in(const struct forge *);
const char *forge_authorize_url(const struct forge *, struct arena *,
    const char *state, const char *challenge);
/* ERR_BAD_REQUEST, with the server's message, if it rejects the code. */
MUSTCHECK const struct err *forge_token_get(struct forge *, struct arena *,
    const char *code, const char *verifier, struct forge_token *out);
/* ERR_UNAUTHENTICATED if the server rejects the refresh token. */
MUSTCHECK const struct err *forge_token_refresh(struct forge *, struct arena *,
    const char *refresh, struct forge_token *out);
/* Revokes a token. Success if the server does not support that. */
MUSTCHECK const struct err *forge_token_revoke(struct forge *, struct arena *,
    const char *access);
/* ERR_UNAUTHENTICATED and ERR_FORBIDDEN mean that the server itself rejects the
 * token or the account; a proxy in front of it does not produce them. */
MUSTCHECK const struct err *forge_whoami(struct forge *, struct arena *,
    const char *access, struct forge_account *out);

/* The repository to which a URL refers on this server, without a request.
 * ERR_NOTFOUND if it is elsewhere (https, http, ssh and scp-like forms). */
MUSTCHECK const struct err *forge_repo_of(const struct forge *, struct arena *,
    const char *repository, struct forge_repo *out);
/* NULL if a URL on the Git server's host and HTTPS port can be that of a
 * repository, else what is wrong with it. */
const char *forge_repo_fault(const struct settings_gitserver *, struct arena *,
    const char *address);
/* The same for a URL on the public host of a kind of server; NULL for all other
 * hosts. */
const char *forge_page_fault(struct arena *, const char *address);
/* If the URL is that of a web page of a repository ("/src/branch/main",
 * "/-/tree/main", "/tree/main", "?tab=readme"), the repository's URL, else
 * NULL. */
const char *forge_page_repo(struct arena *, const char *address);
/* The URL of a repository that is now at `path`, in the form and on the host of
 * `repository`. ERR_NOTFOUND if there is none. */
MUSTCHECK const struct err *forge_repo_at(const struct forge *, struct arena *,
    const char *repository, const char *path, const char **out);
/* The URL of a repository after the server itself has moved to `server`: with
 * SSH the host changes, and an explicit port stays. ERR_NOTFOUND if it is
 * elsewhere. */
MUSTCHECK const struct err *forge_repo_moved(const struct forge *,
    struct arena *, const char *repository, const char *server,
    const char **out);
/* Looks up a repository by id if set (so that renames do not matter), else by
 * path. `access` may be NULL for an anonymous request. */
MUSTCHECK const struct err *forge_repo_find(struct forge *, struct arena *,
    const char *access, struct forge_repo *repo);
/* Lists the repositories (struct forge_repo) that the account of the token owns
 * or takes part in, most recently used first; without a token, or if `account`
 * is NULL and the server needs it, those that are visible. `search`: a part of
 * the name, NULL or "" = all. */
MUSTCHECK const struct err *forge_repos(struct forge *, struct arena *,
    const char *access, const char *account, const char *search,
    struct forge_page *, struct list *out);
/* The URL by which such a repository is cloned, NULL if it would not be
 * recognized as one of the server. */
const char *forge_repo_address(const struct forge *, struct arena *,
    const struct forge_repo *);
/* Lists of struct forge_branch and struct forge_commit; those of an empty
 * repository are empty. Branches with an invalid name (core/branch.h) are left
 * out. `repo` is a result of forge_repo_find(). */
MUSTCHECK const struct err *forge_branches(struct forge *, struct arena *,
    const char *access, const struct forge_repo *, struct forge_page *,
    struct list *out);
MUSTCHECK const struct err *forge_commits(struct forge *, struct arena *,
    const char *access, const struct forge_repo *, const char *branch,
    struct forge_page *, struct list *out);
/* The same list, from a commit on. */
MUSTCHECK const struct err *forge_history(struct forge *, struct arena *,
    const char *access, const struct forge_repo *, const char *hash,
    struct forge_page *, struct list *out);
/* The commit with that hash, or the only one whose hash begins with it.
 * ERR_NOTFOUND or ERR_UPSTREAM if there is none, or several. */
MUSTCHECK const struct err *forge_commit_find(struct forge *, struct arena *,
    const char *access, const struct forge_repo *, const char *hash,
    struct forge_commit *out);
enum forge_contains {
	FORGE_UNSURE, /* the server does not say */
	FORGE_INSIDE,
	FORGE_OUTSIDE
};
/* Whether the history of the commit `tip` contains the commit `hash`; both are
 * whole hashes. */
MUSTCHECK const struct err *forge_contains(struct forge *, struct arena *,
    const char *access, const struct forge_repo *, const char *tip,
    const char *hash, enum forge_contains *out);
/* Sets a commit status. Success if the server has it already. */
MUSTCHECK const struct err *forge_status_put(struct forge *, struct arena *,
    const char *access, const struct forge_repo *, const struct forge_status *);

/* Whether the token may set commit statuses, tried on no commit: an error only
 * if the server rejects the token (401, 403). */
MUSTCHECK const struct err *forge_check_status(struct forge *, struct arena *,
    const char *access);

/* Credentials to clone `repository` with that token, in the arena.
 * ERR_NOTFOUND if the token must not be sent: another server, or not HTTPS. */
MUSTCHECK const struct err *forge_clone_with(const struct forge *,
    struct arena *, const char *repository, const char *access,
    struct forge_credential *out);

/* Branches of any URL by ls-remote, for type git, with the credentials from the
 * settings. Runs git as a child without a shell until that time (time_mono_ms;
 * 0 = gitserver.timeout from now). Hostile URLs and names do no harm. `limit`
 * has no maximum here. */
MUSTCHECK const struct err *forge_ls_remote(const struct settings_gitserver *,
    struct arena *, const char *repository, int64_t until_ms,
    struct forge_page *, struct list *out);
/* The same for tags, with the commits that annotated ones point to: higher
 * versions first. */
MUSTCHECK const struct err *forge_ls_tags(const struct settings_gitserver *,
    struct arena *, const char *repository, int64_t until_ms,
    struct forge_page *, struct list *out);

#endif
