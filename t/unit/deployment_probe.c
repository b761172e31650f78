/* SPDX-License-Identifier: ISC */
/* Deployments and their logs without API and runner, for tests:
 * deployment_probe CONF reads a command per line from standard input and prints
 * a line about each.  The bytes of a log depend on their position. */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/num.h"
#include "probe.h"
#include "queue/deployment.h"
#include "queue/joblog.h"
#include "queue/stores.h"
#include "store/idempotency.h"

#define ARENA ((size_t)16 << 20)
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

static void
answer(const struct err *e)
{
	if (e == NULL)
		(void)printf("ok\n");
	else
		(void)printf("error %s %s\n", probe_code(e), e->msg);
}

static const char *
word(const char *text)
{
	return strcmp(text, "-") == 0 ? NULL : text;
}

static void
run_check(char **args)
{
	const struct stmt *const *const all[] = { deployment_store.stmts,
		deployment_list_store.stmts, idempotency_store.stmts,
		joblog_store.stmts };
	const struct err *e = NULL;
	size_t i;

	(void)args;
	for (i = 0; i < sizeof(all) / sizeof(all[0]) && e == NULL; i++)
		e = db_check(db, all[i]);
	answer(e);
}

/* sql N: the text of a statement */
static void
run_sql(char **args)
{
	(void)printf("%s\n", deployment_list_store.stmts[number(args[0])]->sql);
}

/* page PROJECT PIPELINE STATUS BRANCH BEFORE LIMIT: ids, then what follows */
static void
run_page(char **args)
{
	const struct deployment_filter filter = {
		.project_id = number(args[0]),
		.pipeline_id = number(args[1]),
		.status = word(args[2]),
		.branch = word(args[3]),
		.before = number(args[4]),
		.limit = number(args[5]),
	};
	const struct deployment *d;
	const struct err *e;
	struct list list;
	int64_t next;
	size_t i;

	if ((e = deployment_page(db, arena, &filter, &list, &next)) != NULL) {
		answer(e);
		return;
	}
	d = list.items;
	for (i = 0; i < list.n; i++)
		(void)printf("%lld:%zu:%zu ", (long long)d[i].id,
		    d[i].commit_message == NULL ? 0 :
						  strlen(d[i].commit_message),
		    strlen(d[i].env_vars.s));
	(void)printf("next %lld\n", (long long)next);
}

static unsigned char
byte_at(int64_t place)
{
	return (
	    unsigned char)((uint64_t)place * UINT64_C(2654435761) >> 17 & 127);
}

/* append ID EPOCH OFFSET LENGTH */
static void
run_append(char **args)
{
	static unsigned char data[JOBLOG_CHUNK];
	int64_t offset = number(args[2]), length = number(args[3]), i;

	for (i = 0; i < length; i++)
		data[i] = byte_at(offset + i);
	answer(joblog_append(db, number(args[0]), number(args[1]), offset, data,
	    (size_t)length));
}

/* read ID OFFSET MAX: the length, and whether the bytes are right */
static void
run_read(char **args)
{
	int64_t offset = number(args[1]);
	const unsigned char *data;
	const struct err *e;
	struct blob got;
	bool good = true;
	size_t i;

	e = joblog_read(db, arena, number(args[0]), offset,
	    (size_t)number(args[2]), &got);
	if (e != NULL) {
		answer(e);
		return;
	}
	data = got.data;
	for (i = 0; i < got.len; i++)
		good = good && data[i] == byte_at(offset + (int64_t)i);
	(void)printf("%zu %s\n", got.len, good ? "good" : "bad");
}

/* bytes ID OFFSET MAX: in hexadecimal */
static void
run_bytes(char **args)
{
	const unsigned char *data;
	const struct err *e;
	struct blob got;
	size_t i;

	e = joblog_read(db, arena, number(args[0]), number(args[1]),
	    (size_t)number(args[2]), &got);
	if (e != NULL) {
		answer(e);
		return;
	}
	data = got.data;
	for (i = 0; i < got.len; i++)
		(void)printf("%02x", data[i]);
	(void)printf("\n");
}

static void
run_state(char **args)
{
	struct joblog_state s;
	const struct err *e;

	if ((e = joblog_state(db, arena, number(args[0]), &s)) != NULL)
		answer(e);
	else
		(void)printf("%lld%s%s\n", (long long)s.size,
		    s.complete ? " complete" : "", s.pruned ? " pruned" : "");
}

static void
run_pack(char **args)
{
	answer(joblog_pack(db, arena, number(args[0])));
}

/* prune DAYS TOTAL */
static void
run_prune(char **args)
{
	const struct err *e;
	int64_t n;

	e = joblog_prune(db, number(args[0]), number(args[1]), &n);
	if (e != NULL)
		answer(e);
	else
		(void)printf("%lld\n", (long long)n);
}

static const struct command commands[] = {
	{ "check", 0, run_check },
	{ "sql", 1, run_sql },
	{ "page", 6, run_page },
	{ "append", 4, run_append },
	{ "read", 3, run_read },
	{ "bytes", 3, run_bytes },
	{ "state", 1, run_state },
	{ "pack", 1, run_pack },
	{ "prune", 2, run_prune },
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

	log_init("deployment_probe", 0);
	if (argc != 2)
		errx(64, "usage: deployment_probe CONF");
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
