/* SPDX-License-Identifier: ISC */
#include "core/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#define LIBBSD_OPENBSD_VIS
#include <bsd/vis.h>

#define LINE 1024

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
		return; /* there is nowhere left to say so */
}

__attribute__((format(printf, 2, 0))) static void
vlog(int priority, const char *fmt, va_list ap)
{
	char raw[LINE], safe[4 * LINE + 1];

	(void)vsnprintf(raw, sizeof(raw), fmt, ap);
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
