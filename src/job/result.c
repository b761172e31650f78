/* SPDX-License-Identifier: ISC */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "core/str.h"
#include "job/job.h"

#define PENDING_MAX ((size_t)4 << 20)
#define END_TRIES 100
#define END_PAUSE_MS 200

/* Records that did not fit on the disk yet. */
static struct buf pending = { .max = PENDING_MAX };

/* Writes all pending records at once, or nothing. */
static const struct err *
pending_write(struct job *job)
{
	off_t before = lseek(job->result_fd, 0, SEEK_END);
	const struct err *e = NULL;
	ssize_t put;

	do
		put = write(job->result_fd, pending.data, pending.len);
	while (put == -1 && errno == EINTR);
	if (put == (ssize_t)pending.len) {
		buf_clear(&pending);
		return NULL;
	}
	if (put != -1)
		errno = ENOSPC;
	e = err_errno("write the result");
	if (put > 0 && ftruncate(job->result_fd, before) == -1)
		e = err_errno("truncate a partial record");
	return e;
}

void
job_result(struct job *job, const char *name, const char *fmt, ...)
{
	struct buf value;
	va_list ap;

	buf_init(&value, SPOOL_RECORD);
	va_start(ap, fmt);
	buf_vprintf(&value, fmt, ap);
	va_end(ap);
	if (!value.overflow)
		record_write(&pending, name,
		    value.data == NULL ? "" : value.data, value.len);
	buf_release(&value);
	if (pending_write(job) != NULL)
		return; /* the next call tries again */
}

const struct err *
job_result_end(struct job *job, enum reason reason, const char *detail)
{
	const struct reason_kind *why = &reason_kinds[reason];
	const struct err *e;
	int tries;

	record_printf(&pending, "end", "%s %s %lld\n%s",
	    state_kinds[why->ends].name, why->name == NULL ? "-" : why->name,
	    (long long)time_now_ms(), detail == NULL ? "" : detail);
	if ((e = buf_check(&pending)) != NULL)
		return e;
	for (tries = 0; (e = pending_write(job)) != NULL; tries++) {
		if (tries == END_TRIES)
			return e;
		(void)poll(NULL, 0, END_PAUSE_MS);
	}
	return NULL;
}
