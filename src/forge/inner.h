/* SPDX-License-Identifier: ISC */
/* Shared by the files of this folder: the differences between kinds of
 * servers. */
#ifndef SLIPWAY_FORGE_INNER_H
#define SLIPWAY_FORGE_INNER_H

#include "core/address.h"
#include "core/buf.h"
#include "forge/forge.h"
#include "http/http.h"
#include "json/json.h"

/* URLs relative to that of the API. {path} is "owner/name", {project} the same
 * as one segment, {id} the id; {branch} and {hash} are literal. */
struct forge_forms {
	const char *alive; /* 200, 401 or 403, with JSON */
	const char *account;
	const char *repo;
	const char *repo_by_id;
	const char *branches;
	const char *branch; /* NULL = the request for its commits shows whether
			     * it exists */
	const char *commits;
	const char *commit;
	const char *history; /* the commit and those before it */
	const char *base;    /* where two commits part; NULL = see `beyond` */
	const char *beyond;  /* the commits of one that the other lacks; some
			      * versions ignore the other */
	const char *status;
	const char *paging; /* of the server; NULL = it never limits pages */
	const char *repos;  /* with a query */
};

/* How the list of repositories is requested and returned. */
struct forge_repos {
	const char *search;  /* query parameter; NULL = the server does not
			      * search */
	const char *account; /* the same for the account's id; NULL = that of
			      * the token */
	const char *member;  /* of the response; NULL = it is the list */
};

struct forge_paths {
	const struct json_path *account; /* struct forge_account */
	const struct json_path *repo;    /* struct forge_repo */
	const struct json_path *branch;  /* struct forge_branch */
	const struct json_path *commit;  /* struct forge_commit */
	const struct json_path *base;    /* the same, of form.base */
	const struct json_path *paging;  /* struct forge_paging */
};

struct forge_paging {
	int64_t max; /* items on one page */
};

/* OAuth 2.0, relative to the server's URL. */
struct forge_oauth {
	const char *authorize; /* NULL = no sign-in */
	const char *token;
	const char *scopes;
	bool needs_secret;
	bool checks_redirect; /* before the code */
	/* whether a version does, on its consent page; NULL = none does */
	bool (*forgets_challenge)(const char *version);
	const struct err *(*revoke)(struct forge *, struct arena *,
	    const char *access); /* NULL = not supported */
};

struct forge_ops {
	const char *name;
	const char *title;     /* for people */
	const char *api;       /* relative to the server's URL; NULL = no API */
	const char *cloud;     /* host whose API is elsewhere... */
	const char *cloud_api; /* ...at this URL */
	const char *clone_user;
	const char *limit; /* name of the query parameter */
	size_t depth;      /* maximum number of segments in a repository's
			    * path */
	struct http_header header[4]; /* in addition to the token's */
	struct forge_forms form;
	struct forge_repos repos;
	struct forge_paths path;
	struct forge_oauth oauth;
	const char *state[COMMIT__MAX];
	/* whether a version has the state "skipped"; NULL = none has */
	bool (*knows_skipped)(const char *version);
	const char *context; /* name of that member of a status */
	const char *ref;     /* the same for the branch; NULL = none */
	const char *done;    /* text of an error that means success */
};

extern const struct forge_ops forge_gitea, forge_gitlab, forge_github,
    forge_git;

/* Returns the kind with that name, or NULL. */
const struct forge_ops *forge_kind(const char *type);
/* The kind whose cloud has that host; NULL if none has. */
const struct forge_ops *forge_kind_of(const struct address *);

struct forge {
	const struct forge_ops *ops;
	const struct settings_gitserver *settings;
	struct http *http;
	char *server;     /* its URL, without a trailing slash */
	char *api;        /* URL of its API */
	int64_t page_max; /* 0 = unknown */
	int64_t deadline; /* of the current call, monotonic */
	int64_t until;    /* no call lasts longer; 0 = no limit */
};

#define FORGE_VERSION 3
/* Reads the numbers of a version like "1.25.4"; false if it has others. */
bool forge_version_read(const char *version, int64_t number[FORGE_VERSION]);

enum forge_ask_flag {
	FORGE_ASK_PLAIN = 1 << 0, /* plain JSON, not the API */
};

/* A request to the API or to the server itself. */
struct forge_ask {
	enum http_method method;
	const char *url;
	const char *access;
	const char *body;
	const char *type;
	unsigned flags;
};

/* Starts the deadline of a call. */
void forge_begin(struct forge *);
/* Success whatever the status of the response. */
MUSTCHECK const struct err *forge_ask(struct forge *, struct arena *,
    const struct forge_ask *, struct http_response *out);
/* NULL for 2xx, else an error with the server's message. */
MUSTCHECK const struct err *forge_judge(struct forge *, struct arena *,
    const struct http_response *);
/* The server's error message, made safe for a log; "" if there is none. */
const char *forge_words(struct arena *, const struct http_response *);
/* Cuts the text to a maximum of bytes, at a character boundary. */
const char *forge_shortened(struct arena *, const char *text, size_t max);
/* Fills in the form of a URL of the API. */
const char *forge_url(const struct forge *, struct arena *, const char *form,
    const struct forge_repo *, const char *branch, const char *hash);
/* How to convert the items of a list. */
struct forge_rows {
	const struct json_path *paths;
	size_t size;        /* of one struct */
	size_t cut;         /* offset of the text that may be cut; 0 = none */
	const char *member; /* of the response; NULL = it is the list */
	/* Which items belong to the list; NULL = all. Then a page takes as many
	 * requests as there are pages on the server, up to a limit. */
	bool (*fits)(const void *item, const char *search);
	const char *search;
};
/* Reads a part of a list by its URL and token. */
MUSTCHECK const struct err *forge_list(struct forge *, struct arena *,
    const struct forge_ask *, const struct forge_rows *, struct forge_page *,
    struct list *out);

#endif
