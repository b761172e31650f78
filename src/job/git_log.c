/* SPDX-License-Identifier: ISC */
/* Reads commits: their messages, and those of a branch for repositories whose
 * server has no API. */
#include <string.h>

#include "core/num.h"
#include "core/str.h"
#include "core/utf8.h"
#include "job/git.h"
#include "job/job.h"
#include "spool/spool.h"

#define COMMITS_MAX 100
#define LOG_MAX ((size_t)8 << 20) /* the rest is left out */
#define RECORDS_MAX SPOOL_RECORD
#define OUTPUT_MAX ((size_t)1 << 20)
#define TEXT_MAX ((size_t)65535) /* of the message of the deployed commit */
/* Bytes of each field; longer text is cut. */
#define NAME_MAX_LEN 400
#define MESSAGE_MAX_LEN 4096

enum part { P_HASH, P_TIME, P_NAME, P_EMAIL, P_MESSAGE, P__MAX };
static const char format[] = "--format=%H%x00%ct%x00%an%x00%ae%x00%B";

/* Length of the longest prefix of at most `max` bytes that splits no
 * character. */
static size_t
text_cut(const char *text, size_t max)
{
	size_t len = strlen(text);

	if (len <= max)
		return len;
	while (max > 0 && ((unsigned char)text[max] & 0xc0) == 0x80)
		max--;
	return max;
}

static void
commit_write(struct buf *out, const char *const part[P__MAX])
{
	struct buf value;
	size_t len = text_cut(part[P_MESSAGE], MESSAGE_MAX_LEN);

	while (len > 0 && part[P_MESSAGE][len - 1] == '\n')
		len--;
	buf_init(&value, SPOOL_RECORD);
	buf_printf(&value, "%s %s\n%.*s\n%.*s\n%.*s", part[P_HASH],
	    part[P_TIME], (int)text_cut(part[P_NAME], NAME_MAX_LEN),
	    part[P_NAME], (int)text_cut(part[P_EMAIL], NAME_MAX_LEN),
	    part[P_EMAIL], (int)len, part[P_MESSAGE]);
	record_write(out, "commit", value.data, value.len);
	buf_release(&value);
}

static bool
is_commit(const char *const part[P__MAX])
{
	const size_t len = strlen(part[P_HASH]);
	int64_t seconds;

	return (len == 40 || len == 64) &&
	    strspn(part[P_HASH], "0123456789abcdef") == len &&
	    num_parse(part[P_TIME], 0, NUM_SAFE, &seconds) &&
	    strchr(part[P_NAME], '\n') == NULL &&
	    strchr(part[P_EMAIL], '\n') == NULL;
}

/* Returns a copy with at most TEXT_MAX bytes and without newlines at the end,
 * as UTF-8. */
static const char *
message_clean(struct arena *a, const char *text, size_t len)
{
	char *copy;
	size_t i;

	if (len > TEXT_MAX) {
		len = TEXT_MAX;
		while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80)
			len--;
	}
	while (len > 0 && text[len - 1] == '\n')
		len--;
	copy = arena_strndup(a, text, len);
	for (i = 0; i < len; i++)
		if (copy[i] == '\0')
			copy[i] = ' ';
	if (!utf8_valid(copy, len))
		for (i = 0; i < len; i++)
			if (((unsigned char)copy[i] & 0x80) != 0)
				copy[i] = '?';
	return copy;
}

const struct err *
git_message(struct git *g, const char *hash, const char **out)
{
	const char *const args[] = { "log", "-1", "--no-show-signature",
		"--format=%B", hash, "--", NULL };
	const struct err *e;
	struct buf text;

	*out = "";
	buf_init(&text, OUTPUT_MAX);
	e = git_run(g, &text, args);
	if (e == NULL && git_done(g) && text.len > 0)
		*out = message_clean(g->job->a, text.data, text.len);
	buf_release(&text);
	return e;
}

/* Reads NUL-terminated fields; if one is malformed, ignores the rest as
 * well. */
static void
commits_read(struct arena *a, const struct buf *text, struct git_log *log,
    struct buf *out)
{
	const char *part[P__MAX], *at = text->data, *end = at + text->len;
	const char *stop;
	size_t n;

	for (;;) {
		for (n = 0; n < P__MAX; n++) {
			stop = at == end ? NULL :
					   memchr(at, '\0', (size_t)(end - at));
			if (stop == NULL)
				return;
			part[n] = at;
			at = stop + 1;
		}
		if (!is_commit(part))
			return;
		if (log->message == NULL &&
		    strcmp(part[P_HASH], log->hash) == 0)
			log->message = message_clean(a, part[P_MESSAGE],
			    strlen(part[P_MESSAGE]));
		commit_write(out, part);
	}
}

const struct err *
git_commits(struct git *g, struct git_log *log)
{
	struct arena *a = g->job->a;
	const char *const args[] = { "log", "-z", "--no-show-signature",
		"--no-mailmap", "--no-notes",
		arena_printf(a, "--max-count=%lld",
		    (long long)(log->max < COMMITS_MAX ? log->max :
							 COMMITS_MAX)),
		format, log->ref, "--", NULL };
	const struct err *e;
	struct buf text, records;

	log->records = "";
	log->message = NULL;
	buf_init(&text, LOG_MAX);
	buf_init(&records, RECORDS_MAX);
	e = git_run(g, &text, args);
	if (e == NULL && git_done(g) && text.len > 0)
		commits_read(a, &text, log, &records);
	if (records.len > 0)
		log->records = arena_strndup(a, records.data, records.len);
	buf_release(&text);
	buf_release(&records);
	return e;
}
