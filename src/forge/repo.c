/* SPDX-License-Identifier: ISC */
/* URLs of repositories, and whether they are on the Git server. */
#include <string.h>
#include <strings.h>

#include "core/address.h"
#include "core/str.h"
#include "forge/inner.h"

/* The path without its leading slash. */
static const char *
path_of(const struct address *ad)
{
	return ad->path + (ad->path[0] == '/' ? 1 : 0);
}

/* Parses the URL of a repository or of the server. */
static bool
read_plain(const char *text, struct address *out)
{
	return address_read(text, out) && !address_is_local(out) &&
	    address_path_is_plain(out->path);
}

/* The path below the server's own path; NULL if it is not below. Over SSH
 * servers have no such path. */
static const char *
below(const struct address *server, const struct address *ad)
{
	const size_t len = strlen(server->path);

	if (address_is_ssh(ad))
		return path_of(ad);
	if (strncmp(ad->path, server->path, len) != 0 || ad->path[len] != '/')
		return NULL;
	return ad->path + len + 1;
}

static const struct err *
elsewhere(void)
{
	return err_public(ERR_NOTFOUND,
	    "The repository is not on the Git server.");
}

const struct err *
forge_repo_of(const struct forge *f, struct arena *a, const char *repository,
    struct forge_repo *out)
{
	struct address server, ad;
	const char *path, *p;
	size_t len, parts = 1;

	*out = (struct forge_repo){ .id = NULL };
	if (!read_plain(f->server, &server) || !read_plain(repository, &ad) ||
	    !address_same_host(&server, &ad) ||
	    (!address_is_ssh(&ad) &&
		address_port(&server) != address_port(&ad)) ||
	    (path = below(&server, &ad)) == NULL)
		return elsewhere();
	len = strlen(path);
	while (len > 0 && path[len - 1] == '/')
		len--;
	if (len > 4 && strncmp(path + len - 4, ".git", 4) == 0)
		len -= 4;
	path = arena_strndup(a, path, len);
	for (p = path; *p != '\0'; p++)
		parts += *p == '/';
	if (len == 0 || parts < 2 || parts > f->ops->depth ||
	    strstr(path, "//") != NULL || path[0] == '/')
		return elsewhere();
	out->path = path;
	return NULL;
}

const char *
forge_repo_address(const struct forge *f, struct arena *a,
    const struct forge_repo *repo)
{
	const char *out = arena_printf(a, "%s/%s.git", f->server, repo->path);
	struct forge_repo is;

	return forge_repo_of(f, a, out, &is) == NULL &&
		str_eq(is.path, repo->path) ?
	    out :
	    NULL;
}

const struct err *
forge_repo_at(const struct forge *f, struct arena *a, const char *repository,
    const char *path, const char **out)
{
	struct forge_repo was, is;
	size_t len = strlen(repository);
	const struct err *e;
	const char *tail;

	*out = NULL;
	if ((e = forge_repo_of(f, a, repository, &was)) != NULL)
		return e;
	while (repository[len - 1] == '/')
		len--;
	tail = str_ends(arena_strndup(a, repository, len), ".git") ? ".git" :
								     "";
	len -= strlen(tail) + strlen(was.path);
	*out = arena_printf(a, "%.*s%s%s", (int)len, repository, path, tail);
	if (forge_repo_of(f, a, *out, &is) == NULL && str_eq(is.path, path))
		return NULL;
	*out = NULL;
	return elsewhere();
}

const struct err *
forge_repo_moved(const struct forge *f, struct arena *a, const char *repository,
    const char *server, const char **out)
{
	struct address was, is, ad;
	struct forge_repo repo;
	const struct err *e;

	*out = NULL;
	if ((e = forge_repo_of(f, a, repository, &repo)) != NULL)
		return e;
	if (!read_plain(f->server, &was) || !read_plain(server, &is) ||
	    !read_plain(repository, &ad))
		return elsewhere();
	if (!address_is_ssh(&ad))
		*out = arena_printf(a, "%s/%s", server, below(&was, &ad));
	else
		*out = arena_printf(a, "%.*s%.*s%s",
		    (int)(ad.host - repository), repository, (int)is.host_len,
		    is.host, ad.host + ad.host_len);
	return NULL;
}

const struct err *
forge_clone_with(const struct forge *f, struct arena *a, const char *repository,
    const char *access, struct forge_credential *out)
{
	struct address server, ad;

	*out = (struct forge_credential){ .user = NULL };
	if (!read_plain(f->server, &server) || !read_plain(repository, &ad) ||
	    !address_same_origin(&server, &ad) || below(&server, &ad) == NULL)
		return elsewhere();
	out->user = f->settings->token_user != NULL ? f->settings->token_user :
						      f->ops->clone_user;
	out->secret = arena_strdup(a, access);
	return NULL;
}

/* Whether a segment after a repository's path belongs to a web page. GitLab does
 * not allow these names for repositories, except src, which Gitea uses with a
 * second word, and the lists, which are followed by the number of an entry. A
 * repository with such a name can be written with ".git". */
static bool
is_of_page(const char *part, size_t len)
{
	static const char *const names[] = { "-", "tree", "blob", "blame",
		"raw", "commits", NULL };
	static const char *const src[] = { "src/branch/", "src/tag/",
		"src/commit/", NULL };
	static const char *const lists[] = { "issues/", "pulls/", "pull/",
		"merge_requests/", "milestone/", "milestones/", NULL };
	size_t i, n;

	for (i = 0; names[i] != NULL; i++)
		if (strlen(names[i]) == len &&
		    strncmp(part, names[i], len) == 0)
			return true;
	for (i = 0; src[i] != NULL; i++)
		if (str_starts(part, src[i]))
			return true;
	for (i = 0; lists[i] != NULL; i++) {
		if (!str_starts(part, lists[i]))
			continue;
		part += strlen(lists[i]);
		n = strspn(part, "0123456789");
		return n > 0 &&
		    (part[n] == '\0' || part[n] == '/' || part[n] == '?' ||
			part[n] == '#');
	}
	return false;
}

const char *
forge_page_repo(struct arena *a, const char *address)
{
	size_t end = strcspn(address, "?#"), parts = 0, len;
	struct address ad;
	const char *p;

	if (!address_read(address, &ad) || !address_is_web(&ad))
		return NULL;
	for (p = ad.path; p < address + end; p += len) {
		p++;
		len = strcspn(p, "/?#");
		if (parts >= 2 && is_of_page(p, len)) {
			end = (size_t)(p - 1 - address);
			break;
		}
		parts += len > 0;
	}
	if (address[end] == '\0' || parts < 2)
		return NULL;
	return arena_strndup(a, address, end);
}

/* What is wrong with the path of a repository on such a server; `path` is the
 * part of the address that the server's own path leaves. */
static const char *
depth_fault(const struct forge_ops *ops, struct arena *a, const char *address,
    const char *path)
{
	size_t parts = 1, second = 0;
	const char *p;

	for (p = path; *p != '\0'; p++) {
		if (*p != '/' || p[1] == '\0')
			continue;
		if (++parts == 3)
			second = (size_t)(p - address);
	}
	if (parts < 2)
		return "is not the URL of a repository; those of the Git "
		       "server have the form https://host/owner/name";
	if (parts <= ops->depth)
		return NULL;
	return arena_printf(a,
	    "is the URL of a web page; use that of the repository, %.*s",
	    (int)second, address);
}

const char *
forge_repo_fault(const struct settings_gitserver *s, struct arena *a,
    const char *address)
{
	const struct forge_ops *ops = forge_kind(s->type);
	struct address server, ad;
	const char *path;

	if (ops == NULL || ops->api == NULL || !read_plain(s->url, &server) ||
	    !read_plain(address, &ad) || address_is_ssh(&ad))
		return NULL;
	/* the settings may end in a slash */
	server.path = arena_strndup(a, server.path,
	    strlen(server.path) - (str_ends(server.path, "/") ? 1 : 0));
	if ((path = below(&server, &ad)) == NULL)
		return arena_printf(a,
		    "is not below the Git server's URL, %.300s", s->url);
	return depth_fault(ops, a, address, path);
}

const char *
forge_page_fault(struct arena *a, const char *address)
{
	const struct forge_ops *ops;
	struct address ad;

	if (!read_plain(address, &ad) || !address_is_web(&ad) ||
	    (ops = forge_kind_of(&ad)) == NULL)
		return NULL;
	return depth_fault(ops, a, address, path_of(&ad));
}
