/* SPDX-License-Identifier: ISC */
#include "store/audit.h"

#include "core/buf.h"
#include "core/num.h"
#include "store/store.h"

#define C(m, ...) FIELD(struct audit_change, m, FIELD_OUT | __VA_ARGS__)
static const struct field change_fields[] = {
	C(name, 0, .doc = "Name of the member."),
	C(from, FIELD_NULL,
	    .doc = "Its value before; null if it had none or is a text, a "
		   "list or an object: these are not recorded."),
	C(to, FIELD_NULL, .doc = "Its new value; null as above."),
	FIELD_END,
};
const struct shape audit_change_shape = {
	.name = "AuditChange",
	.fields = change_fields,
	.size = sizeof(struct audit_change),
	.doc = "A member that was set or changed.",
};

static const char *const objects[] = {
#define X(name, text) text,
	AUDIT_OBJECTS(X)
#undef X
	    NULL
};
static const char *const vias[] = { AUDIT_SESSION, AUDIT_TOKEN, AUDIT_HOOK,
	AUDIT_CLI, AUDIT_RUNNER, NULL };

#define R(m, ...) FIELD(struct audit, m, FIELD_OUT | __VA_ARGS__)
static const struct field audit_fields[] = {
	R(id, 0, .doc = "Id of the entry."),
	R(at, 0, .doc = "Time of the change."),
	R(user_id, FIELD_NULL, .doc = "User who made it."),
	R(username, FIELD_NULL,
	    .doc = "The user's name at that time; of slipway-admin the account "
		   "on the host, of a runner its name."),
	R(via, 0, .values = vias, .named = "AuditVia",
	    .doc = "Where the change came from."),
	R(token_name, FIELD_NULL, .doc = "Name of the API token."),
	R(address, FIELD_NULL, .doc = "Address of the client."),
	R(action, 0,
	    .doc = "Id of the operation in this document, or a command of "
		   "slipway-admin; of a runner fireSchedule, catchUp, "
		   "followRepository, expireLock or endDeployment."),
	R(object_type, 0, .values = objects, .named = "AuditObject",
	    .doc = "Type of the changed object."),
	R(object_id, FIELD_NULL, .doc = "Id of the changed object."),
	R(project_id, FIELD_NULL, .doc = "Project that it belongs to."),
	R(changes, 0, .shape = &audit_change_shape,
	    .doc = "Members that were set or changed."),
	FIELD_END,
};
const struct shape audit_shape = {
	.name = "AuditEntry",
	.fields = audit_fields,
	.size = sizeof(struct audit),
	.doc = "A change, and who made it.",
};

struct audit_query {
	int64_t project_id;
	int64_t before;
	int64_t limit;
	int64_t days;
};

/* The oldest entry has the lowest id. */
struct oldest {
	int64_t id;
	bool expired;
};

#include "store/audit.sql.h"

const struct store audit_store = {
	.stmts = audit_stmts,
};

const struct err *
audit_write(struct db *db, const struct audit *entry,
    const struct audit_object_ref *object)
{
	struct audit args = *entry;

	args.object_type = objects[object->type];
	args.object_id = (struct maybe){ object->id, object->id != 0 };
	args.project_id = (struct maybe){ object->project_id,
		object->project_id != 0 };
	return db_exec(db, &sql_audit_insert, &args, NULL);
}

const struct err *
audit_start(struct db *db, const char *runner, const char *action,
    int64_t deployment_id, int64_t project_id)
{
	const struct audit_object_ref object = { AUDIT_OF_DEPLOYMENT,
		deployment_id, project_id };
	const struct audit entry = { .via = AUDIT_RUNNER,
		.username = runner,
		.action = action };

	return audit_write(db, &entry, &object);
}

void
audit_end_changes(struct buf *out, enum state from, enum state to,
    enum reason reason)
{
	buf_printf(out, "[{\"name\":\"status\",\"from\":\"%s\",\"to\":\"%s\"}",
	    state_kinds[from].name, state_kinds[to].name);
	if (reason_kinds[reason].name != NULL)
		buf_printf(out,
		    ",{\"name\":\"reason\",\"from\":null,\"to\":\"%s\"}",
		    reason_kinds[reason].name);
	buf_putc(out, ']');
}

const struct err *
audit_page(struct db *db, struct arena *a, int64_t project_id, int64_t before,
    int64_t limit, struct list *out, int64_t *next)
{
	const struct audit_query args = { .project_id = project_id,
		.before = before == 0 ? NUM_SAFE : before,
		.limit = limit + 1 };
	const struct audit *entry;
	const struct err *e;

	*next = 0;
	e = db_rows(db, a,
	    project_id != 0 ? &sql_audit_page_of : &sql_audit_page, &args, out);
	if (e != NULL || out->n <= (size_t)limit)
		return e;
	out->n = (size_t)limit;
	entry = out->items;
	*next = entry[out->n - 1].id;
	return NULL;
}

const struct err *
audit_tidy(struct db *db, struct arena *a, int64_t days)
{
	struct audit_query args = { .days = days };
	struct oldest first;
	const struct err *e;

	if (days == 0)
		return NULL;
	e = db_row(db, a, &sql_audit_oldest, &args, &first);
	if (e != NULL)
		return e->code == ERR_NOTFOUND ? NULL : e;
	args.before = first.id;
	return first.expired ? db_exec(db, &sql_audit_tidy, &args, NULL) : NULL;
}
