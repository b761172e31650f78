/* SPDX-License-Identifier: ISC */
#include "store/board.h"

#include "core/buf.h"
#include "core/state.h"
#include "store/columns.h"
#include "store/deployment.h"
#include "store/member.h"
#include "store/store.h"

/* clang-format off */
#define DEPLOYMENT(X, T)						\
	X(T, KEY, id, FIELD_OUT, .doc = "Id of the deployment.")	\
	X(T, READ, status, FIELD_OUT, .values = state_deployments,	\
	    .named = "DeploymentStatus", .doc = "Status.")		\
	X(T, READ, reason, FIELD_OUT | FIELD_NULL,			\
	    .values = state_reasons, .named = "DeploymentReason",	\
	    .doc = "Why it has this status, as a code.")		\
	X(T, READ, approval, FIELD_OUT | FIELD_NULL,			\
	    .values = deployment_approvals,				\
	    .named = "DeploymentApproval",				\
	    .doc = "Whether it waits for approval (required), or was "	\
		   "approved (granted) or denied; null if it needs no "	\
		   "approval.")						\
	X(T, READ, branch, FIELD_OUT | FIELD_NULL, .doc = "Branch.")	\
	X(T, READ, tag, FIELD_OUT | FIELD_NULL,				\
	    .doc = "Tag, instead of a branch.")				\
	X(T, READ, commit_hash, FIELD_OUT | FIELD_NULL,			\
	    .doc = "Commit, once it is known.")				\
	X(T, READ, environment_id, FIELD_OUT | FIELD_NULL,		\
	    .doc = "Environment.")					\
	X(T, READ, created_by, FIELD_OUT | FIELD_NULL,			\
	    .doc = "User who started it.")				\
	X(T, READ, created_at, FIELD_OUT, .doc = "Time of creation.")	\
	X(T, READ, started_at, FIELD_OUT | FIELD_NULL,			\
	    .doc = "Time at which it started.")				\
	X(T, READ, finished_at, FIELD_OUT | FIELD_NULL,			\
	    .doc = "Time at which it ended.")				\
	X(T, READ, warnings, FIELD_OUT,					\
	    .doc = "How many steps failed that may fail.")

static const struct field board_deployment_fields[] = {
	DEPLOYMENT(COLUMN_FIELD, struct board_deployment)
	FIELD(struct board_deployment, commit_message, FIELD_OUT | FIELD_NULL,
	    .doc = "First line of the commit's message."),
	FIELD_END,
};
/* clang-format on */
static const struct shape board_deployment_shape = {
	.name = "BoardDeployment",
	.fields = board_deployment_fields,
	.size = sizeof(struct board_deployment),
	.doc = "A deployment on the board.",
};

#define ONE FIELD_ONE | FIELD_NULL | FIELD_NOROW
#define E(m, fl, ...)                                                          \
	FIELD(struct board_environment, m, FIELD_OUT | (fl), __VA_ARGS__)
static const struct field environment_fields[] = {
	E(id, 0, .doc = "Id of the environment."),
	E(name, 0, .doc = "Name."),
	E(url, FIELD_NULL, .doc = "Address at which the result can be seen."),
	E(waiting, FIELD_NOROW, .doc = "Number of pending deployments to it."),
	E(approvals, FIELD_NOROW,
	    .doc = "Number of those that wait for approval."),
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
	P(waiting, FIELD_NOROW, .doc = "Number of pending deployments."),
	P(approvals, FIELD_NOROW,
	    .doc = "Number of those that wait for approval."),
	P(lock, ONE, .shape = &lock_shape, .doc = "The lock of the project."),
	P(running, ONE, .shape = &board_deployment_shape,
	    .doc = "The deployment that is running."),
	P(live, ONE, .shape = &board_deployment_shape,
	    .doc = "The last successful deployment of a project without "
		   "environments; null if it has any."),
	P(latest, ONE, .shape = &board_deployment_shape,
	    .doc = "The newest deployment, whatever its status."),
	P(environments, FIELD_NOROW, .max = 1000,
	    .shape = &board_environment_shape,
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
#define A(m) FIELD(struct board_args, m, 0)
#define W(m) FIELD(struct board_waiting, m, 0)
#define PR(m, fl) FIELD(struct board_project, m, fl)
#define ER(m, fl) FIELD(struct board_environment, m, fl)

static const struct field page_args[] = { A(reader), A(limit), A(offset),
	FIELD_END };
static const struct field page_by_args[] = { A(reader), A(member), A(limit),
	A(offset), FIELD_END };
static const struct field member_args[] = { A(member), FIELD_END };
static const struct field ids_args[] = { A(ids), FIELD_END };
/* clang-format off */
static const struct field project_row[] = {
	PR(id, 0), PR(name, 0), PR(role, FIELD_NULL), PR(running_id, 0),
	PR(live_id, 0), PR(latest_id, 0),
	COLUMNS_PART(struct board_project, lock_row, LOCK_ROW)
	FIELD_END,
};
static const struct field environment_row[] = {
	ER(id, 0), ER(project_id, 0), ER(name, 0), ER(url, FIELD_NULL),
	ER(live_id, 0), ER(latest_id, 0),
	COLUMNS_PART(struct board_environment, lock_row, LOCK_ROW)
	FIELD_END,
};
/* clang-format on */
static const struct field waiting_row[] = { W(project_id), W(environment_id),
	W(n), W(approvals), FIELD_END };

#define IDS "JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) j"
/* SQL: the newest deployment of a place, found at the end of an index. */
#define NEWEST(index, where)                                                   \
	"COALESCE((SELECT d.id FROM deployment d FORCE INDEX (" index          \
	") WHERE " where " ORDER BY d.id DESC LIMIT 1), 0)"

static const struct stmt count = {
	.name = "board_count",
	.sql = "SELECT COUNT(*) AS n FROM project WHERE valid = 1",
	.row = page_count_row,
	.rowsize = sizeof(struct page_count),
};
static const struct stmt count_by = {
	.name = "board_count_by",
	.sql = "SELECT COUNT(*) AS n FROM project WHERE valid = 1"
	       " AND id IN " MEMBER_PROJECTS,
	.args = member_args,
	.row = page_count_row,
	.rowsize = sizeof(struct page_count),
};
/* clang-format off */
#define RUNNING                                                                \
	"COALESCE((SELECT d.id FROM deployment d"                              \
	" WHERE d.running_project = p.id), 0)"
#define SUCCESSFUL NEWEST("deployment_queue",						\
	"d.project_id = p.id AND d.status = 'success'")
#define SELECT(hint)							\
	"SELECT p.id, p.name, " MEMBER_ROLE ", " RUNNING		\
	" AS running_id, " SUCCESSFUL " AS live_id, "			\
	NEWEST("deployment_project", "d.project_id = p.id")		\
	" AS latest_id, " LOCK_COLUMNS " FROM project p" hint		\
	MEMBER_JOIN LOCK_JOIN("p.id", "0") " WHERE p.valid = 1"
#define ORDER " ORDER BY p.name, p.id LIMIT ? OFFSET ?"
static const struct stmt projects = {
	.name = "board_projects",
	.sql = SELECT(" FORCE INDEX (project_list)") ORDER,
	.args = page_args,
	.row = project_row,
	.rowsize = sizeof(struct board_project),
};
static const struct stmt projects_by = {
	.name = "board_projects_by",
	.sql = SELECT("") " AND p.id IN " MEMBER_PROJECTS ORDER,
	.args = page_by_args,
	.row = project_row,
	.rowsize = sizeof(struct board_project),
};
static const struct stmt environments = {
	.name = "board_environments",
	.sql = "SELECT e.id, e.project_id, e.name, e.url,"
	       " COALESCE(e.live_deployment, 0) AS live_id, "
	       NEWEST("deployment_environment", "d.environment_id = e.id") " AS latest_id, " LOCK_COLUMNS
	       " FROM " IDS
	       " STRAIGHT_JOIN environment e ON e.project_id = j.id AND e.valid = 1"
	       LOCK_JOIN("e.project_id", "e.id")
	       " ORDER BY e.project_id, e.position, e.id",
	.args = ids_args,
	.row = environment_row,
	.rowsize = sizeof(struct board_environment),
};
/* clang-format on */
static const struct stmt waiting = {
	.name = "board_waiting",
	.sql = "SELECT d.project_id, COALESCE(d.environment_id, 0)"
	       " AS environment_id, COUNT(*) AS n,"
	       " COUNT(IF(d.approval = 'required', 1, NULL)) AS approvals"
	       " FROM " IDS
	       " STRAIGHT_JOIN deployment d FORCE INDEX (deployment_queue)"
	       " ON d.project_id = j.id"
	       " AND d.status = 'pending'"
	       " GROUP BY d.project_id, d.environment_id",
	.args = ids_args,
	.row = waiting_row,
	.rowsize = sizeof(struct board_waiting),
};
static const struct stmt deployments = {
	.name = "board_deployments",
	.sql = "SELECT " COLUMNS_OF("d",
	    DEPLOYMENT) ", LEFT(SUBSTRING_INDEX("
			"d.commit_message, '\\n', 1), 200) AS commit_message FROM " IDS
			" STRAIGHT_JOIN deployment d FORCE INDEX (PRIMARY)"
			" ON d.id = j.id ORDER BY d.id",
	.args = ids_args,
	.row = board_deployment_fields,
	.rowsize = sizeof(struct board_deployment),
};

static const struct stmt *const board_stmts[] = { &count, &count_by, &projects,
	&projects_by, &environments, &waiting, &deployments, NULL };

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
	if ((e = read_of(db, a, &environments, ids, &f->environments)) == NULL)
		e = read_of(db, a, &waiting, ids, &f->waiting);
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
	return read_of(db, a, &deployments, ids, &f->deployments);
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
		e = page_read(db, asked->a, &count_by, &projects_by, &args, p,
		    &f.projects);
	else
		e = page_read(db, asked->a, &count, &projects, &args, p,
		    &f.projects);
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
