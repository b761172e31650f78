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

#define INDEX ".git/index"
#define NAMES 10 /* of each kind in the log */
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

/* Whether the file is a pointer in place of content. */
static bool
is_pointer(const struct index *x)
{
	char text[sizeof(POINTER)] = "";
	ssize_t got;
	int fd;

	if ((x->mode & S_IFMT) != S_IFREG || x->size < POINTER_MIN ||
	    x->size >= POINTER_MAX)
		return false;
	fd = openat(JOB_FD(WIRE_FD_WORKSPACE), x->path,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd == -1)
		return false;
	got = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	return got > 0 &&
	    (str_starts(text, POINTER) || str_starts(text, POINTER_OLD));
}

/* A submodule that is not there is an empty directory. */
static bool
is_empty_link(const struct index *x)
{
	char git[PATH_MAX + 8];
	struct stat st;

	if (x->mode != GITLINK)
		return false;
	(void)snprintf(git, sizeof(git), "%s/.git", x->path);
	return fstatat(JOB_FD(WIRE_FD_WORKSPACE), git, &st,
		   AT_SYMLINK_NOFOLLOW) == -1;
}

/* What is missing, of one kind. */
struct missing {
	const char *title; /* of several */
	unsigned n;
	struct buf names; /* the first NAMES */
};

static void
missing_add(struct missing *m, const char *path)
{
	const char *c;

	if (m->n++ >= NAMES)
		return;
	buf_puts(&m->names, m->n == 1 ? "" : ", ");
	for (c = path; *c != '\0'; c++)
		buf_putc(&m->names,
		    (unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c);
}

static void
missing_write(struct missing *m, struct buf *out)
{
	if (m->n > 0)
		buf_printf(out, "%s (%u): %s%s\n", m->title, m->n,
		    m->names.data, m->n > NAMES ? ", ..." : "");
	buf_release(&m->names);
}

static void
index_read(struct index *x, unsigned n, struct buf *out)
{
	struct missing links = { .title = "submodules are not fetched, their "
					  "directories are empty" };
	struct missing files = { .title = "files of Git LFS are not fetched, "
					  "in their place are pointers" };

	buf_init(&links.names, OUTPUT_MAX);
	buf_init(&files.names, OUTPUT_MAX);
	while (n-- > 0 && entry_read(x)) {
		if (is_empty_link(x))
			missing_add(&links, x->path);
		else if (is_pointer(x))
			missing_add(&files, x->path);
	}
	missing_write(&links, out);
	missing_write(&files, out);
}

/* Writes lines for the log to standard output. */
static const struct err *
missing_find(void *arg)
{
	const struct err *e = NULL;
	struct index x = { .hash_len = *(const size_t *)arg };
	const unsigned char *map;
	struct stat st;
	struct buf out;
	int fd;

	fd = openat(JOB_FD(WIRE_FD_WORKSPACE), INDEX,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd == -1)
		return NULL;
	if (fstat(fd, &st) == -1 || !S_ISREG(st.st_mode) ||
	    (size_t)st.st_size < HEAD_LEN) {
		(void)close(fd);
		return NULL;
	}
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED) {
		e = err_errno("map the index");
		(void)close(fd);
		return e;
	}
	(void)close(fd);
	x.at = map + HEAD_LEN;
	x.end = map + st.st_size;
	x.version = number_read(map + 4);
	buf_init(&out, OUTPUT_MAX);
	if (memcmp(map, "DIRC", 4) == 0 && x.version >= 2 && x.version <= 4)
		index_read(&x, number_read(map + 8), &out);
	if (out.len > 0)
		e = file_store(STDOUT_FILENO, out.data, out.len);
	buf_release(&out);
	return e;
}

const struct err *
checkout_missing(struct git *g, const char *hash)
{
	const struct err *e;
	const char *text;
	char *rest, *line;
	size_t hash_len = strlen(hash) / 2;

	if ((e = git_call(g, missing_find, &hash_len, &text)) != NULL ||
	    !git_done(g))
		return e;
	rest = arena_strdup(g->job->a, text);
	while ((line = strsep(&rest, "\n")) != NULL)
		if (line[0] != '\0')
			job_log_say(&g->job->log, "==> warning: %s", line);
	return NULL;
}
