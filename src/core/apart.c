/* SPDX-License-Identifier: ISC */
#include "core/apart.h"

#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/str.h"

#define PRIVATE ".slipway-tmp"
#define ROOT "/proc/fs" /* a directory of every kernel */
#define SHM "/dev/shm"
#define MQUEUE "/dev/mqueue"

static const struct {
	const char *path;
	const char *name; /* below the home directory */
} hidden[] = {
	{ "/tmp", PRIVATE "/tmp" },
	{ "/var/tmp", PRIVATE "/var-tmp" },
};
#define HIDDEN (sizeof(hidden) / sizeof(hidden[0]))

static bool
is_dir(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* An mqueue mount shows the message queues of the IPC namespace it was mounted
 * in, so a new mount hides the host's. */
static const struct err *
ipc_mount(void)
{
	if (is_dir(SHM) &&
	    mount("tmpfs", SHM, "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") ==
		-1)
		return err_errno("mount " SHM);
	if (is_dir(MQUEUE) &&
	    mount("mqueue", MQUEUE, "mqueue", MS_NOSUID | MS_NODEV, NULL) == -1)
		return err_errno("mount " MQUEUE);
	return NULL;
}

/* Where the root directory is not a mount, as in a chroot: makes it one, by a
 * copy of it and of all mounts in it. A mount over the root itself could reach the
 * host, because nobody can tell how the mount that contains it is shared; one
 * below /proc, which is a mount of its own, cannot. */
static const struct err *
root_make(void)
{
	if (mount(NULL, "/proc", NULL, MS_PRIVATE, NULL) == -1)
		return err_errno("mount --make-private /proc");
	if (mount("/", ROOT, NULL, MS_BIND | MS_REC, NULL) == -1)
		return err_errno("mount --rbind / " ROOT);
	if (mount(NULL, ROOT, NULL, MS_REC | MS_SLAVE, NULL) == -1)
		return err_errno("mount --make-rslave " ROOT);
	if (chroot(ROOT) == -1 || chdir("/") == -1)
		return err_errno("chroot " ROOT);
	return NULL;
}

/* From now on our mounts do not reach the host; the host's still reach us. */
static const struct err *
mounts_separate(void)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) == 0)
		return NULL;
	return errno == EINVAL ? root_make() :
				 err_errno("mount --make-rslave /");
}

const struct err *
apart_enter(unsigned what)
{
	const struct err *e;
	int flags = CLONE_NEWNS;

	if ((what & APART_IPC) != 0)
		flags |= CLONE_NEWIPC;
	if (unshare(flags) == -1)
		return err_errno("unshare");
	if ((e = mounts_separate()) != NULL)
		return e;
	return (what & APART_IPC) != 0 ? ipc_mount() : NULL;
}

bool
apart_has_own(unsigned what, const char *path)
{
	const char *const shared[] = { SHM, MQUEUE };
	size_t i;

	for (i = 0; (what & APART_IPC) != 0 && i < 2; i++)
		if (strcmp(path, shared[i]) == 0)
			return is_dir(path);
	for (i = 0; (what & APART_TMP) != 0 && i < HIDDEN; i++)
		if (strcmp(path, hidden[i].path) == 0)
			return is_dir(path);
	return false;
}

const char *
apart_scratch(unsigned what, const char *home)
{
	return apart_has_own(what, SHM) ? SHM : home;
}

/* Works by descriptor, because other processes may run under the account that
 * owns the home directory. */
static const struct err *
tmp_mount(int home, size_t i, uid_t uid, gid_t gid)
{
	const struct err *e = NULL;
	struct stat st;
	char path[64];
	int fd;

	if (!is_dir(hidden[i].path))
		return NULL;
	if (mkdirat(home, hidden[i].name, 0700) == -1)
		return err_errno("create %s", hidden[i].name);
	fd = openat(home, hidden[i].name,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1)
		return err_errno("open %s", hidden[i].name);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fstat(fd, &st) == -1 || st.st_uid != geteuid())
		e = err_new(ERR_INTERNAL, "%s has another owner",
		    hidden[i].name);
	else if (fchown(fd, uid, gid) == -1 || fchmod(fd, 01777) == -1)
		e = err_errno("%s", hidden[i].name);
	else if (mount(path, hidden[i].path, NULL, MS_BIND, NULL) == -1)
		e = err_errno("mount %s", hidden[i].path);
	(void)close(fd);
	return e;
}

const struct err *
apart_tmp(int home, uid_t uid, gid_t gid)
{
	const struct err *e = NULL;
	size_t i;
	int fd;

	/* owned by root until everything is in place, so that no process can
	 * replace it */
	if (mkdirat(home, PRIVATE, 0700) == -1)
		return err_errno("create " PRIVATE);
	for (i = 0; e == NULL && i < HIDDEN; i++)
		e = tmp_mount(home, i, uid, gid);
	fd = openat(home, PRIVATE,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1 || fchown(fd, uid, gid) == -1)
		e = e != NULL ? e : err_errno(PRIVATE);
	if (fd != -1)
		(void)close(fd);
	return e;
}

const struct err *
apart_hide(const char *path)
{
	if (mount("tmpfs", path, "tmpfs",
		MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
		"mode=0555") == -1)
		return err_errno("mount an empty directory on %s", path);
	return NULL;
}

void
apart_tmp_remove(int home)
{
	const int fd = openat(home, PRIVATE,
	    O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	size_t i;

	if (fd == -1)
		return;
	for (i = 0; i < HIDDEN; i++)
		(void)unlinkat(fd, hidden[i].name + sizeof(PRIVATE),
		    AT_REMOVEDIR);
	(void)close(fd);
	(void)unlinkat(home, PRIVATE, AT_REMOVEDIR);
}

static bool
is_possible(unsigned what)
{
	int status = 1;
	pid_t pid;

	if ((pid = fork()) == -1)
		return false;
	if (pid == 0)
		_exit(apart_enter(what) == NULL ? 0 : 1);
	while (waitpid(pid, &status, 0) == -1)
		if (errno != EINTR)
			return false;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

unsigned
apart_possible(void)
{
	if (!is_possible(APART_MOUNTS))
		return 0;
	if (!is_possible(APART_MOUNTS | APART_IPC))
		return APART_MOUNTS | APART_TMP;
	return APART_MOUNTS | APART_IPC | APART_TMP;
}

bool
apart_hides(const char *path)
{
	size_t i;

	for (i = 0; i < HIDDEN; i++)
		if (str_starts(path, hidden[i].path) &&
		    (path[strlen(hidden[i].path)] == '/' ||
			path[strlen(hidden[i].path)] == '\0'))
			return true;
	return false;
}
