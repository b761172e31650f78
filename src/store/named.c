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
#define A(m) FIELD(struct named, m, 0)
static const struct field id_row[] = { A(id), FIELD_END };
static const struct field name_args[] = { A(name), FIELD_END };
static const struct field child_args[] = { A(project_id), A(name), FIELD_END };

/* clang-format off */
#define NAMED(text, args_) {						\
	.name = "named_" text,						\
	.args = args_,							\
	.row = id_row,							\
	.rowsize = sizeof(struct named),				\
	.sql = "SELECT id FROM " text " WHERE "
#define CHILD(text)							\
	NAMED(text, child_args) "project_id = ? AND live_name = ?" }
/* clang-format on */

static const struct stmt
    by_name[NAMED__MAX] = { [NAMED_PROJECT] = NAMED("project",
				name_args) "live_name = ?" },
    [NAMED_USER] = NAMED("user", name_args) "live_username = ?"
}
, [NAMED_PIPELINE] = CHILD("pipeline"),
  [NAMED_ENVIRONMENT] = CHILD("environment"),
  [NAMED_SCHEDULE] = CHILD("schedule"),
}
;

#define N(m) FIELD(struct notifier, m, 0)
static const struct field notifier_args[] = { N(project_id), N(kind), N(target),
	N(environment_id), N(id), FIELD_END };
static const struct stmt same_notifier = {
	.name = "named_notifier",
	.sql = "SELECT id FROM notifier WHERE valid = 1 AND project_id = ?"
	       " AND kind = ? AND target = ? AND environment_id <=> ?"
	       " AND id > ? ORDER BY id LIMIT 1",
	.args = notifier_args,
	.row = id_row,
	.rowsize = sizeof(struct named),
};

static const struct stmt *const named_stmts[] = { &by_name[NAMED_PROJECT],
	&by_name[NAMED_USER], &by_name[NAMED_PIPELINE],
	&by_name[NAMED_ENVIRONMENT], &by_name[NAMED_SCHEDULE], &same_notifier,
	NULL };

const struct store named_store = {
	.stmts = named_stmts,
};

static const struct err *
find(struct db *db, const struct stmt *which, const void *args, int64_t *id)
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
	return name == NULL ? NULL : find(db, &by_name[type], &args, id);
}

const struct err *
named_notifier(struct db *db, const struct notifier *like, int64_t *id)
{
	return find(db, &same_notifier, like, id);
}
