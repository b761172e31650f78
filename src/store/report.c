/* SPDX-License-Identifier: ISC */
#include "store/report.h"

#include <string.h>

#include "core/address.h"
#include "core/str.h"
#include "store/store.h"

#define HOST_ARENA ((size_t)4096)
#define SMALL_ARENA 4096
#define ROUNDS 64 /* attempts before a claim gives up */

/* Arguments of all statements here. */
struct report_args {
	int64_t id;
	const char *state;
	const char *status;
	const char *reason;
	const char *host;
	const char *fault;
	int64_t seconds;
	struct when held_until;
};
struct number {
	int64_t n;
};

#define A(m) FIELD(struct report_args, m, 0, .doc = NULL)
#define R(m) FIELD(struct report, m, 0, .doc = NULL)

static const struct field n_row[] = {
	FIELD(struct number, n, 0, .doc = NULL),
	FIELD_END,
};
static const struct field id_args[] = { A(id), FIELD_END };

/* An attempt in progress to send an older state is allowed to finish, so that
 * the server gets the states in order. */
#define WANT                                                                   \
	"INSERT INTO commit_status (deployment_id, wanted)"                    \
	" SELECT d.id, ? FROM deployment d"                                    \
	" JOIN project p ON p.id = d.project_id WHERE "
#define KNOWN                                                                  \
	" AND CHAR_LENGTH(d.commit_hash) IN (40, 64)"                          \
	" AND LOCATE(?, p.repository) > 0"                                     \
	" ON DUPLICATE KEY UPDATE wanted = VALUES(wanted), dropped = 0,"       \
	" attempts = 0, created_at = NOW(3),"                                  \
	" next_at = IF(held_until > NOW(3), next_at, NOW(3))"
static const struct field want_args[] = { A(state), A(id), A(host), FIELD_END };
static const struct stmt want = {
	.name = "report_want",
	.sql = WANT "d.id = ?" KNOWN,
	.args = want_args,
};
static const struct field want_ended_args[] = { A(state), A(id), A(status),
	A(reason), A(host), FIELD_END };
static const struct stmt want_ended = {
	.name = "report_want_ended",
	.sql = WANT "d.project_id = ? AND d.status = ? AND d.reason = ?" KNOWN,
	.args = want_ended_args,
};

static const struct stmt candidates = {
	.name = "report_candidates",
	.sql = "SELECT deployment_id AS n FROM commit_status"
	       " WHERE open = 1 AND next_at <= NOW(3)"
	       " ORDER BY next_at LIMIT 4",
	.row = n_row,
	.rowsize = sizeof(struct number),
};
/* One status has the commit's deployments to one place: the environment, or,
 * without one, the pipeline. */
#define SAME_STATUS                                                            \
	"x.commit_hash = d.commit_hash AND x.project_id = d.project_id"        \
	" AND x.environment_id <=> d.environment_id"                           \
	" AND (d.environment_id IS NOT NULL"                                   \
	" OR x.pipeline_id = d.pipeline_id)"
/* Another deployment reports with the same status. While that report may still
 * be on its way, this one would not stay the last that the server gets. */
static const struct stmt held_before = {
	.name = "report_held_before",
	.sql = "SELECT COUNT(*) AS n FROM commit_status y"
	       " JOIN deployment x ON x.id = y.deployment_id"
	       " JOIN deployment d ON d.id = ?"
	       " WHERE y.open = 1 AND y.next_at > NOW(3)"
	       " AND y.held_until > NOW(3) AND x.id <> d.id"
	       " AND " SAME_STATUS,
	.args = id_args,
	.row = n_row,
	.rowsize = sizeof(struct number),
};
static const struct stmt defer = {
	.name = "report_defer",
	.sql = "UPDATE commit_status SET next_at = NOW(3) + INTERVAL 1 SECOND"
	       " WHERE deployment_id = ? AND open = 1 AND next_at <= NOW(3)",
	.args = id_args,
};
static const struct field take_args[] = { A(seconds), A(id), FIELD_END };
static const struct stmt take = {
	.name = "report_take",
	.sql = "UPDATE commit_status SET attempts = attempts + 1,"
	       " next_at = NOW(3) + INTERVAL ? SECOND, held_until = next_at"
	       " WHERE deployment_id = ? AND open = 1 AND next_at <= NOW(3)",
	.args = take_args,
};

/* Of several projects with one repository, the first one that has a place of a
 * name gives its name to the status; the others add their own. */
static const struct field report_row[] = { R(deployment_id), R(wanted), R(told),
	R(attempts), R(age), R(fault), R(held_until), R(project_id),
	R(project_name), R(repository), R(environment_name), R(pipeline_name),
	R(is_shared), R(branch), R(tag), R(commit_hash), R(created_by),
	FIELD_END };
static const struct stmt load = {
	.name = "report_load",
	.sql = "SELECT s.deployment_id, s.wanted, s.told, s.attempts,"
	       " TIMESTAMPDIFF(SECOND, s.created_at, NOW(3)) AS age, s.fault,"
	       " s.held_until, d.project_id, p.name AS project_name,"
	       " p.repository, e.name AS environment_name,"
	       " l.name AS pipeline_name,"
	       " EXISTS (SELECT 1 FROM project q"
	       " WHERE q.repository = p.repository AND q.id < p.id"
	       " AND q.valid = 1 AND (EXISTS (SELECT 1 FROM environment f"
	       " WHERE f.project_id = q.id AND f.valid = 1"
	       " AND f.name = COALESCE(e.name, l.name))"
	       " OR EXISTS (SELECT 1 FROM pipeline m"
	       " WHERE m.project_id = q.id AND m.valid = 1"
	       " AND m.name = COALESCE(e.name, l.name)))) AS is_shared,"
	       " d.branch, d.tag, d.commit_hash, d.created_by"
	       " FROM commit_status s"
	       " JOIN deployment d ON d.id = s.deployment_id"
	       " JOIN project p ON p.id = d.project_id"
	       " JOIN pipeline l ON l.id = d.pipeline_id"
	       " LEFT JOIN environment e ON e.id = d.environment_id"
	       " WHERE s.deployment_id = ?",
	.args = id_args,
	.row = report_row,
	.rowsize = sizeof(struct report),
};

/* What the status shows: the newest of its deployments that was not skipped. So
 * one that never began leaves the commit as it was. */
#define SKIPPED                                                                \
	"(y.wanted = 'canceled' AND NOT EXISTS (SELECT 1"                      \
	" FROM deployment_step t WHERE t.deployment_id = x.id"                 \
	" AND t.started_at IS NOT NULL))"
#define W(m) FIELD(struct report_shown, m, 0, .doc = NULL)
static const struct field shown_row[] = { W(deployment_id), W(wanted),
	W(reason), W(is_skipped), W(needs_approval), W(is_warned), FIELD_END };
static const struct stmt shown = {
	.name = "report_shown",
	.sql = "SELECT x.id AS deployment_id, y.wanted, x.reason,"
	       " " SKIPPED " AS is_skipped,"
	       " (y.wanted = 'pending'"
	       " AND COALESCE(x.approval, '') = 'required') AS needs_approval,"
	       " x.warnings > 0 AS is_warned"
	       " FROM deployment d JOIN deployment x ON " SAME_STATUS
	       " JOIN commit_status y ON y.deployment_id = x.id"
	       " WHERE d.id = ? ORDER BY is_skipped, x.id DESC LIMIT 1",
	.args = id_args,
	.row = shown_row,
	.rowsize = sizeof(struct report_shown),
};
static const struct stmt again = {
	.name = "report_again",
	.sql = "UPDATE commit_status SET told = NULL, dropped = 0,"
	       " attempts = 0, created_at = NOW(3),"
	       " next_at = IF(held_until > NOW(3), next_at, NOW(3))"
	       " WHERE deployment_id = ?",
	.args = id_args,
};

/* If a holder was silent for so long that another took over, both may have sent
 * a status, in unknown order. The last one sent is then unknown, so the status
 * is sent once more. */
static const struct field told_args[] = { A(held_until), A(state),
	A(held_until), A(id), FIELD_END };
static const struct stmt told = {
	.name = "report_told",
	.sql = "UPDATE commit_status SET told = IF(held_until <=> ?, ?, NULL),"
	       " next_at = IF(held_until <=> ?, NOW(3), next_at),"
	       " fault = NULL, held_until = NULL WHERE deployment_id = ?",
	.args = told_args,
};
static const struct field later_args[] = { A(fault), A(state), A(seconds),
	A(id), A(held_until), FIELD_END };
static const struct stmt later = {
	.name = "report_later",
	.sql = "UPDATE commit_status SET fault = ?, held_until = NULL,"
	       " next_at = NOW(3) + INTERVAL IF(wanted = ?, ?, 0) SECOND"
	       " WHERE deployment_id = ? AND held_until <=> ?",
	.args = later_args,
};
static const struct field drop_args[] = { A(fault), A(state), A(id),
	A(held_until), FIELD_END };
static const struct stmt drop = {
	.name = "report_drop",
	.sql = "UPDATE commit_status SET fault = ?, held_until = NULL,"
	       " next_at = NOW(3), dropped = IF(wanted = ?, 1, 0)"
	       " WHERE deployment_id = ? AND held_until <=> ?",
	.args = drop_args,
};

static const struct stmt due = {
	.name = "report_due",
	.sql = "SELECT GREATEST(0, TIMESTAMPDIFF(MICROSECOND, NOW(3), next_at)"
	       " DIV 1000) AS n FROM commit_status WHERE open = 1"
	       " ORDER BY next_at LIMIT 1",
	.row = n_row,
	.rowsize = sizeof(struct number),
};

static const struct stmt *const report_stmts[] = {
	&want,
	&want_ended,
	&candidates,
	&held_before,
	&defer,
	&take,
	&load,
	&shown,
	&again,
	&told,
	&later,
	&drop,
	&due,
	NULL,
};

const struct store report_store = {
	.stmts = report_stmts,
};

bool
report_wanted(const struct settings_gitserver *g)
{
	return g->report && g->url != NULL && g->type != NULL &&
	    strcmp(g->type, "git") != 0;
}

static const struct err *
write_want(struct db *db, const struct stmt *how,
    const struct report_args *wanted)
{
	const struct settings_gitserver *g = &db_settings(db)->gitserver;
	struct report_args args = *wanted;
	struct address ad;
	const struct err *e;
	struct arena *a;

	if (!report_wanted(g) || !address_read(g->url, &ad))
		return NULL;
	/* Every form of a URL on that server contains its host. Repositories
	 * elsewhere cause no work. */
	a = arena_open(HOST_ARENA);
	args.host = arena_strndup(a, ad.host, ad.host_len);
	e = db_exec(db, how, &args, NULL);
	arena_close(a);
	return e;
}

const struct err *
report_want(struct db *db, int64_t deployment_id, enum commit_state state)
{
	const struct report_args args = { .id = deployment_id,
		.state = commit_kinds[state].name };

	return write_want(db, &want, &args);
}

const struct err *
report_want_ended(struct db *db, int64_t project_id, enum reason reason)
{
	const struct reason_kind *why = &reason_kinds[reason];
	const struct report_args args = { .id = project_id,
		.state = commit_kinds[why->commit].name,
		.status = state_kinds[why->ends].name,
		.reason = why->name };

	return write_want(db, &want_ended, &args);
}

const struct err *
report_again(struct db *db, int64_t deployment_id)
{
	const struct report_args args = { .id = deployment_id };

	return db_exec(db, &again, &args, NULL);
}

/* Claims the row if it is still due. Otherwise the queue has changed: the row
 * was postponed, or needs no report any more. */
static const struct err *
claim_one(struct db *db, struct arena *a, const struct report_args *args,
    struct report *out, bool *moved)
{
	struct db_done done;
	const struct err *e;
	struct number older;

	out->deployment_id = 0;
	if ((e = db_row(db, a, &held_before, args, &older)) != NULL)
		return e;
	if (older.n > 0) {
		*moved = true;
		return db_exec(db, &defer, args, NULL);
	}
	if ((e = db_exec(db, &take, args, &done)) != NULL ||
	    done.affected == 0 ||
	    (e = db_row(db, a, &load, args, out)) != NULL ||
	    (e = db_row(db, a, &shown, args, &out->shown)) != NULL)
		return e;
	if (out->shown.deployment_id <= out->deployment_id)
		return NULL;
	*moved = true;
	e = report_drop(db, out, NULL);
	out->deployment_id = 0;
	return e;
}

const struct err *
report_claim(struct db *db, struct arena *a, int64_t seconds,
    struct report *out)
{
	struct report_args args = { .seconds = seconds };
	const struct number *found;
	const struct err *e;
	bool moved = true;
	struct list list;
	int round;
	size_t i;

	(void)memset(out, 0, sizeof(*out));
	for (round = 0; moved && round < ROUNDS; round++) {
		moved = false;
		if ((e = db_rows(db, a, &candidates, NULL, &list)) != NULL)
			return e;
		found = list.items;
		for (i = 0; i < list.n; i++) {
			args.id = found[i].n;
			if ((e = claim_one(db, a, &args, out, &moved)) !=
				NULL ||
			    out->deployment_id != 0)
				return e;
		}
	}
	return err_new(ERR_NOTFOUND, "no status to send");
}

const struct err *
report_told(struct db *db, const struct report *r)
{
	const struct report_args args = { .id = r->deployment_id,
		.state = r->wanted,
		.held_until = r->held_until };

	return db_exec(db, &told, &args, NULL);
}

const struct err *
report_later(struct db *db, const struct report *r, int64_t seconds,
    const char *fault)
{
	const struct report_args args = { .id = r->deployment_id,
		.state = r->wanted,
		.seconds = seconds,
		.fault = fault,
		.held_until = r->held_until };

	return db_exec(db, &later, &args, NULL);
}

const struct err *
report_drop(struct db *db, const struct report *r, const char *fault)
{
	const struct report_args args = { .id = r->deployment_id,
		.state = r->wanted,
		.fault = fault,
		.held_until = r->held_until };

	return db_exec(db, &drop, &args, NULL);
}

const struct err *
report_due(struct db *db, int64_t max, int64_t *out)
{
	struct arena *a = arena_open(SMALL_ARENA);
	const struct err *e;
	struct number found;

	*out = max;
	e = db_row(db, a, &due, NULL, &found);
	arena_close(a);
	if (e != NULL && e->code == ERR_NOTFOUND)
		return NULL;
	if (e == NULL && found.n < max)
		*out = found.n;
	return e;
}
