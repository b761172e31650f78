/* SPDX-License-Identifier: ISC */
/* Lists of deployments: a page costs the same at any depth and with any
 * filter. */
#include <string.h>

#include "core/num.h"
#include "store/deployment.h"
#include "store/deployment_row.h"
#include "store/store.h"

/* Size at which a page of large rows is cut. */
#define PAGE_BYTES ((size_t)2 << 20)

/* Lists omit long texts; they are fetched if there is room. The variables of
 * such a row are NULL, which no row of the table has. */
#define LISTED                                                                 \
	"SELECT " DEPLOYMENT_KEYS                                              \
	"IF(OCTET_LENGTH(d.commit_message) > 4096, NULL,"                      \
	" d.commit_message) AS commit_message,"                                \
	" IF(OCTET_LENGTH(d.env_vars) > 4096"                                  \
	" OR OCTET_LENGTH(d.commit_message) > 4096, NULL, d.env_vars)"         \
	" AS env_vars,"                                                        \
	" IF(OCTET_LENGTH(d.env_vars) > 4096, NULL, d.env_vars_sent)"          \
	" AS env_vars_sent" DEPLOYMENT_COLUMNS " FROM deployment d"

/* Every combination of filters, indexed by the sum of their numbers, with the
 * index to scan backwards: a page costs the same at any depth. */
enum {
	BY_PROJECT = 1,
	BY_PIPELINE = 2,
	BY_STATUS = 4,
	BY_BRANCH = 8,
	BY_ENVIRONMENT = 16,
	BY__MAX = 32
};
#define PROJECT "d.project_id = ? AND "
#define PIPELINE "d.pipeline_id = ? AND "
/* A pipeline of another project matches nothing, at no cost. */
#define BOTH                                                                   \
	"d.pipeline_id = (SELECT l.id FROM pipeline l"                         \
	" WHERE l.project_id = ? AND l.id = ?) AND "
#define ENVIRONMENT "d.environment_id = ? AND "
/* The same for an environment. */
#define PLACE                                                                  \
	"d.environment_id = (SELECT e.id FROM environment e"                   \
	" WHERE e.project_id = ? AND e.id = ?) AND "
#define STATUS "d.status = ? AND "
#define BRANCH "d.branch = ? AND "
#define OF_STATUS "deployment_environment_status"
#define OF_BRANCH "deployment_environment_branch"
/* The database chooses the index that has fewer rows. A third index, of both,
 * would make every new deployment and every change of status dearer. */
#define OF_EITHER OF_STATUS ", " OF_BRANCH
#define Q(m) FIELD(struct deployment_filter, m, 0)
/* clang-format off */
#define PAGES(X)							\
	X(0, "PRIMARY", "", Q(before))					\
	X(1, "deployment_project", PROJECT, Q(project_id), Q(before))	\
	X(2, "deployment_pipeline", PIPELINE, Q(pipeline_id), Q(before)) \
	X(3, "deployment_pipeline", BOTH,				\
	    Q(project_id), Q(pipeline_id), Q(before))			\
	X(4, "deployment_status", STATUS, Q(status), Q(before))		\
	X(5, "deployment_queue", PROJECT STATUS,			\
	    Q(project_id), Q(status), Q(before))			\
	X(6, "deployment_pipeline_status", PIPELINE STATUS,		\
	    Q(pipeline_id), Q(status), Q(before))			\
	X(7, "deployment_pipeline_status", BOTH STATUS,		\
	    Q(project_id), Q(pipeline_id), Q(status), Q(before))	\
	X(8, "deployment_branch", BRANCH, Q(branch), Q(before))		\
	X(9, "deployment_project_branch", PROJECT BRANCH,		\
	    Q(project_id), Q(branch), Q(before))			\
	X(10, "deployment_pipeline_branch", PIPELINE BRANCH,		\
	    Q(pipeline_id), Q(branch), Q(before))			\
	X(11, "deployment_pipeline_branch", BOTH BRANCH,		\
	    Q(project_id), Q(pipeline_id), Q(branch), Q(before))	\
	X(12, "deployment_branch_status", STATUS BRANCH,		\
	    Q(status), Q(branch), Q(before))				\
	X(13, "deployment_project_both", PROJECT STATUS BRANCH,		\
	    Q(project_id), Q(status), Q(branch), Q(before))		\
	X(14, "deployment_pipeline_both", PIPELINE STATUS BRANCH,	\
	    Q(pipeline_id), Q(status), Q(branch), Q(before))		\
	X(15, "deployment_pipeline_both", BOTH STATUS BRANCH,		\
	    Q(project_id), Q(pipeline_id), Q(status), Q(branch), Q(before)) \
	X(16, "deployment_environment", ENVIRONMENT,			\
	    Q(environment_id), Q(before))				\
	X(17, "deployment_environment", PLACE,				\
	    Q(project_id), Q(environment_id), Q(before))		\
	X(18, "deployment_environment", ENVIRONMENT PIPELINE,		\
	    Q(environment_id), Q(pipeline_id), Q(before))		\
	X(19, "deployment_environment", PLACE PIPELINE,		\
	    Q(project_id), Q(environment_id), Q(pipeline_id), Q(before)) \
	X(20, OF_STATUS, ENVIRONMENT STATUS,				\
	    Q(environment_id), Q(status), Q(before))			\
	X(21, OF_STATUS, PLACE STATUS,					\
	    Q(project_id), Q(environment_id), Q(status), Q(before))	\
	X(22, OF_STATUS, ENVIRONMENT PIPELINE STATUS,			\
	    Q(environment_id), Q(pipeline_id), Q(status), Q(before))	\
	X(23, OF_STATUS, PLACE PIPELINE STATUS,				\
	    Q(project_id), Q(environment_id), Q(pipeline_id), Q(status), \
	    Q(before))							\
	X(24, OF_BRANCH, ENVIRONMENT BRANCH,				\
	    Q(environment_id), Q(branch), Q(before))			\
	X(25, OF_BRANCH, PLACE BRANCH,					\
	    Q(project_id), Q(environment_id), Q(branch), Q(before))	\
	X(26, OF_BRANCH, ENVIRONMENT PIPELINE BRANCH,			\
	    Q(environment_id), Q(pipeline_id), Q(branch), Q(before))	\
	X(27, OF_BRANCH, PLACE PIPELINE BRANCH,				\
	    Q(project_id), Q(environment_id), Q(pipeline_id), Q(branch), \
	    Q(before))							\
	X(28, OF_EITHER, ENVIRONMENT STATUS BRANCH,			\
	    Q(environment_id), Q(status), Q(branch), Q(before))		\
	X(29, OF_EITHER, PLACE STATUS BRANCH,				\
	    Q(project_id), Q(environment_id), Q(status), Q(branch),	\
	    Q(before))							\
	X(30, OF_EITHER, ENVIRONMENT PIPELINE STATUS BRANCH,		\
	    Q(environment_id), Q(pipeline_id), Q(status), Q(branch),	\
	    Q(before))							\
	X(31, OF_EITHER, PLACE PIPELINE STATUS BRANCH,			\
	    Q(project_id), Q(environment_id), Q(pipeline_id), Q(status), \
	    Q(branch), Q(before))

#define PAGE(n, index, text, ...)					\
	static const struct field page_args_##n[] = { __VA_ARGS__,	\
		FIELD_END };						\
	static const struct stmt page_##n = {				\
		.name = "deployment_page_" #n,				\
		.sql = LISTED " FORCE INDEX (" index ") WHERE " text,	\
		.args = page_args_##n,					\
		.row = deployment_fields,				\
		.rowsize = sizeof(struct deployment),			\
	};
#define X(n, index, where, ...)						\
	PAGE(n, index, where "d.id < ? ORDER BY d.id DESC LIMIT ?",	\
	    __VA_ARGS__, Q(limit))
PAGES(X)
#undef X

static const struct stmt *const pages[BY__MAX] = {
#define X(n, ...) [n] = &page_##n,
	PAGES(X)
#undef X
};
/* clang-format on */

/* The other filters, which need no index of their own: a commit is deployed a
 * few times, a user starts few deployments, and the deployments of one tag, or
 * those of a project that were started in one way, have few pipelines and
 * environments. Only a whole hash is found in the order of the list. */
/* clang-format off */
#define REST								\
	" AND (? = 0 OR d.project_id = ?) AND (? = 0 OR d.pipeline_id = ?)" \
	" AND (? = 0 OR d.environment_id = ?)"				\
	" AND (? IS NULL OR d.status = ?) AND (? IS NULL OR d.branch = ?)" \
	" AND (? IS NULL OR d.tag = ?) AND (? = 0 OR d.created_by = ?)"	\
	" AND (? IS NULL OR d.`trigger` = ?)"				\
	" AND d.id < ? ORDER BY d.id DESC LIMIT ?"
#define REST_ARGS							\
	Q(project_id), Q(project_id), Q(pipeline_id), Q(pipeline_id),	\
	Q(environment_id), Q(environment_id), Q(status), Q(status),	\
	Q(branch), Q(branch), Q(tag), Q(tag), Q(created_by),		\
	Q(created_by), Q(trigger), Q(trigger), Q(before), Q(limit)
#define TAGGED "deployment_project_tag"
#define STARTED "deployment_project_trigger"
#define OF(table)							\
	" AND d.project_id = (SELECT o.project_id FROM " table		\
	" o WHERE o.id = ?)"
#define NARROWED(X)							\
	X(commit, "deployment_commit", "d.commit_hash = ?", Q(commit_hash)) \
	X(digits, "deployment_commit",					\
	    "d.commit_hash LIKE CONCAT(?, '%')", Q(commit_hash))	\
	X(tag, "deployment_tag", "d.tag = ?", Q(tag))			\
	X(tag_project, TAGGED, "d.tag = ? AND d.project_id = ?",	\
	    Q(tag), Q(project_id))					\
	X(tag_pipeline, TAGGED, "d.tag = ?" OF("pipeline"),		\
	    Q(tag), Q(pipeline_id))					\
	X(tag_environment, TAGGED, "d.tag = ?" OF("environment"),	\
	    Q(tag), Q(environment_id))					\
	X(user, "deployment_user", "d.created_by = ?", Q(created_by))	\
	X(trigger, "deployment_trigger", "d.`trigger` = ?", Q(trigger))	\
	X(project, STARTED, "d.`trigger` = ? AND d.project_id = ?",	\
	    Q(trigger), Q(project_id))					\
	X(pipeline, STARTED, "d.`trigger` = ?" OF("pipeline"),		\
	    Q(trigger), Q(pipeline_id))					\
	X(environment, STARTED, "d.`trigger` = ?" OF("environment"),	\
	    Q(trigger), Q(environment_id))
#define X(what, index, where, ...)					\
	PAGE(of_##what, index, where REST, __VA_ARGS__, REST_ARGS)
NARROWED(X)
#undef X
/* clang-format on */

static const struct stmt *const deployment_list_stmts[] = {
#define X(n, ...) &page_##n,
	PAGES(X)
#undef X
#define X(what, ...) &page_of_##what,
	    NARROWED(X)
#undef X
		NULL,
};

const struct store deployment_list_store = {
	.stmts = deployment_list_stmts,
};

/* Fetches the omitted texts of large rows until the page is full. The first row
 * is always fetched, so that every page makes progress. */
static const struct err *
texts_fetch(struct db *db, struct arena *a, struct list *list)
{
	struct deployment *d = list->items;
	size_t start = arena_used(a), i;
	const struct err *e;

	for (i = 0; i < list->n; i++) {
		if (i > 0 && arena_used(a) - start > PAGE_BYTES) {
			list->n = i;
			return NULL;
		}
		if (d[i].env_vars.s == NULL &&
		    (e = deployment_row(db, a, d[i].id, &d[i])) != NULL)
			return e;
	}
	return NULL;
}

/* The statement for a tag or a trigger, by the place that is selected. */
enum place { PLACE_ANY, PLACE_PROJECT, PLACE_PIPELINE, PLACE_ENVIRONMENT };
static const struct stmt *const tagged[] = {
	[PLACE_ANY] = &page_of_tag,
	[PLACE_PROJECT] = &page_of_tag_project,
	[PLACE_PIPELINE] = &page_of_tag_pipeline,
	[PLACE_ENVIRONMENT] = &page_of_tag_environment,
};
static const struct stmt *const started[] = {
	[PLACE_ANY] = &page_of_trigger,
	[PLACE_PROJECT] = &page_of_project,
	[PLACE_PIPELINE] = &page_of_pipeline,
	[PLACE_ENVIRONMENT] = &page_of_environment,
};

static enum place
place_of(const struct deployment_filter *q)
{
	if (q->project_id != 0)
		return PLACE_PROJECT;
	if (q->pipeline_id != 0)
		return PLACE_PIPELINE;
	return q->environment_id != 0 ? PLACE_ENVIRONMENT : PLACE_ANY;
}

/* The statement for the filters that are on. */
static const struct stmt *
page_statement(const struct deployment_filter *q)
{
	const size_t digits = q->commit_hash == NULL ? 0 :
						       strlen(q->commit_hash);

	if (digits > 0)
		return digits == 40 || digits == 64 ? &page_of_commit :
						      &page_of_digits;
	if (q->tag != NULL)
		return tagged[place_of(q)];
	if (q->created_by != 0)
		return &page_of_user;
	if (q->trigger != NULL)
		return started[place_of(q)];
	return pages[(q->project_id != 0 ? BY_PROJECT : 0) |
	    (q->pipeline_id != 0 ? BY_PIPELINE : 0) |
	    (q->status != NULL ? BY_STATUS : 0) |
	    (q->branch != NULL ? BY_BRANCH : 0) |
	    (q->environment_id != 0 ? BY_ENVIRONMENT : 0)];
}

const struct err *
deployment_page(struct db *db, struct arena *a,
    const struct deployment_filter *filter, struct list *out, int64_t *next)
{
	struct deployment_filter q = *filter;
	const struct deployment *d;
	const struct err *e;
	size_t found;

	*next = 0;
	q.limit++; /* one more, to know whether a page follows */
	if (q.before == 0)
		q.before = NUM_SAFE;
	if ((e = db_rows(db, a, page_statement(&q), &q, out)) != NULL)
		return e;
	found = out->n;
	if (out->n > (size_t)filter->limit)
		out->n = (size_t)filter->limit;
	if ((e = texts_fetch(db, a, out)) != NULL ||
	    (e = deployment_logs_measure(db, a, out)) != NULL)
		return e;
	d = out->items;
	if (out->n < found)
		*next = d[out->n - 1].id;
	return NULL;
}
