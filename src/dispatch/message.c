/* SPDX-License-Identifier: ISC */
#include "dispatch/message.h"

#include <string.h>
#include <time.h>

#include "core/buf.h"
#include "core/state.h"
#include "core/str.h"
#include "core/utf8.h"
#include "crypto/crypto.h"
#include "dispatch/text.h"
#include "json/json.h"
#include "queue/deployment_row.h"

#define BODY_MAX ((size_t)256 << 10)
#define TITLE_MAX 400 /* bytes */
#define LINE_MAX 500  /* characters of a text that others wrote */
#define HASH_SHOWN 10
#define WORD_BYTES 42 /* of text in an encoded word (RFC 2047) */
#define LINE_BYTES 57 /* of text in a line of base64 (RFC 2045) */

#define N(m, ...) FIELD(struct notice, m, FIELD_OUT | FIELD_NULL, __VA_ARGS__)
static const struct field data_fields[] = {
	N(deployment_id, .doc = NULL),
	N(project_id, .doc = NULL),
	N(project, .doc = NULL),
	N(environment_id, .doc = NULL),
	N(environment, .doc = NULL),
	N(environment_url, .doc = NULL),
	N(pipeline_id, .doc = NULL),
	N(pipeline, .doc = NULL),
	N(branch, .doc = NULL),
	N(tag, .doc = NULL),
	N(commit_hash, .doc = NULL),
	N(commit_message, .doc = NULL),
	N(env_vars_sent, .doc = NULL),
	N(status, .doc = NULL),
	N(reason, .doc = NULL),
	N(detail, .doc = NULL),
	N(warnings, .doc = NULL),
	N(trigger, .doc = NULL),
	N(user, .doc = NULL),
	N(text, .outside = "lockReason"),
	N(url, .doc = NULL),
	FIELD_END,
};
static const struct shape data_shape = {
	.name = "NoticeData",
	.fields = data_fields,
	.size = sizeof(struct notice),
};

/* What the title says about the deployment. */
static const char *const verbs[NOTICE__MAX] = {
	[NOTICE_STARTED] = "has started",
	[NOTICE_SUCCEEDED] = "succeeded",
	[NOTICE_FAILED] = "failed",
	[NOTICE_RECOVERED] = "succeeded again",
	[NOTICE_WAITING] = "waits for approval",
};

const struct err *
message_webhook(struct arena *a, const struct notice *n, const char **out)
{
	const struct err *e;
	struct buf b;

	*out = NULL;
	buf_init(&b, BODY_MAX);
	buf_puts(&b, "{\"type\":");
	json_string(&b, notice_events[notice_event_find(n->event)].type);
	buf_puts(&b, ",\"timestamp\":");
	json_when(&b, n->created_at);
	buf_puts(&b, ",\"data\":");
	json_write(&b, &data_shape, n, 0);
	buf_puts(&b, "}");
	if ((e = buf_check(&b)) == NULL)
		*out = arena_strdup(a, b.data);
	buf_release(&b);
	return e;
}

/* Whether it succeeded although steps failed that may. */
static bool
is_warned(const struct notice *n)
{
	return state_find(n->status) == STATE_SUCCESS && n->warnings.n > 0;
}

static const char *
title_make(struct arena *a, const struct notice *n)
{
	const enum notice_event event = notice_event_find(n->event);
	const char *verb = verbs[event];
	const char *place = n->project == NULL ? "slipway" : n->project;

	if (event == NOTICE_TEST)
		return "Test message of slipway";
	if (event == NOTICE_LOCKED)
		return arena_printf(a, "%s%s%s is locked", place,
		    n->environment == NULL ? "" : ": ",
		    n->environment == NULL ? "" : n->environment);
	if (state_find(n->status) == STATE_INTERRUPTED)
		verb = "was interrupted";
	return arena_printf(a, "%s: deployment %lld%s%s %s%s", place,
	    (long long)n->deployment_id.n, n->environment == NULL ? "" : " to ",
	    n->environment == NULL ? "" : n->environment, verb,
	    is_warned(n) ? " with warnings" : "");
}

/* Adds a line unless the text is NULL or empty. */
static void
line_add(struct buf *b, struct arena *a, const char *label, const char *text)
{
	if (text != NULL && *text != '\0')
		buf_printf(b, "%s%s\n", label,
		    text_clean(a, str_clip(a, text, LINE_MAX), LINE_MAX));
}

/* The first line of a commit's message. */
static const char *
message_subject(struct arena *a, const char *message)
{
	return message == NULL ?
	    NULL :
	    arena_strndup(a, message, strcspn(message, "\r\n"));
}

/* "KEY, KEY"; NULL if there are none. */
static const char *
keys_text(struct arena *a, const char *json)
{
	const struct env_key *key;
	const char *out;
	struct list keys;
	struct buf b;
	size_t i;

	if (json == NULL ||
	    json_items(a, &env_key_shape, json, &keys) != NULL || keys.n == 0)
		return NULL;
	key = keys.items;
	buf_init(&b, BODY_MAX);
	for (i = 0; i < keys.n; i++)
		buf_printf(&b, "%s%s", i > 0 ? ", " : "", key[i].text);
	out = b.overflow ? NULL : arena_strdup(a, b.data);
	buf_release(&b);
	return out;
}

/* The lines below the title. */
static const char *
details_make(struct arena *a, const struct notice *n)
{
	const char *out;
	struct buf b;

	buf_init(&b, BODY_MAX);
	if (notice_event_find(n->event) == NOTICE_FAILED || is_warned(n))
		line_add(&b, a, "", n->detail);
	line_add(&b, a, "Reason: ", n->text);
	line_add(&b, a, "Pipeline: ", n->pipeline);
	line_add(&b, a, "Branch: ", n->branch);
	line_add(&b, a, "Tag: ", n->tag);
	if (n->commit_hash != NULL)
		line_add(&b, a, "Commit: ",
		    arena_printf(a, "%.*s %s", HASH_SHOWN, n->commit_hash,
			n->commit_message == NULL ?
			    "" :
			    message_subject(a, n->commit_message)));
	if (notice_event_find(n->event) == NOTICE_WAITING)
		line_add(&b, a, "Sets: ", keys_text(a, n->env_vars_sent.s));
	line_add(&b, a, "By: ", n->user);
	line_add(&b, a, "", n->url);
	out = b.len == 0 ? "" : arena_strdup(a, b.data);
	buf_release(&b);
	return out;
}

#define ZERO_WIDTH "\342\200\213" /* a space that is not seen */

/* Whether the character makes markup of Markdown together with the one before:
 * [text](address), [text][name], [name]: address and ![image], ``` and other
 * fences, **, ~~ and ||, or blocks at the beginning of a line. */
static bool
is_markup(char before, char c)
{
	if (before == '\n')
		return c != '\0' && strchr("#>-+*=|~`_ \t", c) != NULL;
	return (before == ']' && (c == '(' || c == '[' || c == ':')) ||
	    (before == '!' && c == '[') ||
	    (before == c && c != '\0' && strchr("*~|`", c) != NULL);
}

/* Chat services read <, > and & as markup, @channel as a mention of everyone,
 * and most of them Markdown, which can show another text for an address.  Some
 * would show a backslash, so an invisible space separates what would be
 * markup. */
static void
put_plain(struct buf *b, const char *text)
{
	char before = '\n';

	for (; *text != '\0'; before = *text++) {
		if (is_markup(before, *text))
			buf_puts(b, ZERO_WIDTH);
		if (*text == '<')
			buf_puts(b, "&lt;");
		else if (*text == '>')
			buf_puts(b, "&gt;");
		else if (*text == '&')
			buf_puts(b, "&amp;");
		else if (*text == '@')
			buf_puts(b, "@" ZERO_WIDTH);
		else
			buf_putc(b, *text);
	}
}

const struct err *
message_chat(struct arena *a, const struct notice *n, const char **out)
{
	const struct err *e;
	struct buf text, b;

	*out = NULL;
	buf_init(&text, BODY_MAX);
	buf_init(&b, BODY_MAX);
	put_plain(&text, title_make(a, n));
	buf_putc(&text, '\n');
	put_plain(&text, details_make(a, n));
	if ((e = buf_check(&text)) == NULL) {
		buf_puts(&b, "{\"text\":");
		json_string(&b, text.data);
		buf_puts(&b, "}");
		e = buf_check(&b);
	}
	if (e == NULL)
		*out = arena_strdup(a, b.data);
	buf_release(&text);
	buf_release(&b);
	return e;
}

/* A header of any text, in encoded words of whole characters. */
static void
put_header(struct buf *b, struct arena *a, const char *name, const char *text)
{
	char *word;

	buf_printf(b, "%s:", name);
	for (; *text != '\0'; text += strlen(word)) {
		word = arena_strndup(a, text, strnlen(text, WORD_BYTES));
		utf8_drop_partial(word);
		buf_printf(b, "%s =?UTF-8?B?%s?=\r\n", "",
		    crypto_base64(a, word, strlen(word)));
	}
}

static void
put_body(struct buf *b, struct arena *a, const char *text)
{
	size_t left = strlen(text), len;

	for (; left > 0; text += len, left -= len) {
		len = left < LINE_BYTES ? left : LINE_BYTES;
		buf_printf(b, "%s\r\n", crypto_base64(a, text, len));
	}
}

/* A line for each address: RFC 5322 limits lines to 998 bytes. */
static void
put_recipients(struct buf *b, const char *list)
{
	buf_puts(b, "To:");
	for (;;) {
		list += strspn(list, ", ");
		buf_printf(b, " %.*s", (int)strcspn(list, ", "), list);
		list += strcspn(list, ",");
		if (*list == '\0')
			break;
		buf_puts(b, ",\r\n");
	}
	buf_puts(b, "\r\n");
}

const char *
message_mail(struct arena *a, const struct notice *n, const char *from,
    const char *to)
{
	const char *head = text_clean(a,
	    str_clip(a, title_make(a, n), TITLE_MAX), TITLE_MAX);
	const time_t at = (time_t)(n->created_at.ms / 1000);
	char date[STR_TIME_SIZE];
	const char *out;
	struct tm tm;
	struct buf b;

	(void)gmtime_r(&at, &tm);
	(void)strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S +0000", &tm);
	buf_init(&b, BODY_MAX);
	buf_printf(&b, "From: slipway <%s>\r\n", from);
	put_recipients(&b, to);
	put_header(&b, a, "Subject", head);
	buf_printf(&b,
	    "Date: %s\r\nMessage-ID: <%s%s>\r\n"
	    "Auto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\n"
	    "Content-Type: text/plain; charset=utf-8\r\n"
	    "Content-Transfer-Encoding: base64\r\n\r\n",
	    date, n->message_id, strchr(from, '@'));
	put_body(&b, a, arena_printf(a, "%s\n\n%s", head, details_make(a, n)));
	out = arena_strdup(a, b.data);
	buf_release(&b);
	return out;
}
