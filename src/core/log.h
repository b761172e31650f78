/* SPDX-License-Identifier: ISC */
/*
 * The log: standard error, one line per event, or syslog(3) with LOG_DAEMON.
 *
 * On standard error, each line starts with `<N>`, the priority that journald
 * reads (sd-daemon(3)), if $JOURNAL_STREAM is set; else with the time in UTC
 * and the program's name.  Control bytes in messages are escaped (vis(3)), so
 * that each message stays on one line.
 */
#ifndef SLIPWAY_CORE_LOG_H
#define SLIPWAY_CORE_LOG_H

#include "core/err.h"

enum log_flag {
	LOG_TO_SYSLOG = 1 << 0,
	LOG_DEBUGGING = 1 << 1,
};

/* `name` must live as long as the process. */
void log_init(const char *name, unsigned flags);
void log_debug(const char *fmt, ...) PRINTFLIKE(1, 2);
void log_info(const char *fmt, ...) PRINTFLIKE(1, 2);
void log_warn(const char *fmt, ...) PRINTFLIKE(1, 2);
void log_error(const char *fmt, ...) PRINTFLIKE(1, 2);
/* Logs an error value, at the top where handling ends. */
void log_err(const struct err *, const char *what);

/* Logs a recurring error about one subject (a file, a task): at once, when the
 * text changes, and otherwise after one minute, two, four … an hour, with the
 * number of occurrences.  Remembers a few dozen subjects. */
void log_fault(const struct err *, const char *subject);
/* Logs that the fault is over, once, if it was logged. */
void log_fault_over(const char *subject);

#endif
