/* SPDX-License-Identifier: ISC */
/* Lists of deployments: a page costs the same at any depth and with any
 * filter. */
#include <string.h>

#include "core/num.h"
#include "queue/deployment.h"
#include "queue/deployment_row.h"
#include "queue/stores.h"

/* Size at which a page of large rows is cut. */
#define PAGE_BYTES ((size_t)2 << 20)

/* Every combination of filters has a statement, whose number is the sum of
 * these. */
enum {
	BY_PROJECT = 1,
	BY_PIPELINE = 2,
	BY_STATUS = 4,
	BY_BRANCH = 8,
	BY_ENVIRONMENT = 16,
	BY__MAX = 32
};

#include "queue/deployment_list.sql.h"

#define PAGE(n) [n] = &sql_deployment_page_##n
static const struct stmt *const pages[BY__MAX] = { PAGE(0), PAGE(1), PAGE(2),
	PAGE(3), PAGE(4), PAGE(5), PAGE(6), PAGE(7), PAGE(8), PAGE(9), PAGE(10),
	PAGE(11), PAGE(12), PAGE(13), PAGE(14), PAGE(15), PAGE(16), PAGE(17),
	PAGE(18), PAGE(19), PAGE(20), PAGE(21), PAGE(22), PAGE(23), PAGE(24),
	PAGE(25), PAGE(26), PAGE(27), PAGE(28), PAGE(29), PAGE(30), PAGE(31) };

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
	[PLACE_ANY] = &sql_deployment_page_of_tag,
	[PLACE_PROJECT] = &sql_deployment_page_of_tag_project,
	[PLACE_PIPELINE] = &sql_deployment_page_of_tag_pipeline,
	[PLACE_ENVIRONMENT] = &sql_deployment_page_of_tag_environment,
};
static const struct stmt *const started[] = {
	[PLACE_ANY] = &sql_deployment_page_of_trigger,
	[PLACE_PROJECT] = &sql_deployment_page_of_project,
	[PLACE_PIPELINE] = &sql_deployment_page_of_pipeline,
	[PLACE_ENVIRONMENT] = &sql_deployment_page_of_environment,
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
		return digits == 40 || digits == 64 ?
		    &sql_deployment_page_of_commit :
		    &sql_deployment_page_of_digits;
	if (q->tag != NULL)
		return tagged[place_of(q)];
	if (q->created_by != 0)
		return &sql_deployment_page_of_user;
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
