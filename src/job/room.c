/* SPDX-License-Identifier: ISC */
/*
 * Whether the disk made a checkout fail: git's messages may say so, and what git
 * could not write, this process cannot write either, unless git has removed its
 * own files meanwhile.
 */
#include "job/room.h"

#include <sys/statvfs.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/address.h"
#include "core/file.h"
#include "core/num.h"
#include "core/str.h"
#include "job/checkout_inner.h"
#include "job/job.h"
#include "job/log.h"
#include "job/outage.h"
#include "job/run.h"

#define PROBE "slipway-probe"
#define PROBE_MS 10000
#define PROBE_BYTES 65536
#define TEXT_MAX 64

/* A file without a name, if the file system has such. */
static int
probe_open(int dir)
{
	int fd = openat(dir, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);

	if (fd != -1 || errno != EOPNOTSUPP)
		return fd;
	fd = openat(dir, PROBE,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd != -1)
		(void)unlinkat(dir, PROBE, 0);
	return fd;
}

/* Returns 0, or an errno. */
static int
probe_write(int dir)
{
	static const char zeros[PROBE_BYTES];
	const struct err *e;
	int fd, error = file_room(dir);

	if (error != 0)
		return error;
	if ((fd = probe_open(dir)) == -1)
		return errno;
	if ((e = file_store(fd, zeros, sizeof(zeros))) != NULL)
		error = e->sys;
	else if (fsync(fd) == -1)
		error = errno;
	(void)close(fd);
	return error;
}

/* Writes "ERRNO HOME MIB FILES" to standard output, because it runs in a child
 * process.  HOME is 1 if it is not the workspace that has no room. */
static const struct err *
room_probe(void *arg)
{
	const int home = JOB_FD(WIRE_FD_HOME);
	int dir = JOB_FD(WIRE_FD_WORKSPACE), error = probe_write(dir), len;
	struct statvfs fs = { .f_bavail = 0 };
	char text[TEXT_MAX];

	(void)arg;
	if (!outage_is_of_disk(error) &&
	    outage_is_of_disk(error = probe_write(home)))
		dir = home;
	(void)fstatvfs(dir, &fs);
	len = snprintf(text, sizeof(text), "%d %d %ju %ju", error, dir == home,
	    (uintmax_t)fs.f_bavail * fs.f_frsize >> 20, (uintmax_t)fs.f_favail);
	return file_store(STDOUT_FILENO, text, (size_t)len);
}

/* What to do. */
static const char *
room_advice(const struct job *job, int error, char *left)
{
	const bool home = str_eq(strsep(&left, " "), "1");
	const char *mib = strsep(&left, " ");

	switch (error) {
	case ENOSPC:
		return arena_printf(job->a,
		    "Free space in %s, or make its file system larger: %s MiB "
		    "and %s files are free now, and the repository needs more",
		    home ? job->place.home : job->place.workspace, mib, left);
	case EDQUOT:
		return "Raise the quota of the account, or remove files of it";
	case EROFS:
		return "Mount it for writing, after a check if an error has "
		       "made it read-only";
	default:
		return "See the log of the host's kernel";
	}
}

bool
room_fault(struct job *job, const struct err *e, const char **detail)
{
	struct address ad;
	/* over SSH, the server writes to the same stream as git */
	int error = address_read(job->spec.repository, &ad) &&
		address_is_ssh(&ad) ?
	    0 :
	    job->log.disk;
	const char *text;
	int64_t now = 0;
	char *left;

	if (error == 0 && e != NULL)
		error = e->sys != 0 ? e->sys : outage_of_disk(e->msg);
	if (job_call_within(job, PROBE_MS, room_probe, NULL, &text) != NULL ||
	    text[0] == '\0')
		text = "0 0 ? ?";
	left = arena_strdup(job->a, text);
	if (num_parse(strsep(&left, " "), 0, INT32_MAX, &now) &&
	    !outage_is_of_disk(error))
		error = (int)now;
	if (!outage_is_of_disk(error))
		return false;
	*detail = arena_printf(job->a,
	    "The disk of the runner failed the checkout: %s. %s.",
	    strerror(error), room_advice(job, error, left));
	return true;
}

/* Everything goes if the clone is new or its files are half changed, else what git
 * left of its fetch. */
void
room_make(struct fetch *f)
{
	const bool anew = f->how == WORKSPACE_NONE ||
	    f->how == WORKSPACE_FOREIGN;
	const struct err *e;

	if (f->git.job->spec.checkout != CHECKOUT_KEEP &&
	    (anew || f->touched)) {
		e = workspace_empty(&f->git, NULL);
		f->touched = false;
		f->before = NULL;
	} else {
		e = workspace_rest_remove(&f->git, anew);
	}
	if (e != NULL)
		job_log_say(&f->git.job->log,
		    "==> what did not fit remains on the disk: %s", e->msg);
}
