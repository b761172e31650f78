/* SPDX-License-Identifier: ISC */
/* Creates deployments, from a pipeline or from an earlier deployment. */
#include "core/str.h"
#include "queue/deployment.h"
#include "queue/move.h"
#include "queue/stores.h"

#define SMALL_ARENA 65536

/* Arguments and results of small queries. */
struct number {
	int64_t n;
	int64_t of;
};

#include "queue/deployment_make.sql.h"

const struct store deployment_make_store = {
	.stmts = deployment_make_stmts,
};

const struct err *
deployment_hold_project(struct db *db, struct arena *a, int64_t project_id)
{
	const struct number args = { .of = project_id };
	struct number found;

	return db_row(db, a, &sql_deployment_hold_project, &args, &found);
}

static const struct err *
hold_of(struct db *db, struct arena *a, int64_t id)
{
	const struct number args = { .of = id };
	struct number found;

	return db_row(db, a, &sql_deployment_hold_project_of, &args, &found);
}

const struct err *
deployment_hold_place(struct db *db, int64_t id, enum reason *deleted)
{
	const struct number args = { .of = id };
	struct arena *a = arena_open(SMALL_ARENA);
	const struct err *e;
	struct list list = { .n = 0 };

	*deleted = REASON_NONE;
	e = hold_of(db, a, id);
	if (e == NULL) {
		e = db_rows(db, a, &sql_deployment_homeless, &args, &list);
		if (list.n > 0)
			*deleted = REASON_ENVIRONMENT;
	} else if (e->code == ERR_NOTFOUND) {
		*deleted = REASON_DELETED;
		e = NULL;
	}
	arena_close(a);
	return e;
}

const struct err *
deployment_share_pipeline(struct db *db, struct arena *a, int64_t project_id,
    int64_t pipeline_id)
{
	const struct number args = { .of = project_id, .n = pipeline_id };
	struct number found;

	return db_row(db, a, &sql_deployment_share_pipeline, &args, &found);
}

const struct err *
deployment_source(struct db *db, struct arena *a, int64_t project_id,
    struct maybe pipeline_id, struct deployment_source *out)
{
	const struct deployment_source args = { .project_id = project_id,
		.pipeline_id = pipeline_id };
	const struct err *e;
	struct list list;

	*out = (struct deployment_source){ .project_id = 0 };
	e = db_rows(db, a,
	    pipeline_id.set ? &sql_deployment_source :
			      &sql_deployment_any_source,
	    &args, &list);
	if (e != NULL)
		return e;
	if (list.n == 0)
		return err_new(ERR_NOTFOUND, "project %lld",
		    (long long)project_id);
	*out = *(const struct deployment_source *)list.items;
	out->pipelines = out->pipeline_id.set ? (int64_t)list.n : 0;
	return NULL;
}

/* Announces a new deployment as pending. */
static const struct err *
deployment_announce(struct db *db, const struct deployment *d)
{
	if (d->steps.n == 0)
		return err_public(ERR_INVALID,
		    "The pipeline has no steps. Add a step first.");
	return str_eq(d->approval, APPROVAL_REQUIRED) ?
	    move_waiting(db, d->id) :
	    move_created(db, d->id);
}

int64_t
deployment_turn(const struct deployment *d)
{
	if (str_eq(d->approval, APPROVAL_REQUIRED))
		return DEPLOYMENT_LATER;
	return str_eq(d->trigger, DEPLOYMENT_ROLLBACK) ? DEPLOYMENT_FIRST :
							 DEPLOYMENT_NEXT;
}

const struct err *
deployment_insert(struct db *db, struct arena *a, const struct deployment *d,
    struct deployment *out)
{
	struct deployment args = *d;
	const struct err *e;

	args.turn = deployment_turn(d);
	e = db_row_more(db, a, &sql_deployment_insert, &args, out, &out->steps);
	return e != NULL ? e : deployment_announce(db, out);
}

/* Inserts a copy of the deployment `retry_of` and of its steps. */
static const struct err *
deployment_copy(struct db *db, struct arena *a, const struct stmt *how,
    const struct deployment *d, struct deployment *out)
{
	struct deployment args = *d;
	struct number steps = { .of = d->retry_of.n };
	const struct err *e;

	args.turn = deployment_turn(d);
	if ((e = db_row(db, a, how, &args, out)) != NULL)
		return e;
	steps.n = out->id;
	e = db_rows(db, a, &sql_deployment_repeat_steps, &steps, &out->steps);
	return e != NULL ? e : deployment_announce(db, out);
}

const struct err *
deployment_repeat(struct db *db, struct arena *a, const struct deployment *d,
    struct deployment *out)
{
	return deployment_copy(db, a, &sql_deployment_repeat, d, out);
}

const struct err *
deployment_repeat_with(struct db *db, struct arena *a,
    const struct deployment *d, struct deployment *out)
{
	return deployment_copy(db, a, &sql_deployment_repeat_with, d, out);
}

const struct err *
deployment_secrets(struct db *db, struct arena *a, int64_t id,
    struct json_text *out)
{
	const struct deployment args = { .id = id };
	struct deployment found;
	const struct err *e;

	e = db_row(db, a, &sql_deployment_secrets, &args, &found);
	*out = (struct json_text){ e == NULL ? found.secret_vars.s : NULL };
	return e;
}
