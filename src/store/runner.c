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

#include "store/runner.sql.h"

_Static_assert(SQL_RUNNER_SECONDS > 2 * RUNNER_REPORT, "see fragments.sql");

const struct store runner_store = {
	.stmts = runner_stmts,
};

const struct err *
runner_page(struct db *db, struct arena *a, struct page *p, struct list *out)
{
	const struct runner_query args = { .member = p->member,
		.limit = p->limit,
		.offset = page_offset(p) };

	return page_read(db, a, &sql_runner_all,
	    p->member != 0 ? &sql_runner_page_by : &sql_runner_page, &args, p,
	    out);
}

const struct err *
runner_count(struct db *db, struct arena *a, struct runner_count *out)
{
	return db_row(db, a, &sql_runner_count, NULL, out);
}

const struct err *
runner_recall(struct db *db, struct arena *a, const char *name,
    struct runner_past *out)
{
	const struct runner args = { .name = name };

	return db_row(db, a, &sql_runner_recall, &args, out);
}

const struct err *
runner_report(struct db *db, const struct runner *runner)
{
	return db_exec(db, &sql_runner_report, runner, NULL);
}

const struct err *
runner_withdraw(struct db *db, const struct runner *runner)
{
	return db_exec(db, &sql_runner_withdraw, runner, NULL);
}

const struct err *
runner_tidy(struct db *db, struct arena *a)
{
	struct page_count row;
	const struct err *e;

	e = db_row(db, a, &sql_runner_old, NULL, &row);
	return e != NULL || row.n == 0 ?
	    e :
	    db_exec(db, &sql_runner_tidy, NULL, NULL);
}
