/* SPDX-License-Identifier: ISC */
#include "core/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/utf8.h"

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
	static struct err ring[ERR_MORE + 1];
	static unsigned next;
	struct err *e = &ring[next++ % (ERR_MORE + 1)];

	e->code = code;
	e->sys = 0;
	e->msg[0] = '\0';
	e->detail[0] = '\0';
	return e;
}

/* Writes the message for the log. */
PRINTFLIKE(3, 0)
static struct err *
noted(enum err_code code, int number, const char *fmt, va_list ap)
{
	struct err *e = slot(code);

	(void)vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	utf8_drop_partial(e->msg);
	e->sys = number;
	return e;
}

/* Writes the message for the log and the detail for the client. */
PRINTFLIKE(3, 0)
static struct err *
detailed(enum err_code code, int number, const char *fmt, va_list ap)
{
	struct err *e = noted(code, number, fmt, ap);

	(void)memcpy(e->detail, e->msg, sizeof(e->detail));
	return e;
}

const struct err *
err_new(enum err_code code, const char *fmt, ...)
{
	struct err *e;
	va_list ap;

	va_start(ap, fmt);
	e = noted(code, 0, fmt, ap);
	va_end(ap);
	return e;
}

const struct err *
err_number(enum err_code code, int number, const char *fmt, ...)
{
	struct err *e;
	va_list ap;

	va_start(ap, fmt);
	e = noted(code, number, fmt, ap);
	va_end(ap);
	return e;
}

const struct err *
err_public(enum err_code code, const char *fmt, ...)
{
	struct err *e;
	va_list ap;

	va_start(ap, fmt);
	e = detailed(code, 0, fmt, ap);
	va_end(ap);
	return e;
}

const struct err *
err_public_number(enum err_code code, int number, const char *fmt, ...)
{
	struct err *e;
	va_list ap;

	va_start(ap, fmt);
	e = detailed(code, number, fmt, ap);
	va_end(ap);
	return e;
}

/* Appends ": why" to the message. */
static void
add_cause(struct err *e, const char *why)
{
	size_t used = strlen(e->msg);

	(void)snprintf(e->msg + used, sizeof(e->msg) - used, ": %s", why);
	utf8_drop_partial(e->msg);
}

const struct err *
err_errno(const char *fmt, ...)
{
	int saved = errno;
	struct err *e;
	va_list ap;

	va_start(ap, fmt);
	e = noted(ERR_INTERNAL, saved, fmt, ap);
	va_end(ap);
	add_cause(e, strerror(saved));
	return e;
}

const struct err *
err_wrap(const struct err *e, const char *fmt, ...)
{
	struct err *outer;
	va_list ap;

	va_start(ap, fmt);
	outer = noted(e->code, e->sys, fmt, ap);
	va_end(ap);
	add_cause(outer, e->msg);
	(void)memcpy(outer->detail, e->detail, sizeof(outer->detail));
	return outer;
}

const struct err *
err_explain(const struct err *cause, enum err_code code, const char *fmt, ...)
{
	struct err *e;
	va_list ap;

	va_start(ap, fmt);
	e = detailed(code, cause->sys, fmt, ap);
	va_end(ap);
	add_cause(e, cause->msg);
	return e;
}

const struct err *
err_as(const struct err *e, enum err_code code, int number)
{
	struct err *other = slot(code);

	other->sys = number;
	(void)memcpy(other->msg, e->msg, sizeof(other->msg));
	(void)memcpy(other->detail, e->detail, sizeof(other->detail));
	return other;
}

const struct err *
err_keep(struct err *to, const struct err *e)
{
	*to = *e;
	return to;
}

const char *
err_words(const struct err *e)
{
	return e->detail[0] != '\0' ? e->detail : e->msg;
}
