/* SPDX-License-Identifier: ISC */
#include "store/notifier.h"

#include "core/notice_event.h"
#include "store/columns.h"
#include "store/store.h"

#define A(m) FIELD(struct notifier, m, 0)

struct event_name {
	const char *name;
};
static const struct field event_fields[] = {
	FIELD(struct event_name, name, FIELD_OUT | FIELD_IN | FIELD_MUST,
	    .values = notice_event_names, .named = "NotifierEvent",
	    .doc = "An event."),
	FIELD_END,
};
const struct shape notifier_event_shape = {
	.name = "NotifierEvent",
	.fields = event_fields,
	.size = sizeof(struct event_name),
	.bare = true,
};

static const char *const kinds[] = { NOTIFIER_MAIL, NOTIFIER_TEXT,
	NOTIFIER_WEBHOOK, NULL };

/* clang-format off */
#define NOTIFIER(X, T)							\
	X(T, KEY, id, FIELD_OUT, .doc = "Id of the notifier.")		\
	X(T, ONCE, project_id,						\
	    FIELD_OUT | FIELD_IN | FIELD_ONCE | FIELD_NULL, .min = 1,	\
	    .doc = "Project of the events; null = all projects.")	\
	X(T, SET, environment_id, FIELD_OUT | FIELD_IN | FIELD_NULL,	\
	    .min = 1,							\
	    .doc = "Environment of the events; null = all of the project.") \
	X(T, ONCE, kind,						\
	    FIELD_OUT | FIELD_IN | FIELD_MUST | FIELD_ONCE,		\
	    .values = kinds, .named = "NotifierKind",			\
	    .doc = "Form of the messages. mail: mail by SMTP. text: POST of " \
		   "{\"text\": \"...\"}, as chat services accept it. "	\
		   "webhook: POST of the event, signed according to "	\
		   "Standard Webhooks.")				\
	X(T, SET, target,						\
	    FIELD_OUT | FIELD_IN | FIELD_MUST | FIELD_LINE, .min = 1,	\
	    .max = NOTIFIER_TARGET_MAX,					\
	    .doc = "Receiver: an https URL, or for mail up to 20 addresses, " \
		   "separated by commas.")				\
	X(T, SET, events, FIELD_OUT | FIELD_IN | FIELD_MUST, .min = 1,	\
	    .max = 6, .shape = &notifier_event_shape,			\
	    .doc = "Events of which it sends messages.")		\
	X(T, SET, active, FIELD_OUT | FIELD_IN | FIELD_TRUE,		\
	    .doc = "Whether it sends messages; default true. A receiver "	\
		   "that returns status 410 sets it to false.")		\
	X(T, NONE, secret, FIELD_OUT | FIELD_DETAIL | FIELD_NULL,	\
	    .doc = "Key that signs the messages of a webhook: shown when it " \
		   "is created, otherwise null.")			\
	X(T, READ, last_error, FIELD_OUT | FIELD_NULL,			\
	    .doc = "Why the last attempt failed; null if it succeeded.") \
	X(T, READ, last_delivered_at, FIELD_OUT | FIELD_NULL,		\
	    .doc = "Time of the last delivery.")			\
	X(T, READ, valid, FIELD_OUT | FIELD_NUMBER,			\
	    .doc = "1; 0 if deleted.")					\
	X(T, READ, created_at, FIELD_OUT, .doc = "Time of creation.")	\
	X(T, READ, updated_at, FIELD_OUT, .doc = "Time of the last change.") \
	X(T, ONCE, created_by, FIELD_OUT | FIELD_NULL,			\
	    .doc = "User who created it.")				\
	X(T, READ, version, 0, .doc = "Number of changes.")

static const struct field notifier_fields[] = {
	COLUMNS_FIELDS(NOTIFIER, struct notifier)
};
/* clang-format on */

const struct shape notifier_shape = {
	.name = "Notifier",
	.fields = notifier_fields,
	.size = sizeof(struct notifier),
	.doc = "A receiver of messages about deployments and locks.",
};

#define SELECT                                                                 \
	"SELECT " COLUMNS_SELECT(NOTIFIER) " FROM notifier WHERE valid = 1"

struct notifier_query {
	int64_t project_id;
	int64_t limit;
	int64_t offset;
};
#define Q(m) FIELD(struct notifier_query, m, 0)

static const struct field id_args[] = { A(id), FIELD_END };
static const struct stmt by_id = {
	.name = "notifier_by_id",
	.sql = SELECT " AND id = ?",
	.args = id_args,
	.row = notifier_fields,
	.rowsize = sizeof(struct notifier),
};
static const struct stmt lock = {
	.name = "notifier_lock",
	.sql = SELECT " AND id = ? FOR UPDATE",
	.args = id_args,
	.row = notifier_fields,
	.rowsize = sizeof(struct notifier),
};
static const struct stmt hold = {
	.name = "notifier_hold",
	.sql = "SELECT id FROM notifier WHERE id = ? FOR UPDATE",
	.args = id_args,
	.row = id_args,
	.rowsize = sizeof(struct notifier),
};
static const struct field page_args[] = { Q(limit), Q(offset), FIELD_END };
static const struct stmt page = {
	.name = "notifier_page",
	.sql = SELECT " ORDER BY id LIMIT ? OFFSET ?",
	.args = page_args,
	.row = notifier_fields,
	.rowsize = sizeof(struct notifier),
};
static const struct stmt count = {
	.name = "notifier_count",
	.sql = "SELECT COUNT(*) AS n FROM notifier WHERE valid = 1",
	.row = page_count_row,
	.rowsize = sizeof(struct page_count),
};
static const struct field page_of_args[] = { Q(project_id), Q(limit), Q(offset),
	FIELD_END };
static const struct stmt page_of = {
	.name = "notifier_page_of",
	.sql = SELECT " AND project_id = ? ORDER BY id LIMIT ? OFFSET ?",
	.args = page_of_args,
	.row = notifier_fields,
	.rowsize = sizeof(struct notifier),
};
static const struct field of_args[] = { Q(project_id), FIELD_END };
static const struct stmt count_of = {
	.name = "notifier_count_of",
	.sql = "SELECT COUNT(*) AS n FROM notifier"
	       " WHERE valid = 1 AND project_id = ?",
	.args = of_args,
	.row = page_count_row,
	.rowsize = sizeof(struct page_count),
};
/* clang-format off */
static const struct field insert_args[] = {
	COLUMNS_INSERT_ARGS(NOTIFIER, struct notifier)
};
static const struct field update_args[] = {
	COLUMNS_UPDATE_ARGS(NOTIFIER, struct notifier)
};
/* clang-format on */
static const struct stmt insert = {
	.name = "notifier_insert",
	.sql = COLUMNS_INSERT("notifier", NOTIFIER),
	.args = insert_args,
};
static const struct stmt update = {
	.name = "notifier_update",
	.sql = COLUMNS_UPDATE("notifier", NOTIFIER),
	.args = update_args,
};

static const struct stmt delete_one = {
	.name = "notifier_delete",
	.sql = "UPDATE notifier SET valid = 0, version = version + 1,"
	       " updated_at = CURRENT_TIMESTAMP(3) WHERE id = ? AND valid = 1",
	.args = id_args,
};
static const struct stmt drop_notices = {
	.name = "notifier_drop_notices",
	.sql = "DELETE FROM notice WHERE notifier_id = ?",
	.args = id_args,
};
/* clang-format off */
/* The statements that delete the notifiers of a project or an environment and
 * their undelivered messages. */
#define DELETE_WITH(which, column)					\
	static const struct field which##_args[] = { A(column), FIELD_END }; \
	static const struct stmt which##_drop_notices = {		\
		.name = "notifier_" #which "_drop_notices",		\
		.sql = "DELETE m FROM notice m"				\
		       " JOIN notifier n ON n.id = m.notifier_id"	\
		       " WHERE n.valid = 1 AND n." #column " = ?",	\
		.args = which##_args,					\
	};								\
	static const struct stmt which##_delete = {			\
		.name = "notifier_" #which "_delete",			\
		.sql = "UPDATE notifier SET valid = 0,"			\
		       " version = version + 1,"			\
		       " updated_at = CURRENT_TIMESTAMP(3)"		\
		       " WHERE " #column " = ? AND valid = 1",		\
		.args = which##_args,					\
	};
/* clang-format on */
DELETE_WITH(with_project, project_id)
DELETE_WITH(with_environment, environment_id)

struct sealing {
	struct blob secret;
	int64_t id;
};
#define S(m) FIELD(struct sealing, m, 0)
static const struct field secret_args[] = { S(secret), S(id), FIELD_END };
static const struct stmt secret_put = {
	.name = "notifier_secret_put",
	.sql = "UPDATE notifier SET old_secret = secret,"
	       " rotated_at = IF(secret IS NULL, NULL, NOW(3)), secret = ?"
	       " WHERE id = ?",
	.args = secret_args,
};
static const struct field result_args[] = { A(last_error), A(last_error), A(id),
	FIELD_END };
static const struct stmt result = {
	.name = "notifier_result",
	.sql = "UPDATE notifier SET last_delivered_at ="
	       " IF(? IS NULL, NOW(3), last_delivered_at), last_error = ?"
	       " WHERE id = ? AND valid = 1",
	.args = result_args,
};
static const struct field disable_args[] = { A(last_error), A(id), FIELD_END };
static const struct stmt disable = {
	.name = "notifier_disable",
	.sql = "UPDATE notifier SET active = 0, last_error = ?,"
	       " version = version + 1, updated_at = CURRENT_TIMESTAMP(3)"
	       " WHERE id = ? AND valid = 1",
	.args = disable_args,
};

static const struct stmt *const notifier_stmts[] = {
	&by_id,
	&lock,
	&hold,
	&page,
	&count,
	&page_of,
	&count_of,
	&insert,
	&update,
	&delete_one,
	&drop_notices,
	&with_project_drop_notices,
	&with_project_delete,
	&with_environment_drop_notices,
	&with_environment_delete,
	&secret_put,
	&result,
	&disable,
	NULL,
};

static const struct err *
delete_of_project(struct db *db, int64_t project_id)
{
	const struct notifier args = { .project_id = { project_id, true } };
	const struct err *e;

	if ((e = db_exec(db, &with_project_drop_notices, &args, NULL)) != NULL)
		return e;
	return db_exec(db, &with_project_delete, &args, NULL);
}

const struct err *
notifier_delete_of_environment(struct db *db, int64_t environment_id)
{
	const struct notifier args = { .environment_id = { environment_id,
					   true } };
	const struct err *e;

	e = db_exec(db, &with_environment_drop_notices, &args, NULL);
	if (e != NULL)
		return e;
	return db_exec(db, &with_environment_delete, &args, NULL);
}

const struct store notifier_store = {
	.stmts = notifier_stmts,
	.with_project = delete_of_project,
};

const struct err *
notifier_page(struct db *db, struct arena *a, int64_t project_id,
    struct page *p, struct list *out)
{
	const struct notifier_query q = { .project_id = project_id,
		.limit = p->limit,
		.offset = page_offset(p) };

	return project_id == 0 ?
	    page_read(db, a, &count, &page, &q, p, out) :
	    page_read(db, a, &count_of, &page_of, &q, p, out);
}

const struct err *
notifier_by_id(struct db *db, struct arena *a, int64_t id, struct notifier *out)
{
	const struct notifier args = { .id = id };

	return db_row(db, a, &by_id, &args, out);
}

const struct err *
notifier_lock(struct db *db, struct arena *a, int64_t id, struct notifier *out)
{
	const struct notifier args = { .id = id };

	return db_row(db, a, &lock, &args, out);
}

const struct err *
notifier_hold(struct db *db, struct arena *a, int64_t id)
{
	const struct notifier args = { .id = id };
	const struct err *e;
	struct notifier found;

	e = db_row(db, a, &hold, &args, &found);
	return e != NULL && e->code == ERR_NOTFOUND ? NULL : e;
}

const struct err *
notifier_insert(struct db *db, const struct notifier *n, int64_t *id)
{
	const struct err *e;
	struct db_done done;

	e = db_exec(db, &insert, n, &done);
	*id = e == NULL ? done.insert_id : 0;
	return e;
}

const struct err *
notifier_update(struct db *db, const struct notifier *n)
{
	return db_exec(db, &update, n, NULL);
}

const struct err *
notifier_delete(struct db *db, int64_t id)
{
	const struct notifier args = { .id = id };
	const struct err *e;

	if ((e = db_exec(db, &delete_one, &args, NULL)) != NULL)
		return e;
	return db_exec(db, &drop_notices, &args, NULL);
}

const struct err *
notifier_secret_put(struct db *db, int64_t id, struct blob secret)
{
	const struct sealing args = { .id = id, .secret = secret };

	return db_exec(db, &secret_put, &args, NULL);
}

const struct err *
notifier_result(struct db *db, int64_t id, const char *last_error)
{
	const struct notifier args = { .id = id, .last_error = last_error };

	return db_exec(db, &result, &args, NULL);
}

const struct err *
notifier_disable(struct db *db, int64_t id, const char *last_error)
{
	const struct notifier args = { .id = id, .last_error = last_error };
	const struct err *e;

	if ((e = db_exec(db, &disable, &args, NULL)) != NULL)
		return e;
	return db_exec(db, &drop_notices, &args, NULL);
}
