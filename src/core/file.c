/* SPDX-License-Identifier: ISC */
#include "core/file.h"

#include <sys/statvfs.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define ROOM_BYTES ((size_t)1 << 20)
#define ROOM_FILES 16

const struct err *
file_rest(int fd, struct buf *out)
{
	char chunk[16384];
	ssize_t got;

	while ((got = read(fd, chunk, sizeof(chunk))) != 0) {
		if (got == -1 && errno == EINTR)
			continue;
		if (got == -1)
			return err_errno("read");
		buf_add(out, chunk, (size_t)got);
		if (out->overflow)
			break;
	}
	return buf_check(out);
}

const struct err *
file_load(const char *path, struct buf *out)
{
	const struct err *e;
	int fd;

	if ((fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY)) == -1) {
		if (errno == ENOENT)
			return err_new(ERR_NOTFOUND, "%s: no such file", path);
		return err_errno("%s", path);
	}
	if ((e = file_rest(fd, out)) != NULL)
		e = err_wrap(e, "%s", path);
	(void)close(fd);
	return e;
}

const struct err *
file_store(int fd, const void *data, size_t len)
{
	const char *at = data;
	ssize_t put;

	while (len > 0) {
		put = write(fd, at, len);
		if (put == -1 && errno == EINTR)
			continue;
		if (put == -1)
			return err_errno("write");
		at += put;
		len -= (size_t)put;
	}
	return NULL;
}

/* Root may use what a file system keeps from others, so a write of root alone
 * proves nothing. */
int
file_room(int dir)
{
	struct statvfs fs;

	if (fstatvfs(dir, &fs) == -1)
		return errno;
	if ((fs.f_flag & ST_RDONLY) != 0)
		return EROFS;
	if (fs.f_blocks != 0 && fs.f_bavail < ROOM_BYTES / fs.f_frsize)
		return ENOSPC;
	return fs.f_files != 0 && fs.f_favail < ROOM_FILES ? ENOSPC : 0;
}
