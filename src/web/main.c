/* SPDX-License-Identifier: ISC */
/* slipway-api(8): options, configuration, privileges and the pool. */
#include <sys/mman.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <sysexits.h>
#include <unistd.h>

#include "core/log.h"
#include "core/proc.h"
#include "core/serve.h"
#include "core/str.h"
#include "crypto/public_key.h"
#include "db/db.h"
#include "queue/stores.h"
#include "web/pool.h"
#include "web/resource.h"

#define CONF_MAX ((size_t)4 << 20)

static struct serve server = { .program = "slipway-api" };

/* A service without secrets needs no keys. If a key file does not exist, the
 * service handles all requests that do not need it. */
static const struct err *
keys_read(struct arena *a, const struct settings *s, struct worker *out)
{
	const char *public = settings_deploy_public(a, &s->secrets);
	struct keyring *keyring = NULL;
	struct public_key *public_key = NULL;
	const struct err *e;

	e = keyring_open(s->secrets.key_file, &keyring);
	if (e != NULL && e->sys != ENOENT)
		return err_wrap(e, "secrets.key_file");
	if (e != NULL)
		log_info("no key file: users cannot sign in");
	e = public_key_open(public, &public_key);
	if (e != NULL && e->sys != ENOENT) {
		keyring_close(keyring);
		return err_wrap(e, "secrets.deploy_public_file");
	}
	if (e != NULL)
		log_info("no key for secret variables: they are rejected");
	out->keyring = keyring;
	out->public_key = public_key;
	return NULL;
}

/* Warns of changes that a reload does not apply. */
static void
fixed_compare(const struct settings *old, const struct settings *new)
{
	const struct conf_key *k;
	struct arena *a = arena_open(CONF_MAX);

	for (k = settings_keys; k->section != NULL; k++)
		if (str_eq(k->section, "api") &&
		    (k->flags & CONF_RELOAD) == 0 &&
		    !str_eq(conf_text(a, k, old), conf_text(a, k, new)))
			log_warn(
			    "api.%s: restart the service to apply the change",
			    k->name);
	arena_close(a);
}

static void
resources_load(const struct settings *s)
{
	const struct resource *const *res;

	for (res = resources; *res != NULL; res++)
		if ((*res)->load != NULL)
			(*res)->load(s);
}

/* The old settings are not freed: workers that are about to start may still use
 * them, and a reload is rare. */
static const struct err *
settings_reload(struct worker *shared)
{
	const struct err *e;
	struct settings *fresh;
	struct arena *a;

	if ((e = serve_configure(&server, &a, &fresh)) != NULL)
		goto out;
	if ((e = keys_read(a, fresh, shared)) != NULL)
		goto out;
	fixed_compare(shared->settings, fresh);
	resources_load(fresh);
	serve_log(&server, fresh);
	shared->settings = fresh;
	return NULL;
out:
	arena_close(a);
	return e;
}

static const struct err *
database_open(const struct settings *s, struct db **out)
{
	return db_open(s, DB_API, out);
}

/* Whether the tables match, so that no worker has to check them again. Exits if
 * they do not; continues if MariaDB is not available. */
static bool
database_try(const struct settings *s)
{
	const struct err *e;
	struct db *db;

	if ((e = db_open(s, DB_API, &db)) == NULL) {
		e = store_check(db);
		db_close(db);
	}
	if (e != NULL && e->code == ERR_CONFIG)
		errx(EX_CONFIG, "database: %s", e->msg);
	if (e != NULL)
		log_err(e, "database: will connect when needed");
	return e == NULL;
}

static void
stdin_close(void)
{
	int fd;

	if ((fd = open("/dev/null", O_RDONLY)) == -1)
		err(EX_OSERR, "/dev/null");
	if (fd != STDIN_FILENO) {
		(void)dup2(fd, STDIN_FILENO);
		(void)close(fd);
	}
}

static struct scoreboard *
scoreboard_open(void)
{
	void *page = mmap(NULL, sizeof(struct scoreboard),
	    PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		err(EX_OSERR, "mmap");
	return page;
}

int
main(int argc, char **argv)
{
	static struct pool pool;
	const struct err *e;
	struct settings *settings;
	struct arena *a;
	int status = serve_options(&server, argc, argv);

	if (status != -1)
		return status;
	log_init(server.program, 0);
	if ((e = serve_configure(&server, &a, &settings)) != NULL)
		errx(err_kinds[e->code].exit, "%s", e->msg);
	if (server.check)
		return 0;
	serve_log(&server, settings);
	if ((e = proc_close_up()) != NULL || (e = crypto_init()) != NULL ||
	    (e = keys_read(a, settings, &pool.worker)) != NULL ||
	    (e = listen_open(settings, &pool.sockets)) != NULL)
		errx(err_kinds[e->code].exit, "%s", e->msg);
	stdin_close();
	pool_signals();
	/* libfcgi waits this long for a peer to close; our peers have read
	 * everything by then. */
	if (setenv("LIBFCGI_OS_CLOSE_POLL_TIMEOUT", "100", 1) == -1)
		err(EX_OSERR, "setenv");
	if ((e = serve_as(settings->api.user)) != NULL)
		errx(err_kinds[e->code].exit, "%s: %s", server.conf, e->msg);
	pool.worker.scoreboard = scoreboard_open();
	atomic_store(&pool.worker.scoreboard->schema_ok,
	    database_try(settings));
	resources_load(settings);
	pool.worker.settings = settings;
	pool.worker.database = database_open;
	pool.worker.check = store_check;
	pool.reload = settings_reload;
	return pool_run(&pool);
}
