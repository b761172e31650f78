/* SPDX-License-Identifier: ISC */
/* Addresses of repositories, and what of them lies on the server. */
#include <string.h>
#include <strings.h>

#include "core/num.h"
#include "core/str.h"
#include "forge/inner.h"

#define HOST_BYTES                                                             \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"

/* An address in its parts. */
struct address {
	bool ssh;
	bool https;
	const char *host; /* with its brackets */
	int64_t port;     /* 0 = the scheme's own */
	const char *path; /* without a slash in front */
};

/* How long the host at the start of it is; 0 if there is none. */
static size_t
host_length(const char *text)
{
	size_t len;

	if (*text != '[')
		return strspn(text, HOST_BYTES);
	len = 1 + strspn(text + 1, "0123456789abcdefABCDEF:.");
	return text[len] == ']' ? len + 1 : 0;
}

/* "host[:port]", perhaps with a user before it.  Others read it as well, so
 * what could end the host for one reader and not for another is refused. */
static bool
host_take(struct arena *a, const char *text, struct address *out)
{
	const char *at = strchr(text, '@');
	size_t len;

	if (at != NULL && strspn(text, HOST_BYTES) != (size_t)(at - text))
		return false;
	if (at != NULL)
		text = at + 1;
	if ((len = host_length(text)) == 0)
		return false;
	out->host = arena_strndup(a, text, len);
	return text[len] == '\0' ||
	    (text[len] == ':' &&
		num_parse(text + len + 1, 1, 65535, &out->port));
}

/* No part of it leads elsewhere or is read in two ways. */
static bool
is_plain(const char *path)
{
	size_t len;

	if (str_has_control(path) || strpbrk(path, " ?#%\\") != NULL)
		return false;
	for (;; path += len + 1) {
		len = strcspn(path, "/");
		if ((len == 1 && path[0] == '.') ||
		    (len == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		if (path[len] == '\0')
			return true;
	}
}

/* https://, http://, ssh://, and git@host:path. */
static bool
take_apart(struct arena *a, const char *url, struct address *out)
{
	const char *rest, *end;

	*out = (struct address){ .host = "" };
	if ((rest = strstr(url, "://")) != NULL) {
		out->https = strncasecmp(url, "https://", 8) == 0;
		out->ssh = strncasecmp(url, "ssh://", 6) == 0;
		if (!out->https && !out->ssh &&
		    strncasecmp(url, "http://", 7) != 0)
			return false;
		rest += 3;
		end = rest + strcspn(rest, "/");
	} else {
		if ((end = strchr(url, '@')) == NULL)
			return false;
		rest = url;
		end += 1 + host_length(end + 1);
		if (*end != ':')
			return false;
		out->ssh = true;
	}
	out->path = end + (*end != '\0');
	if (out->ssh && *end == ':' && *out->path == '/')
		out->path++;
	return is_plain(out->path) &&
	    host_take(a, arena_strndup(a, rest, (size_t)(end - rest)), out);
}

static int64_t
port_of(const struct address *ad)
{
	if (ad->port != 0 || ad->ssh)
		return ad->port;
	return ad->https ? 443 : 80;
}

/* What follows the server's own path in it; NULL if it is not below.  Over SSH
 * no server has such a path. */
static const char *
below(const struct address *server, const struct address *ad)
{
	size_t len = strlen(server->path);
	const char *path = ad->path;

	if (len == 0 || ad->ssh)
		return path;
	if (strncmp(path, server->path, len) != 0 || path[len] != '/')
		return NULL;
	return path + len + 1;
}

static const struct err *
elsewhere(void)
{
	return err_tell(ERR_NOTFOUND,
	    "The repository does not lie on the Git server.");
}

const struct err *
forge_repo_of(const struct forge *f, struct arena *a, const char *repository,
    struct forge_repo *out)
{
	struct address server, ad;
	const char *path, *p;
	size_t len, parts = 1;

	*out = (struct forge_repo){ .id = NULL };
	if (!take_apart(a, f->server, &server) ||
	    !take_apart(a, repository, &ad) ||
	    strcasecmp(server.host, ad.host) != 0 ||
	    (!ad.ssh && port_of(&server) != port_of(&ad)) ||
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
	const char *host, *at;

	*out = NULL;
	if ((e = forge_repo_of(f, a, repository, &repo)) != NULL)
		return e;
	if (!take_apart(a, f->server, &was) || !take_apart(a, server, &is) ||
	    !take_apart(a, repository, &ad))
		return elsewhere();
	if (!ad.ssh) {
		*out = arena_printf(a, "%s/%s", server, below(&was, &ad));
		return NULL;
	}
	host = strstr(repository, "://");
	host = host == NULL ? repository : host + 3;
	at = strchr(host, '@');
	if (at != NULL && at < host + strcspn(host, "/"))
		host = at + 1;
	*out = arena_printf(a, "%.*s%s%s", (int)(host - repository), repository,
	    is.host, host + strlen(ad.host));
	return NULL;
}

const struct err *
forge_clone_with(const struct forge *f, struct arena *a, const char *repository,
    const char *access, struct forge_credential *out)
{
	struct address server, ad;

	*out = (struct forge_credential){ .user = NULL };
	if (!take_apart(a, f->server, &server) ||
	    !take_apart(a, repository, &ad) || ad.ssh ||
	    server.https != ad.https || strcasecmp(server.host, ad.host) != 0 ||
	    port_of(&server) != port_of(&ad) || below(&server, &ad) == NULL)
		return elsewhere();
	out->user = f->ops->clone_user;
	out->secret = access;
	return NULL;
}

/* What browsers show behind a repository's path.  GitLab lets no repository be
 * called so, but for src, which Gitea has with another word behind it. */
static bool
is_of_page(const char *part, size_t len)
{
	static const char *const names[] = { "-", "tree", "blob", "blame",
		"raw", "commits", NULL };
	static const char *const src[] = { "src/branch/", "src/tag/",
		"src/commit/", NULL };
	size_t i;

	for (i = 0; names[i] != NULL; i++)
		if (strlen(names[i]) == len &&
		    strncmp(part, names[i], len) == 0)
			return true;
	for (i = 0; src[i] != NULL; i++)
		if (str_starts(part, src[i]))
			return true;
	return false;
}

const char *
forge_page_repo(struct arena *a, const char *address)
{
	const char *start = strstr(address, "://"), *p;
	size_t end = strcspn(address, "?#"), parts = 0, len;

	if (start == NULL)
		return NULL;
	start += 3 + strcspn(start + 3, "/?#");
	for (p = start; p < address + end; p += len) {
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

const char *
forge_repo_fault(const struct settings_gitserver *s, struct arena *a,
    const char *address)
{
	const struct forge_ops *ops = forge_kind(s->type);
	struct address server, ad;
	const char *path, *p;
	size_t parts = 1, second = 0;

	if (ops == NULL || ops->api == NULL ||
	    !take_apart(a, s->url, &server) || !take_apart(a, address, &ad) ||
	    ad.ssh)
		return NULL;
	/* the settings may end in a slash */
	server.path = arena_strndup(a, server.path,
	    strlen(server.path) - (str_ends(server.path, "/") ? 1 : 0));
	if ((path = below(&server, &ad)) == NULL)
		return arena_printf(a,
		    "does not lie below the Git server's address, %.300s",
		    s->url);
	for (p = path; *p != '\0'; p++) {
		if (*p != '/' || p[1] == '\0')
			continue;
		if (++parts == 3)
			second = (size_t)(p - address);
	}
	if (parts < 2)
		return "names no repository: the Git server has them as "
		       "https://host/owner/name";
	if (parts <= ops->depth)
		return NULL;
	return arena_printf(a,
	    "is the address of a page: write that of the repository, %.*s",
	    (int)second, address);
}
