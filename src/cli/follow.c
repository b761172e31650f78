/* SPDX-License-Identifier: ISC */
#include "cli/follow.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/approval.h"
#include "core/str.h"

#define PIECE ((int64_t)1 << 20) /* bytes per request */
#define LOOK_S 5                 /* a line of progress is at most this old */
#define PATIENCE_MS (INT64_C(10) * 60 * 1000)
#define PAUSE_MIN_MS 250
#define PAUSE_MAX_MS 8000
#define NOTICE_MAX 512

/* What SIGINT prints: one text is complete while the other is written. */
static char notices[2][NOTICE_MAX];
static volatile sig_atomic_t notice;

static void
interrupted(int number)
{
	const char *text = notices[notice];
	struct sigaction end = { .sa_handler = SIG_DFL };

	if (write(STDERR_FILENO, text, strlen(text)) == -1 ||
	    sigaction(number, &end, NULL) == -1)
		_exit(128 + number);
	/* so that a shell sees how the program ended */
	(void)raise(number);
}

static void
notice_set(const struct client *c, int64_t id, int64_t offset)
{
	const struct client_settings *settings = c->call->settings;
	const int next = 1 - notice;

	(void)snprintf(notices[next], NOTICE_MAX,
	    "\nDeployment %lld continues. To follow it again:\n"
	    "  slipway logs %lld -f --offset %lld%s%s\n",
	    (long long)id, (long long)id, (long long)offset,
	    settings->host == NULL ? "" : " -H ",
	    settings->host == NULL ? "" : settings->host);
	notice = next;
}

static const struct err *
notice_begin(const struct client *c, int64_t id, int64_t offset)
{
	struct sigaction on = { .sa_handler = interrupted };

	notice_set(c, id, offset);
	(void)sigemptyset(&on.sa_mask);
	return sigaction(SIGINT, &on, NULL) == -1 ? err_errno("SIGINT") : NULL;
}

/* Requests the bytes from..to-1, and waits for the first one.  Status 416 means
 * that there is none. */
static const struct err *
piece_get(struct client *c, int64_t id, int64_t from, int64_t to, int64_t wait,
    struct http_response *out)
{
	const struct client_request rq = { .method = HTTP_GET,
		.path = arena_printf(c->a,
		    "/api/deployments/%lld/log?wait=%lld", (long long)id,
		    (long long)wait),
		.range = arena_printf(c->a, "bytes=%lld-%lld", (long long)from,
		    (long long)to - 1),
		.wait = wait };
	const struct err *e;

	if ((e = client_call(c, &rq, out)) != NULL || out->status == 206 ||
	    out->status == 416)
		return e;
	return err_public(ERR_UPSTREAM,
	    "%s does not support ranges of logs: is a proxy in between?",
	    c->host.url);
}

static const struct err *
bytes_print(struct client *c, const struct http_response *r)
{
	const struct err *e = NULL;
	struct buf text;

	c->in_line = r->len > 0 && r->body[r->len - 1] != '\n';
	buf_init(&text, SIZE_MAX / 2);
	if (c->table)
		screen_add(&c->screen, r->body, r->len, &text);
	else
		buf_add(&text, r->body, r->len);
	if (fwrite(text.data, 1, text.len, stdout) != text.len ||
	    fflush(stdout) != 0)
		e = err_errno("standard output");
	buf_release(&text);
	return e;
}

/* Prints a piece and advances the offset; SIGINT comes before or after both. */
static const struct err *
piece_print(struct client *c, int64_t id, const struct http_response *r,
    unsigned flags, int64_t *offset)
{
	const struct err *e = NULL;
	sigset_t held, before;

	if (r->status != 206)
		return NULL;
	client_progress(c, NULL);
	(void)sigemptyset(&held);
	(void)sigaddset(&held, SIGINT);
	(void)sigprocmask(SIG_BLOCK, &held, &before);
	if ((flags & FOLLOW_QUIET) == 0)
		e = bytes_print(c, r);
	if (e == NULL) {
		*offset += (int64_t)r->len;
		notice_set(c, id, *offset);
	}
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	return e;
}

static bool
is_complete(const struct http_response *r, int64_t offset)
{
	const char *complete = http_header(r, "x-log-complete");
	const char *size = http_header(r, "x-log-size");
	char known[32];

	(void)snprintf(known, sizeof(known), "%lld", (long long)offset);
	return str_eq(complete, "true") && str_eq(size, known);
}

/* Failures in a row. */
struct outage {
	int64_t since; /* time_mono_ms(); 0 = the service responds */
	int64_t pause_ms;
};

/* Pauses after a failure that may pass; returns any other error. */
static const struct err *
outage_wait(struct client *c, struct outage *o, const struct err *e)
{
	struct timespec time;

	if (!client_is_temporary(e))
		return e;
	if (o->since == 0)
		*o = (struct outage){ time_mono_ms(), PAUSE_MIN_MS };
	if (time_mono_ms() - o->since > PATIENCE_MS)
		return e;
	client_progress(c, "%s: trying again", err_words(e));
	time = (struct timespec){ .tv_sec = o->pause_ms / 1000,
		.tv_nsec = o->pause_ms % 1000 * 1000000 };
	(void)nanosleep(&time, NULL);
	if (o->pause_ms < PAUSE_MAX_MS)
		o->pause_ms *= 2;
	return NULL;
}

/* Shows why nothing is printed. */
static void
state_show(struct client *c, int64_t id)
{
	const struct deployment_wait *wait;
	struct http_response r;
	struct deployment d;
	struct list waits;

	if (!c->progress || deployment_get(c, id, &d, &r) != NULL ||
	    deployment_waits(c, &r, &waits) != NULL)
		return;
	wait = waits.items;
	if (waits.n > 0 && wait->detail != NULL)
		client_progress(c, "%s: %s", d.status,
		    str_visible(c->a, wait->detail));
	else
		client_progress(c, "%s", d.status);
}

/* Whether the deployment could be read; if it waits for approval, says so. */
static bool
approval_look(struct client *c, int64_t id)
{
	struct http_response r;
	struct deployment d;

	if (deployment_get(c, id, &d, &r) != NULL)
		return false;
	approval_print(c, &d);
	return true;
}

/* Prints what is left of the log. */
static const struct err *
log_follow(struct client *c, int64_t id, int64_t *offset, unsigned flags)
{
	const int64_t wait = c->progress ? LOOK_S : CLIENT_WAIT_MAX;
	struct outage outage = { .since = 0 };
	struct http_response r;
	struct arena_mark mark;
	const struct err *e;
	bool complete = false, looked = false;

	while (!complete) {
		mark = arena_mark(c->a);
		looked = looked || approval_look(c, id);
		e = piece_get(c, id, *offset, *offset + PIECE, wait, &r);
		if (e != NULL && (e = outage_wait(c, &outage, e)) != NULL)
			return e;
		if (r.status == 206 || r.status == 416) {
			outage.since = 0;
			if ((e = piece_print(c, id, &r, flags, offset)) != NULL)
				return e;
			complete = is_complete(&r, *offset);
			if (r.status == 416 && !complete)
				state_show(c, id);
		}
		arena_rewind(c->a, &mark);
	}
	return NULL;
}

static void
style_end(struct client *c)
{
	struct buf text;

	buf_init(&text, SIZE_MAX / 2);
	screen_end(&c->screen, &text);
	(void)fwrite(text.data, 1, text.len, stdout);
	(void)fflush(stdout);
	buf_release(&text);
}

const struct err *
follow_run(struct client *c, int64_t id, int64_t offset, unsigned flags,
    struct deployment *out, struct http_response *r)
{
	struct outage outage = { .since = 0 };
	const struct err *e;

	if ((e = client_sign_in(c)) != NULL ||
	    (e = notice_begin(c, id, offset)) != NULL ||
	    (e = log_follow(c, id, &offset, flags)) != NULL)
		return e;
	style_end(c);
	while ((e = deployment_get(c, id, out, r)) != NULL)
		if ((e = outage_wait(c, &outage, e)) != NULL)
			return e;
	client_progress(c, NULL);
	return NULL;
}

const struct err *
follow_print(struct client *c, int64_t id, int64_t from, int64_t to)
{
	struct http_response r;
	struct arena_mark mark;
	const struct err *e;

	if ((e = client_sign_in(c)) != NULL)
		return e;
	while (from < to) {
		mark = arena_mark(c->a);
		if ((e = piece_get(c, id, from,
			 to - from > PIECE ? from + PIECE : to, 0, &r)) !=
			NULL ||
		    (r.status == 206 && (e = bytes_print(c, &r)) != NULL))
			return e;
		if (r.status == 416)
			break;
		from += (int64_t)r.len;
		arena_rewind(c->a, &mark);
	}
	style_end(c);
	return NULL;
}

const struct err *
follow_tail(struct client *c, int64_t id, int64_t size, int64_t lines,
    int64_t *out)
{
	int64_t to = size, from;
	struct http_response r;
	const struct err *e;
	size_t i;

	*out = 0;
	for (; to > 0; to = from) {
		from = to > PIECE ? to - PIECE : 0;
		if ((e = piece_get(c, id, from, to, 0, &r)) != NULL)
			return e;
		for (i = r.len; i > 0; i--) {
			/* the end of the last line begins no other */
			if (r.body[i - 1] != '\n' ||
			    from + (int64_t)i == size || --lines > 0)
				continue;
			*out = from + (int64_t)i;
			return NULL;
		}
	}
	return NULL;
}
