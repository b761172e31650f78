/* SPDX-License-Identifier: ISC */
#include "deploy/repository.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "core/num.h"
#include "core/str.h"
#include "forge/forge.h"

#define WORD "[A-Za-z0-9_][A-Za-z0-9._~+-]*"
#define HOST                                                                   \
	"[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?"                               \
	"(\\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*"
#define PORT "(:[1-9][0-9]{0,4})?"
#define PATH "(/" WORD ")+/?"

/* The parts of a URL; host and port point into copies. */
struct address {
	const char *host;
	int64_t port; /* 0 = the default of the scheme */
};

/* The forms that git accepts and that have only one meaning. */
static const struct form {
	const char *start;
	const char *pattern; /* of the rest */
	enum { AT_HTTPS, AT_HTTP, AT_SSH, AT_LOCAL } kind;
} forms[] = {
	{ "https://", HOST PORT PATH, AT_HTTPS },
	{ "http://", HOST PORT PATH, AT_HTTP },
	{ "ssh://", "([a-z_][a-z0-9_-]*@)?" HOST PORT PATH, AT_SSH },
	{ "file://", "(/" WORD ")+/?", AT_LOCAL },
	{ "/", WORD "(/" WORD ")*/?", AT_LOCAL },
	{ "", "[a-z_][a-z0-9_-]*@" HOST ":" WORD "(/" WORD ")*/?", AT_SSH },
};

/* The last form has an empty prefix, so one always matches. */
static const struct form *
form_find(const char *address)
{
	const struct form *f = forms;

	while (!str_starts(address, f->start))
		f++;
	return f;
}

/* Parses host and port of a URL that matches its form. */
static void
take_apart(struct arena *a, const char *rest, struct address *out)
{
	const char *at = strchr(rest, '@'), *slash = strchr(rest, '/');
	size_t len;

	if (at != NULL && (slash == NULL || at < slash))
		rest = at + 1;
	len = strcspn(rest, ":/");
	out->host = arena_strndup(a, rest, len);
	out->port = 0;
	if (rest[len] == ':')
		(void)num_parse(arena_strndup(a, rest + len + 1,
				    strspn(rest + len + 1, "0123456789")),
		    1, 65535, &out->port);
}

static int64_t
port_of(const struct address *ad, const struct form *f)
{
	if (ad->port != 0)
		return ad->port;
	return f->kind == AT_HTTPS ? 443 : f->kind == AT_HTTP ? 80 : 22;
}

/* Over HTTP the port must be the Git server's, too: another port is another
 * server, which must not get the token. */
static bool
is_gitserver(struct arena *a, const char *url, const struct form *form,
    const struct address *ad)
{
	const struct form *own;
	struct address server;

	if (url == NULL)
		return false;
	own = form_find(url);
	if (own->kind > AT_HTTP)
		return false;
	take_apart(a, url + strlen(own->start), &server);
	if (strcasecmp(server.host, ad->host) != 0)
		return false;
	return form->kind == AT_SSH ||
	    port_of(&server, own) == port_of(ad, form);
}

static bool
is_allowed(struct arena *a, const char *list, const struct form *form,
    const struct address *ad)
{
	struct address one;
	size_t len;

	for (; list != NULL && *list != '\0'; list += len) {
		list += strspn(list, ", \t");
		len = strcspn(list, ", \t");
		if (len == 0)
			break;
		take_apart(a, arena_strndup(a, list, len), &one);
		if (strcasecmp(one.host, ad->host) == 0 &&
		    (one.port == 0 || one.port == port_of(ad, form)))
			return true;
	}
	return false;
}

/* Whether this service may read from the URL's host. */
static const char *
place_fault(struct arena *a, const struct settings_gitserver *s,
    const struct form *form, const char *address)
{
	struct address ad;

	take_apart(a, address + strlen(form->start), &ad);
	if (is_gitserver(a, s->url, form, &ad))
		return forge_repo_fault(s, a, address);
	if (is_allowed(a, s->allowed_hosts, form, &ad))
		return NULL;
	return arena_printf(a,
	    "the host %.100s is neither the Git server nor one of "
	    "gitserver.allowed_hosts",
	    ad.host);
}

static bool
fits(const struct form *form, const char *address)
{
	return strstr(address, "/..") == NULL &&
	    strstr(address, "/.") == NULL &&
	    str_matches(address + strlen(form->start), form->pattern);
}

const char *
repository_fault(struct arena *a, const struct settings_gitserver *s,
    const char *address)
{
	const struct form *form = form_find(address);
	const char *repo;

	if (form->kind <= AT_HTTP &&
	    (repo = forge_page_repo(a, address)) != NULL && fits(form, repo))
		return arena_printf(a,
		    "is the URL of a web page; use that of the repository, "
		    "%.300s",
		    repo);
	if (!fits(form, address))
		return "must be https://host/owner/name, ssh://host/owner/name, "
		       "git@host:owner/name or, on servers without owners, "
		       "git@host:name; without credentials";
	if (form->kind == AT_LOCAL)
		return s->allow_local ? NULL :
					"paths are not allowed; use a URL of "
					"the Git server "
					"(gitserver.allow_local)";
	if (form->kind == AT_HTTP && !settings_plain(s, address))
		return "use https:// (gitserver.allow_http is no)";
	return place_fault(a, s, form, address);
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
