/* SPDX-License-Identifier: ISC */
#include "dispatch/spool.h"

#include <sys/file.h>
#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "core/log.h"
#include "core/str.h"
#include "crypto/crypto.h"

#define NAME_SIZE 64
#define STALE 600 /* seconds */
#define BOOT_ID "/proc/sys/kernel/random/boot_id"
#define DEAD_MAX 256
#define OWNER "owner."
#define MAKING "making."
#define PROBE "probe."
#define PROBE_BYTES ((size_t)160 << 10) /* more than a run needs at first */

static void
owner_path(char out[NAME_SIZE], const char *prefix, const char *owner)
{
	(void)snprintf(out, NAME_SIZE, "%s%s", prefix, owner);
}

/* "-" if the kernel does not say: then nothing counts as of this boot. */
static void
boot_read(char out[SPOOL_BOOT])
{
	struct buf text;
	size_t len;

	buf_init(&text, SPOOL_BOOT);
	(void)memcpy(out, "-", 2);
	if (file_load(BOOT_ID, &text) == NULL && text.len > 1) {
		len = strcspn(text.data, " \n");
		(void)memcpy(out, text.data, len);
		out[len] = '\0';
	}
	buf_release(&text);
}

bool
spool_is_boot(const struct spool *s, const char *text)
{
	return s->boot[0] != '-' && strcmp(s->boot, text) == 0;
}

static void
owner_name(char out[QUEUE_OWNER_SIZE])
{
	unsigned char bytes[(QUEUE_OWNER_SIZE - 1) / 2];
	size_t i;

	crypto_random(bytes, sizeof(bytes));
	for (i = 0; i < sizeof(bytes); i++)
		(void)snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

/* It gets its name when it is locked: an unlocked one counts as dead. */
static const struct err *
owner_make(struct spool *s)
{
	char name[NAME_SIZE], making[NAME_SIZE];
	const struct err *e;

	owner_name(s->owner);
	owner_path(name, OWNER, s->owner);
	owner_path(making, MAKING, s->owner);
	s->owner_fd = openat(s->fd, making,
	    O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->owner_fd == -1 || flock(s->owner_fd, LOCK_EX | LOCK_NB) == -1)
		return err_errno("spool: %s", making);
	if ((e = file_store(s->owner_fd, s->boot, strlen(s->boot))) != NULL)
		return err_wrap(e, "spool: %s", making);
	/* after a crash of the machine it shows which claims this one held */
	if (fsync(s->owner_fd) == -1 ||
	    renameat(s->fd, making, s->fd, name) == -1 || fsync(s->fd) == -1)
		return err_errno("spool: %s", name);
	return NULL;
}

const struct err *
spool_open(struct spool *s, const char *path)
{
	*s = (struct spool){ .fd = -1, .owner_fd = -1 };
	if (mkdir(path, 0700) == -1 && errno != EEXIST)
		return err_errno("%s: make the spool", path);
	s->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->fd == -1)
		return err_errno("%s: open the spool", path);
	boot_read(s->boot);
	return owner_make(s);
}

void
spool_disown(struct spool *s)
{
	char name[NAME_SIZE];

	owner_path(name, OWNER, s->owner);
	(void)unlinkat(s->fd, name, 0);
}

void
spool_close(struct spool *s)
{
	(void)close(s->owner_fd);
	(void)close(s->fd);
	s->owner_fd = s->fd = -1;
}

const struct err *
spool_probe(const struct spool *s)
{
	static const char zeros[PROBE_BYTES];
	const struct err *e;
	char name[NAME_SIZE];
	int fd;

	owner_path(name, MAKING PROBE, s->owner);
	fd = openat(s->fd, name,
	    O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd == -1)
		return err_errno("spool: %s", name);
	e = file_store(fd, zeros, sizeof(zeros));
	(void)close(fd);
	if (unlinkat(s->fd, name, 0) == -1 && e == NULL)
		e = err_errno("spool: %s", name);
	return e;
}

bool
spool_owner_lives(const struct spool *s, const char *owner)
{
	char name[NAME_SIZE];
	bool lives;
	int fd;

	if (strcmp(owner, s->owner) == 0)
		return true;
	owner_path(name, OWNER, owner);
	fd = openat(s->fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd == -1)
		return false;
	lives = flock(fd, LOCK_SH | LOCK_NB) == -1;
	(void)close(fd);
	return lives;
}

void
spool_names(const struct spool *s, const char *prefix, spool_name *each,
    void *context)
{
	int fd = openat(s->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd == -1 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (list == NULL) {
		log_fault(err_errno("list"), "spool");
		(void)close(fd);
		return;
	}
	log_fault_over("spool");
	while ((entry = readdir(list)) != NULL)
		if (str_starts(entry->d_name, prefix) &&
		    !each(context, entry->d_name))
			break;
	(void)closedir(list);
}

struct dead_list {
	const struct spool *spool;
	struct arena *a;
	struct dead_owner *owners;
	size_t n;
};

static bool
dead_add(void *context, const char *name)
{
	struct dead_list *dead = context;
	const char *owner = name + strlen(OWNER);
	char boot[SPOOL_BOOT];
	ssize_t got;
	int fd;

	if (spool_owner_lives(dead->spool, owner))
		return true;
	fd = openat(dead->spool->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd == -1)
		return true;
	got = read(fd, boot, sizeof(boot) - 1);
	(void)close(fd);
	boot[got < 0 ? 0 : got] = '\0';
	dead->owners[dead->n++] = (struct dead_owner){
		.name = arena_strdup(dead->a, owner),
		.this_boot = spool_is_boot(dead->spool, boot),
	};
	return dead->n < DEAD_MAX;
}

void
spool_dead(const struct spool *s, struct arena *a, struct list *out)
{
	struct dead_list dead = { .spool = s,
		.a = a,
		.owners = arena_alloc(a, DEAD_MAX, sizeof(*dead.owners)) };

	spool_names(s, OWNER, dead_add, &dead);
	*out = (struct list){ .items = dead.owners, .n = dead.n };
}

void
spool_forget(const struct spool *s, const struct list *dead)
{
	const struct dead_owner *owner = dead->items;
	char name[NAME_SIZE];
	size_t i;

	for (i = 0; i < dead->n; i++) {
		owner_path(name, OWNER, owner[i].name);
		(void)unlinkat(s->fd, name, 0);
	}
}

bool
spool_is_stale(const struct spool *s, const char *name)
{
	struct stat st;

	return fstatat(s->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    time_now_ms() / 1000 - (int64_t)st.st_mtime > STALE;
}

struct sweep {
	const struct spool *spool;
	bool found_dead;
};

static bool
sweep_one(void *context, const char *name)
{
	struct sweep *sweep = context;
	const struct spool *s = sweep->spool;

	if (str_starts(name, OWNER) &&
	    !spool_owner_lives(s, name + strlen(OWNER)))
		sweep->found_dead = true;
	if (str_starts(name, MAKING) && spool_is_stale(s, name))
		(void)unlinkat(s->fd, name, 0);
	return true;
}

bool
spool_sweep(const struct spool *s)
{
	struct sweep sweep = { .spool = s };

	spool_names(s, "", sweep_one, &sweep);
	return sweep.found_dead;
}
