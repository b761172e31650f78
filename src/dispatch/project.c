/* SPDX-License-Identifier: ISC */
/* What the spool knows of projects, SPOOL/objects.<project>: what a job has to
 * know of the one before, and which projects have had a directory here. */
#include "store/project.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "core/log.h"
#include "core/num.h"
#include "core/str.h"
#include "dispatch/dispatch.h"

#define PREFIX "objects."
#define NAME_SIZE 32
#define WIPE_MS 3600000 /* between looks for projects that were deleted */
#define WIPE_MAX 500    /* of them in one look */

static void
objects_name(char out[NAME_SIZE], int64_t project)
{
	(void)snprintf(out, NAME_SIZE, PREFIX "%lld", (long long)project);
}

void
spool_objects_save(const struct dispatch *d, int64_t project, const char *text)
{
	char name[NAME_SIZE];
	const struct err *e;
	int fd;

	objects_name(name, project);
	fd = openat(d->spool, name,
	    O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	e = fd == -1 ? err_errno("spool: %s", name) :
		       file_store(fd, text, strlen(text));
	if (fd != -1)
		(void)close(fd);
	if (e != NULL)
		log_warn("%s: the next checkout is made anew", e->msg);
}

const char *
spool_objects(const struct dispatch *d, struct arena *a, int64_t project)
{
	char name[NAME_SIZE], text[32] = "";
	ssize_t got;
	int fd;

	objects_name(name, project);
	fd = openat(d->spool, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd == -1)
		return NULL;
	got = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	return got > 0 ? arena_strdup(a, text) : NULL;
}

void
project_mark(const struct dispatch *d, int64_t project)
{
	char name[NAME_SIZE];
	int fd;

	objects_name(name, project);
	fd = openat(d->spool, name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
	    0600);
	if (fd == -1)
		log_warn("%s: its directory will not be removed with it", name);
	else
		(void)close(fd);
}

/* Asks the monitor, if the project was deleted long enough ago. */
static const struct err *
wipe_ask(struct dispatch *d, int64_t project, int *asked)
{
	struct wire w = { .magic = WIRE_MAGIC,
		.type = WIRE_WIPE,
		.project = project };
	const struct err *e;
	const char *dir;

	arena_clear(d->a);
	e = project_gone(d->db, d->a, project, &dir);
	if (e != NULL && e->code == ERR_NOTFOUND)
		return NULL;
	if (e != NULL)
		return e;
	if (strlen(dir) >= sizeof(w.dir))
		return NULL;
	(void)memcpy(w.dir, dir, strlen(dir));
	++*asked;
	return wire_send(DISPATCH_WIRE, &w, NULL, 0);
}

void
project_wipes(struct dispatch *d, int64_t now)
{
	const struct err *e = NULL;
	const struct dirent *entry;
	int64_t project;
	int fd, asked = 0;
	DIR *dir = NULL;

	if (now < d->wipe_at || !dispatch_db_ready(d))
		return;
	d->wipe_at = now + WIPE_MS;
	fd = openat(d->spool, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd == -1 || (dir = fdopendir(fd)) == NULL) {
		log_fault(err_errno("list"), "spool");
		(void)close(fd);
		return;
	}
	while (e == NULL && asked < WIPE_MAX && (entry = readdir(dir)) != NULL)
		if (str_starts(entry->d_name, PREFIX) &&
		    num_parse(entry->d_name + strlen(PREFIX), 1, INT64_MAX,
			&project))
			e = wipe_ask(d, project, &asked);
	(void)closedir(dir);
	(void)dispatch_db_said(d, e, "look for deleted projects");
}

void
project_wiped(const struct dispatch *d, const struct wire *w)
{
	char name[NAME_SIZE];

	if (w->status != 0)
		return; /* it is asked again */
	objects_name(name, w->project);
	(void)unlinkat(d->spool, name, 0);
}
