/* SPDX-License-Identifier: ISC */
#include "deploy/repository.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "core/address.h"
#include "core/str.h"
#include "forge/forge.h"

#define WORD "[A-Za-z0-9_][A-Za-z0-9._~+-]*"
#define HOST                                                                   \
	"[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?"                               \
	"(\\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*"
#define USER "[a-z_][a-z0-9_-]*"
#define PATH "(/" WORD ")+/?"

/* The forms that git accepts and that have only one meaning. */
static const struct form {
	const char *user; /* a pattern, as `path` is */
	const char *path;
} forms[ADDRESS__MAX] = {
	[ADDRESS_HTTPS] = { "", PATH },
	[ADDRESS_HTTP] = { "", PATH },
	[ADDRESS_SSH] = { "(" USER ")?", PATH },
	[ADDRESS_SCP] = { USER, WORD "(/" WORD ")*/?" },
	[ADDRESS_FILE] = { "", PATH },
	[ADDRESS_PATH] = { "", PATH },
};

/* git knows schemes in lower case only. */
static bool
is_lower(const char *address)
{
	const size_t len = strcspn(address, ":");
	size_t i;

	for (i = 0; i < len; i++)
		if (isupper((unsigned char)address[i]))
			return false;
	return true;
}

static bool
fits(struct arena *a, const char *address, struct address *out)
{
	const struct form *form;

	if (!address_read(address, out))
		return false;
	form = &forms[out->scheme];
	return str_matches(arena_strndup(a, out->user, out->user_len),
		   form->user) &&
	    (address_is_local(out) ||
		str_matches(arena_strndup(a, out->host, out->host_len),
		    HOST)) &&
	    (out->scheme == ADDRESS_SCP || out->scheme == ADDRESS_PATH ||
		is_lower(address)) &&
	    str_matches(out->path, form->path);
}

/* Over HTTP the port must be the Git server's, too: another port is another
 * server, which must not get the token. */
static bool
is_gitserver(const char *url, const struct address *ad)
{
	struct address server;

	if (url == NULL || !address_read(url, &server) ||
	    !address_is_web(&server) || !address_same_host(&server, ad))
		return false;
	return address_is_ssh(ad) || address_port(&server) == address_port(ad);
}

static bool
is_allowed(const char *list, const struct address *ad)
{
	struct address one;
	size_t len;

	for (; list != NULL && *list != '\0'; list += len) {
		list += strspn(list, ", \t");
		len = strcspn(list, ", \t");
		if (address_read_host(list, len, &one) &&
		    address_same_host(&one, ad) &&
		    (one.port == 0 || one.port == address_port(ad)))
			return true;
	}
	return false;
}

/* Why this service may not read from the URL's host; NULL if it may. */
static const char *
place_fault(struct arena *a, const struct settings_gitserver *s,
    const char *address, const struct address *ad)
{
	if (is_gitserver(s->url, ad))
		return forge_repo_fault(s, a, address);
	if (is_allowed(s->allowed_hosts, ad))
		return forge_page_fault(a, address);
	return arena_printf(a,
	    "the host %.100s is neither the Git server nor one of "
	    "gitserver.allowed_hosts: an administrator can add it to "
	    "allowed_hosts in [gitserver] of slipway.conf",
	    arena_strndup(a, ad->host, ad->host_len));
}

const char *
repository_fault(struct arena *a, const struct settings_gitserver *s,
    const char *address)
{
	struct address ad;
	const char *repo;

	if ((repo = forge_page_repo(a, address)) != NULL && fits(a, repo, &ad))
		return arena_printf(a,
		    "is the URL of a web page; use that of the repository, "
		    "%s",
		    str_clip(a, repo, 300));
	if (!fits(a, address, &ad))
		return "must be https://host/owner/name, ssh://host/owner/name, "
		       "git@host:owner/name or, on servers without owners, "
		       "git@host:name; without credentials";
	if (address_is_local(&ad))
		return s->allow_local ? NULL :
					"paths are not allowed; use a URL of "
					"the Git server "
					"(gitserver.allow_local)";
	if (ad.scheme == ADDRESS_HTTP && !settings_plain(s, address))
		return "use https:// (gitserver.allow_http is no)";
	return place_fault(a, s, address, &ad);
}

bool
repository_ends(const char *address, const char *path)
{
	size_t len = strlen(address), n = strlen(path);

	while (len > 0 && address[len - 1] == '/')
		len--;
	if (len > 4 && strncasecmp(address + len - 4, ".git", 4) == 0)
		len -= 4;
	return n > 0 && len > n && strchr("/:", address[len - n - 1]) != NULL &&
	    strncasecmp(address + len - n, path, n) == 0;
}
