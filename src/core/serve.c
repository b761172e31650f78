/* SPDX-License-Identifier: ISC */
#include "core/serve.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "core/log.h"

#define BACKLOG 4096 /* the kernel limits it to net.core.somaxconn */
#define CONF_MAX ((size_t)4 << 20)

static int
usage(const struct serve *s)
{
	(void)fprintf(stderr, "usage: %s [-fnV] [-c file]\n", s->program);
	return EX_USAGE;
}

int
serve_options(struct serve *s, int argc, char **argv)
{
	int opt;

	s->conf = SLIPWAY_CONF;
	while ((opt = getopt(argc, argv, "c:fnV")) != -1)
		switch (opt) {
		case 'c':
			s->conf = optarg;
			break;
		case 'f': /* it always runs in the foreground */
			break;
		case 'n':
			s->check = true;
			break;
		case 'V':
			(void)printf("%s " SLIPWAY_VERSION "\n", s->program);
			return EX_OK;
		default:
			return usage(s);
		}
	return optind == argc ? -1 : usage(s);
}

const struct err *
serve_configure(const struct serve *s, struct arena **a, struct settings **out)
{
	*a = arena_open(CONF_MAX);
	*out = arena_alloc(*a, 1, sizeof(**out));
	return conf_read(*a, settings_keys, s->conf, 0, *out);
}

void
serve_log(const struct serve *s, const struct settings *settings)
{
	log_init(s->program,
	    (settings->log.syslog ? (unsigned)LOG_TO_SYSLOG : 0) |
		(settings->log.debug ? (unsigned)LOG_DEBUGGING : 0));
}

static bool
address_set(const char *path, struct sockaddr_un *out)
{
	*out = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (strlen(path) >= sizeof(out->sun_path))
		return false;
	(void)memcpy(out->sun_path, path, strlen(path) + 1);
	return true;
}

int
serve_try(const char *path)
{
	struct sockaddr_un sun;
	int fd, rc = 0;

	if (!address_set(path, &sun))
		return ENAMETOOLONG;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd == -1)
		return errno;
	/* EAGAIN: its queue of connections is full */
	if (connect(fd, (const struct sockaddr *)&sun, sizeof(sun)) == -1 &&
	    errno != EAGAIN)
		rc = errno;
	(void)close(fd);
	return rc;
}

/* Removes the socket of an earlier process, unless a process still serves
 * it. */
static const struct err *
stale_remove(const struct sockaddr_un *sun)
{
	struct stat st;

	if (lstat(sun->sun_path, &st) == -1)
		return errno == ENOENT ? NULL : err_errno("%s", sun->sun_path);
	if (!S_ISSOCK(st.st_mode))
		return err_public(ERR_CONFIG, "%s exists and is not a socket",
		    sun->sun_path);
	if (serve_try(sun->sun_path) == 0)
		return err_public(ERR_CONFIG,
		    "%s: another process serves this socket", sun->sun_path);
	if (unlink(sun->sun_path) == -1 && errno != ENOENT)
		return err_errno("%s", sun->sun_path);
	return NULL;
}

/* An unknown account is reported later. */
static const struct err *
owner_set(const char *path, mode_t mode, const char *group, const char *user)
{
	const struct passwd *pw;
	const struct group *gr;

	if (user != NULL && geteuid() == 0 && (pw = getpwnam(user)) != NULL &&
	    chown(path, pw->pw_uid, (gid_t)-1) == -1)
		return err_errno("%s: owner %s", path, user);
	if (group != NULL) {
		if ((gr = getgrnam(group)) == NULL)
			return err_public(ERR_CONFIG,
			    "api.socket_group: unknown group %s", group);
		if (chown(path, (uid_t)-1, gr->gr_gid) == -1)
			return err_errno("%s: group %s", path, group);
	}
	if (chmod(path, mode) == -1)
		return err_errno("%s", path);
	return NULL;
}

const struct err *
serve_listen(const char *path, mode_t mode, const char *group, const char *user,
    int *out)
{
	struct sockaddr_un sun;
	const struct err *e;
	mode_t mask;
	int fd, rc;

	*out = -1;
	if (!address_set(path, &sun))
		return err_public(ERR_CONFIG, "%s is longer than %zu bytes",
		    path, sizeof(sun.sun_path) - 1);
	if ((e = stale_remove(&sun)) != NULL)
		return e;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd == -1)
		return err_errno("socket");
	mask = umask(0177);
	rc = bind(fd, (const struct sockaddr *)&sun, sizeof(sun));
	(void)umask(mask);
	if (rc == -1) {
		e = err_errno("%s", path);
		goto out;
	}
	if ((e = owner_set(path, mode, group, user)) != NULL)
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
	return e;
}

const struct err *
serve_as(const char *user)
{
	const struct passwd *pw;

	if (geteuid() != 0)
		return NULL;
	if (user == NULL)
		return err_public(ERR_CONFIG,
		    "api.user is not set; set it to an account, or to root to "
		    "run as root");
	if ((pw = getpwnam(user)) == NULL)
		return err_public(ERR_CONFIG, "api.user: unknown account %s",
		    user);
	if (pw->pw_uid == 0) {
		log_warn("running as root, because api.user is root");
		return NULL;
	}
	if (initgroups(pw->pw_name, pw->pw_gid) == -1 ||
	    setresgid(pw->pw_gid, pw->pw_gid, pw->pw_gid) == -1 ||
	    setresuid(pw->pw_uid, pw->pw_uid, pw->pw_uid) == -1)
		return err_errno("api.user: %s", user);
	if (setuid(0) == 0 || geteuid() != pw->pw_uid)
		return err_new(ERR_INTERNAL, "cannot drop privileges");
	return NULL;
}
