/* SPDX-License-Identifier: ISC */
#include "core/tree.h"

#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/str.h"

#define NAME_SIZE 64
#define FIND (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static bool
is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Opens a directory to list it; first adds the permissions that this needs. */
static DIR *
dir_open(int at, const char *name)
{
	struct stat st;
	DIR *dir;
	int fd;

	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == -1 ||
	    !S_ISDIR(st.st_mode))
		return NULL;
	if ((st.st_mode & S_IRWXU) != S_IRWXU &&
	    fchmodat(at, name, S_IRWXU, 0) == -1)
		return NULL;
	fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1)
		return NULL;
	if ((dir = fdopendir(fd)) == NULL)
		(void)close(fd);
	return dir;
}

static unsigned long moves; /* directories moved so far */

/* Moves `name` of `from` up into `top` under a new name, so that no deep path
 * has to be walked. */
static const struct err *
move_up(int from, const char *name, int top)
{
	static unsigned long counter;
	char fresh[NAME_SIZE];
	struct stat st;

	do
		(void)snprintf(fresh, sizeof(fresh), ".removed-%lu", ++counter);
	while (fstatat(top, fresh, &st, AT_SYMLINK_NOFOLLOW) == 0);
	if (fchmodat(from, name, S_IRWXU, 0) == -1 ||
	    renameat(from, name, top, fresh) == -1)
		return err_errno("move %s", name);
	moves++;
	return NULL;
}

/* Dissolves one directory of `top`: removes its files and moves its directories
 * up, as far as possible. */
static const struct err *
dir_dissolve(int top, const char *name)
{
	const struct err *e = NULL, *failed = NULL;
	const struct dirent *entry;
	DIR *dir;

	if ((dir = dir_open(top, name)) == NULL)
		return err_errno("open %s", name);
	while ((entry = readdir(dir)) != NULL) {
		if (is_dots(entry->d_name) ||
		    unlinkat(dirfd(dir), entry->d_name, 0) == 0 ||
		    errno == ENOENT)
			continue;
		if (errno == EISDIR || errno == EPERM)
			e = move_up(dirfd(dir), entry->d_name, top);
		else
			e = err_errno("remove %s", entry->d_name);
		if (e != NULL)
			failed = e;
	}
	(void)closedir(dir);
	e = failed;
	if (e == NULL && unlinkat(top, name, AT_REMOVEDIR) == -1 &&
	    errno != ENOENT && errno != ENOTEMPTY)
		e = err_errno("remove %s", name);
	return e;
}

static const struct err *
entry_remove(int top, const char *name)
{
	if (unlinkat(top, name, 0) == 0 || errno == ENOENT)
		return NULL;
	if (errno != EISDIR && errno != EPERM)
		return err_errno("remove %s", name);
	if (unlinkat(top, name, AT_REMOVEDIR) == 0)
		return NULL;
	return dir_dissolve(top, name);
}

const struct err *
tree_empty(int top)
{
	return tree_empty_but(top, NULL);
}

const struct err *
tree_empty_but(int top, const char *keep)
{
	const struct err *e, *failed = NULL;
	const struct dirent *entry;
	unsigned long before;
	bool some = true;
	DIR *dir;

	if ((dir = dir_open(top, ".")) == NULL)
		return err_errno("open a directory");
	while (some) {
		some = false;
		before = moves;
		failed = NULL;
		rewinddir(dir);
		while ((entry = readdir(dir)) != NULL) {
			if (is_dots(entry->d_name) ||
			    (keep != NULL && strcmp(entry->d_name, keep) == 0))
				continue;
			if ((e = entry_remove(top, entry->d_name)) == NULL)
				some = true;
			else
				failed = e;
		}
		some = some || moves != before;
	}
	(void)closedir(dir);
	return failed;
}

const struct err *
tree_remove(int at, const char *name)
{
	const struct err *e;
	DIR *dir;

	if (unlinkat(at, name, 0) == 0 || errno == ENOENT)
		return NULL;
	if ((dir = dir_open(at, name)) == NULL)
		return err_errno("remove %s", name);
	e = tree_empty(dirfd(dir));
	(void)closedir(dir);
	if (e == NULL && unlinkat(at, name, AT_REMOVEDIR) == -1)
		e = err_errno("remove %s", name);
	return e;
}

bool
tree_is_below(const char *path)
{
	size_t len;

	for (;; path += len + 1) {
		len = strcspn(path, "/");
		if (len == 0 || (len == 1 && path[0] == '.') ||
		    (len == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		if (path[len] == '\0')
			return true;
	}
}

/* Why the last component of a path, `name` of the directory, was not opened. */
static const struct err *
obstacle(int at, const char *name, const char *path, size_t len)
{
	const int error = errno, shown = (int)len;
	struct stat st;

	if (error == ENOENT)
		return err_new(ERR_NOTFOUND, "%.*s does not exist", shown,
		    path);
	if ((error == ENOTDIR || error == ELOOP) &&
	    fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return err_new(ERR_INVALID, "%.*s is %s", shown, path,
		    S_ISLNK(st.st_mode) ? "a symbolic link" :
					  "not a directory");
	return err_new(ERR_FORBIDDEN, "%.*s: %s", shown, path, strerror(error));
}

const struct err *
tree_find(int at, const char *path, int *out)
{
	const struct err *e = NULL;
	char name[NAME_MAX + 1];
	const char *part = path;
	size_t len;
	int next;

	*out = -1;
	if (!tree_is_below(path))
		return err_new(ERR_INVALID, "%s is not below it", path);
	do {
		len = strcspn(part, "/");
		(void)memcpy(name, part, len < NAME_MAX ? len : NAME_MAX);
		name[len < NAME_MAX ? len : NAME_MAX] = '\0';
		errno = ENAMETOOLONG;
		next = len > NAME_MAX ?
		    -1 :
		    openat(*out == -1 ? at : *out, name, FIND);
		if (next == -1)
			e = obstacle(*out == -1 ? at : *out, name, path,
			    (size_t)(part - path) + len);
		if (*out != -1)
			(void)close(*out);
		*out = next;
		part += len + 1;
	} while (e == NULL && part[-1] != '\0');
	/* whether it can be entered */
	if (e == NULL && (next = openat(*out, ".", FIND)) == -1) {
		e = obstacle(*out, ".", path, strlen(path));
		(void)close(*out);
		*out = -1;
	} else if (e == NULL) {
		(void)close(next);
	}
	return e;
}
