/* SPDX-License-Identifier: ISC */
/* Tries what the service needs of its surroundings, and says in words what is
 * wrong and what to do. */
#include <sys/stat.h>

#include <errno.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/admin.h"
#include "core/str.h"
#include "crypto/crypto.h"
#include "crypto/unbox.h"
#include "forge/forge.h"
#include "http/http.h"
#include "store/project.h"
#include "store/report.h"

#define SKEW_MAX 30 /* seconds between two clocks */
#define DEADLINE_MS 8000
#define BODY_MAX ((size_t)64 << 10)
#define PROJECTS 100
#define PEOPLE 100
#define PRIVATE "private key for variables"
#define API_ACCOUNT "slipway-api" /* of the unit that comes with it */

struct doctor {
	struct admin *admin;
	struct forge *forge; /* NULL = there is none to ask */
	bool schema;         /* the tables can be read */
	bool answers;        /* the Git server does */
	size_t faults;
};

enum verdict { VERDICT_OK, VERDICT_NOTE, VERDICT_FAULT, VERDICT__MAX };
static const char *const verdicts[VERDICT__MAX] = { "ok   ", "note ", "FAULT" };

static void say(struct doctor *, enum verdict, const char *what,
    const char *fmt, ...) PRINTFLIKE(4, 5);

static void
say(struct doctor *d, enum verdict v, const char *what, const char *fmt, ...)
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

static const char *
words(const struct err *e)
{
	return e->detail[0] != '\0' ? e->detail : e->msg;
}

static bool
is_set(const char *s)
{
	return s != NULL && s[0] != '\0';
}

static void
database_try(struct doctor *d)
{
	const struct err *e;

	if ((e = db_check_schema(d->admin->db)) != NULL) {
		say(d, VERDICT_FAULT, "database", "%s", words(e));
		return;
	}
	d->schema = true;
	say(d, VERDICT_OK, "database", "it answers, the schema is ours");
}

/* Whoever has got hold of one opens with it what he has of the database. */
static void
older_try(struct doctor *d, const char *what, const char *path, size_t n)
{
	if (n > 1)
		say(d, VERDICT_NOTE, what,
		    "%s: holds %zu older keys: slipway-admin key --reseal "
		    "seals anew what hangs on them, then key --prune drops "
		    "them",
		    path, n - 1);
}

static void
key_try(struct doctor *d)
{
	const char *path = d->admin->set.secrets.key_file;
	struct key_name names[CRYPTO_KEYS];
	struct keyring *keys = NULL;
	const struct err *e;

	if ((e = keyring_open(path, &keys)) != NULL)
		say(d, VERDICT_FAULT, "key file",
		    "%s; without it nobody can sign in: slipway-admin key "
		    "makes it",
		    e->msg);
	else
		say(d, VERDICT_OK, "key file", "%s opens", path);
	if (keys != NULL)
		older_try(d, "key file", path, keyring_names(keys, names));
	keyring_close(keys);
}

/* Whether both halves are of one pair. */
static void
halves_try(struct doctor *d, const struct unbox *keys, const struct box *box,
    const char *path)
{
	static const struct {
		enum verdict verdict;
		const char *text;
	} fits[] = {
		[UNBOX_FIRST] = { VERDICT_OK,
		    "the public half is that of its first key" },
		[UNBOX_OLDER] = { VERDICT_FAULT,
		    "the public half is that of an older key: slipway-admin "
		    "key was interrupted; run it again and reload slipway-api" },
		[UNBOX_NONE] = { VERDICT_FAULT,
		    "the public half is of none of its keys, so that what is "
		    "sealed cannot be opened: run slipway-admin key, reload "
		    "slipway-api, and give secret values anew" },
	};
	const enum unbox_fit fit = unbox_fits(keys, box);

	say(d, fits[fit].verdict, PRIVATE, "%s: %s", path, fits[fit].text);
}

/* The file's owner is the only one that may read it: it has to be the
 * dispatcher, and not the API. */
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
		say(d, s->runner.privilege_drop ? VERDICT_FAULT : VERDICT_NOTE,
		    PRIVATE,
		    "%s: the account of the API, %s, can read it; it should "
		    "belong to the dispatcher's, and that be another",
		    path, api);
	if (!s->runner.privilege_drop)
		return;
	pw = getpwnam(s->runner.user);
	if (pw == NULL)
		say(d, VERDICT_NOTE, PRIVATE,
		    "there is no account %s (runner.user) here: whether it "
		    "could read %s cannot be told",
		    s->runner.user, path);
	else if (pw->pw_uid != st.st_uid)
		say(d, VERDICT_FAULT, PRIVATE,
		    "%s: the dispatcher cannot read it: chown %s %s", path,
		    s->runner.user, path);
}

static void
variables_try(struct doctor *d)
{
	const struct settings_secrets *s = &d->admin->set.secrets;
	const char *path = settings_deploy_key(d->admin->a, s),
		   *public = settings_deploy_public(d->admin->a, s);
	struct key_name names[CRYPTO_KEYS];
	struct unbox *keys = NULL;
	struct box *box = NULL;
	const struct err *e;

	if ((e = box_open(public, &box)) != NULL)
		say(d, VERDICT_FAULT, "public key for variables",
		    "%s; without it no secret variable can be kept: "
		    "slipway-admin key makes it",
		    e->msg);
	else
		say(d, VERDICT_OK, "public key for variables", "%s opens",
		    public);
	e = unbox_open(path, &keys);
	if (e == NULL && box != NULL)
		halves_try(d, keys, box, path);
	else if (e != NULL && e->sys == EACCES)
		say(d, VERDICT_OK, PRIVATE,
		    "this account cannot open %s; run as root, doctor also "
		    "sees whether both halves belong together",
		    path);
	else if (e != NULL)
		say(d, VERDICT_FAULT, PRIVATE,
		    "%s; without it no deployment with secret variables can "
		    "run here (a host without a runner needs none)",
		    e->msg);
	if (keys != NULL)
		older_try(d, PRIVATE, path, unbox_names(keys, names));
	owner_try(d, path);
	unbox_close(keys);
	box_close(box);
}

/* Whether anybody could sign in who may change anything. */
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
		say(d, VERDICT_OK, "people", "administrators by login: %s",
		    auth->admins);
		return;
	}
	if (!d->schema)
		return;
	if ((e = user_page(d->admin->db, d->admin->a, &filter, &page,
		 &admins)) != NULL)
		say(d, VERDICT_FAULT, "people", "%s", words(e));
	else if (admins.n == 0)
		say(d, VERDICT_FAULT, "people",
		    "there is no active administrator: name one in "
		    "auth.admins, or slipway-admin user add NAME --role admin");
	else
		say(d, VERDICT_OK, "people", "there is an administrator");
}

/* Administrators that whoever has their login at the Git server may become. */
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
		say(d, VERDICT_FAULT, "people", "%s", words(e));
		return;
	}
	u = admins.items;
	for (i = 0; i < admins.n; i++)
		if (u[i].last_login_at.ms == 0)
			names = arena_printf(d->admin->a, "%s%s%s", names,
			    names[0] == '\0' ? "" : ", ", u[i].username);
	if (names[0] != '\0')
		say(d, VERDICT_NOTE, "people",
		    "who signs in first by these logins of the Git server "
		    "becomes that administrator: %s; where a login is not the "
		    "right one's there, give the user another name (PUT "
		    "/api/user), or delete it",
		    names);
}

static void
clock_try(struct doctor *d, struct when theirs)
{
	long long skew = (time_now_ms() - theirs.ms) / 1000;

	if (theirs.ms == 0)
		say(d, VERDICT_NOTE, "clock",
		    "the Git server does not say what time it is");
	else if (llabs(skew) > SKEW_MAX)
		say(d, VERDICT_FAULT, "clock",
		    "this machine is %lld seconds %s the Git server: tokens "
		    "would expire at the wrong time; let both keep time by "
		    "NTP (timedatectl set-ntp true)",
		    llabs(skew), skew > 0 ? "ahead of" : "behind");
	else
		say(d, VERDICT_OK, "clock", "as the Git server's");
}

static void
server_try(struct doctor *d)
{
	const struct settings_gitserver *s = &d->admin->set.gitserver;
	const struct err *e;
	struct when theirs;

	if (!is_set(s->url)) {
		say(d, VERDICT_NOTE, "Git server",
		    "none is configured (GITSERVER_URL): tokens and nginx's "
		    "own authentication are the only ways in");
		return;
	}
	if ((e = forge_open(s, &d->forge)) != NULL) {
		say(d, VERDICT_FAULT, "Git server", "%s", words(e));
		return;
	}
	if (!forge_has_api(d->forge)) {
		say(d, VERDICT_NOTE, "Git server",
		    "of type git: nothing but git itself is asked");
		return;
	}
	if ((e = forge_check(d->forge, d->admin->a, &theirs)) != NULL) {
		say(d, VERDICT_FAULT, "Git server", "%s: %s", s->url, words(e));
		if (strstr(words(e), "does not speak TLS") != NULL)
			say(d, VERDICT_NOTE, "Git server",
			    "one without TLS has an address of http://, and "
			    "needs gitserver.allow_http unless it is of this "
			    "host");
		else if (strstr(words(e), "certificate") != NULL)
			say(d, VERDICT_NOTE, "Git server",
			    "a certificate of your own CA needs "
			    "gitserver.tls_ca");
		return;
	}
	d->answers = true;
	say(d, VERDICT_OK, "Git server", "%s answers as %s", s->url, s->type);
	clock_try(d, theirs);
}

/* What is wrong with the address itself; NULL = nothing. */
static const char *
redirect_fault(const char *uri)
{
	if (strchr(uri, '#') != NULL)
		return "must have no fragment (#…)";
	if (str_starts(uri, "https://") ||
	    str_starts(uri, "http://localhost") ||
	    str_starts(uri, "http://127.0.0.1") ||
	    str_starts(uri, "http://[::1]"))
		return NULL;
	return "must start with https://";
}

/* By the system's CAs, or by the one that is the Git server's. */
static const struct err *
page_get(struct doctor *d, const char *url, struct http_response *out)
{
	const char *const cas[] = { NULL, d->admin->set.gitserver.tls_ca };
	const struct http_request rq = { .url = url,
		.deadline_ms = DEADLINE_MS,
		.max = BODY_MAX };
	struct http_options options = { .agent = "slipway-doctor",
		.allow_http = true };
	const struct err *e = NULL;
	struct http *http;
	size_t i;

	for (i = 0; i < 2 && (i == 0 || cas[i] != NULL); i++) {
		options.tls_ca = cas[i];
		if ((e = http_open(&options, &http)) == NULL)
			e = http_call(http, d->admin->a, &rq, out);
		http_close(http);
		if (e == NULL)
			break;
	}
	return e;
}

/* The page behind it belongs to a client; the service stands beside it. */
static void
redirect_try(struct doctor *d)
{
	const char *uri = d->admin->set.gitserver.redirect_uri;
	const char *wrong, *origin = NULL, *url;
	struct http_response got;
	const struct err *e;

	if (!is_set(uri) || d->forge == NULL)
		return;
	if ((wrong = redirect_fault(uri)) != NULL ||
	    (origin = http_origin(d->admin->a, uri)) == NULL) {
		say(d, VERDICT_FAULT, "redirect address",
		    "GITSERVER_REDIRECT_URI %s",
		    wrong != NULL ? wrong : "is no address");
		return;
	}
	url = arena_printf(d->admin->a, "%s/api/health", origin);
	if ((e = page_get(d, url, &got)) != NULL)
		say(d, VERDICT_NOTE, "redirect address",
		    "%s is not reached from here: %s", url, words(e));
	else if (strstr(got.body, "\"status\"") == NULL)
		say(d, VERDICT_FAULT, "redirect address",
		    "%s answered %d, not as slipway does: the session's cookie "
		    "holds for slipway's own address, so the page must lie "
		    "beside /api",
		    url, got.status);
	else
		say(d, VERDICT_OK, "redirect address",
		    "slipway answers beside %s", uri);
}

static void
client_try(struct doctor *d)
{
	const struct err *e;

	if (d->forge == NULL || !forge_has_api(d->forge))
		return;
	if ((e = forge_can_sign_in(d->forge)) != NULL) {
		say(d, VERDICT_FAULT, "client", "%s", words(e));
		return;
	}
	if (!d->answers)
		return;
	e = forge_check_client(d->forge, d->admin->a);
	if (e != NULL && e->code == ERR_CONFIG) {
		say(d, VERDICT_FAULT, "client",
		    "%s; compare client id, secret and redirect address with "
		    "the application on the Git server, letter by letter",
		    words(e));
		return;
	}
	if (e != NULL) {
		say(d, VERDICT_FAULT, "client", "%s", words(e));
		return;
	}
	say(d, VERDICT_OK, "client", "the Git server knows it");
	if (forge_checks_redirect(d->forge))
		say(d, VERDICT_OK, "redirect address",
		    "the Git server has it for this client");
	else
		say(d, VERDICT_NOTE, "redirect address",
		    "whether the Git server has it for this client shows at "
		    "the first sign-in only");
}

/* Which projects the service's own token cannot read. */
static void
projects_try(struct doctor *d, const char *token)
{
	struct page page = { .page = 1, .limit = PROJECTS };
	const struct project *p;
	struct forge_repo repo;
	const struct err *e;
	struct list all;
	size_t i;

	if (!d->schema)
		return;
	if ((e = project_page(d->admin->db, d->admin->a, NULL, &page, &all)) !=
	    NULL) {
		say(d, VERDICT_FAULT, "projects", "%s", words(e));
		return;
	}
	p = all.items;
	for (i = 0; i < all.n; i++) {
		if (forge_repo_of(d->forge, d->admin->a, p[i].repository,
			&repo) != NULL)
			continue;
		e = forge_repo_find(d->forge, d->admin->a, token, &repo);
		if (e != NULL)
			say(d, VERDICT_FAULT, "project",
			    "%s: the service's token cannot read %s: %s",
			    p[i].name, p[i].repository, words(e));
	}
}

static void
token_try(struct doctor *d)
{
	const char *token = d->admin->set.gitserver.token;
	struct forge_account who;
	const struct err *e;

	if (!d->answers)
		return;
	if (!is_set(token)) {
		say(d, VERDICT_NOTE, "token",
		    "the service has none of its own (GITSERVER_TOKEN): what "
		    "a push starts is read with the access of who made the "
		    "project's hook secret");
		return;
	}
	if ((e = forge_whoami(d->forge, d->admin->a, token, &who)) != NULL) {
		say(d, VERDICT_FAULT, "token", "%s", words(e));
		return;
	}
	say(d, VERDICT_OK, "token", "the service is %s there", who.login);
	if (report_wanted(&d->admin->set.gitserver) &&
	    (e = forge_check_status(d->forge, d->admin->a, token)) != NULL)
		say(d, VERDICT_FAULT, "token",
		    "it may not put statuses on commits: %s; make one that may "
		    "write there, or set gitserver.report = no",
		    words(e));
	projects_try(d, token);
}

const struct err *
admin_doctor(struct admin *admin, int argc, char **argv)
{
	static void (*const tries[])(struct doctor *) = {
		database_try,
		key_try,
		variables_try,
		people_try,
		server_try,
		redirect_try,
		client_try,
		unclaimed_try,
		token_try,
	};
	const struct option_value none = { .name = NULL };
	struct doctor d = { .admin = admin };
	const struct err *e;
	size_t i;

	if ((e = admin_options(argc, argv, &none, NULL, 0)) != NULL)
		return e;
	for (i = 0; i < sizeof(tries) / sizeof(tries[0]); i++)
		tries[i](&d);
	forge_close(d.forge);
	if (d.faults == 0)
		return NULL;
	return err_tell(ERR_CONFIG, "doctor: %zu faults", d.faults);
}
