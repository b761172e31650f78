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

/* Sends raw bytes; returns the result of the receiver. */
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
	is_int(raw(&w, sizeof(w) - 1), ERR_BAD_REQUEST,
	    "a message that is one byte short is rejected");
	(void)memcpy(large, &w, sizeof(w));
	is_int(raw(large, sizeof(large)), ERR_BAD_REQUEST,
	    "a message that is one byte long is rejected");
	is_int(raw("x", 1), ERR_BAD_REQUEST, "a single byte is rejected");
	w.magic++;
	is_int(raw(&w, sizeof(w)), ERR_BAD_REQUEST,
	    "a message with another magic is rejected");
	w = message(0);
	is_int(raw(&w, sizeof(w)), ERR_BAD_REQUEST,
	    "a message of type 0 is rejected");
	for (type = WIRE__MAX; type != 0; type <<= 1) {
		w = message(type);
		if (raw(&w, sizeof(w)) != ERR_BAD_REQUEST)
			break;
	}
	is_int(type, 0, "messages of unknown types are rejected");
	w = message(WIRE_KILL);
	(void)memset(w.dir, 'a', sizeof(w.dir));
	is_int(raw(&w, sizeof(w)), ERR_BAD_REQUEST,
	    "a directory without a NUL is rejected");
	w = message(WIRE_KILL);
	w.dir[WIRE_DIR - 1] = 'x';
	is_int(raw(&w, sizeof(w)), ERR_BAD_REQUEST,
	    "bytes after the directory are rejected");
	w = message(WIRE_START);
	is_int(raw(&w, sizeof(w)), ERR_BAD_REQUEST,
	    "a start without descriptors is rejected");
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
	    "a start is received with its descriptors, close-on-exec");
	is_int(with_fds(WIRE_START, WIRE_FD__REQUEST - 1, WIRE_FD__REQUEST),
	    ERR_BAD_REQUEST, "a start with too few descriptors is rejected");
	is_int(with_fds(WIRE_START, WIRE_FD__REQUEST + 1, WIRE_FD__MAX),
	    ERR_BAD_REQUEST, "a start with too many descriptors is rejected");
	is_int(with_fds(WIRE_KILL, 1, WIRE_FD__REQUEST), ERR_BAD_REQUEST,
	    "a kill with a descriptor is rejected");
	is_int(with_fds(WIRE_START, WIRE_FD__REQUEST, 0), ERR_BAD_REQUEST,
	    "unwanted descriptors are rejected");
	is_int(fds_open(), before, "no descriptor is leaked");
	w.status = -7;
	ok(wire_send(ends[0], &w, NULL, 0) == NULL &&
		wire_recv(ends[1], &got, NULL, 0) == NULL &&
		memcmp(&w, &got, sizeof(w)) == 0,
	    "a message is received as it was sent");
	(void)close(ends[0]);
	ok(wire_recv(ends[1], &got, NULL, 0)->code == ERR_NOTFOUND,
	    "the end of the connection is recognized");
	ok(wire_send(ends[1], &w, NULL, 0) != NULL,
	    "a send to a closed connection is an error, not a signal");
	return tap_done();
}
