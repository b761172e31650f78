/* SPDX-License-Identifier: ISC */
/* The log of a job: masked and limited. */
#ifndef SLIPWAY_JOB_LOG_H
#define SLIPWAY_JOB_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "core/buf.h"
#include "job/mask.h"
#include "job/userinfo.h"

#define JOB_LINE 1024

struct job_log {
	struct mask *mask;
	struct userinfo urls;
	bool hides_users; /* of URLs: the output is that of git */
	struct buf out;
	int fd;
	int64_t size;
	int64_t max;
	int64_t cut;     /* bytes that did not fit */
	int64_t held_at; /* when the mask began to hold something back, 0 =
			  * nothing is held */
	bool full;
	int lost;            /* errno of a failed write, 0 = none */
	bool at_line;        /* the last byte of the input was a newline */
	bool file_at_line;   /* the last byte in the file was one */
	char last[JOB_LINE]; /* the most informative line, masked */
	/* the URL of a submodule that git could not clone; "?" = it could not
	 * fetch one */
	char clone_of[JOB_LINE];
	int disk;            /* errno of the disk that git named, 0 = none */
	bool settled;        /* later lines add nothing */
	char line[JOB_LINE]; /* the current, incomplete line */
	size_t line_len;
};

void job_log_open(struct job_log *, int fd, struct mask *, int64_t max);
/* Logs output of a child. */
void job_log_feed(struct job_log *, const char *data, size_t len);
/* Logs a line of the job itself, after all output so far. */
void job_log_say(struct job_log *, const char *fmt, ...) PRINTFLIKE(2, 3);
/* Writes everything held back, now. */
void job_log_finish(struct job_log *);
/* Writes output that was held back long enough; returns milliseconds until more
 * is due, -1 if nothing is held back. */
int job_log_tick(struct job_log *);
/* Forgets the most informative line. */
void job_log_forget(struct job_log *);
/* Writes the line that reports how much was cut; nothing is written after it. */
void job_log_close(struct job_log *);

#endif
