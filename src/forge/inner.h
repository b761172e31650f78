/* SPDX-License-Identifier: ISC */
/* What the files of this folder share: how one kind of server differs. */
#ifndef SLIPWAY_FORGE_INNER_H
#define SLIPWAY_FORGE_INNER_H

#include "core/address.h"
#include "core/buf.h"
#include "forge/forge.h"
#include "http/http.h"
#include "json/json.h"

/* Addresses below that of the interface.  {path} is "owner/name", {project}
 * the same as one segment, {id} the number, {branch} and {hash} what they
 * say. */
struct forge_forms {
	const char *alive; /* 200, 401 or 403, with JSON */
	const char *account;
	const char *repo;
	const char *repo_by_id;
	const char *branches;
	const char *branch; /* NULL = its commits tell that it is not there */
	const char *commits;
	const char *status;
	const char *paging; /* of the server itself; NULL = it never clamps */
};

struct forge_paths {
	const struct json_path *account; /* struct forge_account */
	const struct json_path *repo;    /* struct forge_repo */
	const struct json_path *branch;  /* struct forge_branch */
	const struct json_path *commit;  /* struct forge_commit */
	const struct json_path *paging;  /* struct forge_paging */
};

struct forge_paging {
	int64_t max; /* items on one page */
};

/* OAuth 2.0, below the server's address. */
struct forge_oauth {
	const char *authorize; /* NULL = nobody can sign in */
	const char *token;
	const char *scopes;
	bool needs_secret;
	bool checks_redirect; /* before the code */
	/* of a version, on its page of consent; NULL = none does */
	bool (*forgets_challenge)(const char *version);
	const struct err *(*revoke)(struct forge *, struct arena *,
	    const char *access); /* NULL = it takes none back */
};

struct forge_ops {
	const char *name;
	const char *api; /* below the server's address; NULL = there is none */
	const char *cloud;     /* host whose interface has one of its own… */
	const char *cloud_api; /* …at this address */
	const char *clone_user;
	const char *limit; /* name of the parameter */
	size_t depth;      /* parts of a repository's path, at most */
	struct http_header header[4]; /* beside the token's */
	struct forge_forms form;
	struct forge_paths path;
	struct forge_oauth oauth;
	const char *state[COMMIT__MAX];
	const char *context; /* name of that member of a status */
	const char *ref;     /* the same for the branch; NULL = none */
	const char *done;    /* words of an error that is none */
};

extern const struct forge_ops forge_gitea, forge_gitlab, forge_github,
    forge_git;

/* By its name; NULL if there is none such. */
const struct forge_ops *forge_kind(const char *type);
/* The kind whose cloud has that host; NULL if none has. */
const struct forge_ops *forge_kind_of(const struct address *);

struct forge {
	const struct forge_ops *ops;
	const struct settings_gitserver *settings;
	struct http *http;
	char *server;     /* its address, without a slash at the end */
	char *api;        /* that of its interface */
	int64_t page_max; /* 0 = not known yet */
	int64_t deadline; /* monotonic, of the call that runs */
	int64_t until;    /* no call lasts longer; 0 = any */
};

enum forge_ask_flag {
	FORGE_ASK_PLAIN = 1 << 0, /* not of the interface: plain JSON */
};

/* One question to the interface or the server itself. */
struct forge_ask {
	enum http_method method;
	const char *url;
	const char *access;
	const char *body;
	const char *type;
	unsigned flags;
};

/* From here on the deadline runs. */
void forge_begin(struct forge *);
/* Whatever status comes back is success. */
MUSTCHECK const struct err *forge_ask(struct forge *, struct arena *,
    const struct forge_ask *, struct http_response *out);
/* NULL for 2xx; else what the server said, as an error. */
MUSTCHECK const struct err *forge_judge(struct forge *, struct arena *,
    const struct http_response *);
/* The server's own words, fit for a log; "" if there are none. */
const char *forge_words(struct arena *, const struct http_response *);
/* At most so many bytes, of whole characters. */
const char *forge_shortened(struct arena *, const char *text, size_t max);
/* Address below that of the interface, filled in. */
const char *forge_url(const struct forge *, struct arena *, const char *form,
    const struct forge_repo *, const char *branch, const char *hash);
/* What the items of a list become. */
struct forge_rows {
	const struct json_path *paths;
	size_t size; /* of one struct */
	size_t cut;  /* where its text lies that may be cut; 0 = nowhere */
};
/* A part of a list, by its address and token. */
MUSTCHECK const struct err *forge_list(struct forge *, struct arena *,
    const struct forge_ask *, const struct forge_rows *, struct forge_page *,
    struct list *out);

#endif
