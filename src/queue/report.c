/* SPDX-License-Identifier: ISC */
#include "queue/report.h"

#include <string.h>

#include "core/address.h"
#include "queue/stores.h"

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

#include "queue/report.sql.h"

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

	return write_want(db, &sql_report_want, &args);
}

const struct err *
report_want_ended(struct db *db, int64_t project_id, enum reason reason)
{
	const struct reason_kind *why = &reason_kinds[reason];
	const struct report_args args = { .id = project_id,
		.state = commit_kinds[why->commit].name,
		.status = state_kinds[why->ends].name,
		.reason = why->name };

	return write_want(db, &sql_report_want_ended, &args);
}

const struct err *
report_again(struct db *db, int64_t deployment_id)
{
	const struct report_args args = { .id = deployment_id };

	return db_exec(db, &sql_report_again, &args, NULL);
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
	if ((e = db_row(db, a, &sql_report_held_before, args, &older)) != NULL)
		return e;
	if (older.n > 0) {
		*moved = true;
		return db_exec(db, &sql_report_defer, args, NULL);
	}
	if ((e = db_exec(db, &sql_report_take, args, &done)) != NULL ||
	    done.affected == 0 ||
	    (e = db_row(db, a, &sql_report_load, args, out)) != NULL ||
	    (e = db_row(db, a, &sql_report_shown, args, &out->shown)) != NULL)
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
		if ((e = db_rows(db, a, &sql_report_candidates, NULL, &list)) !=
		    NULL)
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

	return db_exec(db, &sql_report_told, &args, NULL);
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

	return db_exec(db, &sql_report_later, &args, NULL);
}

const struct err *
report_drop(struct db *db, const struct report *r, const char *fault)
{
	const struct report_args args = { .id = r->deployment_id,
		.state = r->wanted,
		.fault = fault,
		.held_until = r->held_until };

	return db_exec(db, &sql_report_drop, &args, NULL);
}

const struct err *
report_due(struct db *db, int64_t max, int64_t *out)
{
	struct arena *a = arena_open(SMALL_ARENA);
	const struct err *e;
	struct number found;

	*out = max;
	e = db_row(db, a, &sql_report_due, NULL, &found);
	arena_close(a);
	if (e != NULL && e->code == ERR_NOTFOUND)
		return NULL;
	if (e == NULL && found.n < max)
		*out = found.n;
	return e;
}
