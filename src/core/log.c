/* SPDX-License-Identifier: ISC */
#include "core/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#define LIBBSD_OPENBSD_VIS
#include <bsd/vis.h>

#include "core/time.h"

#define LINE 1024
#define CONDITIONS 64
#define WORDS 4 /* texts of a subject that count as unchanged; may alternate */
#define SUBJECT 160
#define PAUSE_MIN INT64_C(60000) /* milliseconds */
#define PAUSE_MAX INT64_C(3600000)

/* A condition that was logged. */
struct condition {
	char subject[SUBJECT]; /* empty: free */
	uint64_t words[WORDS]; /* hashes of the logged texts */
	size_t nwords;
	int64_t times; /* since it was last logged */
	int64_t last;  /* monotonic milliseconds, like `next` */
	int64_t next;
	int64_t pause;
};

static struct condition conditions[CONDITIONS];

static const char *log_name = "slipway";
static unsigned log_flags;
static enum { STAMP_TIME, STAMP_PRIORITY } log_stamp;

void
log_init(const char *name, unsigned flags)
{
	log_name = name;
	log_flags = flags;
	log_stamp = getenv("JOURNAL_STREAM") != NULL ? STAMP_PRIORITY :
						       STAMP_TIME;
	if ((flags & LOG_TO_SYSLOG) != 0)
		openlog(name, LOG_PID | LOG_NDELAY, LOG_DAEMON);
}

static void
emit(int priority, const char *text)
{
	char line[4 * LINE + 128];
	struct timespec now;
	struct tm tm;
	int len;

	if ((log_flags & LOG_TO_SYSLOG) != 0) {
		syslog(priority, "%s", text);
		return;
	}
	if (log_stamp == STAMP_PRIORITY) {
		len = snprintf(line, sizeof(line), "<%d>%s\n", priority, text);
	} else {
		(void)clock_gettime(CLOCK_REALTIME, &now);
		(void)gmtime_r(&now.tv_sec, &tm);
		len = snprintf(line, sizeof(line),
		    "%04d-%02d-%02dT%02d:%02d:%02d.%03ldZ %s[%ld] %s\n",
		    tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour,
		    tm.tm_min, tm.tm_sec, now.tv_nsec / 1000000, log_name,
		    (long)getpid(), text);
	}
	if (len > 0 && write(STDERR_FILENO, line, (size_t)len) < 0)
		return; /* there is nowhere left to report it */
}

/* Nearly all lines are plain: they need no conversion. */
static bool
is_plain(const char *s)
{
	for (; *s != '\0'; s++)
		if (*s < ' ' || *s > '~' || *s == '\\')
			return false;
	return true;
}

__attribute__((format(printf, 2, 0))) static void
vlog(int priority, const char *fmt, va_list ap)
{
	char raw[LINE], safe[4 * LINE + 1];

	(void)vsnprintf(raw, sizeof(raw), fmt, ap);
	if (is_plain(raw)) {
		emit(priority, raw);
		return;
	}
	(void)strvis(safe, raw, VIS_CSTYLE | VIS_NL | VIS_TAB);
	emit(priority, safe);
}

#define LOG_FUNCTION(fn, priority)                                             \
	void fn(const char *fmt, ...)                                          \
	{                                                                      \
		va_list ap;                                                    \
                                                                               \
		va_start(ap, fmt);                                             \
		vlog(priority, fmt, ap);                                       \
		va_end(ap);                                                    \
	}

LOG_FUNCTION(log_info, LOG_INFO)
LOG_FUNCTION(log_warn, LOG_WARNING)
LOG_FUNCTION(log_error, LOG_ERR)

void
log_debug(const char *fmt, ...)
{
	va_list ap;

	if ((log_flags & LOG_DEBUGGING) == 0)
		return;
	va_start(ap, fmt);
	vlog(LOG_DEBUG, fmt, ap);
	va_end(ap);
}

void
log_err(const struct err *e, const char *what)
{
	log_error("%s: %s", what, e->msg);
}

/* FNV-1a */
static uint64_t
hash(const char *text)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (; *text != '\0'; text++)
		h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return h;
}

static struct condition *
condition_find(const char *subject)
{
	size_t i;

	for (i = 0; i < CONDITIONS; i++)
		if (conditions[i].subject[0] != '\0' &&
		    strncmp(conditions[i].subject, subject, SUBJECT - 1) == 0)
			return &conditions[i];
	return NULL;
}

/* A free entry, or the one that has been silent the longest. */
static struct condition *
condition_make(const char *subject)
{
	struct condition *f = &conditions[0];
	size_t i;

	for (i = 0; i < CONDITIONS && f->subject[0] != '\0'; i++)
		if (conditions[i].subject[0] == '\0' ||
		    conditions[i].last < f->last)
			f = &conditions[i];
	(void)memset(f, 0, sizeof(*f));
	(void)snprintf(f->subject, sizeof(f->subject), "%s", subject);
	f->pause = PAUSE_MIN;
	return f;
}

/* Whether the text is new for this fault, and not one of many that change every
 * time. */
static bool
condition_changed(struct condition *f, const char *words)
{
	const uint64_t h = hash(words);
	size_t i;

	for (i = 0; i < f->nwords; i++)
		if (f->words[i] == h)
			return false;
	if (f->nwords == WORDS)
		return false;
	f->words[f->nwords++] = h;
	return true;
}

void
log_fault(const struct err *e, const char *subject)
{
	const int64_t now = time_mono_ms();
	struct condition *f = condition_find(subject);
	bool due;

	if (f != NULL && now - f->last >= 2 * f->pause) {
		f->subject[0] = '\0'; /* after such a long silence it counts as
				       * a new fault */
		f = NULL;
	}
	if (f == NULL)
		f = condition_make(subject);
	f->last = now;
	f->times++;
	due = f->next != 0 && now >= f->next;
	if (due)
		f->nwords = 0;
	if (!condition_changed(f, e->msg))
		return;
	if (due && f->pause < PAUSE_MAX)
		f->pause = 2 * f->pause < PAUSE_MAX ? 2 * f->pause : PAUSE_MAX;
	if (f->times > 1)
		log_error("%s: %s (%lld times)", subject, e->msg,
		    (long long)f->times);
	else
		log_error("%s: %s", subject, e->msg);
	f->times = 0;
	f->next = now + f->pause;
}

void
log_fault_over(const char *subject)
{
	struct condition *f = condition_find(subject);

	if (f == NULL)
		return;
	log_info("%s: recovered", subject);
	f->subject[0] = '\0';
}
