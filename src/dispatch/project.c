/* SPDX-License-Identifier: ISC */
#include "dispatch/project.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "core/log.h"
#include "core/num.h"

#define PREFIX "objects."
#define NAME_SIZE 32
#define STATE_MAX 32768

static void
name_make(char out[NAME_SIZE], int64_t project)
{
	(void)snprintf(out, NAME_SIZE, PREFIX "%lld", (long long)project);
}

/* -1 with errno. */
static int
mark_open(const struct spool *s, const char *name, int flags)
{
	return openat(s->fd, name, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
}

const char *
project_objects(const struct spool *s, struct arena *a, int64_t project)
{
	char name[NAME_SIZE], *text;
	ssize_t got;
	int fd;

	name_make(name, project);
	if ((fd = mark_open(s, name, O_RDONLY)) == -1)
		return NULL;
	text = arena_alloc(a, STATE_MAX, 1);
	got = read(fd, text, STATE_MAX - 1);
	(void)close(fd);
	return got > 0 ? text : NULL;
}

void
project_objects_save(const struct spool *s, int64_t project, const char *text)
{
	char name[NAME_SIZE];
	const struct err *e;
	int fd;

	name_make(name, project);
	fd = mark_open(s, name, O_WRONLY | O_CREAT | O_TRUNC);
	e = fd == -1 ? err_errno("spool: %s", name) :
		       file_store(fd, text, strlen(text));
	if (fd != -1)
		(void)close(fd);
	if (e != NULL)
		log_warn("%s: the next deployment clones again", e->msg);
}

void
project_mark(const struct spool *s, int64_t project)
{
	char name[NAME_SIZE];
	int fd;

	name_make(name, project);
	if ((fd = mark_open(s, name, O_WRONLY | O_CREAT)) == -1)
		log_warn("spool: %s cannot be created: the project's directory "
			 "will not be removed when the project is deleted",
		    name);
	else
		(void)close(fd);
}

void
project_unmark(const struct spool *s, int64_t project)
{
	char name[NAME_SIZE];

	name_make(name, project);
	(void)unlinkat(s->fd, name, 0);
}

bool
project_is_marked(const struct spool *s, int64_t project)
{
	char name[NAME_SIZE];

	name_make(name, project);
	return faccessat(s->fd, name, F_OK, 0) == 0;
}

struct walk {
	project_marked *each;
	void *context;
};

static bool
each_name(void *context, const char *name)
{
	const struct walk *walk = context;
	int64_t project;

	return !num_parse(name + strlen(PREFIX), 1, INT64_MAX, &project) ||
	    walk->each(walk->context, project);
}

void
project_each(const struct spool *s, project_marked *each, void *context)
{
	struct walk walk = { .each = each, .context = context };

	spool_names(s, PREFIX, each_name, &walk);
}
