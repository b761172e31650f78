/* SPDX-License-Identifier: ISC */
#include "dispatch/wipe.h"

#include <string.h>

#include "dispatch/context.h"
#include "dispatch/project.h"

const struct err *
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
		    project_is_marked(&d->spool, other[i].id))
			return NULL;
	if (strlen(gone->project_dir) >= sizeof(w.dir))
		return NULL;
	(void)memcpy(w.dir, gone->project_dir, strlen(gone->project_dir));
	return wire_send(CONTEXT_WIRE, &w, NULL, 0);
}

const struct err *
wipe_around(const struct dispatch *d, int64_t project)
{
	const struct projectdir *other;
	const struct err *e;
	struct list list;
	size_t i;

	e = projectdir_deleted_around(d->db, d->a, project, &list);
	other = list.items;
	for (i = 0; e == NULL && i < list.n; i++)
		if (project_is_marked(&d->spool, other[i].id))
			e = wipe_ask(d, &other[i], WIRE_WIPE_KEEP, project);
	return e;
}
