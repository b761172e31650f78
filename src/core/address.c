/* SPDX-License-Identifier: ISC */
#include "core/address.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "core/num.h"
#include "core/str.h"

#define NAME_BYTES                                                             \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"
#define PORT_DIGITS ((size_t)5)

static const struct {
	const char *start;
	const char *name;
	int64_t port;
} schemes[ADDRESS__MAX] = {
	[ADDRESS_HTTPS] = { "https://", "https", 443 },
	[ADDRESS_HTTP] = { "http://", "http", 80 },
	[ADDRESS_SSH] = { "ssh://", "ssh", 22 },
	[ADDRESS_SCP] = { NULL, "ssh", 22 },
	[ADDRESS_FILE] = { "file://", "file", 0 },
	[ADDRESS_PATH] = { "/", "file", 0 },
};

/* Length of the host at the start of the text; 0 if there is none. */
static size_t
host_length(const char *text, size_t max)
{
	size_t len = 0;

	if (max == 0 || *text == '-')
		return 0;
	if (*text != '[') {
		while (len < max && text[len] != '\0' &&
		    strchr(NAME_BYTES, text[len]) != NULL)
			len++;
		return len;
	}
	for (len = 1; len < max && text[len] != '\0' &&
	     strchr("0123456789abcdefABCDEF:.", text[len]) != NULL;)
		len++;
	return len > 1 && len < max && text[len] == ']' ? len + 1 : 0;
}

/* "user@", if it is there; false if it is malformed. */
static bool
user_take(const char **text, size_t *len, struct address *out)
{
	const char *at = memchr(*text, '@', *len);
	size_t n;

	if (at == NULL)
		return true;
	n = (size_t)(at - *text);
	if (n == 0 || **text == '-' || strspn(*text, NAME_BYTES) != n)
		return false;
	out->user = *text;
	out->user_len = n;
	*text += n + 1;
	*len -= n + 1;
	return true;
}

bool
address_read_host(const char *text, size_t len, struct address *out)
{
	char digits[PORT_DIGITS + 1] = "";
	size_t n;

	*out = (struct address){ .scheme = ADDRESS_HTTPS, .path = "" };
	if (!user_take(&text, &len, out) || (n = host_length(text, len)) == 0)
		return false;
	out->host = text;
	out->host_len = n;
	if (n == len)
		return true;
	if (text[n] != ':' || len - n - 1 > PORT_DIGITS)
		return false;
	(void)memcpy(digits, text + n + 1, len - n - 1);
	return num_parse(digits, 1, 65535, &out->port);
}

/* "user@host:path" */
static bool
scp_read(const char *text, struct address *out)
{
	const char *at = strchr(text, '@');
	size_t user, host;

	if (at == NULL)
		return false;
	user = (size_t)(at - text) + 1;
	host = host_length(at + 1, strlen(at + 1));
	if (text[user + host] != ':' ||
	    !address_read_host(text, user + host, out))
		return false;
	out->scheme = ADDRESS_SCP;
	out->path = text + user + host + 1;
	return true;
}

bool
address_read(const char *text, struct address *out)
{
	enum address_scheme scheme;
	size_t len;

	*out = (struct address){ .scheme = ADDRESS__MAX, .path = "" };
	for (scheme = ADDRESS_HTTPS; scheme < ADDRESS__MAX; scheme++)
		if (schemes[scheme].start != NULL &&
		    strncasecmp(text, schemes[scheme].start,
			strlen(schemes[scheme].start)) == 0)
			break;
	if (scheme == ADDRESS__MAX)
		return strstr(text, "://") == NULL && scp_read(text, out);
	if (scheme == ADDRESS_PATH) {
		out->scheme = scheme;
		out->path = text;
		return true;
	}
	text += strlen(schemes[scheme].start);
	len = strcspn(text, "/?#");
	if (scheme != ADDRESS_FILE && !address_read_host(text, len, out))
		return false;
	out->scheme = scheme;
	out->path = text + len;
	return scheme != ADDRESS_FILE || *text == '/';
}

bool
address_is_web(const struct address *ad)
{
	return ad->scheme == ADDRESS_HTTPS || ad->scheme == ADDRESS_HTTP;
}

bool
address_is_ssh(const struct address *ad)
{
	return ad->scheme == ADDRESS_SSH || ad->scheme == ADDRESS_SCP;
}

bool
address_is_local(const struct address *ad)
{
	return ad->scheme == ADDRESS_FILE || ad->scheme == ADDRESS_PATH;
}

bool
address_is_loopback(const struct address *ad)
{
	char host[32];

	if (ad->host_len >= sizeof(host))
		return false;
	(void)memcpy(host, ad->host, ad->host_len);
	host[ad->host_len] = '\0';
	return strcasecmp(host, "localhost") == 0 ||
	    str_matches(host, "127(\\.[0-9]{1,3}){3}|\\[::1\\]");
}

bool
address_path_is_plain(const char *path)
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

int64_t
address_port(const struct address *ad)
{
	return ad->port != 0 ? ad->port : schemes[ad->scheme].port;
}

bool
address_same_host(const struct address *a, const struct address *b)
{
	return a->host_len > 0 && a->host_len == b->host_len &&
	    strncasecmp(a->host, b->host, a->host_len) == 0;
}

bool
address_same_origin(const struct address *a, const struct address *b)
{
	return a->scheme == b->scheme && address_same_host(a, b) &&
	    address_port(a) == address_port(b);
}

const char *
address_origin(struct arena *a, const struct address *ad)
{
	const char *name = schemes[ad->scheme].name;
	char *host = arena_strndup(a, ad->host, ad->host_len), *p;

	for (p = host; *p != '\0'; p++)
		*p = (char)tolower((unsigned char)*p);
	return address_port(ad) == schemes[ad->scheme].port ?
	    arena_printf(a, "%s://%s", name, host) :
	    arena_printf(a, "%s://%s:%lld", name, host, (long long)ad->port);
}

const char *
address_public(struct arena *a, const char *text)
{
	const char *scheme = strstr(text, "://"), *at = NULL, *c;
	const char *from = scheme == NULL ? text : scheme + 3;
	const char *end = from + strcspn(from, "/?#");
	struct address ad;

	/* what git cannot read may have a slash in its password */
	if (memchr(from, '@', (size_t)(end - from)) == NULL &&
	    !address_read(text, &ad))
		end = from + strlen(from);
	for (c = from; c < end; c++)
		if (*c == '@')
			at = c;
	if (at == NULL ||
	    ((scheme == NULL || strncasecmp(text, "ssh", 3) == 0) &&
		memchr(from, ':', (size_t)(at - from)) == NULL))
		return text;
	return arena_printf(a, "%.*s***%s", (int)(from - text), text, at);
}
