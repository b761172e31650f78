/* SPDX-License-Identifier: ISC */
#include "store/change.h"

#include "store/store.h"

struct change_args {
	const char *ids;
	int64_t newest;
	int64_t idle;
	int64_t max;
	bool remote_user;
};
#define A(m) FIELD(struct change_args, m, 0)
#define C(m) FIELD(struct change, m, 0)
#define W(m) FIELD(struct change_watcher, m, 0)

static const struct field change_row[] = { C(id), C(project_id), C(status),
	C(version), C(log_size), C(ended), FIELD_END };
static const struct field read_args[] = { A(ids), A(newest), FIELD_END };

/* The version counts the transitions of the deployment and of its steps. */
#define SELECT                                                                 \
	"SELECT d.id, d.project_id, d.status,"                                 \
	" COALESCE(d.approval + 0, 0) + (d.started_at IS NOT NULL)"            \
	" + (d.cancel_at IS NOT NULL) + (d.finished_at IS NOT NULL)"           \
	" + IF(d.started_at IS NULL, 0, (SELECT COUNT(s.started_at)"           \
	" + COUNT(s.finished_at) FROM deployment_step s"                       \
	" WHERE s.deployment_id = d.id)) AS version,"                          \
	" IF(d.status <> 'running', d.log_size, COALESCE("                     \
	"(SELECT c.start + c.length FROM log_chunk c FORCE INDEX (PRIMARY)"    \
	" WHERE c.deployment_id = d.id ORDER BY c.start DESC LIMIT 1), 0))"    \
	" AS log_size, d.status NOT IN ('pending', 'running') AS ended"

static const struct field newest_row[] = { C(id), FIELD_END };
static const struct stmt newest_some = {
	.name = "change_newest",
	.sql = "SELECT id FROM deployment WHERE id >"
	       " (SELECT COALESCE(MAX(id), 0) - 500 FROM deployment)"
	       " ORDER BY id",
	.row = newest_row,
	.rowsize = sizeof(struct change),
};
static const struct stmt open_all = {
	.name = "change_open",
	.sql = SELECT " FROM (SELECT id FROM deployment"
		      " FORCE INDEX (deployment_status)"
		      " WHERE status IN ('pending', 'running')"
		      " ORDER BY id DESC LIMIT 4000) w"
		      " STRAIGHT_JOIN deployment d FORCE INDEX (PRIMARY)"
		      " ON d.id = w.id ORDER BY d.id",
	.row = change_row,
	.rowsize = sizeof(struct change),
};
static const struct stmt read_all = {
	.name = "change_read",
	.sql = SELECT " FROM (SELECT j.id FROM"
		      " JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) j"
		      " UNION SELECT n.id FROM (SELECT id FROM deployment"
		      " FORCE INDEX (PRIMARY) WHERE id > ?"
		      " ORDER BY id LIMIT 1000) n) w"
		      " STRAIGHT_JOIN deployment d FORCE INDEX (PRIMARY)"
		      " ON d.id = w.id ORDER BY d.id",
	.args = read_args,
	.row = change_row,
	.rowsize = sizeof(struct change),
};

#define ACTIVE_USER " u.valid = 1 AND u.status = 'active'"
#define VALID_TOKEN                                                            \
	" t.valid = 1 AND (t.expires_at IS NULL OR t.expires_at > NOW(3))"
static const struct field watcher_args[] = { A(ids), A(remote_user), A(idle),
	A(max), FIELD_END };
static const struct field watcher_row[] = { W(kind), W(id), W(project_id),
	W(projects), FIELD_END };
static const struct stmt watchers_valid = {
	.name = "change_watchers",
	.sql =
	    "SELECT j.kind, j.id, j.project_id, IF(u.role = 'guest',"
	    " COALESCE((SELECT CONCAT(',', GROUP_CONCAT(g.project_id"
	    " ORDER BY g.project_id), ',') FROM member g"
	    " FORCE INDEX (PRIMARY)"
	    " WHERE g.user_id = u.id), ','), NULL) AS projects"
	    " FROM JSON_TABLE(?, '$[*]' COLUMNS (kind VARCHAR(1) PATH '$[0]',"
	    " id BIGINT PATH '$[1]', project_id BIGINT PATH '$[2]')) j"
	    " LEFT JOIN session s FORCE INDEX (PRIMARY)"
	    " ON j.kind = 's' AND s.id = j.id"
	    " LEFT JOIN api_token t FORCE INDEX (PRIMARY)"
	    " ON t.id = IF(j.kind = 't', j.id, s.token_id)"
	    " LEFT JOIN user u FORCE INDEX (PRIMARY)"
	    " ON u.id = COALESCE(IF(j.kind = 'u', j.id,"
	    " NULL), s.user_id, t.user_id)"
	    " LEFT JOIN member m FORCE INDEX (PRIMARY)"
	    " ON m.user_id = u.id AND m.project_id = j.project_id"
	    " WHERE" ACTIVE_USER " AND (u.role <> 'guest' OR j.project_id = 0"
	    " OR m.role <> 'guest')"
	    " AND (t.id IS NULL OR (t.role <> 'guest' AND" VALID_TOKEN
	    " AND (? OR u.git_refused_at IS NULL)))"
	    " AND (j.kind <> 's' OR (s.expires_at > NOW(3)"
	    " AND s.last_used_at > NOW(3) - INTERVAL ? SECOND"
	    " AND s.created_at > NOW(3) - INTERVAL ? SECOND))",
	.args = watcher_args,
	.row = watcher_row,
	.rowsize = sizeof(struct change_watcher),
};

static const struct stmt *const change_stmts[] = { &newest_some, &open_all,
	&read_all, &watchers_valid, NULL };

const struct store change_store = {
	.stmts = change_stmts,
};

const struct err *
change_newest(struct db *db, struct arena *a, struct list *out)
{
	return db_rows(db, a, &newest_some, NULL, out);
}

const struct err *
change_open(struct db *db, struct arena *a, struct list *out)
{
	return db_rows(db, a, &open_all, NULL, out);
}

const struct err *
change_read(struct db *db, struct arena *a, const char *ids, int64_t newest,
    struct list *out)
{
	const struct change_args args = { .ids = ids, .newest = newest };

	return db_rows(db, a, &read_all, &args, out);
}

const struct err *
change_watchers(struct db *db, struct arena *a, const char *watchers,
    const struct session_term *term, struct list *out)
{
	const struct change_args args = { .ids = watchers,
		.idle = term->idle,
		.max = term->max,
		.remote_user = term->remote_user };

	return db_rows(db, a, &watchers_valid, &args, out);
}
