/* SPDX-License-Identifier: ISC */
#include "store/gitserver.h"

#include "store/store.h"

struct gitserver_args {
	int64_t id;
	const char *before;
	const char *after;
};

#include "store/gitserver.sql.h"

const struct store gitserver_store = {
	.stmts = gitserver_stmts,
};

const struct err *
gitserver_bound(struct db *db, struct arena *a, struct list *out)
{
	return db_rows(db, a, &sql_gitserver_bound, NULL, out);
}

const struct err *
gitserver_twins_find(struct db *db, struct arena *a, const char *before,
    const char *after, struct list *out)
{
	const struct gitserver_args args = { .before = before, .after = after };

	return db_rows(db, a, &sql_gitserver_twins, &args, out);
}

const struct err *
gitserver_projects(struct db *db, struct arena *a, struct list *out)
{
	return db_rows(db, a, &sql_gitserver_projects, NULL, out);
}

const struct err *
gitserver_repos(struct db *db, struct arena *a, const char *server,
    struct list *out)
{
	const struct gitserver_args args = { .before = server };

	return db_rows(db, a, &sql_gitserver_repos, &args, out);
}

const struct err *
gitserver_move(struct db *db, const char *before, const char *after,
    struct gitserver_moved *out)
{
	const struct gitserver_args args = { .before = before, .after = after };
	const struct {
		const struct stmt *stmt;
		int64_t *n;
	} all[] = {
		{ &sql_gitserver_move_users, &out->users },
		{ &sql_gitserver_move_tokens, &out->tokens },
		{ &sql_gitserver_move_repos, &out->repositories },
		{ &sql_gitserver_move_submodules, NULL },
		{ &sql_gitserver_drop_claims, NULL },
		{ &sql_gitserver_move_claims, &out->claims },
	};
	const struct err *e;
	struct db_done done;
	size_t i;

	*out = (struct gitserver_moved){ .users = 0 };
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if ((e = db_exec(db, all[i].stmt, &args, &done)) != NULL)
			return e;
		if (all[i].n != NULL)
			*all[i].n = done.affected;
	}
	return NULL;
}

const struct err *
gitserver_project_move(struct db *db, const struct gitserver_project *p,
    const char *address)
{
	const struct gitserver_args args = { .id = p->id,
		.before = p->repository,
		.after = address };
	const struct err *e;

	if ((e = db_exec(db, &sql_gitserver_move_project, &args, NULL)) != NULL)
		return e;
	return db_exec(db, &sql_gitserver_move_known, &args, NULL);
}
