/* SPDX-License-Identifier: ISC */
#include "web/listen.h"

#include <sys/socket.h>

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "core/num.h"
#include "core/serve.h"

#define FIRST_FD 3 /* the first descriptor that systemd passes */

static const char *const pool_names[POOL__MAX] = {
	[POOL_API] = "api",
	[POOL_SLOW] = "slow",
};

void
listen_workers(struct listen_set *set, const struct settings *s)
{
	set->workers[POOL_API] = s->api.workers;
	set->workers[POOL_SLOW] = s->api.slow_workers;
}

static bool
is_listening(int fd)
{
	int yes = 0;
	socklen_t len = sizeof(yes);

	return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &yes, &len) == 0 &&
	    yes != 0;
}

static const struct err *
socket_take(int fd, int *out)
{
	int flags, copy;

	if (!is_listening(fd))
		return err_public(ERR_CONFIG,
		    "file descriptor %d is not a listening socket", fd);
	if ((copy = fcntl(fd, F_DUPFD_CLOEXEC, 10)) == -1 ||
	    (flags = fcntl(copy, F_GETFL)) == -1 ||
	    fcntl(copy, F_SETFL, flags | O_NONBLOCK) == -1)
		return err_errno("file descriptor %d", fd);
	(void)close(fd);
	*out = copy;
	return NULL;
}

/* Takes descriptors 3, 4, … by their names; *any is set if there are any. */
static const struct err *
take_named(struct listen_set *out, bool *any)
{
	const char *fds = getenv("LISTEN_FDS"), *pid = getenv("LISTEN_PID");
	const char *names = getenv("LISTEN_FDNAMES");
	const struct err *e;
	int64_t n, owner, i;
	size_t len;
	int pool;

	*any = false;
	if (fds == NULL || pid == NULL || !num_parse(fds, 1, POOL__MAX, &n) ||
	    !num_parse(pid, 1, INT32_MAX, &owner) || owner != getpid())
		return NULL;
	*any = true;
	for (i = 0; i < n; i++) {
		len = names == NULL ? 0 : strcspn(names, ":");
		for (pool = 0; pool < POOL__MAX; pool++)
			if (len == strlen(pool_names[pool]) &&
			    strncmp(names, pool_names[pool], len) == 0)
				break;
		if (n == 1)
			pool = POOL_API;
		if (pool == POOL__MAX || out->fd[pool] != -1)
			return err_public(ERR_CONFIG,
			    "socket %lld must be named api or slow "
			    "(FileDescriptorName=), and each name is allowed "
			    "once",
			    (long long)i + 1);
		if ((e = socket_take(FIRST_FD + (int)i, &out->fd[pool])) !=
		    NULL)
			return e;
		if (names != NULL)
			names += len + (names[len] == ':');
	}
	return NULL;
}

const struct err *
listen_open(const struct settings *s, struct listen_set *out)
{
	const char *const paths[POOL__MAX] = {
		[POOL_API] = s->api.socket,
		[POOL_SLOW] = s->api.slow_socket,
	};
	const struct err *e;
	bool named;
	int pool;

	(void)memset(out, 0, sizeof(*out));
	for (pool = 0; pool < POOL__MAX; pool++)
		out->fd[pool] = -1;
	listen_workers(out, s);
	if (is_listening(STDIN_FILENO))
		return socket_take(STDIN_FILENO, &out->fd[POOL_API]);
	if ((e = take_named(out, &named)) != NULL || named)
		return e;
	for (pool = 0; pool < POOL__MAX; pool++) {
		if (out->workers[pool] == 0)
			continue;
		e = serve_listen(paths[pool], (mode_t)s->api.socket_mode,
		    s->api.socket_group, NULL, &out->fd[pool]);
		if (e != NULL)
			return e;
		out->path[pool] = paths[pool];
	}
	return NULL;
}

void
listen_stop(const struct listen_set *set)
{
	int pool;

	for (pool = 0; pool < POOL__MAX; pool++) {
		if (set->path[pool] == NULL)
			continue;
		(void)shutdown(set->fd[pool], SHUT_RD);
		(void)unlink(set->path[pool]);
	}
}
