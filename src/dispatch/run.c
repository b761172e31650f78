/* SPDX-License-Identifier: ISC */
#include "dispatch/run.h"

#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "core/log.h"
#include "core/num.h"
#include "core/str.h"
#include "spool/spool.h"

#define PATH_SIZE 320 /* a name of readdir(3) and a file in it */
#define DIR_SIZE 64
#define RUN_NEW "new."
#define RUN_OLD "old."
#define RESULT_ROOM (128 << 10) /* more than most jobs write */

/* All that a directory holds. */
static const char *const files[] = { "log", "result", "lock", "control",
	"keeper" };
#define NFILES (sizeof(files) / sizeof(files[0]))

static void
name_make(char out[RUN_NAME], int64_t id, int64_t epoch)
{
	(void)snprintf(out, RUN_NAME, "%lld.%lld", (long long)id,
	    (long long)epoch);
}

static void
path_make(char out[PATH_SIZE], const char *dir, const char *file)
{
	(void)snprintf(out, PATH_SIZE, "%s/%s", dir, file);
}

/* Empties and removes a directory. */
static void
dir_clear(const struct spool *s, const char *name)
{
	char path[PATH_SIZE];
	size_t i;

	for (i = 0; i < NFILES; i++) {
		path_make(path, name, files[i]);
		if (unlinkat(s->fd, path, 0) == -1 && errno != ENOENT)
			log_fault(err_errno("remove from the spool"), path);
	}
	if (unlinkat(s->fd, name, AT_REMOVEDIR) == -1 && errno != ENOENT)
		log_fault(err_errno("remove from the spool"), name);
}

/* The descriptor, or -1 with errno. */
static int
file_make(const struct spool *s, const char *dir, const char *file, int flags)
{
	char path[PATH_SIZE];

	path_make(path, dir, file);
	return openat(s->fd, path,
	    flags | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
}

static const struct err *
keeper_make(const struct spool *s, struct run *r, const char *dir)
{
	char text[WIRE_DIR + SPOOL_BOOT + 32];
	const struct err *e;
	int len;

	r->keeper = file_make(s, dir, "keeper", O_RDWR);
	if (r->keeper == -1 || flock(r->keeper, LOCK_EX | LOCK_NB) == -1)
		return err_errno("spool: %s/keeper", dir);
	len = snprintf(text, sizeof(text), "%lld %s %s\n",
	    (long long)r->project, s->boot, r->dir);
	e = file_store(r->keeper, text, (size_t)len);
	return e == NULL ? NULL : err_wrap(e, "spool: %s/keeper", dir);
}

/* Reserves room, so that the outcome is known even if the log fills the disk. */
static const struct err *
result_make(const struct spool *s, const char *dir, int *out)
{
	*out = file_make(s, dir, "result", O_WRONLY | O_APPEND);
	if (*out == -1)
		return err_errno("spool: %s/result", dir);
	if (fallocate(*out, FALLOC_FL_KEEP_SIZE, 0, RESULT_ROOM) == -1 &&
	    (errno == ENOSPC || errno == EDQUOT))
		return err_errno("spool: reserve room for %s/result", dir);
	return NULL;
}

/* Fills a directory that does not have its final name yet. */
static const struct err *
dir_fill(const struct spool *s, struct run *r, const char *dir,
    const struct buf *description, int *fds)
{
	const struct err *e;
	char path[PATH_SIZE];

	if ((e = keeper_make(s, r, dir)) != NULL)
		return e;
	/* it holds secrets, so it must not reach a disk */
	fds[WIRE_FD_JOB] = memfd_create("job", MFD_CLOEXEC);
	if (fds[WIRE_FD_JOB] == -1)
		return err_errno("spool: %s: job description", dir);
	if ((e = file_store(fds[WIRE_FD_JOB], description->data,
		 description->len)) != NULL)
		return e;
	fds[WIRE_FD_LOG] = file_make(s, dir, "log", O_WRONLY | O_APPEND);
	if ((e = result_make(s, dir, &fds[WIRE_FD_RESULT])) != NULL)
		return e;
	fds[WIRE_FD_LOCK] = file_make(s, dir, "lock", O_RDWR);
	path_make(path, dir, "control");
	if (fds[WIRE_FD_LOG] == -1 || fds[WIRE_FD_LOCK] == -1 ||
	    ftruncate(fds[WIRE_FD_LOG], r->log_at) == -1 ||
	    mkfifoat(s->fd, path, 0600) == -1)
		return err_errno("spool: %s", dir);
	fds[WIRE_FD_CONTROL] = openat(s->fd, path,
	    O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fds[WIRE_FD_CONTROL] == -1)
		return err_errno("spool: %s", path);
	return NULL;
}

/* Opens the files that the dispatcher follows. */
static const struct err *
files_open(const struct spool *s, struct run *r)
{
	char path[PATH_SIZE];

	path_make(path, r->name, "log");
	r->log = openat(s->fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	path_make(path, r->name, "result");
	r->result = openat(s->fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	path_make(path, r->name, "lock");
	r->lock = openat(s->fd, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (r->log == -1 || r->result == -1 || r->lock == -1)
		return err_errno("spool: %s", r->name);
	return NULL;
}

void
run_init(struct run *r, int64_t id, int64_t epoch, int64_t project,
    const char *dir)
{
	*r = (struct run){ .id = id, .epoch = epoch, .project = project };
	r->keeper = r->log = r->result = r->lock = -1;
	(void)snprintf(r->dir, sizeof(r->dir), "%s", dir);
	name_make(r->name, id, epoch);
}

const struct err *
run_make(const struct spool *s, struct run *r, const struct buf *description,
    int fds[WIRE_FD__REQUEST])
{
	const struct err *e;
	char dir[DIR_SIZE];
	size_t i;

	for (i = 0; i < WIRE_FD__REQUEST; i++)
		fds[i] = -1;
	(void)snprintf(dir, sizeof(dir), RUN_NEW "%s", r->name);
	if (mkdirat(s->fd, dir, 0700) == -1)
		return err_errno("spool: %s", dir);
	if ((e = dir_fill(s, r, dir, description, fds)) != NULL)
		goto fail;
	if (renameat(s->fd, dir, s->fd, r->name) == -1) {
		e = err_errno("spool: %s", r->name);
		goto fail;
	}
	if ((e = files_open(s, r)) == NULL)
		return NULL;
	run_remove(s, r);
fail:
	for (i = 0; i < WIRE_FD__REQUEST; i++) {
		(void)close(fds[i]);
		fds[i] = -1;
	}
	dir_clear(s, dir);
	return e;
}

const struct err *
run_cancel(const struct spool *s, const struct run *r)
{
	const struct err *e = NULL;
	const char line[] = "cancel\n";
	char path[PATH_SIZE];
	int fd;

	path_make(path, r->name, "control");
	fd = openat(s->fd, path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd == -1 ||
	    write(fd, line, sizeof(line) - 1) != (ssize_t)sizeof(line) - 1)
		e = err_errno("spool: %s", path);
	if (fd != -1)
		(void)close(fd);
	return e;
}

bool
run_has_ended(const struct run *r)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return fcntl(r->lock, F_SETLK, &whole) == 0;
}

const struct err *
run_sync(const struct run *r)
{
	if ((fsync(r->log) == -1 || fsync(r->result) == -1) && errno != EINVAL)
		return err_errno("spool: sync %s", r->name);
	return NULL;
}

bool
run_name_parse(const char *name, int64_t *id, int64_t *epoch)
{
	char text[RUN_NAME];
	char *dot;

	if (strlen(name) >= sizeof(text))
		return false;
	(void)memcpy(text, name, strlen(name) + 1);
	if ((dot = strchr(text, '.')) == NULL)
		return false;
	*dot = '\0';
	return num_parse(text, 1, NUM_SAFE, id) &&
	    num_parse(dot + 1, 1, NUM_SAFE, epoch);
}

/* "PROJECT BOOT DIRECTORY\n".  It is complete before the directory gets its
 * name, but is not synced, because the caller waits: only a crash of the
 * machine cuts it short. */
static const struct err *
keeper_read(const struct spool *s, struct run *r)
{
	char text[WIRE_DIR + SPOOL_BOOT + 32], *project, *boot, *rest = text;
	ssize_t got = pread(r->keeper, text, sizeof(text) - 1, 0);

	if (got == -1)
		return err_errno("spool: %s/keeper", r->name);
	if (got == 0 || text[got - 1] != '\n')
		return NULL;
	text[got - 1] = '\0';
	project = strsep(&rest, " ");
	boot = strsep(&rest, " ");
	if (rest == NULL || !num_parse(project, 1, NUM_SAFE, &r->project) ||
	    strlen(rest) >= sizeof(r->dir))
		goto malformed;
	r->this_boot = spool_is_boot(s, boot);
	(void)memcpy(r->dir, rest, strlen(rest) + 1);
	return NULL;
malformed:
	return err_new(ERR_INTERNAL, "spool: %s/keeper is malformed", r->name);
}

/* Where the data of a file begins, as lseek(2) says it. */
static off_t
data_start(int fd)
{
	/* cppcheck-suppress invalidFunctionArg ; it knows those of C only */
	return lseek(fd, 0, SEEK_DATA);
}

/* Where this try began to write: what others wrote is a hole in the file. */
static int64_t
log_begin(int log)
{
	off_t at = data_start(log);
	char data[4096];
	struct stat st;
	ssize_t got, i;

	if (at == -1)
		return fstat(log, &st) == 0 ? st.st_size : 0;
	for (; (got = pread(log, data, sizeof(data), at)) > 0; at += got)
		for (i = 0; i < got; i++)
			if (data[i] != '\0')
				return at + i;
	return at;
}

const struct err *
run_adopt(const struct spool *s, const char *name, struct run *out)
{
	const struct err *e;
	struct stat mine, there;
	char path[PATH_SIZE];

	run_init(out, 0, 0, 0, "");
	if (!run_name_parse(name, &out->id, &out->epoch))
		return err_new(ERR_NOTFOUND, "spool: %s: not the name of a run",
		    name);
	(void)snprintf(out->name, sizeof(out->name), "%s", name);
	path_make(path, name, "keeper");
	out->keeper = openat(s->fd, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (out->keeper == -1 && errno == ENOENT)
		return err_new(ERR_NOTFOUND, "spool: %s does not exist", path);
	if (out->keeper == -1)
		return err_errno("spool: %s", path);
	if (flock(out->keeper, LOCK_EX | LOCK_NB) == -1) {
		e = errno == EWOULDBLOCK ?
		    err_new(ERR_CONFLICT,
			"spool: %s: another dispatcher follows it", name) :
		    err_errno("spool: %s", path);
		goto fail;
	}
	/* its keeper may have removed it just before */
	if (fstat(out->keeper, &mine) == -1 ||
	    fstatat(s->fd, path, &there, AT_SYMLINK_NOFOLLOW) == -1 ||
	    mine.st_ino != there.st_ino) {
		e = err_new(ERR_NOTFOUND, "spool: %s was removed", name);
		goto fail;
	}
	if ((e = keeper_read(s, out)) != NULL ||
	    (e = files_open(s, out)) != NULL)
		goto fail;
	out->log_at = log_begin(out->log);
	return NULL;
fail:
	run_close(out);
	return e;
}

void
run_remove(const struct spool *s, const struct run *r)
{
	char dir[DIR_SIZE];

	(void)snprintf(dir, sizeof(dir), RUN_OLD "%s", r->name);
	if (renameat(s->fd, r->name, s->fd, dir) == -1) {
		if (errno != ENOENT)
			log_fault(err_errno("remove from the spool"), r->name);
		return;
	}
	dir_clear(s, dir);
}

void
run_close(struct run *r)
{
	int *const fds[] = { &r->keeper, &r->log, &r->result, &r->lock };
	size_t i;

	for (i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		(void)close(*fds[i]);
		*fds[i] = -1;
	}
}

bool
run_exists(const struct spool *s, int64_t id, int64_t epoch)
{
	char name[RUN_NAME];

	name_make(name, id, epoch);
	return faccessat(s->fd, name, F_OK, 0) == 0;
}

static bool
is_empty(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_size == 0;
}

/* Whether a file has no bytes, or only a hole: a log begins after that of other
 * tries.  Where holes are not known, they are bytes. */
static bool
is_hole(int fd)
{
	return data_start(fd) == -1 && errno == ENXIO;
}

static bool
is_given_up(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_size == SPOOL_GIVEN_UP;
}

/* The mark outlives a dispatcher that dies before it has told the queue. */
bool
run_never_began(const struct run *r)
{
	if (!run_has_ended(r))
		return false;
	if (is_given_up(r->lock))
		return true;
	return r->this_boot && is_empty(r->lock) && is_hole(r->log) &&
	    is_empty(r->result) && ftruncate(r->lock, SPOOL_GIVEN_UP) == 0;
}

static bool
sweep_one(void *context, const char *name)
{
	const struct spool *s = context;

	/* Two may remove one at a time, but another may be making one. */
	if (str_starts(name, RUN_OLD) ||
	    (str_starts(name, RUN_NEW) && spool_is_stale(s, name)))
		dir_clear(s, name);
	return true;
}

void
run_sweep(struct spool *s)
{
	spool_names(s, "", sweep_one, s);
}
