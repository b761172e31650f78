/* SPDX-License-Identifier: ISC */
#include "job/log.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/str.h"
#include "job/mask.h"
#include "job/outage.h"

#define OUT_MAX ((size_t)16 << 20)
#define LINE_MAX_LEN 4096
#define HOLD_MS 200

void
job_log_open(struct job_log *log, int fd, struct mask *mask, int64_t max)
{
	off_t end = lseek(fd, 0, SEEK_END);

	(void)memset(log, 0, sizeof(*log));
	log->mask = mask;
	log->fd = fd;
	log->max = max;
	log->size = end < 0 ? 0 : end;
	log->at_line = true;
	log->file_at_line = true;
	buf_init(&log->out, OUT_MAX);
}

/* Appends as much as fits into the log's limit.  If the disk is full, bytes
 * that cannot be written are counted like those beyond the limit. */
static void
log_put(struct job_log *log, const char *data, size_t len)
{
	size_t room, done = 0;
	ssize_t put;

	room = log->full || log->size >= log->max ?
	    0 :
	    (size_t)(log->max - log->size);
	if (room > len)
		room = len;
	while (done < room) {
		put = write(log->fd, data + done, room - done);
		if (put == -1 && errno == EINTR)
			continue;
		if (put <= 0) {
			log->lost = put == 0 ? ENOSPC : errno;
			log->full = true;
			break;
		}
		done += (size_t)put;
	}
	if (done > 0)
		log->file_at_line = data[done - 1] == '\n';
	if (len > 0)
		log->at_line = data[len - 1] == '\n';
	log->size += (int64_t)done;
	log->cut += (int64_t)(len - done);
}

/* Whether the line has more than punctuation. */
static bool
has_words(const char *line)
{
	for (; *line != '\0'; line++)
		if (isalnum((unsigned char)*line))
			return true;
	return false;
}

/* How informative a line of git's output is about a failure.  Servers begin their
 * own reason in capitals, and more lines can follow it.  git-lfs summarizes what
 * failed. */
static int
line_rank(const char *line)
{
	const char *text = line;

	if (str_starts(line, LFS_FAILURE))
		return 4;
	if (str_starts(text, "remote: "))
		text += strlen("remote: ");
	if (str_starts(line, "error: RPC failed") ||
	    str_starts(line, "fatal: "))
		return 3;
	if (str_starts(text, "FATAL: ") || str_starts(text, "ERROR: "))
		return 2;
	if (str_starts(line, "error: "))
		return 1;
	return text[0] != '(' && has_words(text) &&
		strcmp(line, "remote:") != 0 ?
	    0 :
	    -1;
}

/* "fatal: clone of 'URL' into submodule path 'PATH' failed"; of a submodule that
 * is there, git names only the path. */
static void
clone_of_note(struct job_log *log, const char *line)
{
	static const char before[] = "fatal: clone of '";
	size_t len;

	if (!str_starts(line, before)) {
		if (log->clone_of[0] == '\0' &&
		    strstr(line, " in submodule path '") != NULL)
			(void)memcpy(log->clone_of, "?", 2);
		return;
	}
	line += sizeof(before) - 1;
	len = strcspn(line, "'");
	(void)memcpy(log->clone_of, line, len);
	log->clone_of[len] = '\0';
}

/* Records the last of the most informative lines, but stops at the first fatal
 * one, since later output follows from it.  If ssh(1) failed, git itself has no
 * reason to report; then it is the line before. */
static void
line_end(struct job_log *log)
{
	const size_t len = log->line_len;
	const char *line = log->line;
	int is;

	log->line[len] = '\0';
	log->line_len = 0;
	is = line_rank(line);
	clone_of_note(log, line);
	if (log->disk == 0 && log->hides_users)
		log->disk = outage_of_disk(line);
	if (len == 0 || (log->settled && is < 4) ||
	    (is < 0 && log->last[0] != '\0') || is < line_rank(log->last) ||
	    (is == 2 && line_rank(log->last) == 2))
		return;
	log->settled = is >= 3;
	if (log->last[0] == '\0' ||
	    strcmp(line, "fatal: Could not read from remote repository.") != 0)
		(void)memcpy(log->last, line, len + 1);
}

static void
lines_watch(struct job_log *log, const char *data, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++) {
		if (data[i] == '\n' || data[i] == '\r')
			line_end(log);
		else if (log->line_len < sizeof(log->line) - 1)
			log->line[log->line_len++] = data[i];
	}
}

static void
out_flush(struct job_log *log)
{
	/* The last 4 KiB are enough to find the last line. */
	size_t skip = log->out.len > LINE_MAX_LEN ?
	    log->out.len - LINE_MAX_LEN :
	    0;

	if (log->out.len > 0) {
		log_put(log, log->out.data, log->out.len);
		lines_watch(log, log->out.data + skip, log->out.len - skip);
	}
	buf_clear(&log->out);
}

void
job_log_feed(struct job_log *log, const char *data, size_t len)
{
	struct buf text;

	if (log->hides_users) {
		buf_init(&text, OUT_MAX);
		userinfo_feed(&log->urls, data, len, &text);
		mask_feed(log->mask, text.data, text.len, &log->out);
		buf_release(&text);
	} else {
		mask_feed(log->mask, data, len, &log->out);
	}
	out_flush(log);
	if (!mask_held(log->mask))
		log->held_at = 0;
	else if (log->held_at == 0)
		log->held_at = time_mono_ms();
}

int
job_log_tick(struct job_log *log)
{
	int64_t left;

	if (log->held_at == 0)
		return -1;
	left = log->held_at + HOLD_MS - time_mono_ms();
	if (left > 0)
		return (int)left;
	mask_flush(log->mask, &log->out);
	out_flush(log);
	log->held_at = 0;
	return -1;
}

void
job_log_finish(struct job_log *log)
{
	struct buf text;

	buf_init(&text, OUT_MAX);
	userinfo_finish(&log->urls, &text);
	mask_feed(log->mask, text.data, text.len, &log->out);
	buf_release(&text);
	mask_finish(log->mask, &log->out);
	out_flush(log);
	line_end(log);
	log->held_at = 0;
}

void
job_log_say(struct job_log *log, const char *fmt, ...)
{
	struct buf line;
	va_list ap;

	job_log_finish(log);
	buf_init(&line, LINE_MAX_LEN);
	if (!log->at_line)
		buf_putc(&line, '\n');
	va_start(ap, fmt);
	buf_vprintf(&line, fmt, ap);
	va_end(ap);
	buf_putc(&line, '\n');
	mask_feed(log->mask, line.data, line.len, &log->out);
	mask_finish(log->mask, &log->out);
	log_put(log, log->out.data, log->out.len);
	buf_clear(&log->out);
	buf_release(&line);
}

void
job_log_forget(struct job_log *log)
{
	log->last[0] = log->clone_of[0] = '\0';
	log->disk = 0;
	log->settled = false;
	log->line_len = 0;
}

void
job_log_close(struct job_log *log)
{
	char line[128];
	int64_t cut;
	int len;

	job_log_finish(log);
	if ((cut = log->cut) > 0) {
		len = snprintf(line, sizeof(line),
		    "%s==> the log is full: %lld more bytes were cut\n",
		    log->file_at_line ? "" : "\n", (long long)cut);
		log->full = false;
		log->max = log->size + len;
		log_put(log, line, (size_t)len);
	}
	log->full = true;
	buf_release(&log->out);
	mask_close(log->mask);
}
