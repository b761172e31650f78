/* SPDX-License-Identifier: ISC */
#include "spool/wire.h"

#include <sys/socket.h>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "tap.h"

static int ends[2];

static int
fds_open(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (dir != NULL && readdir(dir) != NULL)
		n++;
	if (dir != NULL)
		(void)closedir(dir);
	return n;
}

static struct wire
message(uint32_t type)
{
	struct wire w = { .magic = WIRE_MAGIC, .type = type, .deployment = 5 };

	return w;
}

/* Sends raw bytes and says how they are received. */
static int
raw(const void *data, size_t len)
{
	int fds[WIRE_FD__REQUEST];
	const struct err *e;
	struct wire got;

	if (send(ends[0], data, len, 0) != (ssize_t)len)
		return -1;
	e = wire_recv(ends[1], &got, fds, WIRE_FD__REQUEST);
	return e == NULL ? 0 : (int)e->code;
}

static int
with_fds(uint32_t type, size_t nfds, size_t room)
{
	int fds[WIRE_FD__MAX + 1], in[WIRE_FD__MAX + 1] = { 0 };
	struct wire w = message(type), got;
	const struct err *e;
	size_t i;

	if ((e = wire_send(ends[0], &w, in, nfds)) != NULL)
		return (int)e->code;
	if ((e = wire_recv(ends[1], &got, fds, room)) != NULL)
		return (int)e->code;
	for (i = 0; i < nfds; i++) {
		if ((fcntl(fds[i], F_GETFD) & FD_CLOEXEC) == 0)
			return -2;
		(void)close(fds[i]);
	}
	return 0;
}

static void
hostile(void)
{
	struct wire w = message(WIRE_KILL);
	char large[sizeof(w) + 1] = { 0 };
	uint32_t type;

	is_int(raw(&w, sizeof(w)), 0, "a message is received");
	is_int(raw(&w, sizeof(w) - 1), ERR_BAD_REQUEST, "one byte less");
	(void)memcpy(large, &w, sizeof(w));
	is_int(raw(large, sizeof(large)), ERR_BAD_REQUEST, "one byte more");
	is_int(raw("x", 1), ERR_BAD_REQUEST, "a single byte");
	w.magic++;
	is_int(raw(&w, sizeof(w)), ERR_BAD_REQUEST, "another magic");
	w = message(0);
	is_int(raw(&w, sizeof(w)), ERR_BAD_REQUEST, "type 0");
	for (type = WIRE__MAX; type != 0; type <<= 1) {
		w = message(type);
		if (raw(&w, sizeof(w)) != ERR_BAD_REQUEST)
			break;
	}
	is_int(type, 0, "types past the last");
	w = message(WIRE_KILL);
	(void)memset(w.dir, 'a', sizeof(w.dir));
	is_int(raw(&w, sizeof(w)), ERR_BAD_REQUEST, "no end of directory");
	w = message(WIRE_KILL);
	w.dir[WIRE_DIR - 1] = 'x';
	is_int(raw(&w, sizeof(w)), ERR_BAD_REQUEST, "bytes behind it");
	w = message(WIRE_START);
	is_int(raw(&w, sizeof(w)), ERR_BAD_REQUEST, "start without fds");
}

int
main(void)
{
	int before;
	struct wire w = message(WIRE_STOP), got;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == -1)
		return 1;
	before = fds_open();
	hostile();
	is_int(with_fds(WIRE_START, WIRE_FD__REQUEST, WIRE_FD__REQUEST), 0,
	    "start with its descriptors, close-on-exec");
	is_int(with_fds(WIRE_START, WIRE_FD__REQUEST - 1, WIRE_FD__REQUEST),
	    ERR_BAD_REQUEST, "one descriptor too few");
	is_int(with_fds(WIRE_START, WIRE_FD__REQUEST + 1, WIRE_FD__MAX),
	    ERR_BAD_REQUEST, "one too many");
	is_int(with_fds(WIRE_KILL, 1, WIRE_FD__REQUEST), ERR_BAD_REQUEST,
	    "a kill with a descriptor");
	is_int(with_fds(WIRE_START, WIRE_FD__REQUEST, 0), ERR_BAD_REQUEST,
	    "descriptors that are not wanted");
	is_int(fds_open(), before, "no descriptor is left behind");
	w.status = -7;
	ok(wire_send(ends[0], &w, NULL, 0) == NULL &&
		wire_recv(ends[1], &got, NULL, 0) == NULL &&
		memcmp(&w, &got, sizeof(w)) == 0,
	    "a message arrives as it was");
	(void)close(ends[0]);
	ok(wire_recv(ends[1], &got, NULL, 0)->code == ERR_NOTFOUND,
	    "the end is told apart");
	ok(wire_send(ends[1], &w, NULL, 0) != NULL,
	    "a send into the void is an error, not a signal");
	return tap_done();
}
