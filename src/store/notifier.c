/* SPDX-License-Identifier: ISC */
#include "store/notifier.h"

#include "core/notice_event.h"
#include "store/store.h"

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

#define N(m, ...) FIELD(struct notifier, m, __VA_ARGS__)
static const struct field notifier_fields[] = {
	N(id, FIELD_OUT, .doc = "Id of the notifier."),
	N(project_id, FIELD_OUT | FIELD_IN | FIELD_ONCE | FIELD_NULL, .min = 1,
	    .doc = "Project of the events; null = all projects."),
	N(environment_id, FIELD_OUT | FIELD_IN | FIELD_NULL, .min = 1,
	    .doc = "Environment of the events; null = all of the project."),
	N(kind, FIELD_OUT | FIELD_IN | FIELD_MUST | FIELD_ONCE, .values = kinds,
	    .named = "NotifierKind",
	    .doc = "Form of the messages. mail: mail by SMTP. text: POST of "
		   "{\"text\": \"...\"}, as chat services accept it. "
		   "webhook: POST of the event, signed according to Standard "
		   "Webhooks."),
	N(target, FIELD_OUT | FIELD_IN | FIELD_MUST | FIELD_LINE, .min = 1,
	    .max = NOTIFIER_TARGET_MAX,
	    .doc = "Receiver: an https URL, or for mail up to 20 addresses, "
		   "separated by commas."),
	N(events, FIELD_OUT | FIELD_IN | FIELD_MUST, .min = 1, .max = 6,
	    .shape = &notifier_event_shape,
	    .doc = "Events of which it sends messages."),
	N(active, FIELD_OUT | FIELD_IN | FIELD_TRUE,
	    .doc = "Whether it sends messages; default true. A receiver that "
		   "returns status 410 sets it to false."),
	N(secret, FIELD_OUT | FIELD_DETAIL | FIELD_NULL,
	    .doc = "Key that signs the messages of a webhook: shown when it "
		   "is created, otherwise null."),
	N(last_error, FIELD_OUT | FIELD_NULL,
	    .doc = "Why the last attempt failed; null if it succeeded."),
	N(last_delivered_at, FIELD_OUT | FIELD_NULL,
	    .doc = "Time of the last delivery."),
	N(valid, FIELD_OUT | FIELD_NUMBER, .doc = "1; 0 if deleted."),
	N(created_at, FIELD_OUT, .doc = "Time of creation."),
	N(updated_at, FIELD_OUT, .doc = "Time of the last change."),
	N(created_by, FIELD_OUT | FIELD_NULL, .doc = "User who created it."),
	FIELD_END,
};

const struct shape notifier_shape = {
	.name = "Notifier",
	.fields = notifier_fields,
	.size = sizeof(struct notifier),
	.doc = "A receiver of messages about deployments and locks.",
};

struct notifier_query {
	int64_t project_id;
	int64_t limit;
	int64_t offset;
};

struct sealing {
	struct blob secret;
	int64_t id;
};

#include "store/notifier.sql.h"

static const struct err *
delete_of_project(struct db *db, int64_t project_id)
{
	const struct notifier args = { .project_id = { project_id, true } };
	const struct err *e;

	if ((e = db_exec(db, &sql_notifier_with_project_drop_notices, &args,
		 NULL)) != NULL)
		return e;
	return db_exec(db, &sql_notifier_with_project_delete, &args, NULL);
}

const struct err *
notifier_delete_of_environment(struct db *db, int64_t environment_id)
{
	const struct notifier args = { .environment_id = { environment_id,
					   true } };
	const struct err *e;

	e = db_exec(db, &sql_notifier_with_environment_drop_notices, &args,
	    NULL);
	if (e != NULL)
		return e;
	return db_exec(db, &sql_notifier_with_environment_delete, &args, NULL);
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

	return project_id == 0 ? page_read(db, a, &sql_notifier_count,
				     &sql_notifier_page, &q, p, out) :
				 page_read(db, a, &sql_notifier_count_of,
				     &sql_notifier_page_of, &q, p, out);
}

const struct err *
notifier_by_id(struct db *db, struct arena *a, int64_t id, struct notifier *out)
{
	const struct notifier args = { .id = id };

	return db_row(db, a, &sql_notifier_by_id, &args, out);
}

const struct err *
notifier_lock(struct db *db, struct arena *a, int64_t id, struct notifier *out)
{
	const struct notifier args = { .id = id };

	return db_row(db, a, &sql_notifier_lock, &args, out);
}

const struct err *
notifier_hold(struct db *db, struct arena *a, int64_t id)
{
	const struct notifier args = { .id = id };
	const struct err *e;
	struct notifier found;

	e = db_row(db, a, &sql_notifier_hold, &args, &found);
	return e != NULL && e->code == ERR_NOTFOUND ? NULL : e;
}

const struct err *
notifier_insert(struct db *db, const struct notifier *n, int64_t *id)
{
	const struct err *e;
	struct db_done done;

	e = db_exec(db, &sql_notifier_insert, n, &done);
	*id = e == NULL ? done.insert_id : 0;
	return e;
}

const struct err *
notifier_update(struct db *db, const struct notifier *n)
{
	return db_exec(db, &sql_notifier_update, n, NULL);
}

const struct err *
notifier_delete(struct db *db, int64_t id)
{
	const struct notifier args = { .id = id };
	const struct err *e;

	if ((e = db_exec(db, &sql_notifier_delete, &args, NULL)) != NULL)
		return e;
	return db_exec(db, &sql_notifier_drop_notices, &args, NULL);
}

const struct err *
notifier_secret_put(struct db *db, int64_t id, struct blob secret)
{
	const struct sealing args = { .id = id, .secret = secret };

	return db_exec(db, &sql_notifier_secret_put, &args, NULL);
}

const struct err *
notifier_result(struct db *db, int64_t id, const char *last_error)
{
	const struct notifier args = { .id = id, .last_error = last_error };

	return db_exec(db, &sql_notifier_result, &args, NULL);
}

const struct err *
notifier_disable(struct db *db, int64_t id, const char *last_error)
{
	const struct notifier args = { .id = id, .last_error = last_error };
	const struct err *e;

	if ((e = db_exec(db, &sql_notifier_disable, &args, NULL)) != NULL)
		return e;
	return db_exec(db, &sql_notifier_drop_notices, &args, NULL);
}
