/* SPDX-License-Identifier: ISC */
/* Creates deployments with src/deploy alone, for tests: deploy_probe CONF reads
 * a command per line from standard input and prints a line about each: "ok ID",
 * "faults POINTER POINTER ...", or "error CODE TEXT". */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/num.h"
#include "core/str.h"
#include "crypto/crypto.h"
#include "crypto/public_key.h"
#include "db/db.h"
#include "deploy/deploy.h"
#include "deploy/repeat.h"
#include "json/json.h"
#include "probe.h"

#define ARENA ((size_t)16 << 20)

static struct settings settings;
static struct faults faults;
static struct deploy deploy = { .settings = &settings, .faults = &faults };

struct job {
	const char *text; /* of POST /api/deployments; NULL = a retry */
	enum role role;
	int64_t id; /* of the original, then of the new one */
};

static const struct err *
create(const struct job *job, struct deployment *out)
{
	struct deployment_request sent = { .project_id = 0 };
	const struct deploy_order order = { .sent = &sent,
		.trigger = "manual",
		.role = job->role };
	const struct err *e;

	e = json_read(&deployment_request_shape, JSON_CREATE, job->text,
	    strlen(job->text), &sent, &faults);
	return e != NULL ? e : deploy_create(&deploy, &order, out);
}

static const struct err *
body(struct db *db, void *context)
{
	struct job *job = context;
	struct deployment made;
	const struct err *e;

	(void)db;
	arena_clear(deploy.a);
	faults_init(&faults, deploy.a);
	e = job->text == NULL ?
	    repeat_retry(&deploy, job->id, &(struct repeat_by){ 1, job->role },
		&made) :
	    create(job, &made);
	if (e == NULL)
		job->id = made.id;
	return e;
}

static void
answer(const struct err *e, int64_t id)
{
	size_t i;

	if (e == NULL) {
		(void)printf("ok %lld\n", (long long)id);
		deploy_wake(&deploy);
		return;
	}
	if (faults.n == 0) {
		(void)printf("error %s %s\n", probe_code(e), e->msg);
		return;
	}
	(void)printf("faults");
	for (i = 0; i < faults.n && i < FAULTS_MAX; i++)
		(void)printf(" %s", faults.item[i].pointer);
	(void)printf("\n");
}

/* ROLE create BODY, ROLE retry ID */
static void
run(char *line)
{
	struct job job = { .role = role_of(strsep(&line, " ")) };
	const struct err *e;

	if (line == NULL)
		errx(64, "no command");
	line[strcspn(line, "\n")] = '\0';
	if (str_starts(line, "create "))
		job.text = line + strlen("create ");
	else if (!str_starts(line, "retry ") ||
	    !num_parse(line + strlen("retry "), 1, NUM_SAFE, &job.id))
		errx(64, "no such command: %s", line);
	e = db_transaction(deploy.db, body, &job);
	answer(e, job.id);
	(void)fflush(stdout);
}

int
main(int argc, char **argv)
{
	static char line[1 << 16];
	const struct err *e;
	struct arena *a = arena_open(ARENA);
	struct public_key *public_key = NULL;

	log_init("deploy_probe", 0);
	if (argc != 2)
		errx(64, "usage: deploy_probe CONF");
	if ((e = crypto_init()) != NULL ||
	    (e = conf_read(a, settings_keys, argv[1], 0, &settings)) != NULL ||
	    (e = db_open(&settings, 0, &deploy.db)) != NULL)
		errx(70, "%s", e->msg);
	if ((e = public_key_open(settings_deploy_public(a, &settings.secrets),
		 &public_key)) != NULL)
		warnx("%s", e->msg);
	deploy.public_key = public_key;
	deploy.a = arena_open(DEPLOY_WORK);
	while (fgets(line, sizeof(line), stdin) != NULL)
		run(line);
	db_close(deploy.db);
	return 0;
}
