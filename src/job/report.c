/* SPDX-License-Identifier: ISC */
#include "job/report.h"

#include <errno.h>
#include <poll.h>
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
job_report(struct job *job, const struct job_event *event)
{
	const bool overflow = pending.overflow;

	job_event_write(&pending, event);
	pending.overflow = overflow; /* what is too long is left out */
	if (pending_write(job) != NULL)
		return; /* the next call tries again */
}

const struct err *
job_report_end(struct job *job, enum reason reason, const char *detail)
{
	const struct job_event event = {
		.kind = JOB_ENDED,
		.status = state_kinds[reason_kinds[reason].ends].name,
		.reason = reason_kinds[reason].name,
		.time = { time_now_ms() },
		.text = detail,
	};
	const struct err *e;
	int tries;

	job_event_write(&pending, &event);
	if ((e = buf_check(&pending)) != NULL)
		return e;
	for (tries = 0; (e = pending_write(job)) != NULL; tries++) {
		if (tries == END_TRIES)
			return e;
		(void)poll(NULL, 0, END_PAUSE_MS);
	}
	return NULL;
}
