/* SPDX-License-Identifier: ISC */
#include "core/address.h"

#include <string.h>
#include <unistd.h>

#include "core/git.h"
#include "core/str.h"
#include "tap.h"

#define N(table) (sizeof(table) / sizeof((table)[0]))

static struct arena *arena;

static const struct {
	const char *text;
	enum address_scheme scheme;
	const char *user, *host;
	int64_t port;
	const char *path;
} good[] = {
	{ "https://h", ADDRESS_HTTPS, "", "h", 0, "" },
	{ "HTTPS://H.Example:8443/a/b", ADDRESS_HTTPS, "", "H.Example", 8443,
	    "/a/b" },
	{ "http://u@h:80/", ADDRESS_HTTP, "u", "h", 80, "/" },
	{ "https://[::1]:3000/x", ADDRESS_HTTPS, "", "[::1]", 3000, "/x" },
	{ "https://h?x=@y", ADDRESS_HTTPS, "", "h", 0, "?x=@y" },
	{ "ssh://git@my_host:22/a", ADDRESS_SSH, "git", "my_host", 22, "/a" },
	{ "git@h:a/b", ADDRESS_SCP, "git", "h", 0, "a/b" },
	{ "git@[::1]:a", ADDRESS_SCP, "git", "[::1]", 0, "a" },
	{ "file:///srv/a", ADDRESS_FILE, "", "", 0, "/srv/a" },
	{ "/srv/a b", ADDRESS_PATH, "", "", 0, "/srv/a b" },
};

/* What git, ssh or curl would take for something else. */
static const char *const bad[] = { "", "h", "h:a", "a/b", "./a", "@h:a",
	"git@h", "git@:a", "git@h/a", "-git@h:a", "git@-h:a", "ext::sh -c id",
	"fd::17", "git://h/a", "ftp://h/a", "javascript:x", "https://",
	"https:///x", "https://-h/x", "https://u:p@h/x", "https://@h/x",
	"https://a@b@c/x", "https://h:/x", "https://h:0/x", "https://h:0443/x",
	"https://h:65536/x", "https://h:999999/x", "https://h:x/",
	"https://h\\@g/x", "https://h g/x", "https://h\tg/x", "https://[::1/x",
	"https://[]/x", "https://[g]/x", "ssh://-oProxyCommand=x/a",
	"file://h/a", "file:a", "https://h\xc3\xa4/", NULL };

static void
reading(void)
{
	struct address ad;
	size_t i;

	for (i = 0; i < N(good); i++) {
		ok(address_read(good[i].text, &ad), "%s is an address",
		    good[i].text);
		is_int(ad.scheme, good[i].scheme, "... of that scheme");
		is_str(arena_strndup(arena, ad.user, ad.user_len), good[i].user,
		    "... of that user");
		is_str(arena_strndup(arena, ad.host, ad.host_len), good[i].host,
		    "... on that host");
		is_int(ad.port, good[i].port, "... with that port");
		is_str(ad.path, good[i].path, "... and that path");
	}
	for (i = 0; bad[i] != NULL; i++)
		ok(!address_read(bad[i], &ad), "'%s' is no address",
		    str_visible(arena, bad[i]));
}

static void
hosts(void)
{
	struct address ad;

	ok(address_read_host("git.example.org, other", 15, &ad) &&
		ad.host_len == 15 && ad.port == 0,
	    "a host of a list ends at the given length");
	ok(address_read_host("h:8443", 6, &ad) && ad.port == 8443,
	    "a host of a list has a port");
	ok(!address_read_host("", 0, &ad) && !address_read_host("h:", 2, &ad) &&
		!address_read_host("h:1/a", 5, &ad),
	    "an empty host or port, or a path, is no host");
}

static const struct {
	const char *a, *b;
	bool host, origin;
} pairs[] = {
	{ "https://h/a", "https://H:443/b", true, true },
	{ "https://h", "http://h", true, false },
	{ "https://h:1", "https://h:2", true, false },
	{ "ssh://git@h/a", "git@h:a", true, false },
	{ "https://h", "https://h2", false, false },
	{ "https://[::1]", "https://[::1]:443", true, true },
	{ "/a", "/a", false, false },
};

static void
comparing(void)
{
	struct address a, b;
	size_t i;

	for (i = 0; i < N(pairs); i++) {
		ok(address_read(pairs[i].a, &a) && address_read(pairs[i].b, &b),
		    "%s and %s", pairs[i].a, pairs[i].b);
		is_int(address_same_host(&a, &b), pairs[i].host,
		    "... have the same host or different ones");
		is_int(address_same_origin(&a, &b), pairs[i].origin,
		    "... have the same origin or different ones");
	}
}

static const struct {
	const char *text, *origin;
	bool loopback;
} origins[] = {
	{ "https://Git.Example.ORG:443/a", "https://git.example.org", false },
	{ "http://LOCALHOST:80?x", "http://localhost", true },
	{ "http://127.0.0.1:3000/", "http://127.0.0.1:3000", true },
	{ "http://[::1]", "http://[::1]", true },
	{ "http://localhost.example.org", "http://localhost.example.org",
	    false },
	{ "http://127.example.org", "http://127.example.org", false },
	{ "http://[::2]", "http://[::2]", false },
	{ "git@h:a", "ssh://h", false },
};

static void
origin(void)
{
	struct address ad;
	size_t i;

	for (i = 0; i < N(origins); i++) {
		ok(address_read(origins[i].text, &ad), "%s", origins[i].text);
		is_str(address_origin(arena, &ad), origins[i].origin,
		    "... has its origin");
		is_int(address_is_loopback(&ad), origins[i].loopback,
		    "... is on this machine or not");
	}
}

static void
paths(void)
{
	static const char *const plain[] = { "", "/", "/a/b.git", "/a/.b/..c",
		NULL };
	static const char *const odd[] = { "/.", "/a/../b", "/a/./b", "..",
		"/a?b", "/a#b", "/a%2e", "/a b", "/a\\b", "/a\n", NULL };
	size_t i;

	for (i = 0; plain[i] != NULL; i++)
		ok(address_path_is_plain(plain[i]), "'%s' is plain", plain[i]);
	for (i = 0; odd[i] != NULL; i++)
		ok(!address_path_is_plain(odd[i]), "'%s' is not plain",
		    str_visible(arena, odd[i]));
}

static void
ssh(void)
{
	const struct git_ssh both = { "/k", "/h", 5 }, none = { .timeout = 30 };
	static const char *const odd[] = { "/a'b", "/a\"b", "/a\\b", "/a`b",
		"/a$b", "/a%b", "/a\nb", NULL };
	const char *config = access("/etc/ssh/ssh_config", R_OK) == 0 ?
	    "/etc/ssh/ssh_config" :
	    "none";
	size_t i;

	is_str(git_ssh_setting(arena, &none, ""),
	    "core.sshCommand=ssh -oBatchMode=yes -oConnectTimeout=30 -oServerAliveInterval=20",
	    "ssh without a key");
	is_str(git_ssh_setting(arena, &both, "$HOME"),
	    arena_printf(arena,
		"core.sshCommand=ssh -oBatchMode=yes -oConnectTimeout=5 -oServerAliveInterval=20"
		" -F %s -oIdentitiesOnly=yes -oIdentityAgent=none"
		" -i \"$HOME/k\""
		" -oUserKnownHostsFile=\"$HOME/h\"",
		config),
	    "ssh with a key and known hosts");
	for (i = 0; odd[i] != NULL; i++)
		ok(git_ssh_key_fault(odd[i]) != NULL &&
			git_known_hosts_fault(odd[i]) != NULL,
		    "ssh would misread %s", str_visible(arena, odd[i]));
	ok(git_ssh_key_fault("/a b/c~[1]*") == NULL, "a key may have blanks");
	ok(git_known_hosts_fault("/a b") != NULL, "known hosts may not");
	ok(git_known_hosts_fault("/etc/ssh-2.0_x") == NULL, "a usual path");
}

static void public(void)
{
	static const char *const rows[][2] = {
		{ "https://git.example.org/o/p",
		    "https://git.example.org/o/p" },
		{ "https://ann:s3cret@git.example.org/o/p",
		    "https://***@git.example.org/o/p" },
		{ "https://ghp_token@git.example.org/o/p",
		    "https://***@git.example.org/o/p" },
		{ "HTTP://:x@h/p", "HTTP://***@h/p" },
		{ "https://ann:a/b@c@git.example.org/o",
		    "https://***@git.example.org/o" },
		{ "https://ann:x@[::1]:3000/o", "https://***@[::1]:3000/o" },
		{ "ftp://ann:x@h/p", "ftp://***@h/p" },
		{ "https://ann:x@h/@scope/x", "https://***@h/@scope/x" },
		{ "https://h/@scope/x", "https://h/@scope/x" },
		{ "ssh://git@h/o/p", "ssh://git@h/o/p" },
		{ "ssh://git:x@h/o/p", "ssh://***@h/o/p" },
		{ "git@h:o/p", "git@h:o/p" },
		{ "git@h:o/p@1", "git@h:o/p@1" },
		{ "/srv/a@b", "/srv/a@b" },
		{ "", "" },
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		is_str(address_public(arena, rows[i][0]), rows[i][1],
		    "the public form of an address");
}

int
main(void)
{
	arena = arena_open((size_t)1 << 20);
	reading();
	hosts();
	comparing();
	origin();
	paths();
	ssh();
	public();
	arena_close(arena);
	return tap_done();
}
