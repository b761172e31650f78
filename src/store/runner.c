/* SPDX-License-Identifier: ISC */
#include "store/runner.h"

#include "store/member.h"
#include "store/store.h"

static const struct field label_fields[] = {
	FIELD(struct runner_label, text, FIELD_OUT, .doc = "A label."),
	FIELD_END,
};
const struct shape runner_label_shape = {
	.name = "RunnerLabel",
	.fields = label_fields,
	.size = sizeof(struct runner_label),
	.bare = true,
};

#define R(m, ...) FIELD(struct runner, m, FIELD_OUT, __VA_ARGS__)
static const struct field runner_fields[] = {
	R(name, .doc = "Name of the runner."),
	R(labels, .shape = &runner_label_shape,
	    .doc = "Labels to which environments can be bound, too."),
	R(version, .doc = "Version of the runner."),
	R(slots, .doc = "Number of deployments that it runs at once."),
	R(running, .doc = "Number of deployments that it is running."),
	R(started_at, .doc = "Time at which its dispatcher started."),
	R(seen_at, .doc = "Time of its last report, once a minute."),
	R(online, .doc = "Whether it reports; false once it was stopped."),
	R(sick,
	    .doc = "Whether it cannot start deployments. It claims none "
		   "until a probe of its own succeeds."),
	FIELD(struct runner, sick_since, FIELD_OUT | FIELD_NULL,
	    .doc = "Time since which it is sick."),
	FIELD(struct runner, sick_reason, FIELD_OUT | FIELD_NULL,
	    .doc = "Why it is sick."),
	FIELD_END,
};
const struct shape runner_shape = {
	.name = "Runner",
	.fields = runner_fields,
	.size = sizeof(struct runner),
	.doc = "A process that runs deployments.",
};

#define C(m, ...) FIELD(struct runner_count, m, FIELD_OUT, __VA_ARGS__)
static const struct field count_fields[] = {
	C(online, .doc = "Runners that report."),
	C(total, .doc = "Runners that have reported in the last week."),
	FIELD(struct runner_count, sick, 0, .doc = NULL),
	FIELD_END,
};
const struct shape runner_count_shape = {
	.name = "RunnerCount",
	.fields = count_fields,
	.size = sizeof(struct runner_count),
	.doc = "Number of runners.",
};

struct runner_query {
	int64_t member;
	int64_t limit;
	int64_t offset;
};
#define Q(m) FIELD(struct runner_query, m, 0)
static const struct field page_args[] = { Q(limit), Q(offset), FIELD_END };
static const struct field page_by_args[] = { Q(member), Q(limit), Q(offset),
	FIELD_END };
#define SELECT                                                                 \
	"SELECT w.name, w.labels, w.version, w.slots,"                         \
	" (SELECT COUNT(*) FROM deployment d WHERE d.status = 'running'"       \
	" AND d.runner = w.name"
#define FROM                                                                   \
	") AS running, w.started_at, w.seen_at, " RUNNER_ONLINE                \
	" AS online, w.sick_since IS NOT NULL AS sick, w.sick_since,"          \
	" w.sick_reason FROM runner w ORDER BY w.name LIMIT ? OFFSET ?"
static const struct stmt page = {
	.name = "runner_page",
	.sql = SELECT FROM,
	.args = page_args,
	.row = runner_fields,
	.rowsize = sizeof(struct runner),
};
/* Counts only the deployments of the member's projects. */
static const struct stmt page_by = {
	.name = "runner_page_by",
	.sql = SELECT " AND d.project_id IN " MEMBER_PROJECTS FROM,
	.args = page_by_args,
	.row = runner_fields,
	.rowsize = sizeof(struct runner),
};
static const struct stmt all = {
	.name = "runner_all",
	.sql = "SELECT COUNT(*) AS n FROM runner",
	.row = page_count_row,
	.rowsize = sizeof(struct page_count),
};
static const struct stmt count = {
	.name = "runner_count",
	.sql = "SELECT COUNT(IF(" RUNNER_ONLINE ", 1, NULL)) AS online,"
	       " COUNT(*) AS total, COUNT(IF(" RUNNER_ONLINE
	       " AND NOT " RUNNER_WELL ", 1, NULL)) AS sick FROM runner w",
	.row = count_fields,
	.rowsize = sizeof(struct runner_count),
};

#define A(m) FIELD(struct runner, m, 0)
static const struct field report_args[] = { A(name), A(labels), A(version),
	A(slots), A(started_at), A(sick_reason), A(sick_reason), FIELD_END };
static const struct stmt report = {
	.name = "runner_report",
	.sql = "INSERT INTO runner (name, labels, version, slots, started_at,"
	       " seen_at, sick_since, sick_reason)"
	       " VALUES (?, ?, ?, ?, ?, NOW(3), IF(? IS NULL, NULL, NOW(3)), ?)"
	       " ON DUPLICATE KEY UPDATE labels = VALUES(labels),"
	       " version = VALUES(version), slots = VALUES(slots),"
	       " started_at = VALUES(started_at), seen_at = VALUES(seen_at),"
	       " stopped = 0, sick_since = IF(VALUES(sick_since) IS NULL, NULL,"
	       " COALESCE(sick_since, VALUES(sick_since))),"
	       " sick_reason = VALUES(sick_reason)",
	.args = report_args,
};
static const struct field recall_args[] = { A(name), FIELD_END };
static const struct field recall_row[] = {
	FIELD(struct runner_past, now, 0),
	FIELD(struct runner_past, sick_reason, FIELD_NULL),
	FIELD_END,
};
static const struct stmt recall = {
	.name = "runner_recall",
	.sql = "SELECT NOW(3) AS now, (SELECT w.sick_reason FROM runner w"
	       " WHERE w.name = ?) AS sick_reason",
	.args = recall_args,
	.row = recall_row,
	.rowsize = sizeof(struct runner_past),
};
static const struct field withdraw_args[] = { A(name), A(started_at),
	FIELD_END };
static const struct stmt withdraw = {
	.name = "runner_withdraw",
	.sql = "UPDATE runner SET stopped = 1"
	       " WHERE name = ? AND started_at = ?",
	.args = withdraw_args,
};

#define GONE "seen_at < NOW(3) - INTERVAL 7 DAY"
static const struct stmt old = {
	.name = "runner_old",
	.sql = "SELECT COUNT(*) AS n FROM runner WHERE " GONE,
	.row = page_count_row,
	.rowsize = sizeof(struct page_count),
};
static const struct stmt tidy = {
	.name = "runner_tidy",
	.sql = "DELETE FROM runner WHERE " GONE,
};

static const struct stmt *const runner_stmts[] = { &page, &page_by, &all,
	&count, &recall, &report, &withdraw, &old, &tidy, NULL };

const struct store runner_store = {
	.stmts = runner_stmts,
};

const struct err *
runner_page(struct db *db, struct arena *a, struct page *p, struct list *out)
{
	const struct runner_query args = { .member = p->member,
		.limit = p->limit,
		.offset = page_offset(p) };

	return page_read(db, a, &all, p->member != 0 ? &page_by : &page, &args,
	    p, out);
}

const struct err *
runner_count(struct db *db, struct arena *a, struct runner_count *out)
{
	return db_row(db, a, &count, NULL, out);
}

const struct err *
runner_recall(struct db *db, struct arena *a, const char *name,
    struct runner_past *out)
{
	const struct runner args = { .name = name };

	return db_row(db, a, &recall, &args, out);
}

const struct err *
runner_report(struct db *db, const struct runner *runner)
{
	return db_exec(db, &report, runner, NULL);
}

const struct err *
runner_withdraw(struct db *db, const struct runner *runner)
{
	return db_exec(db, &withdraw, runner, NULL);
}

const struct err *
runner_tidy(struct db *db, struct arena *a)
{
	struct page_count row;
	const struct err *e;

	e = db_row(db, a, &old, NULL, &row);
	return e != NULL || row.n == 0 ? e : db_exec(db, &tidy, NULL, NULL);
}
