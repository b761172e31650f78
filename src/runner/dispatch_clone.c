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
#include "runner/dispatch.h"
#include "store/gitrepo.h"

#define CREDENTIAL_MAX ((size_t)32 << 10) /* a pipe holds as much */
#define ASK_MS 9000                       /* for the Git server */
/* One that fails sooner is asked again: it may be starting anew, or another
 * who was to refresh the token have died. */
#define SOON_MS 6000
#define AGAIN_MS 11000
#define PAUSE_MS 500
/* Beyond that the deployment goes on; the asker is left to store what it may
 * have been given. */
#define PATIENCE_MS 30000
#define ANSWER_FD (STDERR_FILENO + 1)

/* How an asker ends. */
enum asked { ASKED_OK, ASKED_NONE, ASKED_SILENT, ASKED_LATE, ASKED__MAX };
static const char *const notes[ASKED__MAX] = {
	[ASKED_NONE] = "There is no token for the Git server: who deploys may "
		       "sign in by it, or gitserver.token be set.",
	[ASKED_SILENT] = "The Git server did not renew the token of the one "
			 "who deploys.",
	[ASKED_LATE] = "The token of the one who deploys was not found in "
		       "time.",
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

void
clone_follow(struct dispatch *d, struct claim *c)
{
	struct forge_repo was, is;
	struct git_repo known;
	const struct err *e;
	const char *fresh;

	if (d->forge == NULL || strstr(c->repository, "://") == NULL ||
	    str_starts(c->repository, "ssh://") ||
	    forge_repo_of(d->forge, d->a, c->repository, &was) != NULL)
		return;
	e = gitrepo_find(d->db, d->a, c->project_id, forge_server(d->forge),
	    c->repository, &known);
	if (e != NULL) {
		if (e->code != ERR_NOTFOUND)
			log_err(e, "whether the repository was renamed");
		return;
	}
	fresh = arena_printf(d->a, "%s/%s.git", forge_server(d->forge),
	    known.path);
	if (strcasecmp(known.path, was.path) != 0 &&
	    forge_repo_of(d->forge, d->a, fresh, &is) == NULL &&
	    str_eq(is.path, known.path))
		c->repository = fresh;
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
service_put(const struct dispatch *d, struct arena *a, const char *repository,
    struct buf *out)
{
	return credential_put(d->forge, a, repository,
	    d->settings.gitserver.token, out);
}

static bool
is_away(const struct err *e)
{
	return e != NULL &&
	    (e->code == ERR_UPSTREAM || e->code == ERR_UPSTREAM_TIMEOUT ||
		e->code == ERR_UNAVAILABLE);
}

static const struct err *
users_token(struct access *x, struct arena *a, int64_t user_id,
    const char **out)
{
	const struct timespec pause = { .tv_nsec = PAUSE_MS * 1000000L };
	const int64_t start = time_mono_ms();
	const struct err *e;
	int64_t now = start, began;

	for (;;) {
		began = now;
		forge_until(x->forge, began + ASK_MS);
		e = access_of_user(x, a, user_id, out);
		now = time_mono_ms();
		if (!is_away(e) || now - began > SOON_MS ||
		    now - start > AGAIN_MS)
			return e;
		(void)ppoll(NULL, 0, &pause, NULL);
	}
}

/* The user's token into `out`; else the service's. */
static enum asked
find(const struct dispatch *d, struct access *x, const struct claim *c,
    struct buf *out)
{
	const char *token = NULL;
	const struct err *e;

	e = users_token(x, d->a, c->created_by.n, &token);
	if (e == NULL &&
	    credential_put(x->forge, d->a, c->repository, token, out))
		return ASKED_OK;
	if (e != NULL && e->code != ERR_NOTFOUND)
		log_err(e, "the token of the one who deploys");
	if (credential_put(x->forge, d->a, c->repository, x->settings->token,
		out))
		return e == NULL || e->code == ERR_NOTFOUND ? ASKED_OK :
							      ASKED_SILENT;
	return e == NULL || e->code == ERR_NOTFOUND ? ASKED_NONE : ASKED_SILENT;
}

/* The asker, which never returns. */
static _Noreturn void
ask(const struct dispatch *d, const struct claim *c)
{
	struct access x = { .settings = &d->settings.gitserver };
	struct keyring *keys = NULL;
	enum asked how = ASKED_SILENT;
	const struct err *e;
	struct buf out;

	buf_init(&out, CREDENTIAL_MAX);
	if ((e = keyring_open(d->settings.secrets.key_file, &keys)) != NULL)
		log_debug("users' tokens do not open: %s", e->msg);
	x.keyring = keys;
	if ((e = db_open(&d->settings, DB_RUNNER, &x.db)) == NULL &&
	    (e = forge_open(x.settings, &x.forge)) == NULL) {
		how = find(d, &x, c, &out);
		if (out.len > 0)
			e = file_store(ANSWER_FD, out.data, out.len);
	}
	if (e != NULL)
		log_err(e, "the token of the one who deploys");
	_exit((int)how);
}

/* Without the user's. */
static void
settle_for_service(struct dispatch *d, struct task *t, const char *repository,
    enum asked why)
{
	if (!service_put(d, d->a, repository, &t->credential))
		t->note = notes[why];
}

void
clone_ask(struct dispatch *d, struct task *t, const struct claim *c)
{
	struct forge_credential with;
	int ends[2];

	buf_init(&t->credential, CREDENTIAL_MAX);
	if (d->forge == NULL ||
	    forge_clone_with(d->forge, d->a, c->repository, "", &with) != NULL)
		return;
	if (!c->created_by.set) {
		settle_for_service(d, t, c->repository, ASKED_NONE);
		return;
	}
	if (pipe2(ends, O_CLOEXEC) == -1) {
		log_err(err_errno("pipe"), t->name);
		settle_for_service(d, t, c->repository, ASKED_LATE);
		return;
	}
	/* for the case that no answer comes in time */
	(void)service_put(d, d->a, c->repository, &t->credential);
	if ((t->asker = child_fork(ends[1])) == 0)
		ask(d, c);
	(void)close(ends[1]);
	t->answer = ends[0];
	if (t->asker == -1) {
		log_err(err_errno("fork"), t->name);
		t->asker = 0;
		t->note = notes[ASKED_LATE];
		(void)close(t->answer);
		t->answer = -1;
	}
}

/* All that the asker wrote before it ended. */
static void
answer_take(struct task *t)
{
	const enum asked how = WIFEXITED(t->asked) ?
	    (enum asked)WEXITSTATUS(t->asked) :
	    ASKED_LATE;
	char text[4096];
	struct buf fresh;
	ssize_t got;

	buf_init(&fresh, CREDENTIAL_MAX);
	while ((got = read(t->answer, text, sizeof(text))) > 0 ||
	    (got == -1 && errno == EINTR))
		if (got > 0)
			buf_add(&fresh, text, (size_t)got);
	explicit_bzero(text, sizeof(text));
	if (how < ASKED__MAX)
		t->note = notes[how];
	if (how == ASKED_OK || fresh.len > 0) {
		buf_clear(&t->credential);
		buf_add(&t->credential, fresh.data, fresh.len);
	}
	if (fresh.data != NULL)
		explicit_bzero(fresh.data, fresh.len);
	buf_release(&fresh);
}

bool
clone_answer(struct dispatch *d, struct task *t)
{
	(void)d;
	if (t->answer == -1)
		return true;
	if (t->asker != 0 && time_mono_ms() - t->since < PATIENCE_MS)
		return false;
	if (t->asker != 0)
		t->note = notes[ASKED_LATE];
	else
		answer_take(t);
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
	if (t->answer != -1)
		(void)close(t->answer);
	t->answer = -1;
}
