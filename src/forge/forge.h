/* SPDX-License-Identifier: ISC */
/*
 * What any Git hosting server can be asked.
 *
 * A kind of server is a struct forge_ops in a file of its own (gitea, gitlab,
 * github, git): tables of URLs' forms and of JSON's paths to members, and a few
 * functions.  Another one is a file more, and its name in forge_kinds[], in the
 * values of gitserver.type and in the Makefile; if it sends push events in a
 * form of its own, a row in the table of those.
 *
 * Every call ends within gitserver.timeout.  Errors tell the client what the
 * server said: ERR_UPSTREAM (502; `sys` = the status it answered with, 0 =
 * none), ERR_UPSTREAM_TIMEOUT (504);
 * ERR_UNAUTHENTICATED where it refused the token (401), ERR_NOTFOUND where it
 * knows no such repository or branch for this token, ERR_RATE where it asks to
 * come later (`sys` = in so many seconds, 0 = it does not say), ERR_CONFIG where
 * a setting is missing.  No token, code or verifier ever stands in an error.
 */
#ifndef SLIPWAY_FORGE_FORGE_H
#define SLIPWAY_FORGE_FORGE_H

#include "core/arena.h"
#include "core/field.h"
#include "core/settings.h"
#include "core/state.h"

#define FORGE_BODY ((size_t)1 << 20) /* of one answer of the server */

struct forge;

/* RFC 6749 5.1 */
struct forge_token {
	const char *access;
	const char *refresh;    /* NULL = cannot be refreshed */
	struct when expires_at; /* none = it does not */
	const char *scope;      /* as granted; NULL = as asked for */
};

struct forge_account {
	const char *id; /* the server's number of it, in decimal */
	const char *login;
	const char *name;
	const char *email;
	const char *avatar_url;
};

/* A repository as the server names it. */
struct forge_repo {
	const char *id;   /* decimal; NULL = not known yet */
	const char *path; /* "owner/name", "group/sub/name" */
	const char *default_branch;
	const char *url; /* for people */
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

/* Which part of a list; `has_more` is set by the call. */
struct forge_page {
	int64_t page;  /* from 1 */
	int64_t limit; /* 1..100 */
	bool has_more;
};

struct forge_status {
	enum commit_state state;
	const char *commit_hash;
	const char *branch;      /* NULL = not known */
	const char *context;     /* "slipway/PIPELINE" */
	const char *description; /* at most 140 characters */
	const char *url;         /* NULL = none */
};

/* How git itself signs in over HTTPS. */
struct forge_credential {
	const char *user;
	const char *secret;
};

/* The settings must outlive it.  ERR_CONFIG: unknown type, no or a bad URL;
 * says which setting. */
MUSTCHECK const struct err *forge_open(const struct settings_gitserver *,
    struct forge **out);
void forge_close(struct forge *);
/* No call lasts beyond that moment (time_mono_ms), so that several together end
 * in time; 0 = each has all of gitserver.timeout. */
void forge_until(struct forge *, int64_t when_ms);
/* Milliseconds that the next call may last. */
int64_t forge_left(const struct forge *);
/* "https://git.example.org", lower case, without a slash at the end: with the
 * account's id it is who somebody is. */
const char *forge_server(const struct forge *);
/* Whether it has an interface beyond git's own (type git has not). */
bool forge_has_api(const struct forge *);

/* Whether such a server answers there at all; `clock` is what it says the time
 * is, none if it does not. */
MUSTCHECK const struct err *forge_check(struct forge *, struct arena *,
    struct when *clock);
/* What it says its version is; NULL where it says none to strangers. */
MUSTCHECK const struct err *forge_version(struct forge *, struct arena *,
    const char **out);
/* Whether a server of that version forgets the PKCE challenge on its consent
 * page, which clients without a secret see at every sign-in. */
bool forge_forgets_challenge(const struct forge *, const char *version);
/* Whether the server takes client and secret for those of an application of
 * its own: ERR_CONFIG in its words if not. */
MUSTCHECK const struct err *forge_check_client(struct forge *, struct arena *);
/* Whether that was about the redirect address, too; the other servers say so in
 * the browser only. */
bool forge_checks_redirect(const struct forge *);

/* OAuth 2.0 (RFC 6749) with PKCE S256 (RFC 7636). */
/* ERR_CONFIG names what is not set for signing in. */
MUSTCHECK const struct err *forge_can_sign_in(const struct forge *);
const char *forge_authorize_url(const struct forge *, struct arena *,
    const char *state, const char *challenge);
/* ERR_BAD_REQUEST where the server refuses the code, with its words. */
MUSTCHECK const struct err *forge_token_get(struct forge *, struct arena *,
    const char *code, const char *verifier, struct forge_token *out);
/* ERR_UNAUTHENTICATED where the server refuses the refresh token. */
MUSTCHECK const struct err *forge_token_refresh(struct forge *, struct arena *,
    const char *refresh, struct forge_token *out);
/* Gives a token back where the server can take it; others: success. */
MUSTCHECK const struct err *forge_token_revoke(struct forge *, struct arena *,
    const char *access);
/* ERR_UNAUTHENTICATED and ERR_FORBIDDEN: the server itself does not accept the
 * token, or the account; what stands before it cannot be mistaken for it. */
MUSTCHECK const struct err *forge_whoami(struct forge *, struct arena *,
    const char *access, struct forge_account *out);

/* The repository that an address means on this server, without asking it;
 * ERR_NOTFOUND if it lies elsewhere (https, http, ssh and scp-like forms). */
MUSTCHECK const struct err *forge_repo_of(const struct forge *, struct arena *,
    const char *repository, struct forge_repo *out);
/* NULL if an address on the Git server's host and port, as HTTPS has it, can be
 * that of a repository there, else what is wrong with it. */
const char *forge_repo_fault(const struct settings_gitserver *, struct arena *,
    const char *address);
/* The same for an address on any other host that is known: the cloud of a kind
 * of server; NULL for all others. */
const char *forge_page_fault(struct arena *, const char *address);
/* The repository's address where this is that of a page that a browser shows of
 * it ("/src/branch/main", "/-/tree/main", "/tree/main", "?tab=readme"); NULL if
 * it is none. */
const char *forge_page_repo(struct arena *, const char *address);
/* Its address where it is called `path` by now, written as `repository` is: by
 * the same way, on the same host.  ERR_NOTFOUND if there is none such. */
MUSTCHECK const struct err *forge_repo_at(const struct forge *, struct arena *,
    const char *repository, const char *path, const char **out);
/* Its address where the server itself has another one, `server`: over SSH the
 * host changes, and a port that stands there stays.  ERR_NOTFOUND if it lies
 * elsewhere. */
MUSTCHECK const struct err *forge_repo_moved(const struct forge *,
    struct arena *, const char *repository, const char *server,
    const char **out);
/* Asks for it, by its id if that is set (so renames do no harm), else by path.
 * `access` may be NULL: as anybody. */
MUSTCHECK const struct err *forge_repo_find(struct forge *, struct arena *,
    const char *access, struct forge_repo *repo);
/* struct forge_branch and struct forge_commit; an empty repository has none.
 * Branches whose name is none (core/branch.h) are left out.
 * `repo` as forge_repo_find() left it. */
MUSTCHECK const struct err *forge_branches(struct forge *, struct arena *,
    const char *access, const struct forge_repo *, struct forge_page *,
    struct list *out);
MUSTCHECK const struct err *forge_commits(struct forge *, struct arena *,
    const char *access, const struct forge_repo *, const char *branch,
    struct forge_page *, struct list *out);
/* A status on a commit; one that the server has already is success. */
MUSTCHECK const struct err *forge_status_put(struct forge *, struct arena *,
    const char *access, const struct forge_repo *, const struct forge_status *);

/* Whether that token may put any, tried where no commit is: an error only where
 * the server refuses the token itself (401, 403). */
MUSTCHECK const struct err *forge_check_status(struct forge *, struct arena *,
    const char *access);

/* For a clone of `repository` with that token, in the arena; ERR_NOTFOUND where the token
 * must not go: another server, or not by HTTPS. */
MUSTCHECK const struct err *forge_clone_with(const struct forge *,
    struct arena *, const char *repository, const char *access,
    struct forge_credential *out);

/* What the type git offers: branches of any address by ls-remote, with the
 * settings' credentials for it.  Run as a child, no shell, until that moment
 * (time_mono_ms; 0 = gitserver.timeout from now); hostile addresses and names
 * get nowhere.  `limit` has no maximum here. */
MUSTCHECK const struct err *forge_ls_remote(const struct settings_gitserver *,
    struct arena *, const char *repository, int64_t until_ms,
    struct forge_page *, struct list *out);

#endif
