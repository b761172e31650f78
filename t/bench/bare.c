/* SPDX-License-Identifier: ISC */
/*
 * The yardstick of the benchmark: what libfcgi, Connector/C and MariaDB need
 * for the same work.
 *
 *   bare serve SOCKET WORKERS PROJECT DATABASE USER PASSWORD SQL
 *   bare insert SECONDS PROJECT DATABASE USER PASSWORD SQL
 *
 * DATABASE is the socket of MariaDB, SQL the directory of the statements.
 * "serve" is a pool of libfcgi loops. Each request runs the session query; then
 * a GET returns the project, a GET with a query string the list of deployments,
 * and a POST runs the two inserts of a deployment, and wakes the bare runner at
 * the socket in BARE_WAKE. "insert" runs these inserts on one connection, and
 * prints how many microseconds each transaction took.
 *
 * A statement has one parameter. The name of each column is the JSON text
 * before its value; a '!' before it marks a value that is JSON already.
 */
#include <sys/prctl.h>
#include <sys/wait.h>

#include <err.h>
#include <limits.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <fcgiapp.h>
#include <mariadb/mysql.h>

#include "core/num.h"
#include "core/wake.h"

#define BACKLOG 1024
#define COLUMNS 32
#define VALUE 4096

enum query { SESSION, PROJECT, DEPLOYMENTS, DEPLOYMENT, STEP, QUERY__MAX };

static const char *const files[QUERY__MAX] = {
	[SESSION] = "session",
	[PROJECT] = "project",
	[DEPLOYMENTS] = "deployments",
	[DEPLOYMENT] = "insert_deployment",
	[STEP] = "insert_step",
};

struct column {
	char name[128];
	char value[VALUE];
	unsigned long length;
	my_bool is_null;
	bool is_text, is_time;
};

struct prepared {
	MYSQL_STMT *stmt;
	unsigned n;
	struct column columns[COLUMNS];
};

static MYSQL *db;
static struct prepared prepared[QUERY__MAX];
static int64_t project;

static void
prepare(const char *dir, enum query q)
{
	struct prepared *p = &prepared[q];
	MYSQL_BIND bind[COLUMNS];
	MYSQL_FIELD *fields;
	MYSQL_RES *meta;
	char path[PATH_MAX], sql[VALUE];
	size_t length;
	FILE *f;
	unsigned i;

	(void)snprintf(path, sizeof(path), "%s/%s.sql", dir, files[q]);
	if ((f = fopen(path, "r")) == NULL)
		err(1, "%s", path);
	length = fread(sql, 1, sizeof(sql), f);
	(void)fclose(f);
	if ((p->stmt = mysql_stmt_init(db)) == NULL ||
	    mysql_stmt_prepare(p->stmt, sql, length) != 0)
		errx(1, "%s: %s", path, mysql_error(db));
	if ((meta = mysql_stmt_result_metadata(p->stmt)) == NULL)
		return;
	p->n = mysql_num_fields(meta);
	if (p->n > COLUMNS)
		errx(1, "%s: too many columns", path);
	(void)memset(bind, 0, sizeof(bind));
	fields = mysql_fetch_fields(meta);
	for (i = 0; i < p->n; i++) {
		struct column *c = &p->columns[i];

		c->is_time = fields[i].type == MYSQL_TYPE_DATETIME;
		c->is_text = c->is_time || !IS_NUM(fields[i].type);
		(void)snprintf(c->name, sizeof(c->name), "%s", fields[i].name);
		bind[i].buffer_type = MYSQL_TYPE_STRING;
		bind[i].buffer = c->value;
		bind[i].buffer_length = VALUE;
		bind[i].length = &c->length;
		bind[i].is_null = &c->is_null;
	}
	mysql_free_result(meta);
	if (mysql_stmt_bind_result(p->stmt, bind))
		errx(1, "%s: %s", path, mysql_stmt_error(p->stmt));
}

/* Arguments: DATABASE USER PASSWORD SQL. */
static void
connect_all(char **args)
{
	enum query q;

	if ((db = mysql_init(NULL)) == NULL ||
	    mysql_options(db, MYSQL_SET_CHARSET_NAME, "utf8mb4") != 0 ||
	    mysql_real_connect(db, NULL, args[1], args[2], "slipway", 0,
		args[0], 0) == NULL ||
	    mysql_query(db,
		"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED") != 0)
		errx(1, "%s: %s", args[0], db == NULL ? "" : mysql_error(db));
	for (q = 0; q < QUERY__MAX; q++)
		prepare(args[3], q);
}

/* Runs a statement with its parameter: a text, or else a number. */
static struct prepared *
run(enum query q, const char *text, int64_t number)
{
	struct prepared *p = &prepared[q];
	unsigned long length = 0;
	char copy[VALUE];
	MYSQL_BIND bind;

	(void)memset(&bind, 0, sizeof(bind));
	bind.buffer_type = MYSQL_TYPE_LONGLONG;
	bind.buffer = &number;
	if (text != NULL) {
		length = (unsigned long)snprintf(copy, sizeof(copy), "%s",
		    text);
		bind.buffer_type = MYSQL_TYPE_STRING;
		bind.buffer = copy;
		bind.buffer_length = length;
		bind.length = &length;
	}
	if (mysql_stmt_bind_param(p->stmt, &bind) ||
	    mysql_stmt_execute(p->stmt) != 0)
		errx(1, "%s: %s", files[q], mysql_stmt_error(p->stmt));
	if (p->n > 0 && mysql_stmt_store_result(p->stmt) != 0)
		errx(1, "%s: %s", files[q], mysql_stmt_error(p->stmt));
	return p;
}

/* Returns the id of the deployment. */
static int64_t
insert(void)
{
	int64_t id;

	if (mysql_query(db, "START TRANSACTION") != 0)
		errx(1, "%s", mysql_error(db));
	(void)run(DEPLOYMENT, NULL, project);
	id = (int64_t)mysql_stmt_insert_id(prepared[DEPLOYMENT].stmt);
	(void)run(STEP, NULL, id);
	if (mysql_commit(db))
		errx(1, "%s", mysql_error(db));
	return id;
}

static void
put(FCGX_Stream *out, const char *text)
{
	(void)FCGX_PutStr(text, (int)strlen(text), out);
}

static void
put_text(FCGX_Stream *out, const char *s, size_t length)
{
	size_t i, done = 0;

	(void)FCGX_PutChar('"', out);
	for (i = 0; i < length; i++) {
		if (s[i] != '"' && s[i] != '\\' && s[i] != '\n')
			continue;
		(void)FCGX_PutStr(s + done, (int)(i - done), out);
		(void)FCGX_PutChar('\\', out);
		(void)FCGX_PutChar(s[i] == '\n' ? 'n' : s[i], out);
		done = i + 1;
	}
	(void)FCGX_PutStr(s + done, (int)(length - done), out);
	(void)FCGX_PutChar('"', out);
}

static void
put_row(FCGX_Stream *out, struct prepared *p)
{
	unsigned i;

	for (i = 0; i < p->n; i++) {
		struct column *c = &p->columns[i];
		bool is_json = c->name[0] == '!';

		put(out, c->name + (is_json ? 1 : 0));
		if (c->is_null) {
			put(out, "null");
			continue;
		}
		if (c->is_time) {
			c->value[10] = 'T';
			c->value[c->length++] = 'Z';
		}
		if (c->is_text && !is_json)
			put_text(out, c->value, c->length);
		else
			(void)FCGX_PutStr(c->value, (int)c->length, out);
	}
	(void)FCGX_PutChar('}', out);
}

static bool
is_signed_in(FCGX_Request *rq)
{
	const char *sent = FCGX_GetParam("HTTP_AUTHORIZATION", rq->envp);
	unsigned char hash[crypto_hash_sha256_BYTES];
	char hex[2 * sizeof(hash) + 1];
	struct prepared *p;
	bool found;

	if (sent == NULL || strncmp(sent, "Bearer ", 7) != 0)
		return false;
	(void)crypto_hash_sha256(hash, (const unsigned char *)sent + 7,
	    strlen(sent + 7));
	(void)sodium_bin2hex(hex, sizeof(hex), hash, sizeof(hash));
	p = run(SESSION, hex, 0);
	found = mysql_stmt_fetch(p->stmt) == 0;
	(void)mysql_stmt_free_result(p->stmt);
	return found;
}

static void
respond_list(FCGX_Stream *out)
{
	struct prepared *p = run(DEPLOYMENTS, NULL, NUM_SAFE);
	bool is_first = true;

	put(out, "{\"data\":[");
	while (mysql_stmt_fetch(p->stmt) == 0) {
		if (!is_first)
			(void)FCGX_PutChar(',', out);
		is_first = false;
		put_row(out, p);
	}
	put(out, "],\"pagination\":{\"limit\":20,\"next\":\"");
	(void)FCGX_PutStr(p->columns[0].value, (int)p->columns[0].length, out);
	put(out, "\"}}");
	(void)mysql_stmt_free_result(p->stmt);
}

static void
respond(FCGX_Request *rq)
{
	const char *method = FCGX_GetParam("REQUEST_METHOD", rq->envp);
	const char *uri = FCGX_GetParam("REQUEST_URI", rq->envp);
	const char *wake = getenv("BARE_WAKE");
	struct prepared *p;

	if (method == NULL || uri == NULL || !is_signed_in(rq)) {
		put(rq->out, "Status: 401\r\n\r\n");
		return;
	}
	put(rq->out,
	    strcmp(method, "POST") == 0 ? "Status: 201\r\n" :
					  "Status: 200\r\n");
	put(rq->out, "Content-Type: application/json\r\n\r\n");
	if (strcmp(method, "POST") == 0) {
		(void)FCGX_FPrintF(rq->out, "{\"id\":%lld}",
		    (long long)insert());
		if (wake != NULL)
			wake_send(wake);
	} else if (strchr(uri, '?') != NULL) {
		respond_list(rq->out);
	} else {
		p = run(PROJECT, NULL, project);
		if (mysql_stmt_fetch(p->stmt) == 0)
			put_row(rq->out, p);
		(void)mysql_stmt_free_result(p->stmt);
	}
}

static void
worker(int fd, char **database)
{
	FCGX_Request rq;

	/* a worker ends with the pool */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) == -1)
		err(1, "prctl");
	connect_all(database);
	if (FCGX_Init() != 0 || FCGX_InitRequest(&rq, fd, 0) != 0)
		errx(1, "libfcgi cannot start");
	while (FCGX_Accept_r(&rq) == 0) {
		respond(&rq);
		FCGX_Finish_r(&rq);
	}
	_exit(0);
}

static int
serve(const char *path, int64_t workers, char **database)
{
	int64_t i;
	int fd;

	if ((fd = FCGX_OpenSocket(path, BACKLOG)) == -1)
		errx(1, "%s: cannot listen", path);
	for (i = 0; i < workers; i++) {
		pid_t pid = fork();

		if (pid == -1)
			err(1, "fork");
		if (pid == 0)
			worker(fd, database);
	}
	while (wait(NULL) > 0)
		continue;
	return 0;
}

static int64_t
now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static int
insert_for(int64_t seconds, char **database)
{
	int64_t began, last, now;

	connect_all(database);
	began = last = now_us();
	do {
		(void)insert();
		now = now_us();
		(void)printf("%lld\n", (long long)(now - last));
		last = now;
	} while (now - began < seconds * 1000000);
	return 0;
}

int
main(int argc, char **argv)
{
	int64_t n;

	if (sodium_init() == -1)
		errx(1, "libsodium cannot start");
	if (argc == 9 && strcmp(argv[1], "serve") == 0 &&
	    num_parse(argv[3], 1, 64, &n) &&
	    num_parse(argv[4], 1, NUM_SAFE, &project))
		return serve(argv[2], n, argv + 5);
	if (argc == 8 && strcmp(argv[1], "insert") == 0 &&
	    num_parse(argv[2], 1, 3600, &n) &&
	    num_parse(argv[3], 1, NUM_SAFE, &project))
		return insert_for(n, argv + 4);
	errx(64,
	    "usage: bare serve SOCKET WORKERS PROJECT DATABASE USER "
	    "PASSWORD SQL\n"
	    "       bare insert SECONDS PROJECT DATABASE USER PASSWORD "
	    "SQL");
}
