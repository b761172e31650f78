/* SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <string.h>

#include "cli/admin.h"
#include "core/str.h"

static bool
to_do(const struct migration_state *m)
{
	return strcmp(m->state, "pending") == 0 ||
	    strcmp(m->state, "unfinished") == 0;
}

static void
print_states(const struct migration_state *m, size_t n)
{
	char when[STR_TIME_SIZE];
	size_t i;

	for (i = 0; i < n; i++) {
		when[0] = '\0';
		if (m[i].finished_at.ms != 0)
			str_time(when, m[i].finished_at.ms);
		(void)printf("%s %s%s%s\n", m[i].name, m[i].state,
		    when[0] == '\0' ? "" : " ", when);
	}
}

/* Whether a migration prevents others: it was changed, or is from a later
 * release. */
static bool
blocks(const struct migration_state *m)
{
	return strcmp(m->state, "changed") == 0 ||
	    strcmp(m->state, "unknown") == 0;
}

static const struct err *
apply(struct admin *admin, const struct migration_state *m, size_t n,
    size_t *done)
{
	const struct err *e;
	size_t i;

	for (i = 0; i < n; i++)
		if (blocks(&m[i]))
			return db_check_schema(admin->db);
	for (i = 0; i < n; i++) {
		if (!to_do(&m[i]))
			continue;
		(void)printf("applying %s\n", m[i].name);
		(void)fflush(stdout);
		if ((e = db_migrate(admin->db, m[i].name)) != NULL)
			return e;
		(*done)++;
	}
	return db_check_schema(admin->db);
}

const struct err *
admin_schema_is_current(struct admin *admin, bool *out)
{
	const struct migration_state *m;
	struct list list;
	const struct err *e;
	size_t i;

	*out = false;
	if ((e = db_migration_states(admin->db, admin->a, &list)) != NULL)
		return e;
	m = list.items;
	for (i = 0; i < list.n; i++) {
		if (blocks(&m[i]))
			return db_check_schema(admin->db);
		if (to_do(&m[i]))
			return NULL;
	}
	*out = true;
	return NULL;
}

const struct err *
admin_schema_apply(struct admin *admin)
{
	struct list list;
	const struct err *e;
	size_t done = 0;

	if ((e = db_migration_states(admin->db, admin->a, &list)) != NULL)
		return e;
	return apply(admin, list.items, list.n, &done);
}

const struct err *
admin_migrate(void *context, struct command_call *call)
{
	struct admin *admin = context;
	const struct admin_migrate *options = call->options;
	const struct migration_state *m;
	struct list list;
	const struct err *e;
	size_t i, done = 0;

	if ((e = db_migration_states(admin->db, admin->a, &list)) != NULL)
		return e;
	m = list.items;
	if (options->status) {
		print_states(m, list.n);
		return NULL;
	}
	if (!options->dry_run) {
		e = apply(admin, m, list.n, &done);
		if (e == NULL && done == 0)
			(void)printf("the schema is up to date\n");
		return e;
	}
	for (i = 0; i < list.n; i++)
		if (to_do(&m[i]))
			(void)printf("would apply %s\n", m[i].name);
	return NULL;
}
