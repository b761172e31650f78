/* SPDX-License-Identifier: ISC */
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "core/log.h"
#include "core/num.h"
#include "core/str.h"
#include "dispatch/dispatch.h"

#define PATH_SIZE 320 /* a name of readdir(3) and a file in it */
#define DIR_SIZE 64
#define STALE 600 /* seconds; what is younger may be in the making */
#define BOOT_ID "/proc/sys/kernel/random/boot_id"
#define DEAD_MAX 256
#define RESULT_ROOM (128 << 10) /* more than the records of most jobs need */

/* All that a directory holds. */
static const char *const files[] = { "log", "result", "lock", "control",
	"keeper" };
#define NFILES (sizeof(files) / sizeof(files[0]))

static void
path_make(char out[PATH_SIZE], const char *dir, const char *file)
{
	(void)snprintf(out, PATH_SIZE, "%s/%s", dir, file);
}

/* "-" where the kernel does not say: then nothing is of this boot. */
static void
boot_read(char out[BOOT_SIZE])
{
	struct buf text;
	size_t len;

	buf_init(&text, BOOT_SIZE);
	(void)memcpy(out, "-", 2);
	if (file_load(BOOT_ID, &text) == NULL && text.len > 1) {
		len = strcspn(text.data, " \n");
		(void)memcpy(out, text.data, len);
		out[len] = '\0';
	}
	buf_release(&text);
}

static bool
is_boot(const struct dispatch *d, const char *text)
{
	return d->boot[0] != '-' && strcmp(d->boot, text) == 0;
}

static const struct err *
file_put(int fd, const char *data, size_t len)
{
	const struct err *e;

	if ((e = file_store(fd, data, len)) != NULL)
		return err_wrap(e, "spool");
	if (fsync(fd) == -1)
		return err_errno("sync the spool");
	return NULL;
}

/* Nobody sees it but locked. */
static const struct err *
owner_make(struct dispatch *d)
{
	char name[DIR_SIZE], making[DIR_SIZE];
	const struct err *e;

	(void)snprintf(name, sizeof(name), "owner.%s", d->owner);
	(void)snprintf(making, sizeof(making), "making.%s", d->owner);
	d->owner_fd = openat(d->spool, making,
	    O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (d->owner_fd == -1 || flock(d->owner_fd, LOCK_EX | LOCK_NB) == -1)
		return err_errno("spool: %s", making);
	if ((e = file_put(d->owner_fd, d->boot, strlen(d->boot))) != NULL)
		return err_wrap(e, "%s", making);
	/* it tells after a crash of the machine what this one had held */
	if (renameat(d->spool, making, d->spool, name) == -1 ||
	    fsync(d->spool) == -1)
		return err_errno("spool: %s", name);
	return NULL;
}

const struct err *
spool_open(struct dispatch *d)
{
	const char *path = d->settings.runner.spool;
	if (mkdir(path, 0700) == -1 && errno != EEXIST)
		return err_errno("%s: make the spool", path);
	d->spool = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d->spool == -1)
		return err_errno("%s: open the spool", path);
	boot_read(d->boot);
	return owner_make(d);
}

void
spool_close(struct dispatch *d)
{
	char name[DIR_SIZE];

	(void)snprintf(name, sizeof(name), "owner.%s", d->owner);
	/* who comes next puts back what may be held without a directory */
	if (d->owner_fd != -1 && !d->database.is_doubtful)
		(void)unlinkat(d->spool, name, 0);
	(void)close(d->owner_fd);
	(void)close(d->spool);
	d->owner_fd = d->spool = -1;
}

/* Empties and removes a directory of ours. */
static void
dir_remove(const struct dispatch *d, const char *name)
{
	char path[PATH_SIZE];
	size_t i;

	for (i = 0; i < NFILES; i++) {
		path_make(path, name, files[i]);
		if (unlinkat(d->spool, path, 0) == -1 && errno != ENOENT)
			log_fault(err_errno("remove from the spool"), path);
	}
	if (unlinkat(d->spool, name, AT_REMOVEDIR) == -1 && errno != ENOENT)
		log_fault(err_errno("remove from the spool"), name);
}

/* -1 with errno. */
static int
file_make(const struct dispatch *d, const char *dir, const char *file,
    int flags)
{
	char path[PATH_SIZE];

	path_make(path, dir, file);
	return openat(d->spool, path,
	    flags | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
}

static const struct err *
keeper_make(const struct dispatch *d, struct task *t, const char *dir)
{
	char text[WIRE_DIR + BOOT_SIZE + 32];
	int len;

	t->keeper = file_make(d, dir, "keeper", O_RDWR);
	if (t->keeper == -1 || flock(t->keeper, LOCK_EX | LOCK_NB) == -1)
		return err_errno("spool: %s/keeper", dir);
	len = snprintf(text, sizeof(text), "%lld %s %s\n",
	    (long long)t->project, d->boot, t->dir);
	return file_put(t->keeper, text, (size_t)len);
}

/* How a deployment ended is known even if its log fills the disk. */
static const struct err *
result_make(const struct dispatch *d, const char *dir, int *out)
{
	*out = file_make(d, dir, "result", O_WRONLY | O_APPEND);
	if (*out == -1)
		return err_errno("spool: %s/result", dir);
	if (fallocate(*out, FALLOC_FL_KEEP_SIZE, 0, RESULT_ROOM) == -1 &&
	    (errno == ENOSPC || errno == EDQUOT))
		return err_errno("spool: room for %s/result", dir);
	return NULL;
}

/* The files in a directory whose name nobody looks for yet. */
static const struct err *
dir_fill(const struct dispatch *d, struct task *t, const char *dir,
    const struct buf *description, int *fds)
{
	const struct err *e;
	char path[PATH_SIZE];

	if ((e = keeper_make(d, t, dir)) != NULL)
		return e;
	/* it holds secrets: no disk has it */
	fds[WIRE_FD_JOB] = memfd_create("job", MFD_CLOEXEC);
	if (fds[WIRE_FD_JOB] == -1)
		return err_errno("spool: %s: its description", dir);
	if ((e = file_store(fds[WIRE_FD_JOB], description->data,
		 description->len)) != NULL)
		return e;
	fds[WIRE_FD_LOG] = file_make(d, dir, "log", O_WRONLY | O_APPEND);
	if ((e = result_make(d, dir, &fds[WIRE_FD_RESULT])) != NULL)
		return e;
	fds[WIRE_FD_LOCK] = file_make(d, dir, "lock", O_RDWR);
	path_make(path, dir, "control");
	if (fds[WIRE_FD_LOG] == -1 || fds[WIRE_FD_LOCK] == -1 ||
	    mkfifoat(d->spool, path, 0600) == -1)
		return err_errno("spool: %s", dir);
	fds[WIRE_FD_CONTROL] = openat(d->spool, path,
	    O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fds[WIRE_FD_CONTROL] == -1)
		return err_errno("spool: %s", path);
	return NULL;
}

/* The files that are followed, by their descriptors of our own. */
static const struct err *
files_open(const struct dispatch *d, struct task *t)
{
	char path[PATH_SIZE];

	path_make(path, t->name, "log");
	t->log = openat(d->spool, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	path_make(path, t->name, "result");
	t->result = openat(d->spool, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	path_make(path, t->name, "lock");
	t->lock = openat(d->spool, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (t->log == -1 || t->result == -1 || t->lock == -1)
		return err_errno("spool: %s", t->name);
	return NULL;
}

const struct err *
spool_make(struct dispatch *d, struct task *t, const struct buf *description,
    int fds[WIRE_FD__REQUEST])
{
	const struct err *e;
	char dir[DIR_SIZE];
	size_t i;

	for (i = 0; i < WIRE_FD__REQUEST; i++)
		fds[i] = -1;
	(void)snprintf(dir, sizeof(dir), "new.%s", t->name);
	if (mkdirat(d->spool, dir, 0700) == -1)
		return err_errno("spool: %s", dir);
	if ((e = dir_fill(d, t, dir, description, fds)) != NULL)
		goto fail;
	if (renameat(d->spool, dir, d->spool, t->name) == -1) {
		e = err_errno("spool: %s", t->name);
		goto fail;
	}
	if ((e = files_open(d, t)) == NULL)
		return NULL;
	spool_remove(d, t);
fail:
	for (i = 0; i < WIRE_FD__REQUEST; i++) {
		(void)close(fds[i]);
		fds[i] = -1;
	}
	dir_remove(d, dir);
	return e;
}

const struct err *
spool_cancel(const struct dispatch *d, const struct task *t)
{
	const struct err *e = NULL;
	const char line[] = "cancel\n";
	char path[PATH_SIZE];
	int fd;

	path_make(path, t->name, "control");
	fd = openat(d->spool, path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd == -1 ||
	    write(fd, line, sizeof(line) - 1) != (ssize_t)sizeof(line) - 1)
		e = err_errno("spool: %s", path);
	if (fd != -1)
		(void)close(fd);
	return e;
}

bool
spool_lock_free(const struct task *t)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return fcntl(t->lock, F_SETLK, &whole) == 0;
}

/* "DEPLOYMENT.EPOCH" and nothing else. */
static bool
name_parse(const char *name, int64_t *id, int64_t *epoch)
{
	char text[TASK_NAME];
	char *dot;

	if (strlen(name) >= sizeof(text))
		return false;
	(void)memcpy(text, name, strlen(name) + 1);
	if ((dot = strchr(text, '.')) == NULL)
		return false;
	*dot = '\0';
	return num_parse(text, 1, NUM_SAFE, id) &&
	    num_parse(dot + 1, 1, NUM_SAFE, epoch);
}

/* "PROJECT BOOT DIRECTORY\n" */
static const struct err *
keeper_read(const struct dispatch *d, struct task *t)
{
	char text[WIRE_DIR + BOOT_SIZE + 32], *project, *boot, *rest = text;
	ssize_t got = pread(t->keeper, text, sizeof(text) - 1, 0);

	if (got <= 0 || text[got - 1] != '\n')
		goto malformed;
	text[got - 1] = '\0';
	project = strsep(&rest, " ");
	boot = strsep(&rest, " ");
	if (rest == NULL || !num_parse(project, 1, NUM_SAFE, &t->project) ||
	    strlen(rest) >= sizeof(t->dir))
		goto malformed;
	if (is_boot(d, boot))
		t->flags |= TASK_BOOT;
	(void)memcpy(t->dir, rest, strlen(rest) + 1);
	return NULL;
malformed:
	return err_new(ERR_INTERNAL, "spool: %s/keeper is malformed", t->name);
}

const struct err *
spool_adopt(const struct dispatch *d, const char *name, struct task *out)
{
	const struct err *e;
	struct stat mine, there;
	char path[PATH_SIZE];

	if (!name_parse(name, &out->id, &out->epoch))
		return err_new(ERR_NOTFOUND, "spool: %s: not ours", name);
	(void)snprintf(out->name, sizeof(out->name), "%s", name);
	path_make(path, name, "keeper");
	out->keeper = openat(d->spool, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (out->keeper == -1 && errno == ENOENT)
		return err_new(ERR_NOTFOUND, "spool: %s is gone", path);
	if (out->keeper == -1)
		return err_errno("spool: %s", path);
	if (flock(out->keeper, LOCK_EX | LOCK_NB) == -1) {
		e = errno == EWOULDBLOCK ?
		    err_new(ERR_CONFLICT, "spool: %s has a keeper", name) :
		    err_errno("spool: %s", path);
		goto fail;
	}
	/* its keeper may have done with it just before */
	if (fstat(out->keeper, &mine) == -1 ||
	    fstatat(d->spool, path, &there, AT_SYMLINK_NOFOLLOW) == -1 ||
	    mine.st_ino != there.st_ino) {
		e = err_new(ERR_NOTFOUND, "spool: %s is gone", name);
		goto fail;
	}
	if ((e = keeper_read(d, out)) != NULL ||
	    (e = files_open(d, out)) != NULL)
		goto fail;
	return NULL;
fail:
	spool_release(out);
	return e;
}

void
spool_remove(const struct dispatch *d, const struct task *t)
{
	char dir[DIR_SIZE];

	(void)snprintf(dir, sizeof(dir), "old.%s", t->name);
	if (renameat(d->spool, t->name, d->spool, dir) == -1) {
		if (errno != ENOENT)
			log_fault(err_errno("remove from the spool"), t->name);
		return;
	}
	dir_remove(d, dir);
}

void
spool_release(struct task *t)
{
	int *const fds[] = { &t->keeper, &t->log, &t->result, &t->lock };
	size_t i;

	for (i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		(void)close(*fds[i]);
		*fds[i] = -1;
	}
}

bool
spool_has(const struct dispatch *d, int64_t id, int64_t epoch)
{
	char name[TASK_NAME];

	(void)snprintf(name, sizeof(name), "%lld.%lld", (long long)id,
	    (long long)epoch);
	return faccessat(d->spool, name, F_OK, 0) == 0;
}

bool
spool_owner_alive(const struct dispatch *d, const char *owner)
{
	char name[DIR_SIZE];
	bool alive;
	int fd;

	if (strcmp(owner, d->owner) == 0)
		return true;
	(void)snprintf(name, sizeof(name), "owner.%s", owner);
	fd = openat(d->spool, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd == -1)
		return false;
	alive = flock(fd, LOCK_SH | LOCK_NB) == -1;
	(void)close(fd);
	return alive;
}

static bool
is_stale(const struct dispatch *d, const char *name)
{
	struct stat st;

	return fstatat(d->spool, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    time_now_ms() / 1000 - (int64_t)st.st_mtime > STALE;
}

/* A listing of its own, so that what it names can be removed meanwhile. */
static DIR *
list_open(const struct dispatch *d)
{
	int fd = openat(d->spool, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd == -1 ? NULL : fdopendir(fd);

	if (list == NULL) {
		log_fault(err_errno("list"), "spool");
		(void)close(fd);
	} else {
		log_fault_over("spool");
	}
	return list;
}

void
spool_dead(const struct dispatch *d, struct arena *a, struct list *out)
{
	struct dead_owner *dead = arena_alloc(a, DEAD_MAX, sizeof(*dead));
	const size_t prefix = strlen("owner.");
	DIR *list = list_open(d);
	struct dirent *entry;
	char boot[BOOT_SIZE];
	ssize_t got;
	int fd;

	*out = (struct list){ .items = dead };
	while (list != NULL && out->n < DEAD_MAX &&
	    (entry = readdir(list)) != NULL) {
		if (!str_starts(entry->d_name, "owner.") ||
		    spool_owner_alive(d, entry->d_name + prefix))
			continue;
		fd = openat(d->spool, entry->d_name,
		    O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		if (fd == -1)
			continue;
		got = read(fd, boot, sizeof(boot) - 1);
		(void)close(fd);
		boot[got < 0 ? 0 : got] = '\0';
		dead[out->n].name = arena_strdup(a, entry->d_name + prefix);
		dead[out->n++].booted = is_boot(d, boot);
	}
	if (list != NULL)
		(void)closedir(list);
}

void
spool_forget(const struct dispatch *d, const struct list *dead)
{
	const struct dead_owner *owner = dead->items;
	char name[DIR_SIZE];
	size_t i;

	for (i = 0; i < dead->n; i++) {
		(void)snprintf(name, sizeof(name), "owner.%s", owner[i].name);
		(void)unlinkat(d->spool, name, 0);
	}
}

static bool
is_empty(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_size == 0;
}

bool
spool_unbegun(const struct task *t)
{
	return (t->flags & (TASK_ADOPTED | TASK_BOOT)) ==
	    (TASK_ADOPTED | TASK_BOOT) &&
	    spool_lock_free(t) && is_empty(t->lock) && is_empty(t->log) &&
	    is_empty(t->result) && ftruncate(t->lock, 1) == 0;
}

bool
spool_sweep(const struct dispatch *d)
{
	DIR *list = list_open(d);
	struct dirent *entry;
	const char *name;
	bool died = false;

	while (list != NULL && (entry = readdir(list)) != NULL) {
		name = entry->d_name;
		if (str_starts(name, "owner.") &&
		    !spool_owner_alive(d, name + strlen("owner.")))
			died = true;
		if ((str_starts(name, "new.") || str_starts(name, "old.")) &&
		    is_stale(d, name))
			dir_remove(d, name);
		if (str_starts(name, "making.") && is_stale(d, name))
			(void)unlinkat(d->spool, name, 0);
	}
	if (list != NULL)
		(void)closedir(list);
	return died;
}

void
spool_each(struct dispatch *d, void (*each)(struct dispatch *, const char *))
{
	DIR *list = list_open(d);
	struct dirent *entry;
	int64_t id, epoch;

	while (list != NULL && (entry = readdir(list)) != NULL)
		if (name_parse(entry->d_name, &id, &epoch) &&
		    task_find(d, id, epoch) == NULL)
			each(d, entry->d_name);
	if (list != NULL)
		(void)closedir(list);
}
