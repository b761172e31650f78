/* SPDX-License-Identifier: ISC */
#include "core/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SLOTS 16

_Static_assert(sizeof(((struct err *)0)->msg) ==
	sizeof(((struct err *)0)->detail),
    "the texts are copied from one to the other");

const struct err_kind err_kinds[ERR__MAX] = {
#define X(code, n, h, s, t)                                                    \
	[code] = { .name = (n), .http = (h), .exit = (s), .text = (t) },
	ERR_TABLE(X)
#undef X
};

static struct err *
slot(enum err_code code)
{
	static struct err ring[SLOTS];
	static unsigned next;
	struct err *e = &ring[next++ % SLOTS];

	e->code = code;
	e->sys = 0;
	e->msg[0] = '\0';
	e->detail[0] = '\0';
	return e;
}

const struct err *
err_new(enum err_code code, const char *fmt, ...)
{
	struct err *e = slot(code);
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	return e;
}

const struct err *
err_tell(enum err_code code, const char *fmt, ...)
{
	struct err *e = slot(code);
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(e->detail, sizeof(e->detail), fmt, ap);
	va_end(ap);
	(void)memcpy(e->msg, e->detail, sizeof(e->msg));
	return e;
}

const struct err *
err_errno(const char *fmt, ...)
{
	int saved = errno;
	struct err *e = slot(ERR_INTERNAL);
	va_list ap;
	size_t used;

	va_start(ap, fmt);
	(void)vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	used = strlen(e->msg);
	(void)snprintf(e->msg + used, sizeof(e->msg) - used, ": %s",
	    strerror(saved));
	e->sys = saved;
	return e;
}

const struct err *
err_number(enum err_code code, int number, const char *fmt, ...)
{
	struct err *e = slot(code);
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	e->sys = number;
	return e;
}

const struct err *
err_tell_number(enum err_code code, int number, const char *fmt, ...)
{
	struct err *e = slot(code);
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(e->detail, sizeof(e->detail), fmt, ap);
	va_end(ap);
	(void)memcpy(e->msg, e->detail, sizeof(e->msg));
	e->sys = number;
	return e;
}

const struct err *
err_wrap(const struct err *e, const char *fmt, ...)
{
	struct err *outer = slot(e->code);
	va_list ap;
	size_t used;

	va_start(ap, fmt);
	(void)vsnprintf(outer->msg, sizeof(outer->msg), fmt, ap);
	va_end(ap);
	used = strlen(outer->msg);
	(void)snprintf(outer->msg + used, sizeof(outer->msg) - used, ": %s",
	    e->msg);
	(void)memcpy(outer->detail, e->detail, sizeof(outer->detail));
	outer->sys = e->sys;
	return outer;
}
