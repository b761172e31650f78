/* SPDX-License-Identifier: ISC */
#include "store/named.h"

#include "store/notifier.h"
#include "store/store.h"

#define ROOM ((size_t)64 * 1024)

struct named {
	int64_t id;
	int64_t project_id;
	const char *name;
};

#include "store/named.sql.h"

static const struct stmt *const by_name[NAMED__MAX] = {
	[NAMED_PROJECT] = &sql_named_project,
	[NAMED_USER] = &sql_named_user,
	[NAMED_PIPELINE] = &sql_named_pipeline,
	[NAMED_ENVIRONMENT] = &sql_named_environment,
	[NAMED_SCHEDULE] = &sql_named_schedule,
};

const struct store named_store = {
	.stmts = named_stmts,
};

static const struct err *
id_find(struct db *db, const struct stmt *which, const void *args, int64_t *id)
{
	struct arena *a = arena_open(ROOM);
	struct named found = { .id = 0 };
	const struct err *e = db_row(db, a, which, args, &found);

	*id = found.id;
	arena_close(a);
	return e != NULL && e->code == ERR_NOTFOUND ? NULL : e;
}

const struct err *
named_find(struct db *db, enum named_type type, int64_t project_id,
    const char *name, int64_t *id)
{
	const struct named args = { .project_id = project_id, .name = name };

	*id = 0;
	return name == NULL ? NULL : id_find(db, by_name[type], &args, id);
}

const struct err *
named_notifier(struct db *db, const struct notifier *like, int64_t *id)
{
	return id_find(db, &sql_named_notifier, like, id);
}
