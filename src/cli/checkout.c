/* SPDX-License-Identifier: ISC */
#include "cli/checkout.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cli/child.h"
#include "core/address.h"
#include "core/num.h"
#include "core/str.h"

#define ADDRESS_MAX 4096
#define OUTPUT_MAX ((size_t)64 << 10)

/* The first line that git prints with these arguments, and three more NULLs at
 * most; NULL if it fails or prints nothing. */
static const char *
git(struct arena *a, const char *one, const char *two, const char *three,
    const char *four)
{
	const char *argv[] = { "git", one, two, three, four, NULL };
	const char *line = NULL;
	struct buf out;
	int status;

	buf_init(&out, OUTPUT_MAX);
	if (child_output(argv, true, &out, &status) == NULL && status == 0 &&
	    out.len > 0)
		line = arena_strndup(a, out.data, strcspn(out.data, "\n"));
	buf_release(&out);
	return line;
}

/* The remote that the branch is configured for, else "origin", else the first
 * one. */
static const char *
remote_of(struct arena *a, const char *branch)
{
	const char *name = NULL;

	if (branch != NULL)
		name = git(a, "config", "--get",
		    arena_printf(a, "branch.%s.remote", branch), NULL);
	if (name == NULL && git(a, "remote", "get-url", "origin", NULL) != NULL)
		name = "origin";
	return name == NULL ? git(a, "remote", NULL, NULL, NULL) : name;
}

const struct err *
checkout_read(struct arena *a, struct checkout *out)
{
	const char *ref, *count;

	*out = (struct checkout){ .branch = NULL };
	if (git(a, "rev-parse", "--git-dir", NULL, NULL) == NULL)
		return err_public(ERR_NOTFOUND,
		    "this is not a checkout of a Git repository");
	out->branch = git(a, "symbolic-ref", "-q", "--short", "HEAD");
	out->commit = git(a, "rev-parse", "-q", "--verify", "HEAD");
	out->remote = remote_of(a, out->branch);
	if (out->remote == NULL)
		return NULL;
	out->address = git(a, "remote", "get-url", out->remote, NULL);
	if (out->branch == NULL || out->commit == NULL)
		return NULL;
	ref = arena_printf(a, "refs/remotes/%s/%s", out->remote, out->branch);
	out->pushed = git(a, "rev-parse", "-q", "--verify", ref) != NULL;
	count = git(a, "rev-list", "--count", "HEAD",
	    out->pushed ? arena_printf(a, "^%s", ref) : NULL);
	if (count != NULL)
		(void)num_parse(count, 0, NUM_SAFE, &out->ahead);
	return NULL;
}

/* The length of a path without the parts that are optional in an address. */
static size_t
plain_length(const char *path)
{
	size_t len = strlen(path);

	while (len > 0 && path[len - 1] == '/')
		len--;
	if (len >= 4 && strncasecmp(path + len - 4, ".git", 4) == 0)
		len -= 4;
	while (len > 0 && path[len - 1] == '/')
		len--;
	return len;
}

/* Reads the address of a remote, which git takes with a user and a password, and
 * over SSH without a user. */
static bool
remote_parse(const char *text, char room[ADDRESS_MAX], struct address *out)
{
	const char *path = strstr(text, "://"), *rest = text, *at;
	size_t kept = 0;

	if (path != NULL && strncmp(text, "file:", strlen("file:")) != 0) {
		path += strlen("://");
		at = memrchr(path, '@', strcspn(path, "/?#"));
		if (at != NULL) {
			kept = (size_t)(path - text);
			rest = at + 1;
		}
	} else if (path == NULL && strchr(text, '@') == NULL &&
	    text[strcspn(text, ":/")] == ':') {
		kept = strlen("git@");
		text = "git@";
	}
	if (kept == 0)
		return address_read(text, out);
	if (kept + strlen(rest) >= ADDRESS_MAX)
		return false;
	(void)memcpy(room, text, kept);
	(void)memcpy(room + kept, rest, strlen(rest) + 1);
	return address_read(room, out);
}

const char *
checkout_plain(struct arena *a, const char *address)
{
	char room[ADDRESS_MAX] = "";
	struct address ad;

	if (!remote_parse(address, room, &ad) || address_is_local(&ad))
		return NULL;
	return room[0] != '\0' ? arena_strdup(a, room) : address;
}

enum checkout_same
checkout_same_repository(const char *one, const char *two)
{
	char room[2][ADDRESS_MAX];
	struct address a, b;
	size_t len;

	if (one == NULL || two == NULL || !remote_parse(one, room[0], &a) ||
	    !remote_parse(two, room[1], &b))
		return CHECKOUT_OTHER;
	if (address_is_local(&a) != address_is_local(&b) ||
	    (!address_is_local(&a) && !address_same_host(&a, &b)))
		return CHECKOUT_OTHER;
	a.path += strspn(a.path, "/");
	b.path += strspn(b.path, "/");
	len = plain_length(a.path);
	if (len != plain_length(b.path) ||
	    strncasecmp(a.path, b.path, len) != 0)
		return CHECKOUT_OTHER;
	if (strncmp(a.path, b.path, len) == 0)
		return CHECKOUT_SAME;
	return address_is_local(&a) ? CHECKOUT_OTHER : CHECKOUT_SIMILAR;
}
