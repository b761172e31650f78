/* SPDX-License-Identifier: ISC */
/* Addresses of repositories, and what of them lies on the server. */
#include <string.h>
#include <strings.h>

#include "core/num.h"
#include "core/str.h"
#include "forge/inner.h"

/* An address in its parts. */
struct address {
	bool ssh;
	bool https;
	const char *host;
	int64_t port;     /* 0 = the scheme's own */
	const char *path; /* without a slash in front */
};

/* "host[:port]", perhaps with a user before it. */
static void
host_take(struct arena *a, const char *text, struct address *out)
{
	const char *at = strrchr(text, '@'), *colon;

	if (at != NULL)
		text = at + 1;
	colon = strchr(text, ':');
	out->port = 0;
	out->host = text;
	if (colon == NULL)
		return;
	out->host = arena_strndup(a, text, (size_t)(colon - text));
	if (!num_parse(colon + 1, 1, 65535, &out->port))
		out->port = -1;
}

/* https://, http://, ssh://, and git@host:path. */
static bool
take_apart(struct arena *a, const char *url, struct address *out)
{
	const char *rest, *slash, *colon;

	*out = (struct address){ .host = "" };
	if ((rest = strstr(url, "://")) != NULL) {
		out->https = strncasecmp(url, "https://", 8) == 0;
		out->ssh = strncasecmp(url, "ssh://", 6) == 0;
		if (!out->https && !out->ssh &&
		    strncasecmp(url, "http://", 7) != 0)
			return false;
		rest += 3;
		slash = rest + strcspn(rest, "/");
		host_take(a, arena_strndup(a, rest, (size_t)(slash - rest)),
		    out);
		out->path = slash + (*slash == '/');
		return true;
	}
	colon = strchr(url, ':');
	if (colon == NULL || url[0] == '/' || strchr(url, '@') == NULL ||
	    strcspn(url, "/") < (size_t)(colon - url))
		return false;
	out->ssh = true;
	host_take(a, arena_strndup(a, url, (size_t)(colon - url)), out);
	out->path = colon + 1 + (colon[1] == '/');
	return true;
}

static int64_t
port_of(const struct address *ad)
{
	if (ad->port != 0 || ad->ssh)
		return ad->port;
	return ad->https ? 443 : 80;
}

/* What follows the server's own path in it; NULL if it is not below. */
static const char *
below(const struct address *server, const struct address *ad)
{
	size_t len = strlen(server->path);
	const char *path = ad->path;

	if (len > 0 && strncmp(path, server->path, len) == 0 &&
	    path[len] == '/')
		return path + len + 1;
	return len == 0 || ad->ssh ? path : NULL;
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
