/* SPDX-License-Identifier: ISC */
/*
 * The cache of the project, measured after the steps.  They can have left
 * anything in it, so a child process with a deadline does it: it opens nothing
 * but directories, and follows no link.
 */
#include "job/cache.h"

#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "job/job.h"
#include "job/log.h"
#include "job/run.h"

#define MEASURE_MS 60000
#define DEPTH_MAX 100
#define BLOCK 512   /* the unit of st_blocks, and the minimum for an entry */
#define SMALL 65536 /* bytes of a directory that is read at once */
#define OPEN (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

struct measure {
	const char *path;
	int64_t most;
	int64_t bytes;
};

static const struct err *measure_below(struct measure *m, int fd, int depth);

static const struct err *
measure_add(struct measure *m, const struct stat *st)
{
	m->bytes += st->st_blocks == 0 ? BLOCK : st->st_blocks * BLOCK;
	return m->bytes <= m->most ?
	    NULL :
	    err_new(ERR_TOO_LARGE, "it has more than %lld bytes",
		(long long)m->most);
}

static const struct err *
measure_entry(struct measure *m, int dir, const char *name, int depth)
{
	const struct err *e;
	struct stat st;
	int fd;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == -1)
		return errno == ENOENT ? NULL : err_errno("measuring it");
	if ((e = measure_add(m, &st)) != NULL || !S_ISDIR(st.st_mode))
		return e;
	if (depth == DEPTH_MAX)
		return err_new(ERR_TOO_LARGE, "its directories are too deep");
	if ((fd = openat(dir, name, OPEN)) == -1)
		return errno == ENOENT ? NULL :
					 err_errno("measuring a directory");
	return measure_below(m, fd, depth + 1);
}

/* Closes the descriptor. */
static const struct err *
measure_below(struct measure *m, int fd, int depth)
{
	const struct err *e = NULL;
	const struct dirent *entry;
	DIR *dir = fdopendir(fd);

	if (dir == NULL) {
		e = err_errno("measuring a directory");
		(void)close(fd);
		return e;
	}
	while (e == NULL && (entry = readdir(dir)) != NULL)
		if (strcmp(entry->d_name, ".") != 0 &&
		    strcmp(entry->d_name, "..") != 0)
			e = measure_entry(m, dirfd(dir), entry->d_name, depth);
	(void)closedir(dir);
	return e;
}

/* A directory stays as large as its entries once were. */
static const struct err *
cache_measure(void *arg)
{
	struct measure *m = arg;
	const int fd = open(m->path, OPEN);
	const struct err *e;
	struct stat st;

	if (fd == -1)
		return errno == ENOENT ? NULL : err_errno("measuring it");
	if (fstat(fd, &st) == -1)
		e = err_errno("measuring it");
	else
		e = measure_add(m, &st);
	if (e == NULL)
		return measure_below(m, fd, 0);
	(void)close(fd);
	return e;
}

/* Whether nothing is in it; that takes no child. */
static bool
is_empty(const char *path)
{
	const int fd = open(path, OPEN);
	DIR *dir = fd == -1 ? NULL : fdopendir(fd);
	struct stat st;
	size_t n = 0;

	if (fd == -1)
		return errno == ENOENT;
	if (dir == NULL) {
		(void)close(fd);
		return false;
	}
	if (fstat(fd, &st) == -1 || st.st_size > SMALL)
		n = SIZE_MAX;
	errno = 0;
	while (n <= 2 && readdir(dir) != NULL)
		n++; /* two of them are . and .. */
	if (errno != 0)
		n = SIZE_MAX;
	(void)closedir(dir);
	return n <= 2;
}

void
job_cache(struct job *job)
{
	struct measure m = { .path = job->place.cache,
		.most = job->place.cache_max };
	const struct err *e;
	const char *ignored;

	if (m.path == NULL || is_empty(m.path))
		return;
	e = job_call_within(job, MEASURE_MS, cache_measure, &m, &ignored);
	if (e == NULL)
		return;
	job_log_say(&job->log,
	    "==> the cache is emptied before the next deployment: %s",
	    e->code == ERR_UNAVAILABLE ? "measuring it takes too long" :
					 e->msg);
	if (chmod(m.path, S_ISVTX | S_IRWXU) == -1)
		job_log_say(&job->log, "==> the cache cannot be emptied: %s",
		    strerror(errno));
}
