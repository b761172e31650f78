/* SPDX-License-Identifier: ISC */
/*
 * Names what a checkout lacks: submodules, and files that Git LFS stores
 * elsewhere.  Without them, a site can be an empty one, and a deployment of it
 * would be a success.
 *
 * It reads git's index, which has the sizes of all files, so that only a few
 * files are opened and no further git runs before the first step.
 */
#include <sys/mman.h>
#include <sys/stat.h>

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "core/str.h"
#include "job/checkout_inner.h"
#include "job/job.h"
#include "job/log.h"

#define GIT ".git"
#define GIT_DIR "gitdir: " /* in a submodule, .git is a file with this line */
#define DEPTH 20           /* of submodules in submodules */
#define NAMES 10           /* of each kind in the log */
#define OUTPUT_MAX ((size_t)1 << 20)
#define HEAD_LEN ((size_t)12)
#define STAT_LEN ((size_t)40) /* of an entry, before its hash */
#define MODE_AT ((size_t)24)
#define SIZE_AT ((size_t)36)
#define GITLINK 0160000
#define EXTENDED 0x4000 /* flag: two more bytes of flags follow */
/* A pointer has a version, a hash and a size; extensions may add lines, up to
 * the size at which git-lfs takes a file for something else. */
#define POINTER "version https://git-lfs.github.com/spec/v1\n"
#define POINTER_OLD "version https://hawser.github.com/spec/v1\n"
#define POINTER_MIN 100
#define POINTER_MAX 1024

enum kind { KIND_LINKS, KIND_FILES, KIND_DEEP, KIND__MAX };

/* What is missing, of one kind. */
struct missing {
	unsigned n;
	struct buf names; /* the first NAMES */
};

/* The workspace or a submodule. */
struct place {
	struct arena *a;
	int dir;
	const char
	    *prefix; /* of its paths, "" or one with a slash at its end */
	unsigned depth;
	size_t hash_len;         /* of git's objects */
	struct missing *missing; /* by kind */
};

static const char *const titles[KIND__MAX] = {
	[KIND_LINKS] = "submodules are not fetched, their directories are "
		       "empty",
	[KIND_FILES] = "files of Git LFS are not fetched, in their place are "
		       "pointers",
	[KIND_DEEP] = "files of Git LFS in submodules are not fetched, in "
		      "their place are pointers",
};

struct index {
	const unsigned char *at;
	const unsigned char *end;
	size_t hash_len;
	unsigned version;
	char path[PATH_MAX];
	size_t path_len;
	unsigned mode;
	unsigned size;
};

static unsigned
number_read(const unsigned char *at)
{
	return (unsigned)at[0] << 24 | (unsigned)at[1] << 16 |
	    (unsigned)at[2] << 8 | at[3];
}

/* In version 4, a path is stored as what differs from the one before it. */
static bool
prefix_read(struct index *x)
{
	size_t cut;

	if (x->at == x->end)
		return false;
	cut = *x->at & 0x7f;
	while ((*x->at++ & 0x80) != 0) {
		if (x->at == x->end || cut > PATH_MAX)
			return false;
		cut = ((cut + 1) << 7) | (*x->at & 0x7f);
	}
	if (cut > x->path_len)
		return false;
	x->path_len -= cut;
	return true;
}

/* Reads the next entry; false if it is malformed. */
static bool
entry_read(struct index *x)
{
	const unsigned char *start = x->at, *zero;
	size_t head = STAT_LEN + x->hash_len + 2, len;
	unsigned flags;

	if ((size_t)(x->end - start) < head + 2)
		return false;
	x->mode = number_read(start + MODE_AT);
	x->size = number_read(start + SIZE_AT);
	flags = (unsigned)start[head - 2] << 8 | start[head - 1];
	x->at += (flags & EXTENDED) != 0 ? head + 2 : head;
	if (x->version < 4)
		x->path_len = 0;
	else if (!prefix_read(x))
		return false;
	zero = memchr(x->at, '\0', (size_t)(x->end - x->at));
	if (zero == NULL)
		return false;
	len = (size_t)(zero - x->at);
	if (len >= sizeof(x->path) - x->path_len)
		return false;
	(void)memcpy(x->path + x->path_len, x->at, len + 1);
	x->path_len += len;
	if (x->version >= 4) {
		x->at = zero + 1;
		return true;
	}
	/* padded with one to eight NUL bytes */
	len = (size_t)(zero - start) / 8 * 8 + 8;
	if (len > (size_t)(x->end - start))
		return false;
	x->at = start + len;
	return true;
}

bool
missing_is_pointer(int dir, const char *path)
{
	char text[sizeof(POINTER)] = "";
	ssize_t got;
	int fd;

	fd = openat(dir, path,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd == -1)
		return false;
	got = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	return got > 0 &&
	    (str_starts(text, POINTER) || str_starts(text, POINTER_OLD));
}

/* Whether the file is a pointer in place of content. */
static bool
is_pointer(const struct place *place, const struct index *x)
{
	return (x->mode & S_IFMT) == S_IFREG && x->size >= POINTER_MIN &&
	    x->size < POINTER_MAX && missing_is_pointer(place->dir, x->path);
}

static void
missing_add(struct missing *m, const char *prefix, const char *path)
{
	const char *const parts[] = { prefix, path }, *c;
	size_t i;

	if (m->n++ >= NAMES)
		return;
	buf_puts(&m->names, m->n == 1 ? "" : ", ");
	for (i = 0; i < 2; i++)
		for (c = parts[i]; *c != '\0'; c++)
			buf_putc(&m->names,
			    (unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c);
}

static const struct err *index_find(const struct place *);

/* The path of the index below that directory, which a link or a file can name;
 * false if a submodule is not there: then it is an empty directory. */
static bool
index_path(int dir, char out[PATH_MAX])
{
	char line[PATH_MAX / 2] = "";
	struct stat st;
	ssize_t got;
	int fd;

	if (fstatat(dir, GIT, &st, AT_SYMLINK_NOFOLLOW) == -1)
		return false;
	(void)snprintf(out, PATH_MAX, "%s/index", GIT);
	if (!S_ISREG(st.st_mode))
		return true;
	fd = openat(dir, GIT,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd == -1)
		return true;
	got = read(fd, line, sizeof(line) - 1);
	(void)close(fd);
	line[strcspn(line, "\n")] = '\0';
	if (got > 0 && str_starts(line, GIT_DIR))
		(void)snprintf(out, PATH_MAX, "%s/index",
		    line + strlen(GIT_DIR));
	return true;
}

/* Looks into a submodule. */
static const struct err *
link_look(const struct place *in, const char *path)
{
	struct place place = *in;
	const struct err *e = NULL;
	char index[PATH_MAX];

	place.dir = openat(in->dir, path,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (place.dir == -1 || !index_path(place.dir, index)) {
		missing_add(&in->missing[KIND_LINKS], in->prefix, path);
		goto out;
	}
	place.prefix = arena_printf(in->a, "%s%s/", in->prefix, path);
	if (place.depth++ < DEPTH)
		e = index_find(&place);
out:
	if (place.dir != -1)
		(void)close(place.dir);
	return e;
}

static const struct err *
index_read(const struct place *place, struct index *x, unsigned n)
{
	const enum kind files = place->depth == 0 ? KIND_FILES : KIND_DEEP;
	const struct err *e = NULL;

	while (e == NULL && n-- > 0 && entry_read(x)) {
		if (x->mode == GITLINK)
			e = link_look(place, x->path);
		else if (is_pointer(place, x))
			missing_add(&place->missing[files], place->prefix,
			    x->path);
	}
	return e;
}

static const struct err *
index_find(const struct place *place)
{
	struct index x = { .hash_len = place->hash_len };
	const struct err *e = NULL;
	const unsigned char *map;
	char path[PATH_MAX];
	struct stat st;
	int fd;

	if (!index_path(place->dir, path))
		return NULL;
	fd = openat(place->dir, path,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd == -1)
		return NULL;
	if (fstat(fd, &st) == -1 || !S_ISREG(st.st_mode) ||
	    (size_t)st.st_size < HEAD_LEN) {
		(void)close(fd);
		return NULL;
	}
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	(void)close(fd);
	if (map == MAP_FAILED)
		return err_errno("map the index");
	x.at = map + HEAD_LEN;
	x.end = map + st.st_size;
	x.version = number_read(map + 4);
	if (memcmp(map, "DIRC", 4) == 0 && x.version >= 2 && x.version <= 4)
		e = index_read(place, &x, number_read(map + 8));
	(void)munmap((void *)(uintptr_t)map, (size_t)st.st_size);
	return e;
}

/* Writes a line to standard output for each kind. */
static const struct err *
missing_find(void *arg)
{
	struct missing missing[KIND__MAX] = { { 0 } }, *m;
	const struct fetch *f = arg;
	const struct place place = { .a = f->a,
		.dir = JOB_FD(WIRE_FD_WORKSPACE),
		.prefix = "",
		.hash_len = strlen(f->hash) / 2,
		.missing = missing };
	const struct err *e;
	struct buf out;
	size_t i;

	buf_init(&out, OUTPUT_MAX);
	for (i = 0; i < KIND__MAX; i++)
		buf_init(&missing[i].names, OUTPUT_MAX);
	e = index_find(&place);
	for (i = 0; i < KIND__MAX; i++) {
		m = &missing[i];
		if (m->n > 0)
			buf_printf(&out, "%s (%u): %s%s\n", titles[i], m->n,
			    m->names.data, m->n > NAMES ? ", ..." : "");
		buf_release(&m->names);
	}
	if (e == NULL && out.len > 0)
		e = file_store(STDOUT_FILENO, out.data, out.len);
	buf_release(&out);
	return e;
}

const struct err *
checkout_missing(struct fetch *f)
{
	const bool wants = f->git.job->spec.lfs;
	const struct err *e;
	bool again = false;
	const char *text;
	char *rest, *line;

	do {
		if ((e = git_call(&f->git, missing_find, f, &text)) != NULL ||
		    !git_done(&f->git))
			return e;
		again = !again && wants && strstr(text, titles[KIND_FILES]);
		if (again &&
		    ((e = lfs_complete(f, &again)) != NULL ||
			!git_done(&f->git)))
			return e;
	} while (again);
	if (wants && !f->git.has_lfs && strstr(text, titles[KIND_DEEP]))
		f->fault = lfs_absent;
	rest = arena_strdup(f->a, text);
	while ((line = strsep(&rest, "\n")) != NULL)
		if (line[0] != '\0')
			job_log_say(&f->git.job->log, "==> warning: %s", line);
	return NULL;
}
