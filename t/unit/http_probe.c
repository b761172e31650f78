/* SPDX-License-Identifier: ISC */
/*
 * An HTTP client for tests: reads a command per line from standard input, its
 * words separated by tabs, and prints a line about each.
 *
 *   open CA http|https        a new client
 *   get|delete URL MS MAX [NAME VALUE]…
 *   post URL MS MAX TYPE BODY [NAME VALUE]…
 *   fork COMMAND…             in a child, which prints first
 *   rss                       peak memory use, "N kB"
 *
 * Output: "ok MS STATUS LEN TYPE RETRY NEXT URL BODY" or "CODE MS TEXT LOG",
 * with "-" for a missing value.
 */
#include <sys/wait.h>

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/num.h"
#include "core/str.h"
#include "http/http.h"
#include "probe.h"

#define WORDS 40
#define SHOWN 40

static struct http *client;
static struct http_options options = { .agent = "slipway-test/1" };
static char ca[1024];

static int64_t
number(const char *text)
{
	int64_t n;

	if (!num_parse(text, 0, NUM_SAFE, &n))
		errx(64, "%s: not a number", text);
	return n;
}

static const char *
shown(struct arena *a, const char *text)
{
	char *copy, *p;

	if (text == NULL)
		return "-";
	copy = arena_strdup(a, text);
	for (p = copy; *p != '\0'; p++)
		if ((unsigned char)*p < 0x20)
			*p = ' ';
	return copy;
}

static void
headers_set(struct http_request *r, char **word)
{
	size_t n;

	for (n = 0; n < HTTP_HEADERS && word[0] != NULL && word[1] != NULL;
	     word += 2, n++)
		r->header[n] = (struct http_header){ word[0], word[1] };
}

static void
ask(enum http_method method, char **word)
{
	struct arena *a = arena_open((size_t)8 << 20);
	struct http_request r = {
		.method = method,
		.url = word[1],
		.deadline_ms = number(word[2]),
		.max = (size_t)number(word[3]),
	};
	struct http_response got;
	const struct err *e;
	int64_t from = time_mono_ms(), took;

	if (method == HTTP_POST) {
		r.type = word[4];
		r.body = word[5];
		r.len = strlen(r.body);
	}
	headers_set(&r, word + (method == HTTP_POST ? 6 : 4));
	e = http_call(client, a, &r, &got);
	took = time_mono_ms() - from;
	if (e != NULL)
		(void)printf("%s\t%lld\t%s\t%s\n", probe_code(e),
		    (long long)took, e->detail[0] == '\0' ? "-" : e->detail,
		    shown(a, e->msg));
	else
		(void)printf("ok\t%lld\t%d\t%zu\t%s\t%lld\t%s\t%s\t%.*s\n",
		    (long long)took, got.status, got.len, shown(a, got.type),
		    (long long)http_retry_after(&got),
		    shown(a, http_link(a, &got, "next")), got.url,
		    got.len > SHOWN && method == HTTP_GET &&
			    got.body[0] != 'G' ?
			SHOWN :
			4000,
		    shown(a, got.body));
	arena_close(a);
}

static void
reopen(char **word)
{
	http_close(client);
	(void)snprintf(ca, sizeof(ca), "%s", word[1]);
	options.tls_ca = ca[0] == '\0' ? NULL : ca;
	options.allow_http = str_eq(word[2], "http");
	if (http_open(&options, &client) != NULL)
		errx(70, "no client");
	(void)printf("ok\n");
}

/* getrusage(2) would include the process before exec. */
static void
peak(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];

	if (f == NULL)
		err(71, "/proc/self/status");
	while (fgets(line, sizeof(line), f) != NULL)
		if (str_starts(line, "VmHWM:"))
			(void)printf("%s", line + strcspn(line, "0123456789"));
	(void)fclose(f);
}

static void run(char **word);

static void
in_child(char **word)
{
	pid_t pid = fork();

	if (pid == -1)
		err(71, "fork");
	if (pid == 0) {
		run(word);
		(void)fflush(stdout);
		http_close(client);
		_exit(0);
	}
	(void)waitpid(pid, NULL, 0);
}

static void
run(char **word)
{
	if (str_eq(word[0], "open")) {
		reopen(word);
	} else if (str_eq(word[0], "fork")) {
		in_child(word + 1);
	} else if (str_eq(word[0], "rss")) {
		peak();
	} else {
		ask(str_eq(word[0], "post")    ? HTTP_POST :
			str_eq(word[0], "get") ? HTTP_GET :
						 HTTP_DELETE,
		    word);
	}
}

int
main(void)
{
	static char line[65536];
	char *word[WORDS + 1], *rest;
	size_t n;

	if (http_open(&options, &client) != NULL)
		errx(70, "no client");
	while (fgets(line, sizeof(line), stdin) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		rest = line;
		for (n = 0; n < WORDS && rest != NULL; n++)
			word[n] = strsep(&rest, "\t");
		word[n] = NULL;
		run(word);
		(void)fflush(stdout);
	}
	http_close(client);
	return 0;
}
