/* SPDX-License-Identifier: ISC */
#include "store/sealed.h"

#include <string.h>

#include "store/deploy_key.h"
#include "store/env.h"
#include "store/gittoken.h"
#include "store/hook.h"
#include "store/notifier.h"
#include "store/session.h"
#include "store/store.h"

#define SMALL_ARENA ((size_t)256 * 1024)

struct put {
	int64_t id;
	const char *hash;
	struct blob value, old_value;
	struct json_text object, old_object;
};

struct label {
	const char *label;
};

static const char *
token_purpose(struct arena *a, const struct sealed_row *row, const char *name)
{
	(void)name;
	return arena_printf(a, GITTOKEN_PURPOSE, (long long)row->id);
}

static const char *
hook_purpose(struct arena *a, const struct sealed_row *row, const char *name)
{
	(void)name;
	return arena_printf(a, HOOK_PURPOSE, (long long)row->id);
}

static const char *
notifier_purpose(struct arena *a, const struct sealed_row *row,
    const char *name)
{
	(void)name;
	return arena_printf(a, NOTIFIER_PURPOSE, (long long)row->id);
}

static const char *
deploy_key_purpose(struct arena *a, const struct sealed_row *row,
    const char *name)
{
	(void)name;
	return arena_printf(a, DEPLOY_KEY_PURPOSE, (long long)row->id);
}

static const char *
signin_purpose(struct arena *a, const struct sealed_row *row, const char *name)
{
	(void)name;
	return arena_printf(a, SIGNIN_PURPOSE, row->hash);
}

static const char *
variable_purpose(struct arena *a, const struct sealed_row *row,
    const char *name)
{
	return arena_printf(a, ENV_PURPOSE, (long long)row->owner, name);
}

#include "store/sealed.sql.h"

_Static_assert(SQL_SEALED_PAGE == SEALED_PAGE, "see sealed.sql");
_Static_assert(SQL_SEALED_SIZE_MAX == SEALED_SIZE_MAX, "see sealed.sql");

/* The statements of a place, and that of its label. */
#define PLACE(place, kind)                                                     \
	.page = &sql_sealed_##place##_page, .one = &sql_sealed_##place##_one,  \
	.put = &sql_sealed_##place##_put, .label = &sql_sealed_##kind##_label

const struct sealed_place sealed_places[] = {
	{ .name = "access tokens of users",
	    .form = SEALED_BYTES,
	    .purpose = token_purpose,
	    PLACE(git_access, user) },
	{ .name = "refresh tokens of users",
	    .form = SEALED_BYTES,
	    .purpose = token_purpose,
	    PLACE(git_refresh, user) },
	{ .name = "hook secrets of projects",
	    .form = SEALED_BYTES,
	    .purpose = hook_purpose,
	    PLACE(hook, hook) },
	{ .name = "secrets of notifiers",
	    .form = SEALED_BYTES,
	    .purpose = notifier_purpose,
	    PLACE(notifiers, notifier) },
	{ .name = "earlier secrets of notifiers",
	    .form = SEALED_BYTES,
	    .purpose = notifier_purpose,
	    PLACE(old_notifiers, notifier) },
	{ .name = "pending sign-ins",
	    .form = SEALED_BYTES,
	    .purpose = signin_purpose,
	    PLACE(signin, signin) },
	{ .name = "deploy keys of projects",
	    .form = SEALED_TEXT,
	    .purpose = deploy_key_purpose,
	    PLACE(deploy_keys, deploy_key) },
	{ .name = "defaults of projects",
	    .form = SEALED_NAMED,
	    .purpose = variable_purpose,
	    PLACE(defaults, project) },
	{ .name = "variables of triggers",
	    .form = SEALED_PREFIXED,
	    .purpose = variable_purpose,
	    PLACE(triggers, project) },
	{ .name = "variables of environments",
	    .form = SEALED_NAMED,
	    .purpose = variable_purpose,
	    PLACE(environments, environment) },
	{ .name = "shared variables of projects",
	    .form = SEALED_NAMED,
	    .purpose = variable_purpose,
	    PLACE(shared, shared) },
	{ .name = "variables of deployments",
	    .form = SEALED_NAMED,
	    .purpose = variable_purpose,
	    PLACE(variables, deployment) },
	{ .name = NULL },
};

const struct store sealed_store = {
	.stmts = sealed_stmts,
};

const struct err *
sealed_page(struct db *db, struct arena *a, const struct sealed_place *place,
    const struct sealed_row *after, struct list *out)
{
	struct sealed_row args = *after;

	if (args.hash == NULL)
		args.hash = "";
	return db_rows(db, a, place->page, &args, out);
}

const struct err *
sealed_read(struct db *db, struct arena *a, const struct sealed_place *place,
    const struct sealed_row *row, struct sealed_row *out)
{
	return db_row(db, a, place->one, row, out);
}

const struct err *
sealed_put(struct db *db, const struct sealed_place *place,
    const struct sealed_row *old, const struct sealed_row *fresh, bool *done)
{
	const struct put args = { .id = old->id,
		.hash = old->hash,
		.value = fresh->value,
		.old_value = old->value,
		.object = fresh->object,
		.old_object = old->object };
	const struct err *e;
	struct db_done what;

	*done = false;
	if ((e = db_exec(db, place->put, &args, &what)) == NULL)
		*done = what.affected == 1;
	return e;
}

const struct err *
sealed_label(struct db *db, struct arena *a, const struct sealed_place *place,
    const struct sealed_row *row, const char **out)
{
	const struct err *e;
	struct label found;

	*out = place->name;
	e = db_row(db, a, place->label, row, &found);
	if (e != NULL && e->code == ERR_NOTFOUND)
		return NULL; /* the row was deleted */
	if (e == NULL)
		*out = found.label;
	return e;
}

struct settling {
	struct arena *a;
	struct sealed_row last;
	struct list found;
};

static const struct err *
settle_body(struct db *db, void *context)
{
	struct settling *s = context;

	arena_clear(s->a);
	return db_rows(db, s->a, &sql_sealed_settle, &s->last, &s->found);
}

const struct err *
sealed_settle(struct db *db)
{
	struct settling s = { .a = arena_open(SMALL_ARENA) };
	const struct sealed_row *row;
	const struct err *e;

	do {
		if ((e = db_transaction(db, settle_body, &s)) != NULL)
			break;
		row = s.found.items;
		if (s.found.n > 0)
			s.last.id = row[s.found.n - 1].id;
	} while (s.found.n > 0);
	arena_close(s.a);
	return e;
}
