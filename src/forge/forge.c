/* SPDX-License-Identifier: ISC */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "core/address.h"
#include "core/branch.h"
#include "core/str.h"
#include "forge/inner.h"

#define URL_MAX 1000
#define DESCRIPTION 140
#define ID_MAX 20
#define PATH_LEN 1000 /* limit of a repository's path */
#define BRANCH_LEN 1000
#define STATUS_MAX ((size_t)64 << 10)

static const struct forge_ops *const forge_kinds[] = {
	&forge_gitea,
	&forge_gitlab,
	&forge_github,
	&forge_git,
	NULL,
};

const struct forge_ops *
forge_kind(const char *type)
{
	const struct forge_ops *const *kind = forge_kinds;

	while (*kind != NULL && !str_eq((*kind)->name, type))
		kind++;
	return *kind;
}

const struct forge_ops *
forge_kind_of(const struct address *ad)
{
	const struct forge_ops *const *kind;
	struct address cloud;

	for (kind = forge_kinds; *kind != NULL; kind++)
		if ((*kind)->cloud != NULL &&
		    address_read((*kind)->cloud, &cloud) &&
		    address_same_host(&cloud, ad))
			break;
	return *kind;
}

/* Returns scheme and host in lower case, without a trailing slash. */
static char *
address(const char *url)
{
	size_t len = strlen(url), i;
	struct address ad;
	const char *end;
	char *out;

	while (len > 0 && url[len - 1] == '/')
		len--;
	out = mem_alloc(len + 1, 1);
	(void)memcpy(out, url, len);
	end = address_read(url, &ad) ? ad.path : url;
	for (i = 0; i < len && url + i < end; i++)
		out[i] = (char)tolower((unsigned char)out[i]);
	return out;
}

static const struct err *
url_check(const struct settings_gitserver *s, const char *name, const char *url)
{
	struct address ad;

	if (strlen(url) > URL_MAX || str_has_control(url) ||
	    str_chars(url) != strlen(url) || strpbrk(url, " @?#\"\\") != NULL ||
	    !address_read(url, &ad) || !address_is_web(&ad))
		return err_public(ERR_CONFIG,
		    "%s must be a URL like https://git.example.org, in ASCII.",
		    name);
	if (ad.scheme == ADDRESS_HTTPS || settings_plain(s, url))
		return NULL;
	return err_public(ERR_CONFIG,
	    "%s must start with https:// (unless gitserver.allow_http is yes).",
	    name);
}

static char *
joined(const char *left, const char *right)
{
	size_t len = strlen(left), more = strlen(right);
	char *out = mem_alloc(len + more + 1, 1);

	(void)memcpy(out, left, len);
	(void)memcpy(out + len, right, more);
	return out;
}

static char *
api_address(const struct forge *f)
{
	const struct forge_ops *ops = f->ops;

	if (f->settings->api_url != NULL)
		return address(f->settings->api_url);
	if (ops->cloud != NULL && strcmp(f->server, ops->cloud) == 0)
		return joined(ops->cloud_api, "");
	return joined(f->server, ops->api == NULL ? "" : ops->api);
}

const struct err *
forge_open(const struct settings_gitserver *s, struct forge **out)
{
	struct http_options options = { .tls_ca = s->tls_ca,
		.agent = "slipway/" SLIPWAY_VERSION };
	const struct forge_ops *kind = forge_kind(s->type);
	const struct err *e;
	struct forge *f;

	*out = NULL;
	if (kind == NULL)
		return err_public(ERR_CONFIG, "Unknown GITSERVER_TYPE.");
	if (s->url == NULL || s->url[0] == '\0')
		return err_public(ERR_CONFIG,
		    "gitserver.url (or GITSERVER_URL) is not set.");
	if ((e = url_check(s, "GITSERVER_URL", s->url)) != NULL ||
	    (s->api_url != NULL &&
		(e = url_check(s, "gitserver.api_url", s->api_url)) != NULL))
		return e;
	f = mem_alloc(1, sizeof(*f));
	f->ops = kind;
	f->settings = s;
	f->server = address(s->url);
	f->api = api_address(f);
	options.allow_http = settings_plain(s, f->server) ||
	    settings_plain(s, f->api);
	/* URLs that may do without TLS because they stay on this host. */
	options.direct = options.allow_http && !s->allow_http;
	if ((e = http_open(&options, &f->http)) != NULL) {
		forge_close(f);
		return e;
	}
	*out = f;
	return NULL;
}

void
forge_close(struct forge *f)
{
	if (f == NULL)
		return;
	http_close(f->http);
	mem_free(f->server);
	mem_free(f->api);
	mem_free(f);
}

const char *
forge_server(const struct forge *f)
{
	return f->server;
}

bool
forge_has_api(const struct forge *f)
{
	return f->ops->api != NULL;
}

static const struct err *
api_need(const struct forge *f)
{
	if (forge_has_api(f))
		return NULL;
	return err_public(ERR_CONFIG,
	    "A Git server of type git has no API (GITSERVER_TYPE).");
}

/* Sends the request that every server of this type accepts. */
static const struct err *
alive_ask(struct forge *f, struct arena *a, const char *access,
    struct http_response *out)
{
	const struct err *e;

	if ((e = api_need(f)) != NULL)
		return e;
	forge_begin(f);
	return forge_ask(f, a,
	    &(struct forge_ask){
		.url = forge_url(f, a, f->ops->form.alive, NULL, NULL, NULL),
		.access = access },
	    out);
}

const struct err *
forge_check(struct forge *f, struct arena *a, struct when *clock)
{
	struct http_response got;
	const struct err *e;

	*clock = (struct when){ 0 };
	if ((e = alive_ask(f, a, NULL, &got)) != NULL)
		return e;
	clock->ms = http_date(&got);
	/* 401 and 403: the server requires authentication */
	if ((got.status == 200 || got.status == 401 || got.status == 403) &&
	    got.type != NULL && strstr(got.type, "json") != NULL)
		return NULL;
	/* the response of a TLS server to a request without TLS */
	if (got.status == 400 && str_starts(f->api, "http://"))
		return err_public(ERR_CONFIG,
		    "The server at this URL returned 400, probably because it "
		    "requires TLS. Check whether GITSERVER_URL must start with "
		    "https://.");
	return err_public(ERR_CONFIG,
	    "No API of type %s at this URL (%d). Check GITSERVER_URL, "
	    "GITSERVER_TYPE and gitserver.api_url.",
	    f->ops->name, got.status);
}

static const struct json_path version_paths[] = {
	{ .path = "version", .offset = 0, .type = F_STR },
	JSON_PATH_END,
};

const struct err *
forge_version(struct forge *f, struct arena *a, const char *access,
    const char **out)
{
	struct http_response got;
	const struct err *e;

	*out = NULL;
	if ((e = alive_ask(f, a, access, &got)) != NULL)
		return e;
	return got.status == 200 ?
	    json_pick(a, version_paths, got.body, got.len, out) :
	    NULL;
}

bool
forge_forgets_challenge(const struct forge *f, const char *version)
{
	return f->ops->oauth.forgets_challenge != NULL && version != NULL &&
	    f->ops->oauth.forgets_challenge(version);
}

static bool
is_id(const char *s)
{
	size_t len = strlen(s);

	return len > 0 && len <= ID_MAX && strspn(s, "0123456789") == len;
}

/* The 401 or 403 page of a proxy says nothing about the account. */
static const struct err *
account_judge(struct forge *f, struct arena *a, const struct http_response *got)
{
	const struct err *e = forge_judge(f, a, got);
	const bool json = got->type != NULL &&
	    strstr(got->type, "json") != NULL;

	if (e != NULL && e->code == ERR_UNAUTHENTICATED && !json)
		return err_public_number(ERR_UPSTREAM, 0,
		    "The Git server returned 401, but not in the form of its "
		    "API.");
	/* GitHub reports a rate limit in the text only */
	if (e != NULL && e->code == ERR_UPSTREAM && e->sys == 403 && json &&
	    strcasestr(forge_words(a, got), "rate limit") == NULL)
		return err_public(ERR_FORBIDDEN,
		    "The Git server does not admit the account (403): %s",
		    forge_words(a, got));
	return e;
}

const struct err *
forge_whoami(struct forge *f, struct arena *a, const char *access,
    struct forge_account *out)
{
	struct http_response got;
	const struct err *e;

	*out = (struct forge_account){ .id = NULL };
	if ((e = api_need(f)) != NULL)
		return e;
	forge_begin(f);
	if ((e = forge_ask(f, a,
		 &(struct forge_ask){ .url = forge_url(f, a,
					  f->ops->form.account, NULL, NULL,
					  NULL),
		     .access = access },
		 &got)) != NULL ||
	    (e = account_judge(f, a, &got)) != NULL)
		return e;
	if ((e = json_pick(a, f->ops->path.account, got.body, got.len, out)) !=
	    NULL)
		return e;
	if (is_id(out->id) && out->login[0] != '\0')
		return NULL;
	return err_public(ERR_UPSTREAM,
	    "The Git server returned an account without a valid id or login.");
}

/* Parts of a repository's description become parts of URLs. */
static const struct err *
repo_check(const struct forge_repo *r)
{
	const char *branch = r->default_branch;

	if (is_id(r->id) && strlen(r->path) <= PATH_LEN &&
	    strchr(r->path, '/') != NULL && !str_has_control(r->path) &&
	    (branch == NULL ||
		(strlen(branch) <= BRANCH_LEN && !str_has_control(branch))))
		return NULL;
	return err_public(ERR_UPSTREAM,
	    "The Git server returned a repository without a valid id, path or "
	    "default branch.");
}

const struct err *
forge_repo_find(struct forge *f, struct arena *a, const char *access,
    struct forge_repo *repo)
{
	const struct forge_forms *form = &f->ops->form;
	struct forge_repo fresh = { .id = NULL };
	struct http_response got;
	const struct err *e;

	if ((e = api_need(f)) != NULL)
		return e;
	forge_begin(f);
	if ((e = forge_ask(f, a,
		 &(struct forge_ask){
		     .url = forge_url(f, a,
			 repo->id != NULL ? form->repo_by_id : form->repo, repo,
			 NULL, NULL),
		     .access = access },
		 &got)) != NULL ||
	    (e = forge_judge(f, a, &got)) != NULL ||
	    (e = json_pick(a, f->ops->path.repo, got.body, got.len, &fresh)) !=
		NULL ||
	    (e = repo_check(&fresh)) != NULL)
		return e;
	*repo = fresh;
	return NULL;
}

/* Whether the path contains the text, regardless of case. */
static bool
repo_fits(const void *item, const char *search)
{
	const struct forge_repo *r = item;

	return strcasestr(r->path, search) != NULL;
}

static const char *
repos_url(const struct forge *f, struct arena *a, const char *account,
    const char *search)
{
	const struct forge_repos *r = &f->ops->repos;
	const char *url = forge_url(f, a, f->ops->form.repos, NULL, NULL, NULL);

	if (r->search != NULL && search != NULL)
		url = arena_printf(a, "%s&%s=%s", url, r->search,
		    http_escape(a, search));
	if (r->account != NULL && account != NULL)
		url = arena_printf(a, "%s&%s=%s", url, r->account,
		    http_escape(a, account));
	return url;
}

const struct err *
forge_repos(struct forge *f, struct arena *a, const char *access,
    const char *account, const char *search, struct forge_page *page,
    struct list *out)
{
	const struct forge_repos *r = &f->ops->repos;
	struct forge_rows rows = { .paths = f->ops->path.repo,
		.size = sizeof(struct forge_repo),
		.member = r->member };
	struct forge_repo *repo;
	const struct err *e;
	size_t i, kept = 0;

	*out = (struct list){ .items = NULL };
	page->has_more = false;
	if ((e = api_need(f)) != NULL)
		return e;
	if (search != NULL && *search == '\0')
		search = NULL;
	if (r->search == NULL && search != NULL) {
		rows.fits = repo_fits;
		rows.search = search;
	}
	forge_begin(f);
	e = forge_list(f, a,
	    &(struct forge_ask){ .url = repos_url(f, a, account, search),
		.access = access },
	    &rows, page, out);
	repo = out->items;
	for (i = 0; i < out->n; i++)
		if (repo_check(&repo[i]) == NULL &&
		    forge_repo_address(f, a, &repo[i]) != NULL)
			repo[kept++] = repo[i];
	out->n = kept;
	return e;
}

/* A repository without commits has no branches. That the server calls it empty
 * is no proof, because this may lag behind a push. */
static bool
is_empty(const struct forge_repo *repo, const struct err *e)
{
	return e != NULL && e->code == ERR_NOTFOUND && repo->empty;
}

const struct err *
forge_branches(struct forge *f, struct arena *a, const char *access,
    const struct forge_repo *repo, struct forge_page *page, struct list *out)
{
	struct forge_branch *b;
	const struct err *e;
	size_t i, kept = 0;

	*out = (struct list){ .items = NULL };
	page->has_more = false;
	if ((e = api_need(f)) != NULL)
		return e;
	forge_begin(f);
	e = forge_list(f, a,
	    &(struct forge_ask){
		.url = forge_url(f, a, f->ops->form.branches, repo, NULL, NULL),
		.access = access },
	    &(struct forge_rows){ .paths = f->ops->path.branch,
		.size = sizeof(*b) },
	    page, out);
	if (is_empty(repo, e))
		return NULL;
	b = out->items;
	for (i = 0; i < out->n; i++) {
		if (branch_fault(b[i].name) != NULL)
			continue;
		b[kept] = b[i];
		b[kept].is_default = str_eq(b[i].name, repo->default_branch);
		kept++;
	}
	out->n = kept;
	return e;
}

/* Whether the branch does not exist, if the request for its commits does not
 * show that: GitLab returns an empty list, Gitea before 1.23 fails. */
static bool
is_gone(struct forge *f, struct arena *a, const char *access,
    const struct forge_repo *repo, const char *branch)
{
	struct http_response got;

	return f->ops->form.branch != NULL && !repo->empty &&
	    forge_ask(f, a,
		&(struct forge_ask){ .url = forge_url(f, a, f->ops->form.branch,
					 repo, branch, NULL),
		    .access = access },
		&got) == NULL &&
	    got.status == 404;
}

const struct err *
forge_commits(struct forge *f, struct arena *a, const char *access,
    const struct forge_repo *repo, const char *branch, struct forge_page *page,
    struct list *out)
{
	const struct err *e;

	*out = (struct list){ .items = NULL };
	page->has_more = false;
	if (branch == NULL)
		branch = repo->default_branch;
	if ((e = api_need(f)) != NULL || branch == NULL)
		return e;
	forge_begin(f);
	e = forge_list(f, a,
	    &(struct forge_ask){ .url = forge_url(f, a, f->ops->form.commits,
				     repo, branch, NULL),
		.access = access },
	    &(struct forge_rows){ .paths = f->ops->path.commit,
		.size = sizeof(struct forge_commit),
		.cut = offsetof(struct forge_commit, message) },
	    page, out);
	if (is_empty(repo, e))
		return NULL;
	/* the repository exists: it was requested first */
	if ((e != NULL && e->code == ERR_NOTFOUND) ||
	    ((e == NULL ? out->n == 0 :
			  e->code == ERR_UPSTREAM && e->sys == 500) &&
		is_gone(f, a, access, repo, branch)))
		return err_public(ERR_NOTFOUND,
		    "The Git server has no such branch (404).");
	return e;
}

const char *
forge_shortened(struct arena *a, const char *text, size_t max)
{
	size_t len = strlen(text);

	if (len > max)
		for (len = max; (text[len] & 0xc0) == 0x80;)
			len--;
	return arena_strndup(a, text, len);
}

/* The server's word for the state. A server whose version is unknown gets the
 * word that all versions have. */
static const char *
state_word(struct forge *f, struct arena *a, const char *access,
    enum commit_state state)
{
	const struct forge_ops *ops = f->ops;
	const char *version;

	if (state == COMMIT_SKIPPED && ops->knows_skipped != NULL &&
	    forge_version(f, a, access, &version) == NULL && version != NULL &&
	    ops->knows_skipped(version))
		return "skipped";
	return ops->state[state];
}

const struct err *
forge_status_put(struct forge *f, struct arena *a, const char *access,
    const struct forge_repo *repo, const struct forge_status *st)
{
	const struct forge_ops *ops = f->ops;
	struct pair pair[5];
	struct map pairs = { .items = pair };
	struct http_response got;
	const struct err *e;
	struct buf body;

	if ((e = api_need(f)) != NULL)
		return e;
	pair[pairs.n++] = (struct pair){ "state",
		state_word(f, a, access, st->state) };
	pair[pairs.n++] = (struct pair){ ops->context, st->context };
	pair[pairs.n++] = (struct pair){ "description",
		forge_shortened(a, st->description, DESCRIPTION) };
	if (st->url != NULL)
		pair[pairs.n++] = (struct pair){ "target_url", st->url };
	if (ops->ref != NULL && st->ref != NULL)
		pair[pairs.n++] = (struct pair){ ops->ref, st->ref };
	buf_init(&body, STATUS_MAX);
	json_write_map(&body, &pairs);
	forge_begin(f);
	if ((e = buf_check(&body)) != NULL ||
	    (e = forge_ask(f, a,
		 &(struct forge_ask){ .method = HTTP_POST,
		     .url = forge_url(f, a, ops->form.status, repo, NULL,
			 st->commit_hash),
		     .access = access,
		     .body = body.data,
		     .type = "application/json" },
		 &got)) != NULL)
		goto out;
	if (got.status < 300 || ops->done == NULL ||
	    strstr(forge_words(a, &got), ops->done) == NULL)
		e = forge_judge(f, a, &got);
out:
	buf_release(&body);
	return e;
}

const struct err *
forge_check_status(struct forge *f, struct arena *a, const char *access)
{
	static const struct forge_repo nowhere = { .id = "0",
		.path = "slipway/doctor" };
	static const struct forge_status st = {
		.commit_hash = "0000000000000000000000000000000000000000",
		.context = "slipway/doctor",
		.description = "",
		.state = COMMIT_PENDING,
	};
	const struct err *e = forge_status_put(f, a, access, &nowhere, &st);

	return e != NULL &&
		(e->code == ERR_UNAUTHENTICATED ||
		    (e->code == ERR_UPSTREAM && e->sys == 403)) ?
	    e :
	    NULL;
}
