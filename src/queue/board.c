/* SPDX-License-Identifier: ISC */
#include "queue/board.h"

#include "core/buf.h"
#include "core/state.h"
#include "queue/deployment.h"
#include "queue/stores.h"
#include "store/member.h"

#define B(m, ...) FIELD(struct board_deployment, m, __VA_ARGS__)
static const struct field board_deployment_fields[] = {
	B(id, FIELD_OUT, .doc = "Id of the deployment."),
	B(status, FIELD_OUT, .values = state_deployments,
	    .named = "DeploymentStatus", .doc = "Status."),
	B(reason, FIELD_OUT | FIELD_NULL, .values = state_reasons,
	    .named = "DeploymentReason",
	    .doc = "Why it has this status, as a code."),
	B(approval, FIELD_OUT | FIELD_NULL, .values = deployment_approvals,
	    .named = "DeploymentApproval",
	    .doc = "Whether it waits for approval (required), or was "
		   "approved (granted) or denied; null if it needs no "
		   "approval."),
	B(branch, FIELD_OUT | FIELD_NULL, .doc = "Branch."),
	B(tag, FIELD_OUT | FIELD_NULL, .doc = "Tag, instead of a branch."),
	B(commit_hash, FIELD_OUT | FIELD_NULL,
	    .doc = "Commit, once it is known."),
	B(environment_id, FIELD_OUT | FIELD_NULL, .doc = "Environment."),
	B(created_by, FIELD_OUT | FIELD_NULL, .doc = "User who started it."),
	B(created_at, FIELD_OUT, .doc = "Time of creation."),
	B(started_at, FIELD_OUT | FIELD_NULL,
	    .doc = "Time at which it started."),
	B(finished_at, FIELD_OUT | FIELD_NULL,
	    .doc = "Time at which it ended."),
	B(warnings, FIELD_OUT, .doc = "How many steps failed that may fail."),
	B(commit_message, FIELD_OUT | FIELD_NULL,
	    .doc = "First line of the commit's message."),
	FIELD_END,
};

static const struct shape board_deployment_shape = {
	.name = "BoardDeployment",
	.fields = board_deployment_fields,
	.size = sizeof(struct board_deployment),
	.doc = "A deployment on the board.",
};

#define ONE FIELD_ONE | FIELD_NULL
#define E(m, fl, ...)                                                          \
	FIELD(struct board_environment, m, FIELD_OUT | (fl), __VA_ARGS__)
static const struct field environment_fields[] = {
	E(id, 0, .doc = "Id of the environment."),
	E(name, 0, .doc = "Name."),
	E(url, FIELD_NULL, .doc = "Address at which the result can be seen."),
	E(waiting, 0, .doc = "Number of pending deployments to it."),
	E(approvals, 0, .doc = "Number of those that wait for approval."),
	E(lock, ONE, .shape = &lock_shape, .doc = "The lock of it."),
	E(live, ONE, .shape = &board_deployment_shape,
	    .doc = "The last successful deployment to it."),
	E(latest, ONE, .shape = &board_deployment_shape,
	    .doc = "The newest deployment to it, whatever its status."),
	FIELD_END,
};
static const struct shape board_environment_shape = {
	.name = "BoardEnvironment",
	.fields = environment_fields,
	.size = sizeof(struct board_environment),
	.doc = "An environment on the board.",
};

#define P(m, fl, ...)                                                          \
	FIELD(struct board_project, m, FIELD_OUT | (fl), __VA_ARGS__)
static const struct field project_fields[] = {
	P(id, 0, .doc = "Id of the project."),
	P(name, 0, .doc = "Name."),
	P(role, 0, .values = role_names, .named = "Role",
	    .doc = "Role of the caller in the project."),
	P(waiting, 0, .doc = "Number of pending deployments."),
	P(approvals, 0, .doc = "Number of those that wait for approval."),
	P(lock, ONE, .shape = &lock_shape, .doc = "The lock of the project."),
	P(running, ONE, .shape = &board_deployment_shape,
	    .doc = "The deployment that is running."),
	P(live, ONE, .shape = &board_deployment_shape,
	    .doc = "The last successful deployment of a project without "
		   "environments; null if it has any."),
	P(latest, ONE, .shape = &board_deployment_shape,
	    .doc = "The newest deployment, whatever its status."),
	P(environments, 0, .max = 1000, .shape = &board_environment_shape,
	    .doc = "Its environments, by position."),
	FIELD_END,
};
const struct shape board_shape = {
	.name = "BoardProject",
	.fields = project_fields,
	.size = sizeof(struct board_project),
	.doc = "A project on the board.",
};

struct board_args {
	int64_t limit;
	int64_t offset;
	int64_t reader;
	int64_t member;
	const char *ids; /* a JSON array of numbers */
};
struct board_waiting {
	int64_t project_id;
	int64_t environment_id;
	int64_t n;
	int64_t approvals;
};

#include "queue/board.sql.h"

const struct store board_store = {
	.stmts = board_stmts,
};

/* The rows that the statements after the first one read. */
struct found {
	struct list projects; /* of the page */
	struct list environments;
	struct list waiting;
	struct list deployments;
};

static void
id_add(struct buf *ids, int64_t id)
{
	if (id != 0)
		buf_printf(ids, "%s%lld", ids->len > 1 ? "," : "",
		    (long long)id);
}

/* Runs a statement for a list of ids. */
static const struct err *
read_of(struct db *db, struct arena *a, const struct stmt *stmt,
    struct buf *ids, struct list *out)
{
	struct board_args args;
	const struct err *e;

	buf_putc(ids, ']');
	args.ids = ids->data;
	if ((e = buf_check(ids)) == NULL)
		e = db_rows(db, a, stmt, &args, out);
	ids->len--;
	return e;
}

static const struct err *
places_read(struct db *db, struct arena *a, struct buf *ids, struct found *f)
{
	const struct board_project *p = f->projects.items;
	const struct err *e;
	size_t i;

	buf_putc(ids, '[');
	for (i = 0; i < f->projects.n; i++)
		id_add(ids, p[i].id);
	if ((e = read_of(db, a, &sql_board_environments, ids,
		 &f->environments)) == NULL)
		e = read_of(db, a, &sql_board_waiting, ids, &f->waiting);
	return e;
}

static const struct err *
deployments_read(struct db *db, struct arena *a, struct buf *ids,
    struct found *f)
{
	const struct board_project *p = f->projects.items;
	const struct board_environment *env = f->environments.items;
	size_t i;

	buf_clear(ids);
	buf_putc(ids, '[');
	for (i = 0; i < f->projects.n; i++) {
		id_add(ids, p[i].running_id);
		id_add(ids, p[i].live_id);
		id_add(ids, p[i].latest_id);
	}
	for (i = 0; i < f->environments.n; i++) {
		id_add(ids, env[i].live_id);
		id_add(ids, env[i].latest_id);
	}
	return read_of(db, a, &sql_board_deployments, ids, &f->deployments);
}

/* The deployment of that id, as a list of one or none. */
static struct list
deployment_at(const struct found *f, int64_t id)
{
	struct board_deployment *d = f->deployments.items;
	size_t low = 0, high = f->deployments.n, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (d[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return (struct list){ .items = &d[low],
		.n = low < f->deployments.n && d[low].id == id ? 1 : 0 };
}

/* What waits in a project, or in one of its environments. */
static struct board_waiting
waiting_at(const struct found *f, int64_t project_id,
    const int64_t *environment)
{
	const struct board_waiting *w = f->waiting.items;
	struct board_waiting sum = { .project_id = project_id };
	size_t i;

	for (i = 0; i < f->waiting.n; i++)
		if (w[i].project_id == project_id &&
		    (environment == NULL ||
			w[i].environment_id == *environment)) {
			sum.n += w[i].n;
			sum.approvals += w[i].approvals;
		}
	return sum;
}

/* The environments of a project are adjacent. */
static struct list
environments_of(const struct found *f, int64_t project_id)
{
	struct board_environment *env = f->environments.items;
	struct board_waiting sum;
	size_t from = 0, to;

	while (from < f->environments.n && env[from].project_id != project_id)
		from++;
	for (to = from;
	     to < f->environments.n && env[to].project_id == project_id; to++) {
		sum = waiting_at(f, project_id, &env[to].id);
		env[to].waiting = sum.n;
		env[to].approvals = sum.approvals;
		env[to].lock = lock_joined(&env[to].lock_row);
		env[to].live = deployment_at(f, env[to].live_id);
		env[to].latest = deployment_at(f, env[to].latest_id);
	}
	return (struct list){ .items = &env[from], .n = to - from };
}

static void
project_fill(const struct found *f, struct board_project *p)
{
	const struct board_waiting sum = waiting_at(f, p->id, NULL);

	p->environments = environments_of(f, p->id);
	p->waiting = sum.n;
	p->approvals = sum.approvals;
	p->lock = lock_joined(&p->lock_row);
	p->latest = deployment_at(f, p->latest_id);
	if (p->environments.n == 0)
		p->live = deployment_at(f, p->live_id);
	p->running = deployment_at(f, p->running_id);
}

/* What board_page() was called with. */
struct asked {
	struct arena *a;
	struct arena_mark start;
	struct page *page;
	struct list *out;
};

/* Fills the page: a db_body. */
static const struct err *
read_page(struct db *db, void *context)
{
	const struct asked *asked = context;
	struct page *p = asked->page;
	const struct board_args args = { .reader = p->reader,
		.member = p->member,
		.limit = p->limit,
		.offset = page_offset(p) };
	struct found f = { .projects.n = 0 };
	const struct err *e;
	struct buf ids;
	size_t i;

	arena_rewind(asked->a, &asked->start);
	if (p->member != 0)
		e = page_read(db, asked->a, &sql_board_count_by,
		    &sql_board_projects_by, &args, p, &f.projects);
	else
		e = page_read(db, asked->a, &sql_board_count,
		    &sql_board_projects, &args, p, &f.projects);
	if (e != NULL)
		return e;
	buf_init(&ids, (size_t)1 << 20);
	if ((e = places_read(db, asked->a, &ids, &f)) == NULL)
		e = deployments_read(db, asked->a, &ids, &f);
	buf_release(&ids);
	for (i = 0; e == NULL && i < f.projects.n; i++)
		project_fill(&f, (struct board_project *)f.projects.items + i);
	*asked->out = f.projects;
	return e;
}

/* The counts and the deployments of a board agree only if all statements see the
 * same state. */
const struct err *
board_page(struct db *db, struct arena *a, struct page *p, struct list *out)
{
	struct asked asked = { .a = a,
		.start = arena_mark(a),
		.page = p,
		.out = out };

	*out = (struct list){ .items = NULL };
	return db_snapshot(db, read_page, &asked);
}
