/* SPDX-License-Identifier: ISC */
#include "core/fault.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void
faults_init(struct faults *f, struct arena *a)
{
	(void)memset(f, 0, sizeof(*f));
	f->a = a;
}

void
faults_again(struct faults *f, struct arena *a)
{
	const size_t work = f->work;

	faults_init(f, a);
	f->work = work;
}

static void add(struct faults *, const char *, const char *, va_list)
    PRINTFLIKE(3, 0);

static void
add(struct faults *f, const char *pointer, const char *fmt, va_list ap)
{
	char text[512];

	if (f->n++ >= FAULTS_MAX)
		return;
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	f->item[f->n - 1].pointer = arena_strdup(f->a, pointer);
	f->item[f->n - 1].detail = arena_strdup(f->a, text);
}

void
faults_add(struct faults *f, const char *pointer, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add(f, pointer, fmt, ap);
	va_end(ap);
}

void
faults_conflict(struct faults *f, const char *pointer, const char *fmt, ...)
{
	va_list ap;

	f->conflicts++;
	va_start(ap, fmt);
	add(f, pointer, fmt, ap);
	va_end(ap);
}

void
faults_take(struct faults *f, const struct faults *copy)
{
	const struct fault *one;

	for (; f->n < copy->n && f->n < FAULTS_MAX; f->n++) {
		one = &copy->item[f->n];
		f->item[f->n].pointer = arena_strdup(f->a, one->pointer);
		f->item[f->n].detail = arena_strdup(f->a, one->detail);
	}
	f->n = copy->n;
	f->conflicts = copy->conflicts;
	f->work = copy->work;
}

bool
faults_has(const struct faults *f, const char *pointer)
{
	const size_t len = strlen(pointer);
	const char *at;
	size_t i;

	for (i = 0; i < f->n && i < FAULTS_MAX; i++) {
		at = f->item[i].pointer;
		if (strncmp(at, pointer, len) == 0 &&
		    (at[len] == '\0' || at[len] == '/'))
			return true;
	}
	return false;
}

bool
faults_at(const struct faults *f, const char *pointer)
{
	size_t i;

	for (i = 0; i < f->n && i < FAULTS_MAX; i++)
		if (strcmp(f->item[i].pointer, pointer) == 0)
			return true;
	return false;
}

const char *
fault_pointer(struct faults *f, const char *base, const char *name)
{
	size_t len = strlen(base);
	char *out = arena_alloc(f->a, len + 2 * strlen(name) + 2, 1);
	char *to = out + len;

	(void)memcpy(out, base, len);
	*to++ = '/';
	for (; *name != '\0'; name++) {
		if (*name == '~' || *name == '/') {
			*to++ = '~';
			*to++ = *name == '~' ? '0' : '1';
		} else {
			*to++ = *name;
		}
	}
	*to = '\0';
	return out;
}

const char *
fault_index(struct faults *f, const char *base, size_t index)
{
	return arena_printf(f->a, "%s/%zu", base, index);
}

const struct err *
faults_check(const struct faults *f)
{
	if (f->n == 0)
		return NULL;
	if (f->n == f->conflicts)
		return err_public(ERR_CONFLICT, "%s: %s.",
		    f->item[0].pointer + 1, f->item[0].detail);
	if (f->n > FAULTS_MAX)
		return err_public(ERR_INVALID,
		    "The request has %zu errors; \"errors\" lists the "
		    "first %d.",
		    f->n, FAULTS_MAX);
	return err_new(ERR_INVALID, "%zu faults, first: %s: %s", f->n,
	    f->item[0].pointer, f->item[0].detail);
}
