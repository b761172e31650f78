/* SPDX-License-Identifier: ISC */
#include "core/wake.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DRAIN_MAX 1024 /* so that a flood cannot block the reader */

static bool
address(struct sockaddr_un *sun, const char *path)
{
	size_t len = strlen(path);

	(void)memset(sun, 0, sizeof(*sun));
	sun->sun_family = AF_UNIX;
	if (len >= sizeof(sun->sun_path))
		return false;
	(void)memcpy(sun->sun_path, path, len);
	return true;
}

void
wake_send(const char *path)
{
	struct sockaddr_un sun;
	int fd, saved = errno;

	if (!address(&sun, path))
		return;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd != -1) {
		/* a failure only delays the work until the next poll */
		(void)sendto(fd, "", 0, MSG_NOSIGNAL | MSG_DONTWAIT,
		    (const struct sockaddr *)&sun, sizeof(sun));
		(void)close(fd);
	}
	errno = saved;
}

static const struct err *
rights_set(const char *path, mode_t mode, const char *group)
{
	const struct group *gr;
	gid_t gid = (gid_t)-1;

	if (group != NULL) {
		if ((gr = getgrnam(group)) == NULL)
			return err_public(ERR_CONFIG, "%s: unknown group",
			    group);
		gid = gr->gr_gid;
	}
	if (gid != (gid_t)-1 && chown(path, (uid_t)-1, gid) == -1)
		return err_errno("%s: change its group to %s", path, group);
	if (chmod(path, mode) == -1)
		return err_errno("%s: chmod", path);
	return NULL;
}

/* Binds under a temporary name first: the socket appears with its permissions
 * set, and replaces an old one at once. */
static const struct err *
bind_at(int fd, const char *path, mode_t mode, const char *group)
{
	const struct err *e;
	struct sockaddr_un sun;
	struct stat st;
	mode_t mask;
	int rc;

	if (lstat(path, &st) == 0 && !S_ISSOCK(st.st_mode))
		return err_public(ERR_CONFIG, "%s: exists and is not a socket",
		    path);
	if (!address(&sun, path) ||
	    (size_t)snprintf(sun.sun_path, sizeof(sun.sun_path), "%s.%ld", path,
		(long)getpid()) >= sizeof(sun.sun_path))
		return err_public(ERR_CONFIG, "%s: path too long for a socket",
		    path);
	(void)unlink(sun.sun_path);
	mask = umask(0177);
	rc = bind(fd, (const struct sockaddr *)&sun, sizeof(sun));
	(void)umask(mask);
	if (rc == -1)
		return err_errno("%s: bind", sun.sun_path);
	e = rights_set(sun.sun_path, mode, group);
	if (e == NULL && rename(sun.sun_path, path) == -1)
		e = err_errno("%s: rename", path);
	if (e != NULL)
		(void)unlink(sun.sun_path);
	return e;
}

const struct err *
wake_open(const char *path, mode_t mode, const char *group, int *out)
{
	const struct err *e;
	int fd;

	*out = -1;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd == -1)
		return err_errno("open the wake socket");
	if ((e = bind_at(fd, path, mode, group)) != NULL) {
		(void)close(fd);
		return e;
	}
	*out = fd;
	return NULL;
}

bool
wake_drain(int fd)
{
	char byte;
	int n;

	for (n = 0; n < DRAIN_MAX; n++)
		if (recv(fd, &byte, sizeof(byte), MSG_DONTWAIT) == -1)
			break;
	return n > 0;
}
