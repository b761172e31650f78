/* SPDX-License-Identifier: ISC */
/* What the spool knows of projects, SPOOL/objects.<project>: what a job has to
 * know of the one before, and which projects have had a directory here. */
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
#include "store/projectdir.h"

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

static bool
is_marked(const struct dispatch *d, int64_t project)
{
	char name[NAME_SIZE];

	objects_name(name, project);
	return faccessat(d->spool, name, F_OK, 0) == 0;
}

/* Asks the monitor, unless another project that exists, and is not `heir`, has
 * something of that directory here. */
static const struct err *
wipe_ask(const struct dispatch *d, const struct projectdir *gone,
    enum wire_wipe how, int64_t heir)
{
	struct wire w = { .magic = WIRE_MAGIC,
		.type = WIRE_WIPE,
		.project = gone->id,
		.status = (int32_t)how };
	const struct projectdir *other;
	const struct err *e;
	struct list list;
	size_t i;

	if ((e = projectdir_around(d->db, d->a, gone->id, &list)) != NULL)
		return e;
	other = list.items;
	for (i = 0; i < list.n; i++)
		if (other[i].valid != 0 && other[i].id != heir &&
		    is_marked(d, other[i].id))
			return NULL;
	if (strlen(gone->project_dir) >= sizeof(w.dir))
		return NULL;
	(void)memcpy(w.dir, gone->project_dir, strlen(gone->project_dir));
	return wire_send(DISPATCH_WIRE, &w, NULL, 0);
}

const struct err *
project_make_room(struct dispatch *d, int64_t project)
{
	const struct projectdir *other;
	const struct err *e;
	struct list list;
	size_t i;

	e = projectdir_around(d->db, d->a, project, &list);
	other = list.items;
	for (i = 0; e == NULL && i < list.n; i++)
		if (other[i].valid == 0 && is_marked(d, other[i].id))
			e = wipe_ask(d, &other[i], WIRE_WIPE_KEEP, project);
	return e;
}

/* If the project was deleted long enough ago. */
static const struct err *
wipe_due(struct dispatch *d, int64_t project, int *asked)
{
	struct projectdir gone;
	const struct err *e;

	arena_clear(d->a);
	e = projectdir_find(d->db, d->a, project, &gone);
	if (e != NULL)
		return e->code == ERR_NOTFOUND ? NULL : e;
	if (gone.due == 0)
		return NULL;
	++*asked;
	return wipe_ask(d, &gone, WIRE_WIPE_NOW, 0);
}

void
project_wipes(struct dispatch *d, int64_t now)
{
	const struct err *e = NULL;
	const struct dirent *entry;
	int64_t project;
	int fd, asked = 0;
	DIR *dir = NULL;

	if (now < d->wipe_at || !database_is_ready(&d->database))
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
			e = wipe_due(d, project, &asked);
	(void)closedir(dir);
	(void)database_done(&d->database, e, "look for deleted projects");
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
