/* SPDX-License-Identifier: ISC */
/* Transactions of slipway-admin, with their entries in the audit log. */
#include <assert.h>
#include <pwd.h>
#include <unistd.h>

#include "cli/admin.h"
#include "json/json.h"

#define CHANGES_MAX ((size_t)64 * 1024)

struct attempt {
	struct admin *admin;
	db_body *body;
	void *context;
};

static const struct err *
attempt_body(struct db *db, void *context)
{
	const struct attempt *t = context;
	const struct passwd *pw = getpwuid(getuid());
	struct admin_audit *entry = &t->admin->audit;
	struct audit row = { .username = pw == NULL ? NULL : pw->pw_name,
		.via = AUDIT_CLI,
		.action = t->admin->command };
	const struct err *e;

	*entry = (struct admin_audit){ .object.type = AUDIT_OF__MAX };
	if ((e = t->body(db, t->context)) != NULL || entry->is_unchanged)
		return e;
	assert(entry->object.type != AUDIT_OF__MAX);
	row.changes.s = entry->changes;
	return audit_write(db, &row, &entry->object);
}

const struct err *
admin_transaction(struct admin *admin, db_body *body, void *context)
{
	struct attempt t = { .admin = admin, .body = body, .context = context };

	return db_transaction(admin->db, attempt_body, &t);
}

bool
admin_changes(struct admin *admin, const struct shape *shape, const void *old,
    const void *new)
{
	struct admin_audit *entry = &admin->audit;
	struct buf b;

	buf_init(&b, CHANGES_MAX);
	entry->is_unchanged = !json_changes(&b, shape, old, new);
	entry->changes = b.overflow ? NULL :
				      arena_strndup(admin->a, b.data, b.len);
	buf_release(&b);
	return !entry->is_unchanged;
}
