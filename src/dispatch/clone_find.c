/* SPDX-License-Identifier: ISC */
#include "dispatch/clone_find.h"

#include <poll.h>
#include <unistd.h>

#include "access/moved.h"
#include "access/setter.h"
#include "core/address.h"
#include "core/file.h"
#include "core/log.h"
#include "core/str.h"
#include "dispatch/child.h"
#include "dispatch/context.h"
#include "dispatch/remote.h"
#include "json/json.h"
#include "store/submodule.h"

#define TOKEN_MS 9000 /* for the Git server to give a token */
#define REPO_MS 8000  /* for the repository, which git may do without */
#define ALL_MS 27000  /* for all of a finder's requests */
/* A request that fails sooner is repeated: the server may be restarting, or
 * another process that should have refreshed the token may have died. */
#define SOON_MS 6000
#define AGAIN_MS 11000
#define PAUSE_MS 500
#define HTTP_TIMEOUT 408
#define ANSWER_FD (STDERR_FILENO + 1)

struct finder {
	const struct dispatch *d;
	const struct claim *claim;
	struct remote remote;
	struct access access;
	struct forge_repo stored;  /* before the request */
	struct forge_repo found;   /* id NULL = nothing new */
	struct access_token token; /* no text = none, or none that works */
	bool is_rejected;          /* the token, by the server */
	bool is_retried;           /* the request can be repeated */
	bool is_away;              /* the server does not respond */
	const char *cause;         /* of the request that failed */
	int64_t retry_after;       /* seconds that the server demands, or 0 */
	bool stop;                 /* the repository must not be cloned */
	struct buf lent;           /* see setter_lend(), like the next one */
	struct buf refused;
	int64_t end; /* monotonic */
};

bool
clone_credential(const struct forge *forge, struct arena *a,
    const char *repository, const char *token, struct buf *out)
{
	struct forge_credential with;

	if (token == NULL || token[0] == '\0' || str_has_control(token) ||
	    forge_clone_with(forge, a, repository, token, &with) != NULL)
		return false;
	buf_printf(out, "%s\n%s", with.user, with.secret);
	return !out->overflow;
}

static bool
is_over_ssh(const struct claim *claim)
{
	struct address ad;

	return address_read(claim->repository, &ad) && address_is_ssh(&ad);
}

bool
clone_has_deploy_key(const struct claim *claim)
{
	return claim->deploy_key != NULL && is_over_ssh(claim);
}

bool
clone_has_service_key(const struct dispatch *d, const struct claim *claim)
{
	return claim->deploy_key == NULL &&
	    d->settings.gitserver.ssh_key_file != NULL && is_over_ssh(claim);
}

enum job_submodules
clone_submodules(const struct dispatch *d, const struct claim *claim)
{
	const bool wanted = claim->submodules.set ?
	    claim->submodules.n != 0 :
	    d->settings.runner.submodules;

	if (!wanted)
		return SUBMODULES_NONE;
	return access_is_personal(d->forge) && !clone_has_deploy_key(claim) ?
	    SUBMODULES_LENT :
	    SUBMODULES_FETCHED;
}

/* The server, or the database, is not available now. */
static bool
is_away(const struct err *e)
{
	return e != NULL &&
	    ((e->code == ERR_UPSTREAM &&
		 (e->sys / 100 != 4 || e->sys == HTTP_TIMEOUT)) ||
		e->code == ERR_UPSTREAM_TIMEOUT || e->code == ERR_RATE ||
		e->code == ERR_UNAVAILABLE);
}

/* The server denies the request. */
static bool
is_denied(const struct err *e)
{
	return e->code == ERR_NOTFOUND || e->code == ERR_UNAUTHENTICATED ||
	    (e->code == ERR_UPSTREAM && e->sys / 100 == 4);
}

/* Requests from now on end after that time, or when the finder's is over. */
static void
time_limit(const struct finder *f, int64_t ms)
{
	int64_t until = time_mono_ms() + ms;

	forge_until(f->access.forge, until < f->end ? until : f->end);
}

typedef const struct err *request(struct finder *);

/* Makes a request, and repeats one that fails soon because the server is away
 * for a moment. */
static const struct err *
request_persist(struct finder *f, request *ask)
{
	const struct timespec pause = { .tv_nsec = PAUSE_MS * 1000000L };
	const int64_t start = time_mono_ms();
	const struct err *e;
	int64_t began, now;

	for (;;) {
		began = time_mono_ms();
		time_limit(f, TOKEN_MS);
		e = ask(f);
		now = time_mono_ms();
		/* a deployment that has waited comes again */
		if (!is_away(e) || e->code == ERR_RATE ||
		    f->claim->git_waited.set || !f->is_retried ||
		    now - began > SOON_MS || now - start > AGAIN_MS)
			return e;
		(void)ppoll(NULL, 0, &pause, NULL);
	}
}

static const struct err *
token_ask(struct finder *f)
{
	f->is_retried = true;
	return access_for(&f->access, f->d->a, f->claim->read_by.n, &f->token);
}

/* Shows whether the server accepts the token, and where the repository is now.
 * Gitea finds a repository by its number only with a token. */
static const struct err *
repo_ask_with(struct forge *forge, struct arena *a,
    const struct access_token *token, void *context)
{
	struct finder *f = context;
	struct forge_repo repo = f->stored;
	const struct err *e;

	f->token = *token;
	if (token->text == NULL)
		repo.id = NULL;
	time_limit(f, REPO_MS);
	e = forge_repo_find(forge, a, token->text, &repo);
	/* Another repository at its path tells a removal from lost access. */
	if (e != NULL && e->code == ERR_NOTFOUND && repo.id != NULL) {
		repo.id = NULL;
		if (forge_repo_find(forge, a, token->text, &repo) == NULL)
			e = NULL;
	}
	time_limit(f, TOKEN_MS);
	f->is_rejected = e != NULL && e->code == ERR_UNAUTHENTICATED;
	if (e == NULL)
		f->found = repo;
	return e;
}

/* Whether nothing may be fetched unless the server confirms the repository. */
static bool
is_bound(const struct finder *f)
{
	return f->stored.id != NULL ||
	    (f->token.as == ACCESS_USER &&
		clone_has_service_key(f->d, f->claim));
}

/* It is repeated if the token is rejected, because another process may be
 * refreshing it, and if the deployment depends on the response. */
static const struct err *
repo_ask(struct finder *f)
{
	const struct err *e = access_call(&f->access, f->d->a,
	    f->claim->read_by.n, repo_ask_with, f);

	f->is_retried = f->is_rejected || is_bound(f);
	return e;
}

/* Keeps what the error says of the server for the answer. */
static void
cause_note(struct finder *f, const struct err *e)
{
	f->is_away = is_away(e);
	f->cause = arena_strdup(f->d->a,
	    e->detail[0] != '\0' ? e->detail :
				   "The Git server did not respond");
	if (e->code == ERR_RATE)
		f->retry_after = e->sys;
}

/* Judges the token by the error. A server whose API does not respond may still
 * serve git. */
static enum found
token_judge(struct finder *f, const struct err *e)
{
	const bool own = f->token.as == ACCESS_USER;

	if (f->is_rejected || e->sys == 401)
		f->token.text = NULL;
	if (f->token.as == ACCESS_ANYBODY)
		return FOUND_NONE;
	if (f->token.text == NULL && e->code == ERR_CONFIG)
		return FOUND_CLIENT;
	if (f->token.text == NULL && is_away(e)) /* while it was renewed */
		return FOUND_SILENT;
	if (f->token.text == NULL)
		return own ? FOUND_REJECTED : FOUND_BARRED;
	if (e->code == ERR_NOTFOUND && f->stored.id != NULL)
		return FOUND_GONE;
	if (e->code == ERR_NOTFOUND && own)
		return FOUND_UNSEEN;
	return own && e->code == ERR_UPSTREAM && e->sys == 403 ? FOUND_LOCKED :
								 FOUND_OK;
}

/* The server showed a repository. It must be the stored one, at a path that can
 * be part of an address. */
static enum found
judge_repo(struct finder *f)
{
	const char *address;
	enum found how = f->token.text == NULL ? FOUND_NONE : FOUND_OK;

	if (f->stored.id == NULL)
		return how;
	if (!str_eq(f->found.id, f->stored.id))
		how = FOUND_TAKEN;
	else if (forge_repo_at(f->access.forge, f->d->a, f->claim->repository,
		     f->found.path, &address) != NULL)
		how = FOUND_UNSURE;
	else
		return how;
	f->found = (struct forge_repo){ .id = NULL };
	f->stop = true;
	return how;
}

/* Without the server's word that the stored number still belongs to the path,
 * the path may lead to another repository. */
static enum found
error_judge(struct finder *f, const struct err *e)
{
	const bool bound = is_bound(f);
	enum found how;

	if (e == NULL)
		return judge_repo(f);
	log_info("deployment %lld: %s: %s", (long long)f->claim->id,
	    f->token.as == ACCESS_USER && f->token.text == NULL ?
		"the token of the user who deploys" :
		"the request for its repository",
	    err_words(e));
	cause_note(f, e);
	how = token_judge(f, e);
	f->stop = how == FOUND_REJECTED || how == FOUND_CLIENT || bound;
	if (bound && (how == FOUND_OK || (how == FOUND_NONE && !is_denied(e))))
		return FOUND_UNSURE;
	return how;
}

static const struct err *
setter_ask(struct finder *f)
{
	f->is_retried = true;
	return setter_check(&f->access, f->d->a, f->claim->project_id,
	    f->claim->repository);
}

/* A user who deploys decides what that user's own token reads, and the deploy key
 * is the project's own.  All else needs the access of the user who set the
 * repository, too: what the service's credentials read, and what a user's token
 * reads without the user. */
static bool
needs_setter(const struct finder *f)
{
	const struct claim *c = f->claim;

	if (clone_has_deploy_key(c))
		return false;
	if (f->token.as == ACCESS_ANYBODY)
		return clone_has_service_key(f->d, c);
	return f->token.as == ACCESS_SERVICE ||
	    (c->is_automatic && c->read_by.n != c->set_by.n);
}

static enum found
setter_judge(struct finder *f)
{
	const struct claim *c = f->claim;
	const struct err *e;

	if (!needs_setter(f))
		return FOUND_OK;
	if ((e = request_persist(f, setter_ask)) == NULL)
		return FOUND_OK;
	log_info("deployment %lld: its repository: %s", (long long)c->id,
	    err_words(e));
	cause_note(f, e);
	f->stop = true;
	return e->code == ERR_FORBIDDEN ? FOUND_FOREIGN : FOUND_UNSURE;
}

static const struct err *
lend_ask(struct finder *f)
{
	const struct claim *c = f->claim;
	struct setter_list list = { .project_id = c->project_id,
		.set_by = c->submodules_by,
		.token = f->token.text };
	const struct err *e;

	if ((e = json_items(f->d->a, &submodule_path_shape,
		 c->submodule_repositories.s, &list.paths)) != NULL)
		return e;
	f->is_retried = true;
	buf_clear(&f->lent);
	buf_clear(&f->refused);
	time_limit(f, ALL_MS);
	return setter_lend(&f->access, f->d->a, &list, &f->lent, &f->refused);
}

/* Finds which submodules the token reads. */
static enum found
submodules_lend(struct finder *f, enum found how)
{
	const struct err *e;

	if (how != FOUND_OK || f->stop || f->token.text == NULL ||
	    clone_submodules(f->d, f->claim) != SUBMODULES_LENT ||
	    (e = request_persist(f, lend_ask)) == NULL)
		return how;
	log_info("deployment %lld: the repositories of its submodules: %s",
	    (long long)f->claim->id, err_words(e));
	cause_note(f, e);
	f->stop = true;
	return FOUND_UNSURE;
}

/* Finds the token and the address. */
static enum found
token_find(struct finder *f)
{
	struct access *x = &f->access;
	const bool known = remote_is_known(f->d->forge, f->d->a,
	    f->claim->repository);
	const struct err *e = NULL;
	enum found how;

	if (f->claim->is_automatic && f->claim->has_left &&
	    !clone_has_deploy_key(f->claim) && access_is_personal(x->forge)) {
		f->stop = true;
		return FOUND_LEFT;
	}
	if (known &&
	    (e = remote_recall(x->forge, x->db, f->d->a, &f->remote,
		 &f->stored)) != NULL) {
		log_err(e, "whether the repository was renamed");
		return FOUND_LATE;
	}
	e = request_persist(f, token_ask);
	if (e == NULL && known && (how = setter_judge(f)) != FOUND_OK)
		return how;
	if (e == NULL && known)
		e = request_persist(f, repo_ask);
	return error_judge(f, e);
}

/* Stores the number, if the path can be part of an address. */
static void
number_store(const struct finder *f)
{
	const struct claim *c = f->claim;
	const bool is_setter = f->token.as == ACCESS_USER && c->set_by.set &&
	    c->read_by.n == c->set_by.n;
	const struct err *e;
	const char *address;

	if (f->found.id == NULL || (!f->token.trusted && !is_setter) ||
	    forge_repo_at(f->access.forge, f->d->a, f->claim->repository,
		f->found.path, &address) != NULL)
		return;
	if (is_setter)
		e = setter_confirm(&f->access, c->project_id, c->repository,
		    &f->found, c->set_by.n);
	else
		e = remote_store(f->access.forge, f->access.db, &f->remote,
		    &f->found);
	if (e == NULL)
		e = remote_follow(&f->access, f->d->a, &f->remote, &f->found,
		    f->d->name);
	if (e != NULL)
		log_err(e, "the number of a repository");
}

static const struct err *
answer_write(struct finder *f)
{
	const char *repository = f->claim->repository;
	const struct err *e;
	struct buf out;

	buf_init(&out, CLONE_CREDENTIAL_MAX);
	if (f->found.id != NULL)
		buf_puts(&out,
		    moved_address(f->access.forge, f->d->a, repository,
			f->found.path));
	buf_putc(&out, '\n');
	if (f->cause != NULL)
		buf_printf(&out, "%lld %s", (long long)f->retry_after,
		    f->cause);
	buf_printf(&out, "\n%s\n%s\n", f->lent.len > 0 ? f->lent.data : "",
	    f->refused.len > 0 ? f->refused.data : "");
	(void)clone_credential(f->access.forge, f->d->a, repository,
	    f->token.text, &out);
	if ((e = buf_check(&out)) == NULL)
		e = file_store(ANSWER_FD, out.data, out.len);
	return e;
}

void
clone_find(const struct dispatch *d, const struct claim *claim)
{
	struct finder f = { .d = d,
		.claim = claim,
		.remote = { claim->project_id, claim->repository },
		.end = time_mono_ms() + ALL_MS };
	enum found how = FOUND_LATE;
	const struct err *e;

	buf_init(&f.lent, CLONE_CREDENTIAL_MAX);
	buf_init(&f.refused, CLONE_CREDENTIAL_MAX);
	if ((e = child_connect(d, &f.access)) == NULL) {
		how = submodules_lend(&f, token_find(&f));
		number_store(&f);
		e = answer_write(&f);
	}
	if (e != NULL)
		log_err(e, "the token of the user who deploys");
	_exit((int)how | (f.stop ? FOUND_STOP : 0) |
	    (f.is_away ? FOUND_AWAY : 0));
}
