/* SPDX-License-Identifier: ISC */
#include "core/wake.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tap.h"

static char dir[] = "/tmp/slipway-wake-XXXXXX";

static bool
readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static void
refused(const char *path, const char *group, const char *name)
{
	const struct err *e;
	int fd = 0;

	e = wake_open(path, 0600, group, &fd);
	ok(e != NULL && fd == -1, "%s", name);
	if (e == NULL)
		(void)close(fd);
}

int
main(void)
{
	char path[64], other[200];
	struct stat st;
	int fd = -1, again = -1, i;

	if (mkdtemp(dir) == NULL)
		return 1;
	(void)snprintf(path, sizeof(path), "%s/wake.sock", dir);
	wake_send(path);
	ok(access(path, F_OK) == -1, "a wake-up without a socket is ignored");
	ok(wake_open(path, 0620, NULL, &fd) == NULL,
	    "wake_open creates the socket");
	ok(stat(path, &st) == 0 && (st.st_mode & 07777) == 0620,
	    "the socket has its mode");
	ok(!readable(fd) && !wake_drain(fd), "a new socket has no wake-up");
	wake_send(path);
	ok(readable(fd), "a wake-up arrives");
	for (i = 0; i < 2000; i++)
		wake_send(path);
	ok(true, "2000 wake-ups that are not read do not block");
	ok(wake_drain(fd), "wake_drain reads the wake-ups");
	ok(!wake_drain(fd) && !readable(fd),
	    "after wake_drain no wake-up is left");
	ok(wake_open(path, 0600, NULL, &again) == NULL,
	    "another process replaces the socket");
	wake_send(path);
	ok(readable(again) && !readable(fd),
	    "the new socket gets the wake-ups");
	(void)close(again);
	(void)close(fd);
	wake_send(path);
	ok(true, "a wake-up for a stale socket is ignored");
	ok(wake_open(path, 0600, NULL, &fd) == NULL,
	    "a stale socket is replaced");
	(void)close(fd);
	refused(path, "no-such-group-here", "an unknown group is rejected");
	(void)snprintf(other, sizeof(other), "%s/none/wake.sock", dir);
	refused(other, NULL, "a missing directory is rejected");
	(void)memset(other, 'x', sizeof(other) - 1);
	other[0] = '/';
	other[sizeof(other) - 1] = '\0';
	wake_send(other);
	refused(other, NULL, "a path that is too long is rejected");
	(void)unlink(path);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	(void)close(fd);
	refused(path, NULL, "a file in place of the socket is rejected");
	ok(stat(path, &st) == 0 && S_ISREG(st.st_mode),
	    "a file in place of the socket stays");
	(void)unlink(path);
	ok(rmdir(dir) == 0, "no other file is left");
	return tap_done();
}
