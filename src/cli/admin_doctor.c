/* SPDX-License-Identifier: ISC */
/* Checks the environment that the service requires, and reports what is wrong
 * and what to do. */
#include "cli/admin_doctor.h"

#include <sys/stat.h>

#include <errno.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/str.h"
#include "crypto/crypto.h"
#include "crypto/keyring.h"
#include "crypto/private_keyring.h"
#include "store/gitserver.h"
#include "store/runner.h"

#define PEOPLE 100
#define PRIVATE "private key for variables"
#define API_ACCOUNT "slipway-api" /* in the unit that is installed */

static const char *const verdicts[VERDICT__MAX] = { "ok   ", "note ", "FAULT" };

void
doctor_say(struct doctor *d, enum verdict v, const char *what, const char *fmt,
    ...)
{
	struct buf text;
	va_list ap;

	buf_init(&text, SIZE_MAX / 2);
	va_start(ap, fmt);
	buf_vprintf(&text, fmt, ap);
	va_end(ap);
	(void)printf("%s  %s: %s\n", verdicts[v], what,
	    str_visible(d->admin->a, text.data == NULL ? "" : text.data));
	buf_release(&text);
	d->faults += v == VERDICT_FAULT;
}

const char *
doctor_words(const struct err *e)
{
	return e->detail[0] != '\0' ? e->detail : e->msg;
}

/* An older key still decrypts the values that were sealed with it. */
static void
older_try(struct doctor *d, const char *what, const char *path, size_t n)
{
	if (n > 1)
		doctor_say(d, VERDICT_NOTE, what,
		    "%s: contains older keys (%zu), so a copy of it still "
		    "decrypts the values that were encrypted with them: "
		    "slipway-admin key --reseal encrypts these values again, "
		    "then key --prune removes the keys",
		    path, n - 1);
}

/* What to do about a key file; nothing if the error says it. */
static const char *
key_advice(const struct err *e)
{
	if (strstr(e->msg, "slipway-admin key") != NULL ||
	    strstr(e->msg, "chmod") != NULL)
		return "";
	return ": restore the file from a backup, or correct its owner";
}

static bool
is_missing(const char *path)
{
	return access(path, F_OK) == -1 && errno == ENOENT;
}

/* The environment may set everything, as in a container. */
static void
conf_try(struct doctor *d)
{
	if (is_missing(d->admin->conf))
		doctor_say(d, VERDICT_NOTE, "configuration",
		    "%s does not exist, so every setting that the environment "
		    "does not give has its default: slipway-admin setup "
		    "creates the file, or name another one with -c",
		    d->admin->conf);
	else
		doctor_say(d, VERDICT_OK, "configuration", "%s is valid",
		    d->admin->conf);
}

/* A new installation has none of the three files, which is one cause. */
static bool
no_keys(struct doctor *d)
{
	const struct settings_secrets *s = &d->admin->set.secrets;

	return is_missing(s->key_file) &&
	    is_missing(settings_deploy_key(d->admin->a, s)) &&
	    is_missing(settings_deploy_public(d->admin->a, s));
}

static void
key_try(struct doctor *d)
{
	const char *path = d->admin->set.secrets.key_file;
	struct key_name names[KEYRING_KEYS];
	struct keyring *keys = NULL;
	const struct err *e;

	if ((d->no_keys = no_keys(d))) {
		doctor_say(d, VERDICT_FAULT, "key file",
		    "%s does not exist, nor do the keys for variables; without "
		    "them users cannot sign in, and secret variables are "
		    "rejected: slipway-admin key creates them",
		    path);
		return;
	}
	if ((e = keyring_open(path, &keys)) != NULL)
		doctor_say(d, VERDICT_FAULT, "key file",
		    "users cannot sign in: %s%s", e->msg, key_advice(e));
	else
		doctor_say(d, VERDICT_OK, "key file", "%s is valid", path);
	if (keys != NULL)
		older_try(d, "key file", path, keyring_names(keys, names));
	keyring_close(keys);
}

/* Checks that public and private half belong together. */
static void
halves_try(struct doctor *d, const struct private_keyring *keys,
    const struct public_key *public_key, const char *path)
{
	static const struct {
		enum verdict verdict;
		const char *text;
	} fits[] = {
		[KEY_MATCH_CURRENT] = { VERDICT_OK,
		    "the public half belongs to its first key" },
		[KEY_MATCH_OLDER] = { VERDICT_FAULT,
		    "the public half belongs to an older key, because "
		    "slipway-admin key was interrupted: run it again and "
		    "reload slipway-api" },
		[KEY_MATCH_NONE] = { VERDICT_FAULT,
		    "the public half belongs to none of its keys, so secret "
		    "values cannot be decrypted: run slipway-admin key, reload "
		    "slipway-api, and enter secret values again" },
	};
	const enum key_match fit = private_keyring_match(keys, public_key);

	doctor_say(d, fits[fit].verdict, PRIVATE, "%s: %s", path,
	    fits[fit].text);
}

/* Only the file's owner may read it, so it must be the dispatcher's account,
 * not that of the API. */
static void
owner_try(struct doctor *d, const char *path)
{
	const struct settings *s = &d->admin->set;
	const char *api = is_set(s->api.user) ? s->api.user : API_ACCOUNT;
	const struct passwd *pw;
	struct stat st;

	if (stat(path, &st) == -1)
		return;
	pw = getpwnam(api);
	if (pw != NULL && pw->pw_uid == st.st_uid)
		doctor_say(d,
		    s->runner.privilege_drop ? VERDICT_FAULT : VERDICT_NOTE,
		    PRIVATE,
		    "%s: the account of the API, %s, can read it, so an error "
		    "in the API could disclose all secret variables: set user "
		    "in [runner] to another account, and chown the file to "
		    "that",
		    path, api);
	if (!s->runner.privilege_drop)
		return;
	pw = getpwnam(s->runner.user);
	if (pw == NULL)
		doctor_say(d, VERDICT_NOTE, PRIVATE,
		    "unknown account %s, so it is not known whether it can "
		    "read %s: slipway-admin setup creates the account, or "
		    "correct user in [runner]",
		    s->runner.user, path);
	else if (pw->pw_uid != st.st_uid)
		doctor_say(d, VERDICT_FAULT, PRIVATE,
		    "%s: the dispatcher cannot read it, so deployments with "
		    "secret variables fail: chown %s %s",
		    path, s->runner.user, path);
}

static void
variables_try(struct doctor *d)
{
	const struct settings_secrets *s = &d->admin->set.secrets;
	const char *path = settings_deploy_key(d->admin->a, s),
		   *public = settings_deploy_public(d->admin->a, s);
	struct key_name names[KEYRING_KEYS];
	struct private_keyring *keys = NULL;
	struct public_key *public_key = NULL;
	const struct err *e;

	if (d->no_keys)
		return;
	if ((e = public_key_open(public, &public_key)) != NULL)
		doctor_say(d, VERDICT_FAULT, "public key for variables",
		    "secret variables are rejected: %s%s", e->msg,
		    key_advice(e));
	else
		doctor_say(d, VERDICT_OK, "public key for variables",
		    "%s is valid", public);
	e = private_keyring_open(path, &keys);
	if (e == NULL && public_key != NULL)
		halves_try(d, keys, public_key, path);
	else if (e != NULL && e->sys == EACCES)
		doctor_say(d, VERDICT_OK, PRIVATE,
		    "this account cannot open %s; run as root to check that "
		    "both halves belong together",
		    path);
	else if (e != NULL)
		doctor_say(d, VERDICT_FAULT, PRIVATE,
		    "deployments with secret variables fail on this host "
		    "(without a runner it needs no such file): %s%s",
		    e->msg, key_advice(e));
	if (keys != NULL)
		older_try(d, PRIVATE, path, private_keyring_names(keys, names));
	owner_try(d, path);
	private_keyring_close(keys);
	public_key_close(public_key);
}

/* Checks that there is an administrator. */
static void
people_try(struct doctor *d)
{
	const struct settings_auth *auth = &d->admin->set.auth;
	const struct user_filter filter = { .status = "active",
		.role = "admin" };
	struct page page = { .page = 1, .limit = 1 };
	const struct err *e;
	struct list admins;

	if (is_set(auth->admins)) {
		doctor_say(d, VERDICT_OK, "people",
		    "administrators by login: %s", auth->admins);
		return;
	}
	if (!d->schema)
		return;
	if ((e = user_page(d->admin->db, d->admin->a, &filter, &page,
		 &admins)) != NULL)
		doctor_say(d, VERDICT_FAULT, "people", "%s", doctor_words(e));
	else if (admins.n == 0)
		doctor_say(d, VERDICT_FAULT, "people",
		    "no active administrator, so users cannot be managed: set "
		    "admins in [auth], or run slipway-admin user add NAME "
		    "--role admin");
	else
		doctor_say(d, VERDICT_OK, "people",
		    "there is an active administrator");
}

/* Administrators who have not signed in yet; the owner of the login at the Git
 * server becomes one. */
static void
unclaimed_try(struct doctor *d)
{
	const struct user_filter filter = { .status = "active",
		.role = "admin" };
	struct page page = { .page = 1, .limit = PEOPLE };
	const struct err *e;
	const struct user *u;
	const char *names = "";
	struct list admins;
	size_t i;

	if (!d->schema || d->forge == NULL ||
	    forge_can_sign_in(d->forge) != NULL ||
	    d->admin->set.auth.remote_user)
		return;
	if ((e = user_page(d->admin->db, d->admin->a, &filter, &page,
		 &admins)) != NULL) {
		doctor_say(d, VERDICT_FAULT, "people", "%s", doctor_words(e));
		return;
	}
	u = admins.items;
	for (i = 0; i < admins.n; i++)
		if (u[i].last_login_at.ms == 0)
			names = arena_printf(d->admin->a, "%s%s%s", names,
			    names[0] == '\0' ? "" : ", ", u[i].username);
	if (names[0] != '\0')
		doctor_say(d, VERDICT_NOTE, "people",
		    "the first person to sign in with one of these logins of "
		    "the Git server becomes that administrator: %s; if a login "
		    "belongs to another person, rename the user (PUT "
		    "/api/user) or delete it",
		    names);
}

static void
sick_try(struct doctor *d)
{
	struct page page = { .page = 1, .limit = PEOPLE };
	const struct runner *r;
	const struct err *e;
	struct list list;
	size_t i;

	if ((e = runner_page(d->admin->db, d->admin->a, &page, &list)) !=
	    NULL) {
		doctor_say(d, VERDICT_FAULT, "runners", "%s", doctor_words(e));
		return;
	}
	r = list.items;
	for (i = 0; i < list.n; i++)
		if (r[i].online && r[i].sick)
			doctor_say(d, VERDICT_FAULT, "runners",
			    "%s cannot start deployments, and claims none: %s "
			    "Correct that on its host; the runner tries again "
			    "by itself, and at once after systemctl reload "
			    "slipway-runner",
			    r[i].name, r[i].sick_reason);
}

static void
runners_try(struct doctor *d)
{
	struct runner_count n;
	const struct err *e;

	if (!d->schema)
		return;
	if ((e = runner_count(d->admin->db, d->admin->a, &n)) != NULL)
		doctor_say(d, VERDICT_FAULT, "runners", "%s", doctor_words(e));
	else if (n.online == 0)
		doctor_say(d, VERDICT_NOTE, "runners",
		    "none is online, so deployments wait: systemctl enable "
		    "--now slipway-runner");
	else
		doctor_say(d, VERDICT_OK, "runners", "%lld of %lld are online",
		    (long long)n.online, (long long)n.total);
	if (e == NULL && n.sick > 0)
		sick_try(d);
}

/* Users who are bound to another URL of the Git server cannot sign in. */
static void
bound_try(struct doctor *d)
{
	const struct gitserver_users *u;
	const struct err *e;
	struct list list;
	size_t i;

	if (!d->schema || d->forge == NULL)
		return;
	e = gitserver_bound(d->admin->db, d->admin->a, &list);
	if (e != NULL) {
		doctor_say(d, VERDICT_FAULT, "people", "%s", doctor_words(e));
		return;
	}
	u = list.items;
	for (i = 0; i < list.n; i++)
		if (!str_eq(u[i].server, forge_server(d->forge)))
			doctor_say(d, VERDICT_FAULT, "people",
			    "%lld users belong to accounts at %s, which is not "
			    "the Git server in the configuration "
			    "(GITSERVER_URL), so they cannot sign in: if the "
			    "same server has a new URL, run slipway-admin "
			    "gitserver move %s --dry-run, then without "
			    "--dry-run; otherwise delete these users",
			    (long long)u[i].n, u[i].server, u[i].server);
}

const struct err *
admin_doctor(void *context, struct command_call *call)
{
	static void (*const tries[])(struct doctor *) = {
		conf_try,
		doctor_database,
		doctor_live,
		doctor_ids,
		doctor_accounts,
		doctor_directories,
		doctor_programs,
		doctor_cgroups,
		key_try,
		variables_try,
		people_try,
		runners_try,
		doctor_server,
		doctor_signup,
		doctor_redirect,
		doctor_client,
		doctor_version,
		unclaimed_try,
		bound_try,
		doctor_token,
		doctor_ssh,
	};
	struct doctor d = { .admin = context };
	size_t i;

	(void)call;
	for (i = 0; i < sizeof(tries) / sizeof(tries[0]); i++)
		tries[i](&d);
	forge_close(d.forge);
	if (d.faults == 0)
		return NULL;
	return err_public(ERR_CONFIG, "doctor: %zu faults", d.faults);
}
