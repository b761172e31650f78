/* SPDX-License-Identifier: ISC */
#include "api/listen.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <string.h>
#include <unistd.h>

#include "core/num.h"
#include "core/str.h"

#define BACKLOG 511
#define FIRST_FD 3 /* the first descriptor that systemd passes */

static const char *const pool_names[POOL__MAX] = {
	[POOL_API] = "api",
	[POOL_SLOW] = "slow",
	[POOL_LOG] = "log",
};

void
listen_workers(struct listen_set *set, const struct settings *s)
{
	set->workers[POOL_API] = s->api.workers;
	set->workers[POOL_SLOW] = s->api.slow_workers;
	set->workers[POOL_LOG] = s->api.log_workers;
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
take(int fd, int *out)
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
			    "socket %lld must be named api, slow or log "
			    "(FileDescriptorName=), and each name is allowed "
			    "once",
			    (long long)i + 1);
		if ((e = take(FIRST_FD + (int)i, &out->fd[pool])) != NULL)
			return e;
		if (names != NULL)
			names += len + (names[len] == ':');
	}
	if (out->fd[POOL_API] == -1)
		return err_public(ERR_CONFIG, "no socket is named api");
	return NULL;
}

/* Removes the socket of an earlier process, unless a process still serves
 * it. */
static const struct err *
stale_remove(const struct sockaddr_un *sun, int fd)
{
	struct stat st;

	if (lstat(sun->sun_path, &st) == -1)
		return errno == ENOENT ? NULL : err_errno("%s", sun->sun_path);
	if (!S_ISSOCK(st.st_mode))
		return err_public(ERR_CONFIG, "%s exists and is not a socket",
		    sun->sun_path);
	if (connect(fd, (const struct sockaddr *)sun, sizeof(*sun)) == 0 ||
	    errno == EAGAIN)
		return err_public(ERR_CONFIG,
		    "%s: another process serves this socket", sun->sun_path);
	if (unlink(sun->sun_path) == -1 && errno != ENOENT)
		return err_errno("%s", sun->sun_path);
	return NULL;
}

static const struct err *
owner_set(const char *path, const struct settings *s)
{
	const struct group *gr;

	if (s->api.socket_group != NULL) {
		if ((gr = getgrnam(s->api.socket_group)) == NULL)
			return err_public(ERR_CONFIG,
			    "api.socket_group: unknown group %s",
			    s->api.socket_group);
		if (chown(path, (uid_t)-1, gr->gr_gid) == -1)
			return err_errno("%s: group %s", path,
			    s->api.socket_group);
	}
	if (chmod(path, (mode_t)s->api.socket_mode) == -1)
		return err_errno("%s", path);
	return NULL;
}

static const struct err *
socket_bind(const struct settings *s, const char *path, int *out)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	const struct err *e;
	mode_t mask;
	int fd = -1, probe = -1, rc;

	*out = -1;
	if (strlen(path) >= sizeof(sun.sun_path))
		return err_public(ERR_CONFIG, "%s is longer than %zu bytes",
		    path, sizeof(sun.sun_path) - 1);
	(void)memcpy(sun.sun_path, path, strlen(path) + 1);
	probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (probe == -1 || fd == -1) {
		e = err_errno("socket");
		goto out;
	}
	if ((e = stale_remove(&sun, probe)) != NULL)
		goto out;
	mask = umask(0177);
	rc = bind(fd, (const struct sockaddr *)&sun, sizeof(sun));
	(void)umask(mask);
	if (rc == -1) {
		e = err_errno("%s", path);
		goto out;
	}
	if ((e = owner_set(path, s)) != NULL)
		goto out;
	if (listen(fd, BACKLOG) == -1) {
		e = err_errno("%s", path);
		goto out;
	}
	*out = fd;
	fd = -1;
out:
	if (fd != -1)
		(void)close(fd);
	if (probe != -1)
		(void)close(probe);
	return e;
}

const struct err *
listen_open(const struct settings *s, struct listen_set *out)
{
	const char *const paths[POOL__MAX] = {
		[POOL_API] = s->api.socket,
		[POOL_SLOW] = s->api.slow_socket,
		[POOL_LOG] = s->api.log_socket,
	};
	const struct err *e;
	bool named;
	int pool;

	(void)memset(out, 0, sizeof(*out));
	for (pool = 0; pool < POOL__MAX; pool++)
		out->fd[pool] = -1;
	listen_workers(out, s);
	if (is_listening(STDIN_FILENO))
		return take(STDIN_FILENO, &out->fd[POOL_API]);
	if ((e = take_named(out, &named)) != NULL || named)
		return e;
	for (pool = 0; pool < POOL__MAX; pool++) {
		if (out->workers[pool] == 0)
			continue;
		if ((e = socket_bind(s, paths[pool], &out->fd[pool])) != NULL)
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
