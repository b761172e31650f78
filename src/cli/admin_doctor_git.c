/* SPDX-License-Identifier: ISC */
/* doctor's checks of the Git server: URL, clock, client, tokens. */
#include <stdlib.h>
#include <string.h>

#include "cli/admin_doctor.h"
#include "core/address.h"
#include "core/str.h"
#include "http/http.h"
#include "queue/report.h"
#include "store/project.h"
#include "store/user.h"

#define SKEW_MAX 30 /* seconds between two clocks */
#define DEADLINE_MS 8000
#define BODY_MAX ((size_t)64 << 10)
#define PROJECTS 100
#define CAUSES 8

/* A sentence as a part of another one. */
static const char *
clause(struct arena *a, const char *sentence)
{
	const size_t len = strlen(sentence);

	return arena_strndup(a, sentence,
	    len > 0 && sentence[len - 1] == '.' ? len - 1 : len);
}

static void
clock_try(struct doctor *d, struct when theirs)
{
	long long skew = (time_now_ms() - theirs.ms) / 1000;

	if (theirs.ms == 0)
		doctor_say(d, VERDICT_NOTE, "clock",
		    "the Git server does not report its time, so check this "
		    "host's: timedatectl");
	else if (llabs(skew) > SKEW_MAX)
		doctor_say(d, VERDICT_FAULT, "clock",
		    "this machine is %lld seconds %s the Git server, so tokens "
		    "would expire at the wrong time: synchronize both clocks "
		    "by NTP (timedatectl set-ntp true)",
		    llabs(skew), skew > 0 ? "ahead of" : "behind");
	else
		doctor_say(d, VERDICT_OK, "clock",
		    "synchronous with the Git server");
}

/* Prints what to do if the Git server cannot be reached, depending on the error
 * message. */
static void
hint_say(struct doctor *d, const char *said)
{
	static const struct {
		const char *said, *hint;
	} hints[] = {
		{ "failed the TLS handshake",
		    "a server without TLS has a URL with http://, and requires "
		    "gitserver.allow_http unless it is on this host" },
		{ "not yet valid",
		    "this machine's clock is behind, or the certificate is not "
		    "valid yet: compare date -u with its dates, and "
		    "synchronize the clock by NTP (timedatectl set-ntp true)" },
		{ "expired",
		    "renew the certificate on the Git server; if its dates are "
		    "right, this machine's clock is ahead (date -u): "
		    "synchronize it by NTP (timedatectl set-ntp true)" },
		{ "certificate",
		    "a certificate of your own CA requires gitserver.tls_ca" },
		{ "unknown host name",
		    "check that the host in GITSERVER_URL is spelled correctly "
		    "and resolves here: getent hosts NAME" },
		{ "cannot be reached",
		    "check that the server runs and that its port is reachable "
		    "from here: curl -v URL" },
		{ "did not respond in time",
		    "the server hangs, or a firewall drops the packets: curl "
		    "-v URL" },
	};
	size_t i;

	for (i = 0; i < sizeof(hints) / sizeof(hints[0]); i++)
		if (strstr(said, hints[i].said) != NULL) {
			doctor_say(d, VERDICT_NOTE, "Git server", "%s",
			    hints[i].hint);
			return;
		}
}

static void
none_say(struct doctor *d, const struct settings_gitserver *s)
{
	doctor_say(d, VERDICT_NOTE, "Git server",
	    "none is configured, so users can only authenticate with API "
	    "tokens or through nginx: set url in [gitserver] to change that");
	if (!is_set(s->allowed_hosts) && !s->allow_local)
		doctor_say(d, VERDICT_NOTE, "repositories",
		    "every repository is rejected: set url or allowed_hosts "
		    "in [gitserver], for example allowed_hosts = github.com");
}

/* With such a role, every account there can read all projects. */
void
doctor_signup(struct doctor *d)
{
	const char *role = d->admin->set.auth.signup;

	if (d->forge == NULL || role_of(role) < ROLE_VIEWER)
		return;
	doctor_say(d, VERDICT_NOTE, "people",
	    "auth.signup = %s: every account at %s can sign in and read all "
	    "projects, steps and logs; if some must not, set signup = closed "
	    "or guest in [auth]",
	    role, forge_server(d->forge));
}

void
doctor_server(struct doctor *d)
{
	const struct settings_gitserver *s = &d->admin->set.gitserver;
	const struct err *e;
	struct when theirs;

	if (!is_set(s->url)) {
		none_say(d, s);
		return;
	}
	if ((e = forge_open(s, &d->forge)) != NULL) {
		doctor_say(d, VERDICT_FAULT, "Git server",
		    "%s Until [gitserver] is corrected, users cannot sign in, and "
		    "the runner does not start.",
		    doctor_words(e));
		return;
	}
	if (!forge_has_api(d->forge)) {
		doctor_say(d, VERDICT_NOTE, "Git server",
		    "type git: only the Git protocol is used");
		return;
	}
	if ((e = forge_check(d->forge, d->admin->a, &theirs)) != NULL) {
		doctor_say(d, VERDICT_FAULT, "Git server",
		    "%s: %s; until then users cannot sign in, and branches and "
		    "commits are not shown",
		    s->url, clause(d->admin->a, doctor_words(e)));
		hint_say(d, doctor_words(e));
		return;
	}
	d->answers = true;
	doctor_say(d, VERDICT_OK, "Git server", "%s responds as %s", s->url,
	    s->type);
	clock_try(d, theirs);
}

/* What is wrong with the URL itself; NULL = nothing. */
static const char *
redirect_fault(const char *uri)
{
	struct address ad;

	if (strchr(uri, '#') != NULL)
		return "must not have a fragment (#…)";
	if (str_starts(uri, "https://") ||
	    (address_read(uri, &ad) && ad.scheme == ADDRESS_HTTP &&
		address_is_loopback(&ad)))
		return NULL;
	return "must start with https://";
}

/* Uses the system's CAs, then gitserver.tls_ca. */
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

/* The page at the redirect address belongs to a client; the service must be on
 * the same host. */
void
doctor_redirect(struct doctor *d)
{
	const char *uri = d->admin->set.gitserver.redirect_uri;
	const char *wrong, *origin = NULL, *url;
	struct http_response got;
	const struct err *e;

	if (!is_set(uri) || d->forge == NULL)
		return;
	if ((wrong = redirect_fault(uri)) != NULL ||
	    (origin = http_origin(d->admin->a, uri)) == NULL) {
		doctor_say(d, VERDICT_FAULT, "redirect address",
		    "GITSERVER_REDIRECT_URI %s, so users cannot sign in: correct "
		    "redirect_uri in [gitserver]",
		    wrong != NULL ? wrong : "is not a URL");
		return;
	}
	url = arena_printf(d->admin->a, "%s/api/health", origin);
	if ((e = page_get(d, url, &got)) != NULL)
		doctor_say(d, VERDICT_NOTE, "redirect address",
		    "%s is not reachable from here: %s; browsers may reach "
		    "it, otherwise correct redirect_uri in [gitserver] or the "
		    "certificate in nginx",
		    url, doctor_words(e));
	else if (got.status == 401)
		doctor_say(d, VERDICT_FAULT, "redirect address",
		    "%s asks for a password, which the Git server's webhooks "
		    "and API tokens cannot send: in the server block that "
		    "includes slipway-locations.conf, set auth_basic "
		    "$slipway_realm instead of a text",
		    url);
	else if (strstr(got.body, "\"status\"") == NULL)
		doctor_say(d, VERDICT_FAULT, "redirect address",
		    "%s returned %d, not a response of slipway: the session "
		    "cookie is valid for slipway's own host only, so the page "
		    "must be on the host of /api: correct redirect_uri in "
		    "[gitserver]",
		    url, got.status);
	else
		doctor_say(d, VERDICT_OK, "redirect address",
		    "slipway responds on the host of %s", uri);
}

void
doctor_client(struct doctor *d)
{
	const struct err *e;

	if (d->forge == NULL || !forge_has_api(d->forge))
		return;
	if ((e = forge_can_sign_in(d->forge)) != NULL) {
		doctor_say(d, VERDICT_FAULT, "client",
		    "%s Without them users need API tokens: set them in "
		    "[gitserver], as the README describes.",
		    doctor_words(e));
		return;
	}
	if (!d->answers)
		return;
	e = forge_check_client(d->forge, d->admin->a);
	if (e != NULL && e->code == ERR_CONFIG) {
		doctor_say(d, VERDICT_FAULT, "client",
		    "%s; compare client id, secret and redirect address with "
		    "the application on the Git server, character by character",
		    clause(d->admin->a, doctor_words(e)));
		return;
	}
	if (e != NULL) {
		doctor_say(d, VERDICT_FAULT, "client", "%s", doctor_words(e));
		return;
	}
	doctor_say(d, VERDICT_OK, "client", "known to the Git server");
	if (forge_checks_redirect(d->forge))
		doctor_say(d, VERDICT_OK, "redirect address",
		    "registered at the Git server for this client");
	else
		doctor_say(d, VERDICT_NOTE, "redirect address",
		    "only the first sign-in shows whether it is registered at "
		    "the Git server for this client");
}

/* Sign-ins of a client without a secret fail with these versions. */
void
doctor_version(struct doctor *d)
{
	const struct settings_gitserver *s = &d->admin->set.gitserver;
	const char *version;
	const struct err *e;

	if (!d->answers || is_set(s->client_secret) ||
	    forge_can_sign_in(d->forge) != NULL)
		return;
	if ((e = forge_version(d->forge, d->admin->a, NULL, &version)) != NULL)
		doctor_say(d, VERDICT_NOTE, "version", "%s", doctor_words(e));
	else if (forge_forgets_challenge(d->forge, version))
		doctor_say(d, VERDICT_NOTE, "version",
		    "Gitea %.40s loses the PKCE challenge on its consent page, "
		    "which a client without a secret shows at every sign-in: "
		    "make the application confidential there and set "
		    "gitserver.client_secret, or upgrade Gitea to 1.25.5",
		    version);
}

/* Projects that fail for the same reason. */
struct cause {
	const char *words;
	const char *names;
	const char *repository; /* of the first one */
	size_t n;
};

static struct cause *
cause_of(struct cause causes[CAUSES], const char *said)
{
	struct cause *c = causes;

	while (c < causes + CAUSES - 1 && c->words != NULL &&
	    strcmp(c->words, said) != 0)
		c++;
	if (c->words == NULL)
		c->words = said;
	return c;
}

static void
causes_say(struct doctor *d, const struct cause causes[CAUSES])
{
	static const char advice[] =
	    "schedules, and users without an account there, cannot deploy: "
	    "let the token's account read the repository, or correct the "
	    "address in the project";
	const struct cause *c;

	for (c = causes; c < causes + CAUSES && c->n > 0; c++)
		if (c->n == 1)
			doctor_say(d, VERDICT_FAULT, "project",
			    "%s: the service's token cannot read %s: %s; %s",
			    c->names, c->repository,
			    clause(d->admin->a, c->words), advice);
		else
			doctor_say(d, VERDICT_FAULT, "projects",
			    "the service's token cannot read the repositories "
			    "of %zu: %s: %s; %s",
			    c->n, c->names, clause(d->admin->a, c->words),
			    advice);
}

/* Whether the error is not about the repository, so that other projects would
 * fail, too. */
static bool
is_general(const struct err *e)
{
	return e->code == ERR_UNAUTHENTICATED || e->code == ERR_RATE ||
	    e->code == ERR_UPSTREAM_TIMEOUT ||
	    (e->code == ERR_UPSTREAM && (e->sys == 0 || e->sys >= 500));
}

/* Lists the projects that the service's own token cannot read. */
static void
projects_try(struct doctor *d, const char *token)
{
	struct page page = { .page = 1, .limit = PROJECTS };
	struct cause causes[CAUSES] = { { .n = 0 } }, *c;
	const struct project *p;
	struct forge_repo repo;
	const struct err *e;
	struct list all;
	size_t i;

	if (!d->schema)
		return;
	if ((e = project_page(d->admin->db, d->admin->a, NULL, &page, &all)) !=
	    NULL) {
		doctor_say(d, VERDICT_FAULT, "projects", "%s", doctor_words(e));
		return;
	}
	p = all.items;
	for (i = 0; i < all.n; i++) {
		if (forge_repo_of(d->forge, d->admin->a, p[i].repository,
			&repo) != NULL)
			continue;
		e = forge_repo_find(d->forge, d->admin->a, token, &repo);
		if (e == NULL)
			continue;
		c = cause_of(causes,
		    arena_strdup(d->admin->a, doctor_words(e)));
		c->names = arena_printf(d->admin->a, "%s%s%s",
		    c->n == 0 ? "" : c->names, c->n == 0 ? "" : ", ",
		    p[i].name);
		if (c->n++ == 0)
			c->repository = p[i].repository;
		if (is_general(e))
			break;
	}
	causes_say(d, causes);
}

void
doctor_token(struct doctor *d)
{
	const char *token = d->admin->set.gitserver.token;
	struct forge_account who;
	const struct err *e;

	if (!d->answers)
		return;
	if (!is_set(token)) {
		doctor_say(d, VERDICT_NOTE, "token",
		    "the service has no token (GITSERVER_TOKEN): deployments "
		    "that a push starts use the token of the user who created "
		    "the project's hook secret, and commits get no statuses; "
		    "to change that, set token_file in [gitserver]");
		return;
	}
	if ((e = forge_whoami(d->forge, d->admin->a, token, &who)) != NULL) {
		doctor_say(d, VERDICT_FAULT, "token", "%s%s", doctor_words(e),
		    e->code != ERR_UNAUTHENTICATED ?
			"" :
			": it was revoked or has expired; create another one "
			"at the Git server, store it in gitserver.token or "
			"token_file, and reload both services");
		return;
	}
	doctor_say(d, VERDICT_OK, "token",
	    "the service is %s at the Git server", who.login);
	if (report_wanted(&d->admin->set.gitserver) &&
	    (e = forge_check_status(d->forge, d->admin->a, token)) != NULL)
		doctor_say(d, VERDICT_FAULT, "token",
		    "it may not set commit statuses: %s; create one with write "
		    "access, or set gitserver.report = no",
		    doctor_words(e));
	projects_try(d, token);
}
