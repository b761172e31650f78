/* SPDX-License-Identifier: ISC */
#include "cli/device.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/child.h"
#include "core/str.h"

#define HOST_MAX 64
#define SLOWER_S 5 /* what each slow_down adds (RFC 8628, section 3.5) */
#define PAUSE_MAX_S 60
#define BODY_MAX ((size_t)4096)

struct codes {
	const char *device_code;
	const char *user_code;
	const char *uri;
	const char *complete;
	int64_t expires_in;
	int64_t interval;
};
static const struct json_path codes_paths[] = {
	JSON_PATH(struct codes, device_code, "deviceCode", .must = true),
	JSON_PATH(struct codes, user_code, "userCode", .must = true),
	JSON_PATH(struct codes, uri, "verificationUri", .must = true),
	JSON_PATH(struct codes, complete, "verificationUriComplete",
	    .must = true),
	JSON_PATH(struct codes, expires_in, "expiresIn", .must = true),
	JSON_PATH(struct codes, interval, "interval", .must = true),
	JSON_PATH_END,
};

struct granted {
	const char *token;
};
static const struct json_path granted_paths[] = {
	JSON_PATH(struct granted, token, "token", .must = true),
	JSON_PATH_END,
};

static void
interrupted(int number)
{
	static const char text[] =
	    "\nNot signed in; the code has no effect any more.\n";
	struct sigaction end = { .sa_handler = SIG_DFL };

	if (write(STDERR_FILENO, text, sizeof(text) - 1) == -1 ||
	    sigaction(number, &end, NULL) == -1)
		_exit(128 + number);
	/* so that a shell sees how the program ended */
	(void)raise(number);
}

/* SIGINT ends the program with a message, or quietly. */
static const struct err *
interrupt_set(void (*handler)(int))
{
	struct sigaction on = { .sa_handler = handler };

	(void)sigemptyset(&on.sa_mask);
	return sigaction(SIGINT, &on, NULL) == -1 ? err_errno("SIGINT") : NULL;
}

/* Sends an object with one member. */
static const struct err *
send(struct client *c, const char *path, const char *member, const char *value,
    struct http_response *out)
{
	struct client_request rq = { .method = HTTP_POST,
		.path = path,
		.open = true };
	const struct err *e;
	struct buf body;

	buf_init(&body, BODY_MAX);
	buf_puts(&body, "{");
	json_string(&body, member);
	buf_puts(&body, ":");
	json_string(&body, value);
	buf_puts(&body, "}");
	rq.body = body.data;
	if ((e = buf_check(&body)) == NULL)
		e = client_call(c, &rq, out);
	buf_wipe(&body);
	return e;
}

/* How the token is called: users recognize the machine by it. */
static const char *
device_name(struct client *c)
{
	char host[HOST_MAX];

	if (gethostname(host, sizeof(host)) == -1)
		return "slipway";
	host[sizeof(host) - 1] = '\0';
	return *host == '\0' || str_has_control(host) ?
	    "slipway" :
	    arena_printf(c->a, "slipway on %s", host);
}

static const struct err *
codes_get(struct client *c, struct codes *out)
{
	const struct err *e;
	struct http_response r;

	*out = (struct codes){ .device_code = NULL };
	e = send(c, "/api/auth/device", "name", device_name(c), &r);
	if (e != NULL && e->code == ERR_NOTFOUND)
		return err_public(ERR_NOTFOUND,
		    "%s cannot sign in a command line with a browser: create "
		    "an API token there, and use --with-token",
		    c->host.url);
	if (e != NULL)
		return e;
	if ((e = json_pick(c->a, codes_paths, r.body, r.len, out)) != NULL)
		return e;
	if (out->interval < 1)
		out->interval = 1;
	return NULL;
}

/* Whether the address can be passed to a program: it is no option, and its
 * scheme is that of a web page. */
static bool
is_page(const char *uri)
{
	return (str_starts(uri, "https://") || str_starts(uri, "http://")) &&
	    !str_has_control(uri);
}

static void
page_open(struct client *c, const char *uri)
{
	const char *argv[] = { getenv("BROWSER"), uri, NULL };
	int status = 127;

	if (argv[0] == NULL || *argv[0] == '\0')
		argv[0] = "xdg-open";
	if (is_page(uri) && child_start(argv, &status) == NULL && status == 0)
		return;
	(void)fprintf(stderr,
	    "%s did not open the page (exit status %d): open it yourself, or "
	    "set BROWSER.\n",
	    str_visible(c->a, argv[0]), status);
}

static void
codes_show(struct client *c, const struct codes *codes, unsigned flags)
{
	(void)fprintf(stderr,
	    "To sign in, open this page in a browser and enter the code:\n\n"
	    "  page  %s\n  code  %s\n\n",
	    str_visible(c->a, codes->uri), str_visible(c->a, codes->user_code));
	if ((flags & DEVICE_BROWSER) != 0)
		page_open(c, codes->complete);
}

/* One code, and how to wait for it. */
struct waiting {
	struct client *c;
	const struct codes *codes;
	int64_t until; /* monotonic clock */
	int64_t pause; /* seconds */
	bool lost;     /* the last poll, and perhaps its response, was lost */
};

static const struct err *
expired(const struct waiting *w)
{
	if (w->lost)
		return err_public(ERR_UPSTREAM_TIMEOUT,
		    "the connection to %s was lost, and the code cannot be "
		    "used any more: if your account there has a new token "
		    "\"%s\", delete it; then sign in again",
		    w->c->host.url, device_name(w->c));
	return err_public(ERR_UPSTREAM_TIMEOUT,
	    "the code has expired: sign in again, and approve the new code "
	    "within %lld minutes",
	    (long long)w->codes->expires_in / 60);
}

/* What follows from a poll that got no token; NULL = poll again. */
static const struct err *
poll_judge(struct waiting *w, const struct err *e)
{
	const char *error = w->c->problem.error;

	if (str_eq(error, "authorization_pending") ||
	    str_eq(error, "slow_down")) {
		w->pause = w->lost ? w->codes->interval : w->pause;
		w->pause += str_eq(error, "slow_down") ? SLOWER_S : 0;
		w->lost = false;
		return NULL;
	}
	if (str_eq(error, "expired_token"))
		return expired(w);
	if (str_eq(error, "access_denied"))
		return err_as(e, ERR_FORBIDDEN, 0);
	if (!client_is_temporary(e))
		return e;
	if (e->code == ERR_RATE) {
		w->pause += SLOWER_S;
		return NULL;
	}
	client_progress(w->c, "%s does not respond: trying again",
	    w->c->host.url);
	w->lost = true;
	w->pause = w->pause * 2 < PAUSE_MAX_S ? w->pause * 2 : PAUSE_MAX_S;
	return NULL;
}

static const struct err *
token_wait(struct waiting *w, const char **token)
{
	struct granted granted;
	struct http_response r;
	struct timespec time = { 0 };
	const struct err *e;

	for (;;) {
		time.tv_sec = w->pause;
		(void)nanosleep(&time, NULL);
		if (time_mono_ms() >= w->until)
			return expired(w);
		e = send(w->c, "/api/auth/device/token", "deviceCode",
		    w->codes->device_code, &r);
		if (e == NULL)
			break;
		if ((e = poll_judge(w, e)) != NULL)
			return e;
		if (!w->lost)
			client_progress(w->c, "waiting for approval");
	}
	client_progress(w->c, NULL);
	e = json_pick(w->c->a, granted_paths, r.body, r.len, &granted);
	*token = granted.token;
	return e;
}

const struct err *
device_sign_in(struct client *c, unsigned flags, const char **token)
{
	struct codes codes;
	struct waiting w = { .c = c, .codes = &codes };
	const struct err *e, *end;

	*token = NULL;
	if ((e = codes_get(c, &codes)) != NULL ||
	    (e = interrupt_set(interrupted)) != NULL)
		return e;
	w.until = time_mono_ms() + codes.expires_in * 1000;
	w.pause = codes.interval;
	codes_show(c, &codes, flags);
	client_progress(c, "waiting for approval");
	e = token_wait(&w, token);
	end = interrupt_set(SIG_DFL);
	return e != NULL ? e : end;
}
