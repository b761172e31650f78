/* SPDX-License-Identifier: ISC */
/*
 * The tags of a clone, for git describe(1) in steps.
 *
 * A repository with few tags lists them in the same connection in which the
 * branch is fetched.  With many, git would spend more time on them than on the
 * fetch: it reads each of them in every fetch, and writes a file for each new
 * one.  So they are listed separately, and stored as one file, which is away
 * while git fetches.
 */
#include <sys/mman.h>
#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/branch.h"
#include "core/file.h"
#include "core/str.h"
#include "job/checkout_inner.h"
#include "job/job.h"
#include "job/log.h"
#include "job/run.h"

#define PACKED ".git/packed-refs"
#define PACKED_NEW ".git/packed-refs.new"
#define TAGS "refs/tags/"
#define FEW ((size_t)200)
#define MANY ((size_t)100000)
#define LIST_MAX ((size_t)32 << 20)
#define HEADER "# pack-refs with: peeled fully-peeled sorted "
/* A trait that git does not know, and ignores. */
#define APART "slipway-apart "

struct tag {
	const char *name;   /* full */
	const char *hash;   /* of the tag, or of what it names */
	const char *peeled; /* what an annotated tag names; NULL */
	bool is_old;        /* the clone had the tag */
	bool has_object;
	bool has_peeled;
};

struct tags {
	struct fetch *f;
	struct tag *items;
	size_t n;
	struct buf text; /* memory of the above */
};

static bool
packed_stat(struct stat *st)
{
	return fstatat(JOB_FD(WIRE_FD_WORKSPACE), PACKED, st,
		   AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISREG(st->st_mode);
}

bool
tags_are_few(struct fetch *f)
{
	struct stat st;
	struct buf text;
	size_t n = 0, i;
	int fd;

	f->tags_old = NULL;
	if (!packed_stat(&st))
		return false;
	fd = openat(JOB_FD(WIRE_FD_WORKSPACE), PACKED,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd == -1)
		return false;
	buf_init(&text, LIST_MAX);
	if (file_rest(fd, &text) == NULL && text.len > 0)
		f->tags_old = arena_strndup(f->a, text.data, text.len);
	(void)close(fd);
	if (f->tags_old != NULL && str_starts(f->tags_old, HEADER APART))
		f->tags_apart = true;
	for (i = 0; i < text.len; i++)
		n += text.data[i] == '\n';
	buf_release(&text);
	return f->tags_old != NULL && !f->tags_apart && n <= 2 * FEW;
}

/* Whether a directory, or one below it, has a file. */
static bool
has_files(int at, const char *path)
{
	struct dirent *entry;
	bool found = false;
	DIR *dir;
	int fd;

	fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1)
		return false;
	if ((dir = fdopendir(fd)) == NULL) {
		(void)close(fd);
		return false;
	}
	while (!found && (entry = readdir(dir)) != NULL)
		if (entry->d_name[0] != '.')
			found = entry->d_type != DT_DIR ||
			    has_files(dirfd(dir), entry->d_name);
	(void)closedir(dir);
	return found;
}

/* One file has the tags, however many there are. */
const struct err *
tags_pack(struct fetch *f)
{
	const char *const args[] = { "pack-refs", NULL };
	const struct err *e;

	if (!has_files(JOB_FD(WIRE_FD_WORKSPACE), ".git/refs/tags"))
		return NULL;
	e = git_run(&f->git, NULL, args);
	f->grown = true;
	return e;
}

/* Splits the next line of a list into hash and name; false at its end. */
static bool
line_split(char **rest, char **hash, char **name)
{
	char *line;

	while ((line = strsep(rest, "\n")) != NULL) {
		*name = line;
		*hash = strsep(name, "\t");
		if (*name != NULL && commit_is_hash(*hash) &&
		    (strlen(*hash) == 40 || strlen(*hash) == 64))
			return true;
	}
	return false;
}

/* Reads what git ls-remote writes.  Names that are invalid, or not in order,
 * are left out. */
static void
tags_read(struct tags *t)
{
	char *rest = t->text.data, *hash, *name;
	const char *last = "";
	struct tag *tag;
	size_t len;

	while (line_split(&rest, &hash, &name) && t->n < MANY) {
		len = strlen(name);
		tag = t->n == 0 ? NULL : &t->items[t->n - 1];
		if (str_ends(name, "^{}")) {
			name[len - 3] = '\0';
			if (tag != NULL && str_eq(tag->name, name))
				tag->peeled = hash;
			continue;
		}
		if (!str_starts(name, TAGS) || strcmp(last, name) >= 0 ||
		    branch_fault(name + strlen(TAGS)) != NULL)
			continue;
		t->items[t->n++] = (struct tag){ .name = name, .hash = hash };
		last = name;
	}
}

/* Marks the tags that the clone had: their objects are there.  Both lists are in
 * the same order. */
static void
tags_compare(struct tags *t)
{
	char *rest = t->f->tags_old, *line;
	struct tag *tag = t->items, *last = t->items + t->n;
	const char *name;
	int order;

	while (rest != NULL && (line = strsep(&rest, "\n")) != NULL) {
		if ((name = strchr(line, ' ')) == NULL || line[0] == '#')
			continue;
		order = -1;
		while (tag < last && (order = strcmp(tag->name, name + 1)) < 0)
			tag++;
		if (order == 0 && str_starts(line, tag->hash))
			tag->is_old = tag->has_object = tag->has_peeled = true;
	}
}

/* Runs git with this text as its input. */
static const struct err *
git_feed(struct git *g, const struct buf *input, struct buf *out,
    const char *const *args)
{
	const struct err *e = NULL;
	int fd = memfd_create("input", MFD_CLOEXEC);

	if (fd == -1)
		return err_errno("memfd");
	if (input->len > 0)
		e = file_store(fd, input->data, input->len);
	if (e == NULL && lseek(fd, 0, SEEK_SET) == -1)
		e = err_errno("seek");
	g->input = fd;
	if (e == NULL)
		e = git_run(g, out, args);
	g->input = 0;
	(void)close(fd);
	return e;
}

/* Asks which objects of tags, and of what they name, are in the clone. */
static const struct err *
tags_look(struct tags *t)
{
	static const char missing[] = " missing";
	const char *const args[] = { "cat-file", "--batch-check", NULL };
	const struct err *e = NULL;
	struct buf ask, got;
	char *rest, *line;
	size_t i;

	buf_init(&ask, LIST_MAX);
	buf_init(&got, LIST_MAX);
	for (i = 0; i < t->n; i++)
		if (!t->items[i].is_old)
			buf_printf(&ask, "%s\n%s\n", t->items[i].hash,
			    t->items[i].peeled != NULL ? t->items[i].peeled :
							 t->items[i].hash);
	if (ask.len == 0)
		goto out;
	e = git_feed(&t->f->git, &ask, &got, args);
	rest = got.len > 0 ? got.data : NULL;
	for (i = 0; e == NULL && i < t->n; i++) {
		if (t->items[i].is_old)
			continue;
		line = strsep(&rest, "\n");
		t->items[i].has_object = line != NULL &&
		    !str_ends(line, missing);
		line = strsep(&rest, "\n");
		t->items[i].has_peeled = line != NULL &&
		    !str_ends(line, missing);
	}
out:
	buf_release(&ask);
	buf_release(&got);
	return e;
}

/* Fetches the objects of annotated tags whose commits are here.  They get no
 * refs: git would write a file for each.  They are named by hash, because git
 * compares each name with each tag of the server. */
static const struct err *
tags_fetch(struct tags *t)
{
	const char *const args[] = { "fetch", "--no-tags",
		"--no-recurse-submodules", "--no-write-fetch-head",
		"--update-shallow", "--quiet", "--stdin", "--",
		t->f->git.job->spec.repository, NULL };
	const struct err *e = NULL;
	struct buf want;
	size_t i;

	buf_init(&want, LIST_MAX);
	for (i = 0; i < t->n; i++)
		if (t->items[i].has_peeled && !t->items[i].has_object)
			buf_printf(&want, "%s\n", t->items[i].hash);
	if (want.len > 0 &&
	    (e = git_feed(&t->f->git, &want, NULL, args)) == NULL &&
	    t->f->git.end.how == RUN_EXITED)
		e = tags_look(t);
	buf_release(&want);
	return e;
}

static const struct err *
packed_store(void *arg)
{
	const struct buf *text = arg;
	const int at = JOB_FD(WIRE_FD_WORKSPACE);
	const struct err *e;
	int fd;

	if (unlinkat(at, PACKED_NEW, 0) == -1 && errno != ENOENT)
		return err_errno("remove %s", PACKED_NEW);
	fd = openat(at, PACKED_NEW,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd == -1)
		return err_errno("create %s", PACKED_NEW);
	e = file_store(fd, text->data, text->len);
	if (close(fd) == -1 && e == NULL)
		e = err_errno("close");
	if (e == NULL && renameat(at, PACKED_NEW, at, PACKED) == -1)
		e = err_errno("rename to %s", PACKED);
	return e;
}

static const struct err *
tags_store(struct tags *t)
{
	const struct err *e;
	const char *ignored;
	struct buf text;
	size_t i;

	buf_init(&text, LIST_MAX);
	buf_puts(&text, t->f->tags_apart ? HEADER APART "\n" : HEADER "\n");
	for (i = 0; i < t->n; i++) {
		if (!t->items[i].has_object || !t->items[i].has_peeled)
			continue;
		buf_printf(&text, "%s %s\n", t->items[i].hash,
		    t->items[i].name);
		if (t->items[i].peeled != NULL)
			buf_printf(&text, "^%s\n", t->items[i].peeled);
	}
	if ((e = buf_check(&text)) == NULL)
		e = git_call(&t->f->git, packed_store, &text, &ignored);
	t->f->grown = true;
	buf_release(&text);
	return e;
}

static const struct err *
tags_bring(struct tags *t)
{
	const char *const args[] = { "ls-remote", "--tags", "--",
		t->f->git.job->spec.repository, NULL };
	struct git *g = &t->f->git;
	const struct err *e;

	if ((e = git_run(g, &t->text, args)) != NULL || !git_done(g) ||
	    (e = buf_check(&t->text)) != NULL)
		return e;
	t->items = arena_alloc(t->f->a, MANY, sizeof(*t->items));
	if (t->text.len > 0)
		tags_read(t);
	tags_compare(t);
	if ((e = tags_look(t)) != NULL || !git_done(g) ||
	    (e = tags_fetch(t)) != NULL || g->end.how != RUN_EXITED)
		return e;
	return tags_store(t);
}

const struct err *
tags_hide(void)
{
	if (unlinkat(JOB_FD(WIRE_FD_WORKSPACE), PACKED, 0) == -1 &&
	    errno != ENOENT)
		return err_errno("remove %s", PACKED);
	return NULL;
}

const struct err *
tags_list(struct fetch *f)
{
	struct job_log *log = &f->git.job->log;
	struct tags t = { .f = f };
	const struct err *e;

	buf_init(&t.text, LIST_MAX);
	e = tags_bring(&t);
	buf_release(&t.text);
	if (f->git.end.how != RUN_EXITED)
		return e;
	if (e != NULL || !git_done(&f->git))
		job_log_say(log, "==> warning: the tags are not complete%s%s",
		    e == NULL ? "" : ": ", e == NULL ? "" : e->msg);
	job_log_forget(log);
	f->git.end.status = 0;
	return NULL;
}
