/* SPDX-License-Identifier: ISC */
/* A runner without jobs, for tests: queue_probe CONF reads a command per line
 * from standard input and prints a line about each. */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/num.h"
#include "core/str.h"
#include "probe.h"
#include "queue/claim.h"
#include "queue/move.h"
#include "queue/queue.h"
#include "queue/report.h"
#include "queue/stores.h"
#include "store/idempotency.h"

#define ARENA ((size_t)64 << 20)
#define WORDS 8

static struct settings settings;
static struct arena *arena;
static struct db *db;

struct command {
	const char *name;
	int nargs;
	void (*run)(char **args);
};

static int64_t
number(const char *text)
{
	int64_t n;

	if (!num_parse(text, 0, NUM_SAFE, &n))
		errx(64, "%s: not a number", text);
	return n;
}

static enum state
state_of(const char *name)
{
	enum state s = state_find(name);

	if (s == STATE__MAX)
		errx(64, "%s: no such state", name);
	return s;
}

/* "-" is none. */
static enum reason
reason_of(const char *name)
{
	enum reason r = state_reason(strcmp(name, "-") == 0 ? NULL : name);

	if (r == REASON__MAX)
		errx(64, "%s: no such reason", name);
	return r;
}

static void
answer(const struct err *e)
{
	if (e == NULL)
		(void)printf("ok\n");
	else
		(void)printf("error %s %s\n", probe_code(e), e->msg);
}

static void
run_check(char **args)
{
	const struct store *const checked[] = { &queue_store, &claim_store,
		&move_store };
	const struct err *e = NULL;
	size_t i;

	(void)args;
	for (i = 0; e == NULL && i < sizeof(checked) / sizeof(checked[0]); i++)
		e = db_check(db, checked[i]->stmts);
	answer(e);
}

static void
claim(char **args, const int64_t *avoid, size_t navoid)
{
	const struct claimer by = { .owner = args[0],
		.runner = args[1],
		.lease = number(args[2]),
		.avoid = avoid,
		.navoid = navoid };
	const struct deployment_step *s;
	const struct claim *c;
	const struct err *e;
	struct claimed claimed;
	size_t i;

	e = claim_next(db, arena, &by, 1, &claimed);
	if (e != NULL) {
		answer(e);
		return;
	}
	c = claimed.list.items;
	(void)printf("%lld %lld %lld %s %s %s %d", (long long)c->id,
	    (long long)c->epoch, (long long)c->project_id, c->project_dir,
	    c->pipeline_name, c->env_vars.s, c->cancel ? 1 : 0);
	s = c->steps.items;
	for (i = 0; i < c->steps.n; i++)
		(void)printf(" %s", s[i].name);
	(void)putchar('\n');
}

/* claim OWNER RUNNER LEASE */
static void
run_claim(char **args)
{
	claim(args, NULL, 0);
}

/* claim_but OWNER RUNNER LEASE ID */
static void
run_claim_but(char **args)
{
	const int64_t avoid = number(args[3]);

	claim(args, &avoid, 1);
}

/* drain OWNER RUNNER: claims up to three at once and ends them until the queue
 * is empty; prints "ID PROJECT" for each, then a dot. */
static void
run_drain(char **args)
{
	const struct claimer by = { .owner = args[0],
		.runner = args[1],
		.lease = 30 };
	struct queue_end end = { .reason = REASON_NONE };
	const struct claim *c;
	const struct err *e;
	struct claimed claimed;
	int idle = 0;
	size_t i;

	while (idle < 20) {
		e = claim_next(db, arena, &by, 3, &claimed);
		if (e != NULL && e->code == ERR_NOTFOUND) {
			idle++;
			continue;
		}
		if (e != NULL) {
			answer(e);
			continue;
		}
		idle = 0;
		c = claimed.list.items;
		for (i = 0; i < claimed.list.n; i++) {
			(void)printf("%lld %lld\n", (long long)c[i].id,
			    (long long)c[i].project_id);
			end.id = c[i].id;
			end.epoch = c[i].epoch;
			if ((e = queue_end(db, &end)) != NULL)
				answer(e);
		}
		arena_clear(arena);
	}
	(void)printf(".\n");
}

static void
run_release(char **args)
{
	answer(queue_release(db, number(args[0]), number(args[1])));
}

static void
run_renew(char **args)
{
	answer(queue_renew(db, number(args[0]), number(args[1]), args[2],
	    number(args[3])));
}

static void
print_held(const struct err *e, const struct list *list)
{
	const struct held *h = list->items;
	size_t i;

	if (e != NULL) {
		answer(e);
		return;
	}
	for (i = 0; i < list->n; i++)
		(void)printf("%s%lld.%lld.%d", i > 0 ? " " : "",
		    (long long)h[i].id, (long long)h[i].epoch,
		    h[i].cancel ? 1 : 0);
	(void)putchar('\n');
}

static void
run_held(char **args)
{
	struct list list;
	const struct err *e = queue_held(db, arena, args[0], &list);

	print_held(e, &list);
}

static void
run_runner(char **args)
{
	struct list list;
	const struct err *e = queue_held_by_runner(db, arena, args[0], &list);

	print_held(e, &list);
}

/* commit ID EPOCH BRANCH HASH MESSAGE */
static void
run_commit(char **args)
{
	answer(queue_commit(db, number(args[0]), number(args[1]), args[2],
	    args[3], args[4]));
}

/* step ID EPOCH POSITION STATUS */
static void
run_step(char **args)
{
	const struct move_step event = {
		.deployment_id = number(args[0]),
		.epoch = number(args[1]),
		.position = number(args[2]),
		.status = state_of(args[3]),
		.started_at = { time_now_ms() },
	};

	answer(move_step(db, &event));
}

/* end ID EPOCH STATUS REASON */
static void
run_end(char **args)
{
	const struct queue_end end = {
		.id = number(args[0]),
		.epoch = number(args[1]),
		.reason = reason_of(args[3]),
		.detail = "Said by a test.",
		.log_size = 7,
	};

	if (reason_kinds[end.reason].ends != state_of(args[2]))
		errx(64, "%s does not end in %s", args[3], args[2]);
	answer(queue_end(db, &end));
}

static int64_t moved;

static const struct err *
move_body(struct db *handle, void *context)
{
	return move_deployment(handle, context, &moved);
}

static void
move(const struct move *m)
{
	struct move copy = *m;
	const struct err *e;

	if ((e = db_transaction(db, move_body, &copy)) != NULL)
		answer(e);
	else
		(void)printf("%lld\n", (long long)moved);
}

/* move ID EPOCH FROM TO REASON: the number of moved rows */
static void
run_move(char **args)
{
	const struct move m = { .id = number(args[0]),
		.epoch = number(args[1]),
		.from = state_of(args[2]),
		.to = state_of(args[3]),
		.reason = reason_of(args[4]),
		.detail = "Said by a test.",
		.owner = "cccccccccccccccccccccccccccccccc",
		.runner = "three",
		.lease = 30 };

	move(&m);
}

/* move_all PROJECT FROM TO REASON: the number of moved rows */
static void
run_move_all(char **args)
{
	const struct move m = { .project_id = number(args[0]),
		.from = state_of(args[1]),
		.to = state_of(args[2]),
		.reason = reason_of(args[3]),
		.detail = "Said by a test." };

	move(&m);
}

static void
run_expire(char **args)
{
	const struct err *e;
	int64_t n;

	(void)args;
	if ((e = queue_expire(db, &n)) != NULL)
		answer(e);
	else
		(void)printf("%lld\n", (long long)n);
}

static void
run_tidy(char **args)
{
	const struct err *e;

	(void)args;
	if ((e = queue_tidy(db)) == NULL)
		e = idempotency_tidy(db, arena);
	answer(e);
}

static void
run_report_check(char **args)
{
	(void)args;
	answer(db_check(db, report_store.stmts));
}

/* want ID STATE */
static void
run_want(char **args)
{
	enum commit_state state = state_commit(args[1]);

	if (state == COMMIT__MAX)
		errx(64, "%s: no such status", args[1]);
	answer(report_want(db, number(args[0]), state));
}

/* The end of the last claim of a row, by its id. */
static struct when held_until[4096];

static struct report
report_of(char **args)
{
	int64_t id = number(args[0]);

	return (struct report){ .deployment_id = id,
		.wanted = args[1],
		.held_until = held_until[id % 4096] };
}

/* report SECONDS: "ID WANTED TOLD ATTEMPTS PIPELINE HASH FAULT" */
static void
run_report(char **args)
{
	struct report r;
	const struct err *e;

	if ((e = report_claim(db, arena, number(args[0]), &r)) != NULL) {
		answer(e);
		return;
	}
	held_until[r.deployment_id % 4096] = r.held_until;
	(void)printf("%lld %s %s %lld %s %s %s\n", (long long)r.deployment_id,
	    r.wanted, r.told == NULL ? "-" : r.told, (long long)r.attempts,
	    r.pipeline_name, r.commit_hash, r.fault == NULL ? "-" : r.fault);
}

/* reports SECONDS: claims until nothing is due; an id per line, then a dot */
static void
run_reports(char **args)
{
	struct report r;
	int idle = 0;

	while (idle < 10) {
		if (report_claim(db, arena, number(args[0]), &r) != NULL) {
			idle++;
			continue;
		}
		idle = 0;
		(void)printf("%lld\n", (long long)r.deployment_id);
		arena_clear(arena);
	}
	(void)printf(".\n");
}

static void
run_told(char **args)
{
	const struct report r = report_of(args);

	answer(report_told(db, &r));
}

/* later ID WANTED SECONDS FAULT */
static void
run_later(char **args)
{
	const struct report r = report_of(args);

	answer(report_later(db, &r, number(args[2]), args[3]));
}

/* drop ID WANTED FAULT */
static void
run_drop(char **args)
{
	const struct report r = report_of(args);

	answer(report_drop(db, &r, args[2]));
}

static void
run_due(char **args)
{
	const struct err *e;
	int64_t ms;

	if ((e = report_due(db, number(args[0]), &ms)) != NULL)
		answer(e);
	else
		(void)printf("%lld\n", (long long)ms);
}

static const struct command commands[] = {
	{ "check", 0, run_check },
	{ "check-reports", 0, run_report_check },
	{ "want", 2, run_want },
	{ "report", 1, run_report },
	{ "reports", 1, run_reports },
	{ "told", 2, run_told },
	{ "later", 4, run_later },
	{ "drop", 3, run_drop },
	{ "due", 1, run_due },
	{ "claim", 3, run_claim },
	{ "claim_but", 4, run_claim_but },
	{ "drain", 2, run_drain },
	{ "release", 2, run_release },
	{ "renew", 4, run_renew },
	{ "held", 1, run_held },
	{ "runner", 1, run_runner },
	{ "commit", 5, run_commit },
	{ "step", 4, run_step },
	{ "end", 4, run_end },
	{ "move", 5, run_move },
	{ "move_all", 4, run_move_all },
	{ "expire", 0, run_expire },
	{ "tidy", 0, run_tidy },
	{ NULL, 0, NULL },
};

static void
run_line(char *line)
{
	const struct command *c;
	char *words[WORDS], *rest = line;
	int n = 0;

	while (n < WORDS && (words[n] = strsep(&rest, " \n")) != NULL)
		if (*words[n] != '\0')
			n++;
	for (c = commands; c->name != NULL; c++)
		if (n == c->nargs + 1 && strcmp(words[0], c->name) == 0) {
			c->run(words + 1);
			return;
		}
	errx(64, "no such command: %s", n > 0 ? words[0] : "");
}

int
main(int argc, char **argv)
{
	const struct err *e;
	char line[1024];

	log_init("queue_probe", 0);
	if (argc != 2)
		errx(64, "usage: queue_probe CONF");
	arena = arena_open(ARENA);
	if ((e = conf_read(arena_open(ARENA), settings_keys, argv[1], 0,
		 &settings)) != NULL ||
	    (e = db_open(&settings, 0, &db)) != NULL)
		errx(70, "%s", e->msg);
	while (fgets(line, sizeof(line), stdin) != NULL) {
		arena_clear(arena);
		run_line(line);
		(void)fflush(stdout);
	}
	db_close(db);
	return 0;
}
