/* SPDX-License-Identifier: ISC */
/*
 * Nothing that steps of an earlier deployment left in .git is trusted.  Only
 * the objects, which are known to be unchanged, and the name of the last commit
 * are reused.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "core/str.h"
#include "core/tree.h"
#include "job/job.h"

#define OLD ".slipway-old-git"
#define TIP ".git/refs/slipway/tip"
#define HASH_SIZE 128

static const struct err *
file_write(int at, const char *path, const char *text)
{
	const size_t len = strlen(text);
	int fd = openat(at, path,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	ssize_t put;

	if (fd == -1)
		return err_errno("create %s", path);
	put = write(fd, text, len);
	if (close(fd) == -1 || put != (ssize_t)len)
		return err_errno("write %s", path);
	return NULL;
}

static bool
is_dir(int at, const char *path)
{
	struct stat st;

	return fstatat(at, path, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISDIR(st.st_mode);
}

/* Reads the hash from a file; "" if it contains none. */
static const char *
hash_read(struct arena *a, int at, const char *path)
{
	char text[HASH_SIZE];
	ssize_t got;
	size_t len;
	int fd;

	fd = openat(at, path,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (fd == -1)
		return "";
	got = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	if (got <= 0)
		return "";
	text[got] = '\0';
	len = strspn(text, "0123456789abcdef");
	if ((len != 40 && len != 64) || strcmp(text + len, "\n") != 0)
		return "";
	return arena_strndup(a, text, len);
}

static const struct err *
skeleton(int at, const char *tip, enum checkout_format format)
{
	static const char *const dirs[] = { ".git", ".git/refs",
		".git/refs/heads", ".git/refs/slipway" };
	const bool sha256 = format == FORMAT_SHA256 || strlen(tip) == 64;
	const struct err *e;
	char line[HASH_SIZE];
	size_t i, len;

	for (i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		if (mkdirat(at, dirs[i], 0700) == -1)
			return err_errno("create %s", dirs[i]);
	if ((e = file_write(at, ".git/HEAD", "ref: refs/heads/none\n")) != NULL)
		return e;
	if ((e = file_write(at, ".git/config",
		 sha256 ? "[core]\n\trepositoryFormatVersion = 1\n"
			  "\tbare = false\n"
			  "[extensions]\n\tobjectFormat = sha256\n" :
			  "[core]\n\trepositoryFormatVersion = 0\n"
			  "\tbare = false\n")) != NULL)
		return e;
	if (tip[0] == '\0')
		return NULL;
	len = strlen(tip);
	(void)memcpy(line, tip, len);
	(void)memcpy(line + len, "\n", 2);
	return file_write(at, TIP, line);
}

/* Removes leftovers of a killed git, and pointers out of the object store. */
static const struct err *
objects_clean(int at)
{
	static const char *const away[] = { ".git/objects/info",
		".git/objects/pack/multi-pack-index" };
	const struct err *e;
	size_t i;

	for (i = 0; i < sizeof(away) / sizeof(away[0]); i++)
		if ((e = tree_remove(at, away[i])) != NULL)
			return e;
	return NULL;
}

const struct err *
checkout_rebuild(struct arena *a, int at, enum checkout_format format)
{
	const struct err *e;
	const char *tip = "";
	bool objects;

	if ((e = tree_remove(at, OLD)) != NULL)
		return e;
	if (is_dir(at, ".git")) {
		if (renameat(at, ".git", at, OLD) == -1)
			return err_errno("move .git away");
	} else if ((e = tree_remove(at, ".git")) != NULL) {
		return e;
	}
	objects = is_dir(at, OLD "/objects") && is_dir(at, OLD "/refs") &&
	    is_dir(at, OLD "/refs/slipway");
	if (objects)
		tip = hash_read(a, at, OLD "/refs/slipway/tip");
	if (tip[0] == '\0')
		objects = false;
	if ((e = skeleton(at, tip, format)) != NULL)
		return e;
	if (objects) {
		if (renameat(at, OLD "/objects", at, ".git/objects") == -1)
			return err_errno("keep the objects");
		if ((e = objects_clean(at)) != NULL)
			return e;
	} else if (mkdirat(at, ".git/objects", 0700) == -1) {
		return err_errno("create .git/objects");
	}
	if ((e = tree_remove(at, OLD)) != NULL)
		return e;
	if (!objects)
		return err_new(ERR_NOTFOUND, "no clone to reuse");
	return NULL;
}
