/* SPDX-License-Identifier: ISC */
#include "spool/wire.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* More than any valid message has, so that surplus descriptors are detected and
 * closed. */
#define FDS_MAX 16

union control {
	char space[CMSG_SPACE(FDS_MAX * sizeof(int))];
	struct cmsghdr align;
};

const struct err *
wire_send(int fd, const struct wire *message, const int *fds, size_t nfds)
{
	struct wire copy = *message;
	union control control;
	struct iovec iov = { .iov_base = &copy, .iov_len = sizeof(copy) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *head;
	ssize_t sent;

	if (nfds > FDS_MAX)
		return err_new(ERR_BAD_REQUEST, "%zu descriptors", nfds);
	if (nfds > 0) {
		(void)memset(&control, 0, sizeof(control));
		msg.msg_control = control.space;
		msg.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		head = CMSG_FIRSTHDR(&msg);
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		(void)memcpy(CMSG_DATA(head), fds, nfds * sizeof(int));
	}
	do
		sent = sendmsg(fd, &msg, MSG_NOSIGNAL);
	while (sent == -1 && errno == EINTR);
	if (sent == -1)
		return err_errno("send a message");
	if ((size_t)sent != sizeof(copy))
		return err_new(ERR_INTERNAL,
		    "sent a truncated message of %zd bytes", sent);
	return NULL;
}

/* Moves the descriptors of a message into fds[FDS_MAX]. */
static size_t
fds_take(struct msghdr *msg, int *fds)
{
	struct cmsghdr *head;
	size_t n = 0, more, i;
	int fd;

	for (head = CMSG_FIRSTHDR(msg); head != NULL;
	     head = CMSG_NXTHDR(msg, head)) {
		if (head->cmsg_level != SOL_SOCKET ||
		    head->cmsg_type != SCM_RIGHTS)
			continue;
		more = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (i = 0; i < more; i++) {
			(void)memcpy(&fd, CMSG_DATA(head) + i * sizeof(int),
			    sizeof(int));
			if (n < FDS_MAX)
				fds[n++] = fd;
			else
				(void)close(fd);
		}
	}
	return n;
}

static const char *
message_fault(const struct wire *message, size_t len, int flags, size_t nfds)
{
	const char *end;
	size_t want;

	if (len != sizeof(*message) || (flags & MSG_TRUNC) != 0)
		return "its size";
	if ((flags & MSG_CTRUNC) != 0)
		return "too many descriptors";
	if (message->magic != WIRE_MAGIC)
		return "its magic";
	if (message->type < WIRE_START || message->type >= WIRE__MAX)
		return "its type";
	end = memchr(message->dir, '\0', sizeof(message->dir));
	if (end == NULL)
		return "the directory is not terminated";
	for (; end < message->dir + sizeof(message->dir); end++)
		if (*end != '\0')
			return "bytes after the directory";
	want = message->type == WIRE_START ? WIRE_FD__REQUEST : 0;
	if (nfds != want)
		return "the number of descriptors";
	return NULL;
}

const struct err *
wire_recv(int fd, struct wire *out, int *fds, size_t nfds)
{
	union control control;
	struct iovec iov = { .iov_base = out, .iov_len = sizeof(*out) };
	struct msghdr msg = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof(control.space) };
	int got[FDS_MAX];
	const char *what;
	size_t n, i;
	ssize_t len;

	(void)memset(out, 0, sizeof(*out));
	for (i = 0; i < nfds; i++)
		fds[i] = -1;
	do
		len = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	while (len == -1 && errno == EINTR);
	if (len == -1)
		return err_errno("receive a message");
	n = fds_take(&msg, got);
	if (len == 0 && n == 0)
		return err_new(ERR_NOTFOUND,
		    "the other side has closed the connection");
	what = message_fault(out, (size_t)len, msg.msg_flags, n);
	if (what == NULL && n > nfds)
		what = "the number of descriptors";
	if (what != NULL) {
		for (i = 0; i < n; i++)
			(void)close(got[i]);
		(void)memset(out, 0, sizeof(*out));
		return err_new(ERR_BAD_REQUEST, "malformed message: %s", what);
	}
	for (i = 0; i < n; i++)
		fds[i] = got[i];
	return NULL;
}
