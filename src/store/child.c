/* SPDX-License-Identifier: ISC */
#include "store/child.h"

const struct err *
child_read(struct db *db, struct arena *a, const struct child *child,
    int64_t project_id, struct page *p, struct list *out)
{
	const struct child_args args = { .project_id = project_id,
		.member = p->member,
		.limit = p->limit,
		.offset = page_offset(p) };

	if (project_id != 0)
		return page_read(db, a, child->count_of, child->page_of, &args,
		    p, out);
	if (p->member != 0)
		return page_read(db, a, child->count_by, child->page_by, &args,
		    p, out);
	return page_read(db, a, child->count, child->page, &args, p, out);
}

const struct err *
child_judge(struct db *db, const struct child *child, int64_t id,
    int64_t project_id, const char *name, struct faults *faults)
{
	const struct child_args args = { .id = id,
		.project_id = project_id,
		.name = name };
	struct page_count same;
	const struct err *e;

	if (project_id == 0)
		return NULL;
	e = db_row(db, faults->a, child->same_name, &args, &same);
	if (e != NULL && e->code == ERR_NOTFOUND) {
		faults_add(faults, "/projectId", "unknown project");
		return NULL;
	}
	if (e == NULL && same.n > 0)
		faults_conflict(faults, "/name",
		    "another %s of the project has this name; choose another",
		    child->noun);
	return e;
}

const struct err *
child_delete(struct db *db, const struct stmt *which, int64_t id)
{
	const struct child_args args = { .id = id, .project_id = id };

	return db_exec(db, which, &args, NULL);
}
