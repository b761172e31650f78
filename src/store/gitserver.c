/* SPDX-License-Identifier: ISC */
#include "store/gitserver.h"

#include "store/store.h"

struct gitserver_args {
	int64_t id;
	const char *before;
	const char *after;
};

#define A(m) FIELD(struct gitserver_args, m, 0)
#define B(m) FIELD(struct gitserver_users, m, 0)
#define T(m) FIELD(struct gitserver_twins, m, 0)
#define P(m) FIELD(struct gitserver_project, m, 0)
#define R(m) FIELD(struct gitserver_repo, m, 0)

static const struct field bound_row[] = { B(server), B(n), FIELD_END };
static const struct stmt bound = {
	.name = "gitserver_bound",
	.sql = "SELECT forge AS server, COUNT(*) AS n FROM user"
	       " WHERE forge IS NOT NULL AND valid = 1"
	       " GROUP BY forge ORDER BY forge",
	.row = bound_row,
	.rowsize = sizeof(struct gitserver_users),
};
static const struct field both_args[] = { A(before), A(after), FIELD_END };
static const struct field twins_row[] = { T(before), T(after), T(forge_id),
	FIELD_END };
static const struct stmt twins = {
	.name = "gitserver_twins",
	.sql = "SELECT a.username AS `before`, b.username AS `after`,"
	       " a.forge_id FROM user a"
	       " JOIN user b ON b.forge_id = a.forge_id"
	       " WHERE a.forge = ? AND b.forge = ? AND a.valid = 1"
	       " AND b.valid = 1 ORDER BY a.username",
	.args = both_args,
	.row = twins_row,
	.rowsize = sizeof(struct gitserver_twins),
};
static const struct field project_row[] = { P(id), P(name), P(repository),
	P(valid), FIELD_END };
static const struct stmt projects = {
	.name = "gitserver_projects",
	.sql = "SELECT id, name, repository, valid FROM project ORDER BY id",
	.row = project_row,
	.rowsize = sizeof(struct gitserver_project),
};
static const struct field before_args[] = { A(before), FIELD_END };
static const struct field repo_row[] = { R(repo_id), R(path), FIELD_END };
static const struct stmt repos = {
	.name = "gitserver_repos",
	.sql = "SELECT r.repo_id, r.path FROM git_repo r"
	       " JOIN project p ON p.id = r.project_id"
	       " WHERE r.server = ? AND p.valid = 1"
	       " ORDER BY r.project_id DESC LIMIT 20",
	.args = before_args,
	.row = repo_row,
	.rowsize = sizeof(struct gitserver_repo),
};

static const struct field move_args[] = { A(after), A(before), FIELD_END };
static const struct stmt move_users = {
	.name = "gitserver_move_users",
	.sql = "UPDATE user SET forge = ? WHERE forge = ?",
	.args = move_args,
};
static const struct stmt move_tokens = {
	.name = "gitserver_move_tokens",
	.sql = "UPDATE git_token SET server = ? WHERE server = ?",
	.args = move_args,
};
static const struct stmt move_repos = {
	.name = "gitserver_move_repos",
	.sql = "UPDATE git_repo SET server = ? WHERE server = ?",
	.args = move_args,
};
static const struct stmt move_submodules = {
	.name = "gitserver_move_submodules",
	.sql = "UPDATE git_submodule SET server = ? WHERE server = ?",
	.args = move_args,
};
/* A login becomes administrator only once: the older claim wins. */
static const struct stmt drop_claims = {
	.name = "gitserver_drop_claims",
	.sql = "DELETE n FROM admin_claim n JOIN admin_claim o"
	       " ON o.login = n.login WHERE n.forge = ? AND o.forge = ?",
	.args = move_args,
};
static const struct stmt move_claims = {
	.name = "gitserver_move_claims",
	.sql = "UPDATE admin_claim SET forge = ? WHERE forge = ?",
	.args = move_args,
};
static const struct field address_args[] = { A(after), A(id), A(before),
	FIELD_END };
static const struct stmt move_project = {
	.name = "gitserver_move_project",
	.sql = "UPDATE project SET repository = ?, version = version + 1,"
	       " updated_at = NOW(3) WHERE id = ? AND repository = ?",
	.args = address_args,
};
static const struct stmt move_known = {
	.name = "gitserver_move_known",
	.sql = "UPDATE git_repo SET repository = ?"
	       " WHERE project_id = ? AND repository = ?",
	.args = address_args,
};

static const struct stmt *const gitserver_stmts[] = {
	&bound,
	&twins,
	&projects,
	&repos,
	&move_users,
	&move_tokens,
	&move_repos,
	&move_submodules,
	&drop_claims,
	&move_claims,
	&move_project,
	&move_known,
	NULL,
};

const struct store gitserver_store = {
	.stmts = gitserver_stmts,
};

const struct err *
gitserver_bound(struct db *db, struct arena *a, struct list *out)
{
	return db_rows(db, a, &bound, NULL, out);
}

const struct err *
gitserver_twins_find(struct db *db, struct arena *a, const char *before,
    const char *after, struct list *out)
{
	const struct gitserver_args args = { .before = before, .after = after };

	return db_rows(db, a, &twins, &args, out);
}

const struct err *
gitserver_projects(struct db *db, struct arena *a, struct list *out)
{
	return db_rows(db, a, &projects, NULL, out);
}

const struct err *
gitserver_repos(struct db *db, struct arena *a, const char *server,
    struct list *out)
{
	const struct gitserver_args args = { .before = server };

	return db_rows(db, a, &repos, &args, out);
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
		{ &move_users, &out->users },
		{ &move_tokens, &out->tokens },
		{ &move_repos, &out->repositories },
		{ &move_submodules, NULL },
		{ &drop_claims, NULL },
		{ &move_claims, &out->claims },
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

	if ((e = db_exec(db, &move_project, &args, NULL)) != NULL)
		return e;
	return db_exec(db, &move_known, &args, NULL);
}
