/* SPDX-License-Identifier: ISC */
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "access/access.h"
#include "core/file.h"
#include "core/log.h"
#include "core/str.h"
#include "dispatch/dispatch.h"
#include "store/gitrepo.h"

#define CREDENTIAL_MAX ((size_t)32 << 10) /* a pipe holds as much */
#define ASK_MS 9000                       /* for the Git server */
/* For one that does not answer, without which git may get on as well. */
#define QUESTION_MS 8000
/* One that fails sooner is asked again: it may be starting anew, or another
 * who was to refresh the token have died. */
#define SOON_MS 6000
#define AGAIN_MS 11000
#define PAUSE_MS 500
/* Beyond that the deployment goes on; the asker is left to store what it may
 * have been given. */
#define PATIENCE_MS 30000
#define ALL_MS 27000 /* for all that one asker asks */
#define ANSWER_FD (STDERR_FILENO + 1)

/* How an asker ends. */
enum asked {
	ASKED_OK,
	ASKED_NONE,
	ASKED_SILENT,
	ASKED_LATE,
	ASKED_REFUSED, /* the user's token, or there is none */
	ASKED_BARRED,  /* the service's */
	ASKED_UNSEEN,  /* the repository is not, or not for that token */
	ASKED_LOCKED,  /* 403: mostly the account */
	ASKED_GONE,    /* the number that is remembered is not to be seen */
	ASKED_TAKEN,   /* by another, at its path */
	ASKED__MAX
};
/* Added to it where the repository must not be fetched: what lies at its path
 * may be another one by now. */
#define ASKED_STOP 0x40
static const char *const notes[ASKED__MAX] = {
	[ASKED_NONE] = "There is no token for the Git server: who deploys may "
		       "sign in by it, or gitserver.token be set.",
	[ASKED_SILENT] = "The Git server did not renew the token of the one "
			 "who deploys.",
	[ASKED_LATE] = "The token of the one who deploys was not found in "
		       "time.",
	[ASKED_REFUSED] = "The Git server does not accept the access of the "
			  "one who deploys any more: sign in again, then "
			  "retry.",
	[ASKED_BARRED] = "The Git server does not accept the service's token "
			 "(gitserver.token).",
	[ASKED_UNSEEN] = "The Git server knows no such repository, or the one "
			 "who deploys may not see it.",
	[ASKED_LOCKED] = "The Git server answered 403: the account of the one "
			 "who deploys may be locked there.",
	[ASKED_GONE] = "The repository was renamed or removed at the Git "
		       "server, or the one who deploys may not see it (404). "
		       "If another is to take its place, a maintainer sends "
		       "the project's repository again, alone (PUT "
		       "/api/projects).",
	[ASKED_TAKEN] = "Another repository has taken the name of the "
			"project's at the Git server. If that is the right "
			"one, a maintainer sends the project's repository "
			"again, alone (PUT /api/projects).",
};

/* What the asker has found. */
struct asker {
	const struct dispatch *d;
	const struct claim *c;
	struct access access;
	struct forge_repo known;   /* before it asked */
	struct forge_repo found;   /* id NULL = nothing new is known */
	struct access_token token; /* no text = none, or none that works */
	bool refused;              /* that one, by the server */
	bool stop;                 /* what lies at the path is not fetched */
	int64_t end;               /* time_mono_ms */
};

void
clone_open(struct dispatch *d)
{
	const struct settings_gitserver *g = &d->settings.gitserver;
	const struct err *e;

	forge_close(d->forge);
	d->forge = NULL;
	if (g->url != NULL && (e = forge_open(g, &d->forge)) != NULL)
		log_err(e, "the Git server is not used");
}

bool
clone_is_known(const struct dispatch *d, struct arena *a,
    const char *repository)
{
	struct forge_repo repo;

	return d->forge != NULL && forge_has_api(d->forge) &&
	    forge_repo_of(d->forge, a, repository, &repo) == NULL;
}

/* What is remembered of the repository, else what its address says. */
static const struct err *
repo_known(const struct forge *forge, struct db *db, struct arena *a,
    const struct claim *c, struct forge_repo *out)
{
	const struct err *e;
	struct git_repo known;

	if ((e = forge_repo_of(forge, a, c->repository, out)) != NULL)
		return e;
	e = gitrepo_find(db, a, c->project_id, forge_server(forge),
	    c->repository, &known);
	if (e != NULL)
		return e->code == ERR_NOTFOUND ? NULL : e;
	out->id = known.repo_id;
	out->path = known.path;
	return NULL;
}

/* The address by that path, or as it stands in the project where that is not
 * another one. */
static const char *
address_at(const struct forge *forge, struct arena *a, const char *repository,
    const char *path)
{
	struct forge_repo was;
	const char *fresh;

	if (forge_repo_of(forge, a, repository, &was) != NULL ||
	    strcasecmp(was.path, path) == 0 ||
	    forge_repo_at(forge, a, repository, path, &fresh) != NULL)
		return repository;
	return fresh;
}

/* As far as it is known without a question. */
static const char *
address_known(const struct dispatch *d, const struct claim *c)
{
	struct forge_repo repo;
	const struct err *e;

	if (!clone_is_known(d, d->a, c->repository))
		return c->repository;
	e = repo_known(d->forge, d->db, d->a, c, &repo);
	if (e == NULL)
		return address_at(d->forge, d->a, c->repository, repo.path);
	log_err(e, "whether the repository was renamed");
	return c->repository;
}

/* "user\nsecret"; false if there is no token, or none that git may have. */
static bool
credential_put(const struct forge *forge, struct arena *a,
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
is_away(const struct err *e)
{
	return e != NULL &&
	    ((e->code == ERR_UPSTREAM && e->sys / 100 != 4) ||
		e->code == ERR_UPSTREAM_TIMEOUT || e->code == ERR_UNAVAILABLE);
}

/* Whether what began then, and failed, is to be tried again: soon, after a
 * pause. */
static bool
is_soon(const struct err *e, int64_t start, int64_t began)
{
	const struct timespec pause = { .tv_nsec = PAUSE_MS * 1000000L };
	int64_t now = time_mono_ms();

	if (!is_away(e) || now - began > SOON_MS || now - start > AGAIN_MS)
		return false;
	(void)ppoll(NULL, 0, &pause, NULL);
	return true;
}

/* What is asked from now on lasts no longer, each or all together. */
static void
ask_within(const struct asker *k, int64_t ms)
{
	int64_t until = time_mono_ms() + ms;

	forge_until(k->access.forge, until < k->end ? until : k->end);
}

static const struct err *
token_find(struct asker *k)
{
	const int64_t start = time_mono_ms();
	const struct err *e;
	int64_t began;

	do {
		began = time_mono_ms();
		ask_within(k, ASK_MS);
		e = access_for(&k->access, k->d->a, k->c->created_by.n,
		    &k->token);
	} while (is_soon(e, start, began));
	return e;
}

/* Asks for the repository: whether the token is taken, and what its path is
 * by now.  Gitea answers questions by number only with a token. */
static const struct err *
question(struct forge *forge, struct arena *a, const struct access_token *token,
    void *context)
{
	struct asker *k = context;
	struct forge_repo repo = k->known;
	const struct err *e;

	k->token = *token;
	if (token->text == NULL)
		repo.id = NULL;
	ask_within(k, QUESTION_MS);
	e = forge_repo_find(forge, a, token->text, &repo);
	ask_within(k, ASK_MS);
	k->refused = e != NULL && e->code == ERR_UNAUTHENTICATED;
	if (e == NULL)
		k->found = repo;
	return e;
}

/* Whether the server said no, and not that it cannot answer now. */
static bool
is_said(const struct err *e)
{
	return e != NULL &&
	    (e->code == ERR_NOTFOUND ||
		(e->code == ERR_UPSTREAM && e->sys / 100 == 4));
}

/* Once more only where another is refreshing the token, or who was to has
 * died. */
static const struct err *
question_ask(struct asker *k)
{
	const int64_t start = time_mono_ms();
	const struct err *e;
	int64_t began;

	do {
		began = time_mono_ms();
		ask_within(k, ASK_MS);
		e = access_call(&k->access, k->d->a, k->c->created_by.n,
		    question, k);
	} while (k->refused && is_soon(e, start, began));
	return e;
}

/* What the question says of the token; a server that cannot answer it may still
 * let git in. */
static enum asked
token_judge(struct asker *k, const struct err *e)
{
	const bool own = k->token.as == ACCESS_USER;

	if (k->refused || e->sys == 401)
		k->token.text = NULL;
	if (k->token.as == ACCESS_ANYBODY)
		return ASKED_NONE;
	if (k->token.text == NULL && is_away(e)) /* it was to be renewed */
		return ASKED_SILENT;
	if (k->token.text == NULL)
		return own ? ASKED_REFUSED : ASKED_BARRED;
	if (e->code == ERR_NOTFOUND && k->known.id != NULL)
		return ASKED_GONE;
	if (e->code == ERR_NOTFOUND && own)
		return ASKED_UNSEEN;
	return own && e->code == ERR_UPSTREAM && e->sys == 403 ? ASKED_LOCKED :
								 ASKED_OK;
}

/* Where the server says no to the number of the repository, its path may lead
 * to another one. */
static enum asked
question_ended(struct asker *k, const struct err *e)
{
	enum asked how;

	if (e == NULL && k->known.id != NULL &&
	    !str_eq(k->found.id, k->known.id)) {
		k->found = (struct forge_repo){ .id = NULL };
		k->stop = true;
		return ASKED_TAKEN;
	}
	if (e == NULL)
		return k->token.text == NULL ? ASKED_NONE : ASKED_OK;
	log_info("deployment %lld: %s: %s", (long long)k->c->id,
	    k->token.as == ACCESS_USER && k->token.text == NULL ?
		"the token of the one who deploys" :
		"asking for its repository",
	    err_words(e));
	how = token_judge(k, e);
	k->stop = how == ASKED_REFUSED || (k->known.id != NULL && is_said(e));
	return how;
}

/* Finds the token and the address. */
static enum asked
find(struct asker *k)
{
	const bool known = clone_is_known(k->d, k->d->a, k->c->repository);
	struct access *x = &k->access;
	const struct err *e = NULL;

	if (known)
		e = repo_known(x->forge, x->db, k->d->a, k->c, &k->known);
	if (e == NULL)
		e = token_find(k);
	if (e == NULL && known)
		e = question_ask(k);
	return question_ended(k, e);
}

/* So that it is found again when it is renamed, by a path that can be part of
 * an address. */
static void
found_keep(struct asker *k)
{
	const struct git_repo row = { .project_id = k->c->project_id,
		.server = forge_server(k->access.forge),
		.repository = k->c->repository,
		.repo_id = k->found.id,
		.path = k->found.path };
	const struct err *e;
	const char *address;

	if (k->found.id == NULL || !k->token.trusted ||
	    forge_repo_at(k->access.forge, k->d->a, k->c->repository,
		k->found.path, &address) != NULL)
		return;
	if ((e = gitrepo_put(k->access.db, &row)) != NULL)
		log_err(e, "the number of a repository");
}

/* "address\nuser\nsecret": each of both may be missing. */
static const struct err *
tell(struct asker *k)
{
	const struct err *e;
	struct buf out;

	buf_init(&out, CREDENTIAL_MAX);
	if (k->found.id != NULL)
		buf_puts(&out,
		    address_at(k->access.forge, k->d->a, k->c->repository,
			k->found.path));
	buf_putc(&out, '\n');
	(void)credential_put(k->access.forge, k->d->a, k->c->repository,
	    k->token.text, &out);
	if ((e = buf_check(&out)) == NULL)
		e = file_store(ANSWER_FD, out.data, out.len);
	return e;
}

/* The asker, which never returns. */
static _Noreturn void
ask(const struct dispatch *d, const struct claim *c)
{
	struct asker k = { .d = d,
		.c = c,
		.end = time_mono_ms() + ALL_MS,
		.access = { .settings = &d->settings.gitserver } };
	struct keyring *keys = NULL;
	enum asked how = ASKED_SILENT;
	const struct err *e;

	if ((e = keyring_open(d->settings.secrets.key_file, &keys)) != NULL)
		log_debug("users' tokens do not open: %s", e->msg);
	k.access.keyring = keys;
	if ((e = db_open(&d->settings, DB_RUNNER, &k.access.db)) == NULL &&
	    (e = forge_open(k.access.settings, &k.access.forge)) == NULL) {
		how = find(&k);
		found_keep(&k);
		e = tell(&k);
	}
	if (e != NULL)
		log_err(e, "the token of the one who deploys");
	_exit((int)how | (k.stop ? ASKED_STOP : 0));
}

/* Where git takes no token, none is missed. */
static void
note_set(const struct dispatch *d, struct task *t, enum asked why)
{
	struct forge_credential with;

	if (why < ASKED__MAX && d->forge != NULL &&
	    forge_clone_with(d->forge, d->a, t->address.data, "", &with) ==
		NULL)
		t->note = notes[why];
}

static void
address_set(struct task *t, const char *text, size_t len)
{
	buf_clear(&t->address);
	buf_add(&t->address, text, len);
}

void
clone_ask(struct dispatch *d, struct task *t, const struct claim *c)
{
	const char *address = address_known(d, c);
	struct forge_credential with;
	bool known, service;
	int ends[2];

	buf_init(&t->credential, CREDENTIAL_MAX);
	buf_init(&t->address, CREDENTIAL_MAX);
	address_set(t, address, strlen(address));
	known = clone_is_known(d, d->a, address);
	if (d->forge == NULL ||
	    (!known &&
		forge_clone_with(d->forge, d->a, address, "", &with) != NULL))
		return;
	/* For the case that no answer comes in time, too.  A user's account
	 * decides what that user gets, so nothing is assumed there. */
	service = !c->created_by.set &&
	    credential_put(d->forge, d->a, address, d->settings.gitserver.token,
		&t->credential);
	if (!known && !c->created_by.set) {
		if (!service)
			note_set(d, t, ASKED_NONE);
		return;
	}
	if (pipe2(ends, O_CLOEXEC) == -1) {
		log_err(err_errno("pipe"), t->name);
		note_set(d, t, ASKED_LATE);
		return;
	}
	if ((t->asker = child_fork(ends[1])) == 0)
		ask(d, c);
	(void)close(ends[1]);
	t->answer = ends[0];
	if (t->asker == -1) {
		log_err(err_errno("fork"), t->name);
		t->asker = 0;
		note_set(d, t, ASKED_LATE);
		(void)close(t->answer);
		t->answer = -1;
	}
}

/* The address is another only where it was renamed. */
static void
answer_read(struct task *t, const struct buf *fresh, enum asked how)
{
	const char *end = memchr(fresh->data, '\n', fresh->len);
	size_t len;

	if (end == NULL)
		return;
	len = (size_t)(end - fresh->data);
	if (len > 0 &&
	    (len != t->address.len ||
		memcmp(t->address.data, fresh->data, len) != 0)) {
		address_set(t, fresh->data, len);
		log_info("%s: its repository is at %s by now", t->name,
		    t->address.data);
	}
	len = fresh->len - len - 1;
	if (how == ASKED_OK || len > 0) {
		buf_clear(&t->credential);
		buf_add(&t->credential, end + 1, len);
	}
}

/* All that the asker wrote before it ended. */
static void
answer_take(const struct dispatch *d, struct task *t)
{
	const int status = WIFEXITED(t->asked) ? WEXITSTATUS(t->asked) :
						 ASKED_LATE;
	const enum asked how = (enum asked)(status & ~ASKED_STOP);
	char text[4096];
	struct buf fresh;
	ssize_t got;

	buf_init(&fresh, CREDENTIAL_MAX);
	while ((got = read(t->answer, text, sizeof(text))) > 0 ||
	    (got == -1 && errno == EINTR))
		if (got > 0)
			buf_add(&fresh, text, (size_t)got);
	explicit_bzero(text, sizeof(text));
	if (fresh.len > 0)
		answer_read(t, &fresh, how);
	note_set(d, t, how);
	if ((status & ASKED_STOP) != 0 && how < ASKED__MAX)
		t->refusal = notes[how];
	if (fresh.data != NULL)
		explicit_bzero(fresh.data, fresh.len);
	buf_release(&fresh);
}

bool
clone_answer(struct dispatch *d, struct task *t)
{
	if (t->answer == -1)
		return true;
	if (t->asker != 0 && time_mono_ms() - t->since < PATIENCE_MS)
		return false;
	if (t->asker != 0)
		note_set(d, t, ASKED_LATE);
	else
		answer_take(d, t);
	(void)close(t->answer);
	t->answer = -1;
	t->asker = 0;
	return true;
}

static void
wipe(struct buf *b)
{
	if (b->data != NULL)
		explicit_bzero(b->data, b->len);
	buf_release(b);
}

void
clone_forget(struct task *t)
{
	wipe(&t->description);
	wipe(&t->credential);
	buf_release(&t->address);
	if (t->answer != -1)
		(void)close(t->answer);
	t->answer = -1;
}
