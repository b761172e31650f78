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
/* A later deployment reports on the same commit. While an older one's status
 * may still be on its way, the later one would not stay the last that the
 * server gets. */
static const struct stmt held_before = {
	.name = "report_held_before",
	.sql = "SELECT COUNT(*) AS n FROM commit_status y"
	       " JOIN deployment x ON x.id = y.deployment_id"
	       " JOIN deployment d ON d.id = ?"
	       " WHERE y.open = 1 AND y.next_at > NOW(3)"
	       " AND y.held_until > NOW(3) AND x.id < d.id"
	       " AND x.pipeline_id = d.pipeline_id"
	       " AND x.commit_hash = d.commit_hash",
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

static const struct field report_row[] = { R(deployment_id), R(wanted), R(told),
	R(attempts), R(age), R(fault), R(held_until), R(superseded),
	R(project_id), R(repository), R(pipeline_name), R(branch),
	R(commit_hash), R(reason), R(created_by), FIELD_END };
static const struct stmt load = {
	.name = "report_load",
	.sql = "SELECT s.deployment_id, s.wanted, s.told, s.attempts,"
	       " TIMESTAMPDIFF(SECOND, s.created_at, NOW(3)) AS age, s.fault,"
	       " s.held_until,"
	       " EXISTS (SELECT 1 FROM deployment x JOIN commit_status y"
	       " ON y.deployment_id = x.id WHERE x.pipeline_id = d.pipeline_id"
	       " AND x.id > d.id AND x.commit_hash = d.commit_hash)"
	       " AS superseded, d.project_id, p.repository,"
	       " l.name AS pipeline_name, d.branch, d.commit_hash, d.reason,"
	       " d.created_by FROM commit_status s"
	       " JOIN deployment d ON d.id = s.deployment_id"
	       " JOIN project p ON p.id = d.project_id"
	       " JOIN pipeline l ON l.id = d.pipeline_id"
	       " WHERE s.deployment_id = ?",
	.args = id_args,
	.row = report_row,
	.rowsize = sizeof(struct report),
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
	    done.affected == 0 || (e = db_row(db, a, &load, args, out)) != NULL)
		return e;
	if (!out->superseded)
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
