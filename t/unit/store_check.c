/* SPDX-License-Identifier: ISC */
/* store_check CONF: compares every statement of the stores with its tables,
 * then prints them, a line each: name, arguments, SQL, apart by tabs.  The
 * test that runs it explains them. */
#include <err.h>
#include <stdio.h>

#include "core/log.h"
#include "store/deployment.h"
#include "store/figures.h"
#include "store/gitrepo.h"
#include "store/gitserver.h"
#include "store/gittoken.h"
#include "store/hook.h"
#include "store/idempotency.h"
#include "store/identity.h"
#include "store/joblog.h"
#include "store/lease.h"
#include "store/pipeline.h"
#include "store/project.h"
#include "store/projectdir.h"
#include "store/queue.h"
#include "store/report.h"
#include "store/sealed.h"
#include "store/session.h"
#include "store/user.h"

static const struct stmt *const *const lists[] = {
	deployment_stmts,
	figures_stmts,
	gitrepo_stmts,
	gitserver_stmts,
	gittoken_stmts,
	hook_stmts,
	idempotency_stmts,
	identity_stmts,
	joblog_stmts,
	lease_stmts,
	pipeline_stmts,
	project_stmts,
	projectdir_stmts,
	queue_stmts,
	report_stmts,
	sealed_stmts,
	session_stmts,
	step_stmts,
	token_stmts,
	user_stmts,
};

static void
print(const struct stmt *s)
{
	const struct field *f;

	(void)printf("%s\t", s->name);
	for (f = s->args; f != NULL && f->name != NULL; f++)
		if ((f->flags & FIELD_NOROW) == 0 && f->type != F_LIST)
			(void)printf("%s ", f->name);
	(void)printf("\t%s\n", s->sql);
}

int
main(int argc, char **argv)
{
	struct settings settings = { .database = { .socket = NULL } };
	struct arena *a = arena_open((size_t)1 << 20);
	const struct stmt *const *s;
	const struct err *e;
	struct db *db;
	size_t i;

	if (argc != 2)
		errx(64, "usage: store_check CONF");
	log_init("store_check", 0);
	if ((e = conf_read(a, settings_keys, argv[1], 0, &settings)) != NULL ||
	    (e = db_open(&settings, 0, &db)) != NULL)
		errx(1, "%s", e->msg);
	for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		if ((e = db_check(db, lists[i])) != NULL)
			errx(1, "%s", e->msg);
		for (s = lists[i]; *s != NULL; s++)
			print(*s);
	}
	db_close(db);
	arena_close(a);
	return 0;
}
