/* SPDX-License-Identifier: ISC */
/* Key files: creates them, re-encrypts all values with new keys, drops old
 * ones. */
#include <sys/stat.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/admin.h"
#include "cli/admin_reseal.h"
#include "crypto/private_keyring.h"
#include "store/sealed.h"

/* Longer than any request or any call of the Git server. Until then they may
 * still seal with the key that was the first when they started. */
#define SETTLE 300

struct keys {
	const char *keyring_path, *private, *public;
	int lock; /* -1 = none */
	struct keyring *keyring;
	struct private_keyring *private_keyring;
	struct public_key *public_key;
};

static void
paths_set(struct admin *admin, struct keys *k)
{
	const struct settings_secrets *s = &admin->set.secrets;

	*k = (struct keys){ .keyring_path = s->key_file,
		.private = settings_deploy_key(admin->a, s),
		.public = settings_deploy_public(admin->a, s),
		.lock = -1 };
}

static const struct err *
key_rotate(struct admin *admin, struct keys *k)
{
	const char *user = admin->set.runner.user;
	const struct passwd *pw = getpwnam(user);
	const struct err *e;

	if ((e = private_keyring_lock(k->private, &k->lock)) != NULL ||
	    (e = keyring_rotate(k->keyring_path)) != NULL ||
	    (e = private_keyring_rotate(k->private, k->public,
		 pw == NULL ? geteuid() : pw->pw_uid)) != NULL)
		return e;
	if (pw == NULL && geteuid() == 0)
		warnx("%s: unknown account %s (runner.user): make the "
		      "dispatcher's account the owner of the file",
		    k->private, user);
	return NULL;
}

/* Explains which account has access. */
static const struct err *
explain(struct admin *admin, const struct err *e)
{
	if (e != NULL && e->sys == EACCES)
		return err_public_number(ERR_CONFIG, EACCES,
		    "%s: this account may not read it: run the command as root "
		    "or as %s",
		    e->msg, admin->set.runner.user);
	return e;
}

/* Reads the three files, which must match. */
static const struct err *
keys_read(struct admin *admin, struct keys *k)
{
	const struct err *e;

	if ((e = private_keyring_lock(k->private, &k->lock)) != NULL ||
	    (e = keyring_open(k->keyring_path, &k->keyring)) != NULL ||
	    (e = private_keyring_open(k->private, &k->private_keyring)) !=
		NULL ||
	    (e = public_key_open(k->public, &k->public_key)) != NULL)
		return explain(admin, e);
	if (private_keyring_match(k->private_keyring, k->public_key) ==
	    KEY_MATCH_CURRENT)
		return NULL;
	return err_new(ERR_CONFIG,
	    "%s is not the public half of the first key of %s: run "
	    "slipway-admin key again",
	    k->public, k->private);
}

static const struct err *
keys_check(struct admin *admin, struct keys *k)
{
	const struct err *e;

	if ((e = keys_read(admin, k)) != NULL)
		return e;
	return db_check_schema(admin->db);
}

static void
keys_tell(const struct reseal *r)
{
	const struct reseal_keys *k;
	size_t i;

	for (k = r->keys; k < r->keys + RESEAL__MAX; k++)
		for (i = 0; i < k->n; i++)
			(void)printf(
			    "%s: %lld values depend on key %lld (%s), %s\n",
			    k->path, (long long)k->values[i],
			    (long long)k->name[i].id, k->name[i].print,
			    i == 0 ? "the current one" : "an older one");
}

static const struct err *
key_reseal(struct reseal *r, unsigned flags)
{
	const struct err *e;

	if ((e = reseal_run(r, flags)) != NULL)
		return (flags & RESEAL_WRITE) == 0 ?
		    e :
		    err_wrap(e,
			"values re-encrypted so far are stored; remove the "
			"cause, then run the command again");
	keys_tell(r);
	if (r->unopened > 0)
		return err_new(ERR_INVALID,
		    "%lld values cannot be decrypted with any key: enter them "
		    "again",
		    (long long)r->unopened);
	if (r->missed > 0)
		return err_new(ERR_CONFLICT,
		    "%lld rows changed during each attempt: run the command "
		    "again",
		    (long long)r->missed);
	if (reseal_older(r) == 0)
		(void)printf("no value depends on an older key\n");
	return NULL;
}

/* Whether this account can replace the file without changing its owner. */
static const struct err *
check_owner(struct admin *admin, const char *path)
{
	const char *slash = strrchr(path, '/'),
		   *folder = slash == NULL ?
	    "." :
	    arena_strndup(admin->a, path, (size_t)(slash - path) + 1);
	struct stat st;

	if (stat(path, &st) != 0)
		return err_errno("%s", path);
	if (geteuid() == 0 ||
	    (st.st_uid == geteuid() &&
		faccessat(AT_FDCWD, folder, W_OK, AT_EACCESS) == 0))
		return NULL;
	return err_new(ERR_CONFIG,
	    "%s: this account cannot write it: run the command as root", path);
}

/* The first key must have been in use for some time. */
static const struct err *
check_age(const struct reseal_keys *k)
{
	struct stat st;
	int64_t age;

	if (stat(k->path, &st) != 0)
		return err_errno("%s", k->path);
	age = (int64_t)time(NULL) - st.st_mtim.tv_sec;
	if (age < 0)
		age = 0;
	if (age >= SETTLE)
		return NULL;
	return err_new(ERR_UNAVAILABLE,
	    "%s was changed %lld seconds ago, and requests that began earlier "
	    "may still encrypt with an older key: try again in %lld seconds",
	    k->path, (long long)age, (long long)(SETTLE - age));
}

static const struct err *
check_needed(struct reseal *r)
{
	const struct err *e;

	if ((e = reseal_run(r, RESEAL_QUIET)) != NULL)
		return e;
	if (r->missed == 0 && reseal_older(r) == 0)
		return NULL;
	keys_tell(r);
	return err_new(ERR_CONFLICT,
	    "%lld values depend on older keys: nothing was removed; run "
	    "slipway-admin key --reseal",
	    (long long)reseal_older(r));
}

/* Checks twice, and in between waits for transactions that may still copy older
 * values. */
static const struct err *
check_prune(struct admin *admin, struct reseal *r)
{
	const struct err *e;
	size_t f;

	for (f = 0; f < RESEAL__MAX; f++)
		if (r->keys[f].n > 1 &&
		    ((e = check_owner(admin, r->keys[f].path)) != NULL ||
			(e = check_age(&r->keys[f])) != NULL))
			return e;
	if ((e = check_needed(r)) != NULL)
		return e;
	if ((e = sealed_settle(admin->db)) != NULL)
		return e;
	return check_needed(r);
}

static const struct err *
key_prune(struct admin *admin, struct reseal *r, bool dry_run)
{
	const struct err *(*const prune[])(const char *,
	    const struct key_name *) = { [RESEAL_KEYRING] = keyring_prune,
		[RESEAL_PRIVATE] = private_keyring_prune };
	const struct reseal_keys *k;
	const struct err *e;
	size_t f, i;

	if (r->keys[RESEAL_KEYRING].n == 1 && r->keys[RESEAL_PRIVATE].n == 1) {
		(void)printf("no older key exists\n");
		return NULL;
	}
	if ((e = check_prune(admin, r)) != NULL)
		return e;
	for (f = 0; f < RESEAL__MAX; f++) {
		k = &r->keys[f];
		if (!dry_run && k->n > 1 &&
		    (e = prune[f](k->path, &k->name[0])) != NULL)
			return e;
		for (i = 1; i < k->n; i++)
			(void)printf("%s: key %lld (%s) %s\n", k->path,
			    (long long)k->name[i].id, k->name[i].print,
			    dry_run ? "would be dropped" : "was dropped");
	}
	if (r->unopened > 0)
		(void)printf("%lld values cannot be decrypted with any key\n",
		    (long long)r->unopened);
	if (!dry_run)
		(void)printf(
		    "reload slipway-api, and copy the files to all other "
		    "hosts\n");
	return NULL;
}

enum work { WORK_ROTATE, WORK_RESEAL, WORK_PRUNE };

static const struct err *
key_do(struct admin *admin, struct keys *k, enum work work, unsigned flags)
{
	struct reseal r = { .db = admin->db };
	const struct err *e;

	if (work == WORK_ROTATE) {
		if ((e = key_rotate(admin, k)) != NULL)
			return e;
		(void)printf("%s has a new first key\n", k->keyring_path);
		(void)printf("%s has a new first key, %s its public half\n",
		    k->private, k->public);
		return NULL;
	}
	if ((e = keys_check(admin, k)) != NULL)
		return e;
	r.keyring = k->keyring;
	r.private_keyring = k->private_keyring;
	r.public_key = k->public_key;
	r.keys[RESEAL_KEYRING].path = k->keyring_path;
	r.keys[RESEAL_PRIVATE].path = k->private;
	reseal_begin(&r);
	return work == WORK_RESEAL ?
	    key_reseal(&r, flags) :
	    key_prune(admin, &r, (flags & RESEAL_WRITE) == 0);
}

static void
keys_close(const struct keys *k)
{
	public_key_close(k->public_key);
	private_keyring_close(k->private_keyring);
	keyring_close(k->keyring);
	if (k->lock != -1)
		(void)close(k->lock);
}

const struct err *
admin_key_create(struct admin *admin)
{
	const struct err *e;
	struct keys k;

	paths_set(admin, &k);
	e = key_rotate(admin, &k);
	keys_close(&k);
	return e;
}

const struct err *
admin_key(void *context, struct command_call *call)
{
	struct admin *admin = context;
	const struct admin_key *options = call->options;
	const struct err *e;
	struct keys k;

	if (options->reseal && options->prune)
		return err_public(ERR_METHOD,
		    "key: --reseal and --prune are separate steps: run "
		    "--reseal first");
	if (options->dry_run && !options->reseal && !options->prune)
		return err_public(ERR_METHOD,
		    "key: --dry-run requires --reseal or --prune");
	paths_set(admin, &k);
	e = key_do(admin, &k,
	    options->reseal    ? WORK_RESEAL :
		options->prune ? WORK_PRUNE :
				 WORK_ROTATE,
	    options->dry_run ? 0 : RESEAL_WRITE);
	keys_close(&k);
	return e;
}
