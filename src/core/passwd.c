/* SPDX-License-Identifier: ISC */
#include "core/passwd.h"

#include <sys/mount.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/buf.h"
#include "core/file.h"

#define PASSWD "/etc/passwd"
#define PASSWD_MAX ((size_t)4 << 20)

/* The content of /etc/passwd with a line for this account. */
static const struct err *
passwd_make(const struct proc_account *who, const char *home, struct buf *out)
{
	const struct err *e;

	/* One of these would end the field or the line. */
	if (strpbrk(home, ":\n") != NULL)
		return err_new(ERR_INTERNAL,
		    "%s: the home directory must not contain a colon", home);
	if ((e = file_load(PASSWD, out)) != NULL)
		return e;
	if (out->len > 0 && out->data[out->len - 1] != '\n')
		buf_putc(out, '\n');
	buf_printf(out, "slipway-%u:x:%u:%u:slipway job:%s:/bin/bash\n",
	    who->uid, who->uid, who->gid, home);
	return buf_check(out);
}

/* No process of the account is running yet, so no one can replace our file. */
static const struct err *
passwd_mount(const char *scratch, const struct buf *text)
{
	char path[4096 + 64];
	const struct err *e;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/.passwd", scratch);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
	    0600);
	if (fd == -1)
		return err_errno("%s", path);
	if ((e = file_store(fd, text->data, text->len)) == NULL &&
	    fchmod(fd, 0644) == -1)
		e = err_errno("chmod");
	if (e == NULL && mount(path, PASSWD, NULL, MS_BIND, NULL) == -1)
		e = err_errno("mount on %s", PASSWD);
	if (unlink(path) == -1 && e == NULL)
		e = err_errno("%s", path);
	(void)close(fd);
	return e;
}

const struct err *
passwd_enter(int fd, const char *path)
{
	const struct err *e = NULL;
	struct stat before, after;
	int again;

	again = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (again == -1)
		return err_errno("%s", path);
	if (fstat(fd, &before) == -1 || fstat(again, &after) == -1)
		e = err_errno("%s", path);
	else if (before.st_dev != after.st_dev || before.st_ino != after.st_ino)
		e = err_new(ERR_INTERNAL, "%s: replaced by another directory",
		    path);
	else if (dup3(again, fd, O_CLOEXEC) == -1)
		e = err_errno("%s", path);
	(void)close(again);
	return e;
}

const struct err *
passwd_give(const struct proc_account *who, const char *home,
    const char *scratch)
{
	const struct err *e;
	struct buf text;

	buf_init(&text, PASSWD_MAX);
	if ((e = passwd_make(who, home, &text)) == NULL)
		e = passwd_mount(scratch, &text);
	buf_release(&text);
	return e == NULL ? NULL : err_wrap(e, "a name for uid %u", who->uid);
}
