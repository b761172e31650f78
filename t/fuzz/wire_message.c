/* SPDX-License-Identifier: ISC */
/* A message from the unprivileged side, as the monitor receives it: the first
 * byte is the number of descriptors that come with it. */
#include <sys/socket.h>
#include <sys/uio.h>

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"
#include "spool/wire.h"

#define FDS_MAX 20

static void
put(int fd, const uint8_t *data, size_t len, size_t nfds)
{
	union {
		char space[CMSG_SPACE(FDS_MAX * sizeof(int))];
		struct cmsghdr align;
	} control;
	char copy[4096];
	struct iovec iov = { .iov_base = copy, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *head;
	size_t i;

	(void)memset(&control, 0, sizeof(control));
	if (len > 0)
		(void)memcpy(copy, data, len);
	if (nfds > 0) {
		msg.msg_control = control.space;
		msg.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		head = CMSG_FIRSTHDR(&msg);
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		for (i = 0; i < nfds; i++)
			(void)memcpy(CMSG_DATA(head) + i * sizeof(int), &fd,
			    sizeof(int));
	}
	MUST(sendmsg(fd, &msg, MSG_NOSIGNAL) == (ssize_t)len);
}

/* The lowest free descriptor, which shows whether some were kept. */
static int
lowest(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)close(fd);
	return fd;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	int ends[2], fds[WIRE_FD__REQUEST], before, i, n = 0;
	const struct err *e;
	struct wire w;

	if (len < 2 || len > 4096)
		return 0;
	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
	before = lowest();
	put(ends[0], data + 1, len - 1, data[0] % (FDS_MAX + 1));
	e = wire_recv(ends[1], &w, fds, WIRE_FD__REQUEST);
	MUST(e == NULL || e->code == ERR_BAD_REQUEST);
	for (i = 0; i < WIRE_FD__REQUEST; i++)
		if (fds[i] != -1) {
			n++;
			(void)close(fds[i]);
		}
	MUST(e == NULL || n == 0);
	if (e == NULL) {
		MUST(w.magic == WIRE_MAGIC && w.type >= WIRE_START &&
		    w.type < WIRE__MAX);
		MUST(memchr(w.dir, '\0', sizeof(w.dir)) != NULL);
		MUST(n == (w.type == WIRE_START ? WIRE_FD__REQUEST : 0));
	}
	MUST(lowest() == before);
	(void)close(ends[0]);
	(void)close(ends[1]);
	return 0;
}
