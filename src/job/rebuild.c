/* SPDX-License-Identifier: ISC */
/*
 * Nothing that steps of an earlier deployment left in .git is trusted.  Only
 * the objects, which are known to be unchanged, and the name of the last commit
 * are reused.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/str.h"
#include "core/tree.h"
#include "job/workspace.h"

#define OLD ".slipway-old-git"
#define TIP ".git/refs/slipway/tip"
#define INDEX "/index"
#define TAGS "/packed-refs"
#define LFS "/lfs"
#define LFS_OBJECTS LFS "/objects"
#define HASH_SIZE 128
#define CONFIG_MAX 16384

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

/* Submodules may have addresses relative to that of the repository. */
static const struct err *
config_write(int at, const struct rebuild *r, bool sha256)
{
	const struct err *e;
	const char *c;
	struct buf text;

	buf_init(&text, CONFIG_MAX);
	buf_printf(&text,
	    "[core]\n\trepositoryFormatVersion = %d\n\tbare = false\n",
	    sha256 ? 1 : 0);
	if (sha256)
		buf_puts(&text, "[extensions]\n\tobjectFormat = sha256\n");
	buf_puts(&text, "[remote \"origin\"]\n\turl = \"");
	for (c = r->url; *c != '\0'; c++) {
		if (*c == '"' || *c == '\\')
			buf_putc(&text, '\\');
		buf_putc(&text, *c);
	}
	buf_puts(&text, "\"\n");
	if ((e = buf_check(&text)) == NULL)
		e = file_write(at, ".git/config", text.data);
	buf_release(&text);
	return e;
}

static const struct err *
clone_create(int at, const struct rebuild *r, const char *tip)
{
	static const char *const dirs[] = { ".git", ".git/refs",
		".git/refs/heads", ".git/refs/slipway" };
	const bool sha256 = r->format == FORMAT_SHA256 || strlen(tip) == 64;
	const struct err *e;
	char line[HASH_SIZE];
	size_t i, len;

	for (i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		if (mkdirat(at, dirs[i], 0700) == -1)
			return err_errno("create %s", dirs[i]);
	if ((e = file_write(at, ".git/HEAD", "ref: refs/heads/none\n")) !=
		NULL ||
	    (e = config_write(at, r, sha256)) != NULL)
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

/* Moves the old index, tags and objects of Git LFS into place, if they are to be
 * used. */
static const struct err *
old_move(int at, const struct rebuild *r)
{
	if (r->has_tags && renameat(at, OLD TAGS, at, ".git" TAGS) == -1)
		return err_errno("move the tags");
	if (r->has_index && renameat(at, OLD INDEX, at, ".git" INDEX) == -1 &&
	    errno != ENOENT)
		return err_errno("move the index");
	if (!r->has_lfs)
		return NULL;
	if (mkdirat(at, ".git" LFS, 0700) == -1 ||
	    renameat(at, OLD LFS_OBJECTS, at, ".git" LFS_OBJECTS) == -1)
		return err_errno("move the objects of Git LFS");
	return NULL;
}

const struct err *
checkout_rebuild(int at, const struct rebuild *r)
{
	const struct err *e;
	const char *tip = "";
	struct stat st;
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
	    is_dir(at, OLD "/refs/slipway") &&
	    /* a list of commits without parents, which steps could write */
	    fstatat(at, OLD "/shallow", &st, AT_SYMLINK_NOFOLLOW) == -1;
	if (objects)
		tip = hash_read(r->a, at, OLD "/refs/slipway/tip");
	if (tip[0] == '\0')
		objects = false;
	if ((e = clone_create(at, r, tip)) != NULL)
		return e;
	if (objects) {
		if (renameat(at, OLD "/objects", at, ".git/objects") == -1)
			return err_errno("keep the objects");
		if ((e = objects_clean(at)) != NULL ||
		    (e = old_move(at, r)) != NULL)
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
