/* SPDX-License-Identifier: ISC */
/* The texts of HTTP: URLs, links, Retry-After. */
#include "http/http.h"

#include <stdio.h>

#include "core/str.h"
#include "tap.h"

static struct arena *arena;

static void
test_escape(void)
{
	static const char *const pairs[][2] = {
		{ "", "" },
		{ "main", "main" },
		{ "aZ09-._~", "aZ09-._~" },
		{ "feature/a b", "feature%2Fa%20b" },
		{ "100%#?&+=", "100%25%23%3F%26%2B%3D" },
		{ "gr\xc3\xbcn", "gr%C3%BCn" },
		{ "a\r\nb", "a%0D%0Ab" },
	};
	size_t i;

	for (i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		is_str(http_escape(arena, pairs[i][0]), pairs[i][1],
		    pairs[i][1]);
}

static void
test_origin(void)
{
	static const char *const pairs[][2] = {
		{ "https://Git.Example.ORG", "https://git.example.org" },
		{ "https://git.example.org/a/b?c#d",
		    "https://git.example.org" },
		{ "http://git.example.org", "http://git.example.org" },
		{ "HTTPS://h:8443/", "https://h:8443" },
		{ "https://[::1]:3000/x", "https://[::1]:3000" },
		{ "https://h:443/", "https://h" },
		{ "https://h:0443/", NULL },
		{ "https://h?x=@y", "https://h" },
		{ "https://user@h/", NULL },
		{ "https://good.example\\@evil.example/", NULL },
		{ "https://u:p@h/", NULL },
		{ "ftp://h/", NULL },
		{ "file:///etc/passwd", NULL },
		{ "ssh://git@h/o/r", NULL },
		{ "git@h:o/r", NULL },
		{ "//h/x", NULL },
		{ "/x", NULL },
		{ "", NULL },
		{ "https://", NULL },
		{ "https:///x", NULL },
		{ "https://h:99999/", NULL },
		{ "https://h:x/", NULL },
		{ "https://h/ x", NULL },
		{ "https://h/\r\nHost: x", NULL },
		{ "https://h\x7f/", NULL },
		{ "https://h\xc3\xa4/", NULL },
		{ "javascript:alert(1)", NULL },
	};
	size_t i;

	for (i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		is_str(http_origin(arena, pairs[i][0]), pairs[i][1],
		    "http_origin returns the origin");
}

/* A response with one header. */
static struct http_response
with(const char *name, const char *value)
{
	struct http_header *h = arena_alloc(arena, 1, sizeof(*h));
	struct http_response r = {
		.status = 200,
		.url = "https://git.example.org/api/v1/repos?page=1",
		.headers = { .items = h, .n = 1 },
	};

	h->name = name;
	h->value = value;
	return r;
}

static void
test_link(void)
{
	static const char *const pairs[][2] = {
		{ "<https://git.example.org/x?page=2>; rel=\"next\"",
		    "https://git.example.org/x?page=2" },
		{ "<https://git.example.org/x?a=1,2;3>;rel=next",
		    "https://git.example.org/x?a=1,2;3" },
		{ "<https://git.example.org/l>; rel=\"last\", "
		  "</n>; title=\"a, b; rel=last\"; rel=\"prev NEXT\"",
		    "https://git.example.org/n" },
		{ "<?page=2>; rel=\"next\"",
		    "https://git.example.org/api/v1/repos?page=2" },
		{ "<https://GIT.example.org:443/y>; REL=next",
		    "https://GIT.example.org:443/y" },
		{ ", , </z> ; rel = next ,", "https://git.example.org/z" },
		{ "</a>, </b>; rel=next", "https://git.example.org/b" },
		{ "</a>; rel=prev; rel=next", NULL },
		{ "<https://evil.example/x?page=2>; rel=\"next\"",
		    "https://git.example.org/api/v1/repos?page=2" },
		{ "<http://git.example.org/x?page=3&l=%2F>; rel=\"next\"",
		    "https://git.example.org/api/v1/repos?page=3&l=%2F" },
		{ "<https://git.example.org:8443/x?@evil>; rel=\"next\"",
		    "https://git.example.org/api/v1/repos?@evil" },
		{ "<https://evil.example/x>; rel=\"next\"", NULL },
		{ "<https://u@git.example.org/x>; rel=\"next\"", NULL },
		{ "<//evil.example/x>; rel=\"next\"", NULL },
		{ "<file:///etc/passwd>; rel=\"next\"", NULL },
		{ "</n>; rel=\"nextone\"", NULL },
		{ "</n>; rel=\"last\"", NULL },
		{ "</n>; title=\"next\"", NULL },
		{ "</n>; rel", NULL },
		{ "</n>; rel=\"", NULL },
		{ "</n", NULL },
		{ "/n; rel=next", NULL },
		{ "<", NULL },
		{ "", NULL },
	};
	struct http_response r;
	size_t i;

	for (i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		r = with("link", pairs[i][0]);
		is_str(http_link(arena, &r, "next"), pairs[i][1],
		    "http_link returns the URL of a relation");
	}
	r = with("location", "</n>; rel=next");
	is_str(http_link(arena, &r, "next"), NULL,
	    "http_link ignores other headers");
}

static void
test_retry_after(void)
{
	static const struct {
		const char *value;
		int64_t wait;
	} cases[] = {
		{ "0", 0 },
		{ "120", 120 },
		{ "0007", 7 },
		{ "3600", 3600 },
		{ "3601", 3600 },
		{ "99999999999999999999999999", 3600 },
		{ "Fri, 31 Dec 1999 23:59:59 GMT", 0 },
		{ "Friday, 31-Dec-99 23:59:59 GMT", 0 },
		{ "Fri Dec 31 23:59:59 1999", 0 },
		{ "Fri, 31 Dec 2094 23:59:59 GMT", 3600 },
		{ "", -1 },
		{ "-5", -1 },
		{ "1.5", -1 },
		{ "1e3", -1 },
		{ "soon", -1 },
		{ "tomorrow", -1 },
		{ "Fri, 31 Foo 2094 23:59:59 GMT", -1 },
		{ "2094-12-31T23:59:59Z", -1 },
		{ "10 seconds", -1 },
	};
	struct http_response r;
	char date[64];
	struct tm tm;
	time_t soon = time(NULL) + 100;
	int64_t wait;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		r = with("retry-after", cases[i].value);
		is_int(http_retry_after(&r), cases[i].wait, cases[i].value);
	}
	(void)strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT",
	    gmtime_r(&soon, &tm));
	r = with("retry-after", date);
	wait = http_retry_after(&r);
	ok(wait > 90 && wait <= 100,
	    "Retry-After with a date in 100 seconds: %lld", (long long)wait);
	r = with("x-retry-after", "1");
	is_int(http_retry_after(&r), -1,
	    "http_retry_after ignores other headers");
}

int
main(void)
{
	arena = arena_open((size_t)1 << 20);
	test_escape();
	test_origin();
	test_link();
	test_retry_after();
	arena_close(arena);
	return tap_done();
}
