/* SPDX-License-Identifier: ISC */
#include "store/sealed.h"

#include <string.h>

#include "core/str.h"
#include "store/deploy_key.h"
#include "store/env.h"
#include "store/gittoken.h"
#include "store/hook.h"
#include "store/notifier.h"
#include "store/session.h"
#include "store/store.h"

#define SMALL_ARENA ((size_t)256 * 1024)

#define R(m) FIELD(struct sealed_row, m, 0)
#define P(m) FIELD(struct put, m, 0)

struct put {
	int64_t id;
	const char *hash;
	struct blob value, old_value;
	struct json_text object, old_object;
};

struct label {
	const char *label;
};

static const struct field id_args[] = { R(id), FIELD_END };
static const struct field hash_args[] = { R(hash), FIELD_END };
static const struct field id_page_row[] = { R(id), R(size), FIELD_END };
static const struct field hash_page_row[] = { R(hash), R(size), FIELD_END };
static const struct field bytes_row[] = { R(id), R(value), FIELD_END };
static const struct field hash_row[] = { R(hash), R(value), FIELD_END };
static const struct field object_row[] = { R(id), R(owner), R(object),
	FIELD_END };
static const struct field bytes_put[] = { P(value), P(id), P(old_value),
	FIELD_END };
static const struct field hash_put[] = { P(value), P(hash), P(old_value),
	FIELD_END };
static const struct field object_put[] = { P(object), P(id), P(old_object),
	FIELD_END };
static const struct field label_row[] = { FIELD(struct label, label, 0),
	FIELD_END };

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

/* clang-format off */
/* place, table, its key, column; how its values are stored: member of the row
 * for the key, shape of page and row, what is read with it, form, purpose;
 * query for the label, and the plural name */
#define PLACES(X)							\
	X(git_access, "git_token", "user_id", "access",			\
	    id, bytes, "user_id AS id, ", "value",			\
	    SEALED_BYTES, token_purpose, user_label,			\
	    "access tokens of users")					\
	X(git_refresh, "git_token", "user_id", "refresh",		\
	    id, bytes, "user_id AS id, ", "value",			\
	    SEALED_BYTES, token_purpose, user_label,			\
	    "refresh tokens of users")					\
	X(hook, "hook_secret", "project_id", "secret",		\
	    id, bytes, "project_id AS id, ", "value",			\
	    SEALED_BYTES, hook_purpose, hook_label,			\
	    "hook secrets of projects")					\
	X(notifiers, "notifier", "id", "secret",				\
	    id, bytes, "id, ", "value",					\
	    SEALED_BYTES, notifier_purpose, notifier_label,		\
	    "secrets of notifiers")					\
	X(old_notifiers, "notifier", "id", "old_secret",		\
	    id, bytes, "id, ", "value",					\
	    SEALED_BYTES, notifier_purpose, notifier_label,		\
	    "earlier secrets of notifiers")				\
	X(signin, "signin", "state_hash", "verifier",			\
	    hash, hash, "state_hash AS hash, ", "value",		\
	    SEALED_BYTES, signin_purpose, signin_label,			\
	    "pending sign-ins")						\
	X(deploy_keys, "deploy_key", "project_id", "sealed",		\
	    id, object, "project_id AS id, project_id AS owner, ",	\
	    "object", SEALED_TEXT, deploy_key_purpose,			\
	    deploy_key_label, "deploy keys of projects")		\
	X(defaults, "project", "id", "secret_defaults",			\
	    id, object, "id, id AS owner, ", "object",			\
	    SEALED_NAMED, variable_purpose, project_label,		\
	    "defaults of projects")					\
	X(triggers, "project", "id", "trigger_secrets",			\
	    id, object, "id, id AS owner, ", "object",			\
	    SEALED_PREFIXED, variable_purpose, project_label,		\
	    "variables of triggers")					\
	X(environments, "environment", "id", "secret_values",		\
	    id, object, "id, project_id AS owner, ", "object",		\
	    SEALED_NAMED, variable_purpose, environment_label,		\
	    "variables of environments")				\
	X(shared, "variable_project", "id", "sealed",			\
	    id, object, "id, project_id AS owner, ", "object",		\
	    SEALED_NAMED, variable_purpose, shared_label,		\
	    "shared variables of projects")				\
	X(variables, "deployment", "id", "secret_vars",			\
	    id, object, "id, project_id AS owner, ", "object",		\
	    SEALED_NAMED, variable_purpose, deployment_label,		\
	    "variables of deployments")
/* clang-format on */

#define TEXT_(n) #n
#define TEXT(n) TEXT_(n)
#define SIZE_MAX_TEXT "4194304"
_Static_assert(SEALED_SIZE_MAX == 4194304, "must match the statements");

#define X(name_, table, key, column, by, form, more, as, ...)                  \
	static const struct stmt name_##_page = {                              \
		.name = "sealed_" #name_ "_page",                              \
		.sql = "SELECT " key " AS " #by ", OCTET_LENGTH(" column       \
		       ") AS size FROM " table " WHERE " key                   \
		       " > ? ORDER BY " key " LIMIT " TEXT(SEALED_PAGE),       \
		.args = by##_args,                                             \
		.row = by##_page_row,                                          \
		.rowsize = sizeof(struct sealed_row),                          \
	};                                                                     \
	static const struct stmt name_##_one = {                               \
		.name = "sealed_" #name_ "_one",                               \
		.sql = "SELECT " more column " AS " as " FROM " table          \
		       " WHERE " key " = ? AND OCTET_LENGTH(" column           \
		       ") <= " SIZE_MAX_TEXT,                                  \
		.args = by##_args,                                             \
		.row = form##_row,                                             \
		.rowsize = sizeof(struct sealed_row),                          \
	};                                                                     \
	static const struct stmt name_##_put = {                               \
		.name = "sealed_" #name_ "_put",                               \
		.sql = "UPDATE " table " SET " column " = ? WHERE " key        \
		       " = ? AND " column " = ?",                              \
		.args = form##_put,                                            \
	};
PLACES(X)
#undef X

static const struct stmt user_label = {
	.name = "sealed_user_label",
	.sql = "SELECT CONCAT('Git token of user ', username) AS label"
	       " FROM user WHERE id = ?",
	.args = id_args,
	.row = label_row,
	.rowsize = sizeof(struct label),
};
#define PROJECT_NAME                                                           \
	"'project ', p.id, ' (', p.name, IF(p.valid = 1, '', ', deleted'), ')'"
static const struct stmt hook_label = {
	.name = "sealed_hook_label",
	.sql = "SELECT CONCAT('hook secret of ', " PROJECT_NAME ") AS label"
	       " FROM project p WHERE p.id = ?",
	.args = id_args,
	.row = label_row,
	.rowsize = sizeof(struct label),
};
static const struct stmt deploy_key_label = {
	.name = "sealed_deploy_key_label",
	.sql = "SELECT CONCAT('deploy key of ', " PROJECT_NAME ") AS label"
	       " FROM project p WHERE p.id = ?",
	.args = id_args,
	.row = label_row,
	.rowsize = sizeof(struct label),
};
static const struct stmt notifier_label = {
	.name = "sealed_notifier_label",
	.sql = "SELECT CONCAT('secret of notifier ', id) AS label"
	       " FROM notifier WHERE id = ?",
	.args = id_args,
	.row = label_row,
	.rowsize = sizeof(struct label),
};
static const struct stmt signin_label = {
	.name = "sealed_signin_label",
	.sql = "SELECT CONCAT('pending sign-in of ', created_at)"
	       " AS label FROM signin WHERE state_hash = ?",
	.args = hash_args,
	.row = label_row,
	.rowsize = sizeof(struct label),
};
static const struct stmt project_label = {
	.name = "sealed_project_label",
	.sql = "SELECT CONCAT(" PROJECT_NAME ") AS label"
	       " FROM project p WHERE p.id = ?",
	.args = id_args,
	.row = label_row,
	.rowsize = sizeof(struct label),
};
static const struct stmt environment_label = {
	.name = "sealed_environment_label",
	.sql = "SELECT CONCAT('environment ', e.name, ' of ', " PROJECT_NAME ")"
	       " AS label FROM environment e"
	       " JOIN project p ON p.id = e.project_id WHERE e.id = ?",
	.args = id_args,
	.row = label_row,
	.rowsize = sizeof(struct label),
};
static const struct stmt shared_label = {
	.name = "sealed_shared_label",
	.sql =
	    "SELECT CONCAT('shared variable ', v.`key`, ' of ', " PROJECT_NAME
	    ") AS label FROM variable_project v"
	    " JOIN project p ON p.id = v.project_id WHERE v.id = ?",
	.args = id_args,
	.row = label_row,
	.rowsize = sizeof(struct label),
};
static const struct stmt deployment_label = {
	.name = "sealed_deployment_label",
	.sql = "SELECT CONCAT('deployment ', d.id, ' of ', " PROJECT_NAME ")"
	       " AS label FROM deployment d"
	       " JOIN project p ON p.id = d.project_id WHERE d.id = ?",
	.args = id_args,
	.row = label_row,
	.rowsize = sizeof(struct label),
};
/* Transactions that create a deployment lock the project's row while they
 * copy. */
static const struct field settle_row[] = { R(id), FIELD_END };
static const struct stmt settle = {
	.name = "sealed_settle",
	.sql = "SELECT id FROM project WHERE id > ? ORDER BY id LIMIT 50"
	       " FOR UPDATE",
	.args = id_args,
	.row = settle_row,
	.rowsize = sizeof(struct sealed_row),
};

const struct sealed_place sealed_places[] = {
#define X(name_, table, key, column, by, shape, more, as, form_, purpose_,     \
    label_, title)                                                             \
	{ .name = (title),                                                     \
		.form = (form_),                                               \
		.purpose = (purpose_),                                         \
		.page = &name_##_page,                                         \
		.one = &name_##_one,                                           \
		.put = &name_##_put,                                           \
		.label = &(label_) },
	PLACES(X)
#undef X
	    { .name = NULL },
};

static const struct stmt *const sealed_stmts[] = {
#define X(name_, ...) &name_##_page, &name_##_one, &name_##_put,
	PLACES(X)
#undef X
	    & user_label,
	&hook_label,
	&deploy_key_label,
	&notifier_label,
	&signin_label,
	&project_label,
	&environment_label,
	&shared_label,
	&deployment_label,
	&settle,
	NULL,
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
	return db_rows(db, s->a, &settle, &s->last, &s->found);
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
