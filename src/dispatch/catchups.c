/* SPDX-License-Identifier: ISC */
/*
 * Catches up with pushes whose events were not delivered, because the service or
 * its network was down.
 *
 * At the start, and then at intervals, the branches that pushes were delivered
 * for are compared with the repository. One runner does so: the first of those
 * online, by name. If several do, because one of them has just started, the
 * database decides which one deploys.
 *
 * A child process, the watcher, lists the branches of one repository after the
 * other; the loop only checks whether there is one. A host that hangs is left
 * out until the next time.
 */
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "access/moved.h"
#include "access/setter.h"
#include "core/address.h"
#include "core/log.h"
#include "core/str.h"
#include "deploy/deploy.h"
#include "deploy/pushed.h"
#include "dispatch/child.h"
#include "dispatch/context.h"
#include "dispatch/deploy_key.h"
#include "dispatch/fetch.h"
#include "dispatch/part.h"
#include "dispatch/remote.h"
#include "queue/push.h"

#define CATCHUPS "missed pushes"
#define LIST_MEMORY ((size_t)16 << 20) /* for the branches of a repository */
#define BRANCHES_MAX 1000000
#define ONE_MS 20000 /* for one repository */
#define RETRY_MS 60000
#define PAUSE_MS 100 /* between repositories, which spares the Git server */
#define HUNG_MAX 64

struct catchups {
	pid_t watcher; /* 0 = none */
	int64_t at;
	bool has_looked;
};

/* The repository of a project, and who reads it. */
struct watched {
	const struct dispatch *d;
	const struct access *access;
	struct arena *a;
	const struct push_source *source;
	struct list branches;    /* struct forge_branch */
	struct forge_repo found; /* by a trusted token; id NULL = not found */
};

static const struct err *
token_find(const struct watched *w, const char *address, const char **out)
{
	const struct access *x = w->access;
	struct forge_credential with;
	struct access_token token;
	const struct err *e;

	*out = NULL;
	if (x->forge == NULL ||
	    forge_clone_with(x->forge, w->a, address, "", &with) != NULL)
		return NULL;
	e = access_for(x, w->a, w->source->made_by.n, &token);
	if (e == NULL)
		*out = token.text;
	return e;
}

/* The key of the project, for an address over SSH. */
static const struct err *
key_find(const struct watched *w, const char *address, const char **out)
{
	struct address ad;

	*out = NULL;
	if (w->source->deploy_key == NULL || !address_read(address, &ad) ||
	    !address_is_ssh(&ad))
		return NULL;
	return deploy_key_open(&w->d->settings, w->a, w->source->project_id,
	    w->source->deploy_key, out);
}

/* A repository as the server shows it. */
struct asked {
	struct forge_repo repo; /* as stored, until the server shows it */
	bool is_trusted;
};

static const struct err *
repo_ask(struct forge *forge, struct arena *a, const struct access_token *token,
    void *context)
{
	struct asked *asked = context;
	struct forge_repo *repo = &asked->repo, found = *repo;
	const struct err *e;

	if (token->text == NULL)
		found.id = NULL;
	if ((e = forge_repo_find(forge, a, token->text, &found)) != NULL)
		return e;
	if (repo->id != NULL && !str_eq(repo->id, found.id))
		return err_new(ERR_NOTFOUND, "another repository has its name");
	*repo = found;
	asked->is_trusted = token->trusted;
	return NULL;
}

/* Finds the present address of a repository on the Git server, as the user who
 * made the secret of its pushes.  The key of the service opens it only after the
 * server showed it to that user. */
static const struct err *
address_find(struct watched *w, const char **out)
{
	const struct push_source *s = w->source;
	const struct remote remote = { s->project_id, s->repository };
	const struct access *x = w->access;
	struct asked asked = { .is_trusted = false };
	struct address ad;
	const struct err *e;

	*out = s->repository;
	if (!remote_is_known(x->forge, w->a, s->repository))
		return NULL;
	if ((e = remote_recall(x->forge, x->db, w->a, &remote, &asked.repo)) !=
	    NULL)
		return e;
	if (s->deploy_key != NULL && address_read(s->repository, &ad) &&
	    address_is_ssh(&ad)) {
		*out = moved_address(x->forge, w->a, s->repository,
		    asked.repo.path);
		return NULL;
	}
	if (s->made_by.set && !s->deployer.set && access_is_personal(x->forge))
		return err_new(ERR_FORBIDDEN,
		    "the user who made its hook secret may no longer deploy "
		    "it: make a new secret");
	if ((e = setter_check(x, w->a, s->project_id, s->repository)) != NULL)
		return e;
	forge_until(x->forge, time_mono_ms() + ONE_MS);
	e = access_call(x, w->a, s->made_by.n, repo_ask, &asked);
	forge_until(x->forge, 0);
	if (e == NULL && asked.is_trusted)
		w->found = asked.repo;
	if (e == NULL)
		*out = moved_address(x->forge, w->a, s->repository,
		    asked.repo.path);
	return e;
}

static const struct err *
branches_read(struct watched *w)
{
	struct settings_gitserver s = w->d->settings.gitserver;
	struct forge_page all = { .page = 1, .limit = BRANCHES_MAX };
	const char *address;
	const struct err *e;

	if ((e = address_find(w, &address)) != NULL ||
	    (e = token_find(w, address, &s.token)) != NULL ||
	    (e = key_find(w, address, &s.ssh_key)) != NULL)
		return e;
	return forge_ls_remote(&s, w->a, address, time_mono_ms() + ONE_MS, &all,
	    &w->branches);
}

/* A commit that a branch leads to. */
struct tip {
	struct remote remote;
	const struct access *access;
	const char *branch;
	const char *commit_hash;
	const char *message; /* NULL = unknown */
};

static const struct err *
tip_ask(struct forge *forge, struct arena *a, const struct access_token *token,
    void *context)
{
	struct tip *tip = context;
	struct forge_page page = { .page = 1, .limit = 1 };
	const struct forge_commit *newest;
	struct forge_repo repo;
	const struct err *e;
	struct list list;

	if ((e = remote_recall(forge, tip->access->db, a, &tip->remote,
		 &repo)) != NULL ||
	    (e = forge_repo_find(forge, a, token->text, &repo)) != NULL ||
	    (e = forge_commits(forge, a, token->text, &repo, tip->branch, &page,
		 &list)) != NULL)
		return e;
	newest = list.items;
	if (list.n > 0 && str_eq(newest->hash, tip->commit_hash))
		tip->message = newest->message;
	return NULL;
}

/* The message of the commit, if the Git server has an API to ask for it. A push
 * whose message is not known is deployed. */
static const char *
message_of(const struct watched *w, const struct pushed *push)
{
	struct tip tip = { .remote = { w->source->project_id,
			       w->source->repository },
		.access = w->access,
		.branch = push->branch,
		.commit_hash = push->commit_hash };
	const struct err *e;

	if (!remote_is_known(w->access->forge, w->a, w->source->repository))
		return NULL;
	forge_until(w->access->forge, time_mono_ms() + ONE_MS);
	e = access_call(w->access, w->a, w->source->made_by.n, tip_ask, &tip);
	forge_until(w->access->forge, 0);
	if (e != NULL)
		log_warn("project %lld: the message of %s is not known: %s",
		    (long long)w->source->project_id, push->commit_hash,
		    err_words(e));
	return tip.message;
}

static const char *
commit_of(const struct list *branches, const char *name)
{
	const struct forge_branch *b = branches->items;
	size_t i;

	for (i = 0; i < branches->n; i++)
		if (str_eq(b[i].name, name))
			return b[i].commit_hash;
	return NULL;
}

/* Deploys the head of a branch unless the last push led to it. */
static const struct err *
branch_compare(const struct watched *w, const struct push_head *head)
{
	struct deploy deploy = { .db = w->access->db,
		.settings = &w->d->settings };
	struct pushed push = { .branch = head->branch,
		.commit_hash = commit_of(&w->branches, head->branch),
		.before = head->commit_hash,
		.reader = w->source->made_by,
		.deployer = w->source->deployer };
	const struct err *e;
	size_t made;

	if (push.commit_hash == NULL ||
	    str_eq(push.commit_hash, head->commit_hash))
		return NULL;
	push.commit_message = message_of(w, &push);
	e = pushed_catch_up(&deploy, head->project_id, &push, w->d->name,
	    &made);
	if (e == NULL && made > 0)
		log_info("project %lld: the push of %s to %s was not "
			 "delivered: created %zu %s",
		    (long long)head->project_id, push.commit_hash, push.branch,
		    made, made == 1 ? "deployment" : "deployments");
	if (e == NULL && made > 0)
		deploy_wake(&deploy);
	return e;
}

/* Projects that nobody deploys follow their repositories, too. */
static const struct err *
address_follow(const struct watched *w)
{
	const struct push_source *s = w->source;
	const struct remote remote = { s->project_id, s->repository };
	const struct access *x = w->access;
	const struct err *e;

	if (w->found.id == NULL)
		return NULL;
	e = remote_store(x->forge, x->db, &remote, &w->found);
	return e != NULL ?
	    e :
	    remote_follow(x, w->a, &remote, &w->found, w->d->name);
}

static const struct err *
project_compare(struct watched *w)
{
	const struct push_head *head;
	const struct err *e;
	struct list heads;
	size_t i;

	if ((e = push_heads(w->access->db, w->a, w->source->project_id,
		 &heads)) != NULL ||
	    (e = branches_read(w)) != NULL)
		return e;
	head = heads.items;
	for (i = 0; e == NULL && i < heads.n; i++)
		e = branch_compare(w, &head[i]);
	return e != NULL ? e : address_follow(w);
}

/* Hosts that did not respond in time; the next look tries them again. */
struct hung_hosts {
	char host[HUNG_MAX][FETCH_HOST];
	size_t n; /* ever noted; the last ones count */
};

static bool
hung_has(const struct hung_hosts *hung, const char *host)
{
	size_t i;

	for (i = 0; i < hung->n && i < HUNG_MAX; i++)
		if (strcmp(hung->host[i], host) == 0)
			return true;
	return false;
}

/* Compares a project unless its host hangs. */
static void
project_look(struct watched *w, struct hung_hosts *hung)
{
	char host[FETCH_HOST];
	const struct err *e;

	fetch_host(w->source->repository, host);
	if (host[0] != '\0' && hung_has(hung, host))
		return;
	if ((e = project_compare(w)) == NULL)
		return;
	if (e->code == ERR_UPSTREAM_TIMEOUT)
		(void)memcpy(hung->host[hung->n++ % HUNG_MAX], host,
		    sizeof(host));
	log_warn("project %lld: missed pushes cannot be found: %s",
	    (long long)w->source->project_id, err_words(e));
}

/* Looks at all projects, while the dispatcher runs. */
static const struct err *
projects_look(const struct dispatch *d, const struct access *x,
    pid_t dispatcher)
{
	struct push_source source = { .project_id = 0 };
	struct arena *a = arena_open(LIST_MEMORY);
	struct hung_hosts hung = { .n = 0 };
	const struct err *e = NULL;

	while (getppid() == dispatcher) {
		struct watched w = { d, x, a, &source, { .n = 0 },
			{ .id = NULL } };

		arena_clear(a);
		e = push_source_next(x->db, a, source.project_id, &source);
		if (e != NULL)
			break;
		project_look(&w, &hung);
		(void)poll(NULL, 0, PAUSE_MS);
	}
	arena_close(a);
	return e != NULL && e->code == ERR_NOTFOUND ? NULL : e;
}

static _Noreturn void
watcher_run(const struct dispatch *d, pid_t dispatcher)
{
	const struct err *e;
	struct access x;

	/* without a Git server, repositories elsewhere can be read */
	if ((e = child_connect(d, &x)) == NULL || x.db != NULL)
		e = projects_look(d, &x, dispatcher);
	if (e != NULL)
		log_err(e, CATCHUPS);
	_exit(e != NULL ? 1 : 0);
}

static int64_t
catchups_next(const struct dispatch *d, const void *state, int64_t now)
{
	const struct catchups *c = state;

	(void)now;
	return d->settings.runner.catch_up == 0 || c->watcher != 0 ? INT64_MAX :
								     c->at;
}

/* Whether another runner looks, or a run with --once has since the last multiple
 * of the interval. */
static const struct err *
is_done(const struct dispatch *d, const struct catchups *c, bool *out)
{
	const struct err *e = push_is_others(d->db, d->a, d->name, out);

	if (e != NULL || *out || !d->once || c->has_looked)
		return e;
	return push_is_looked(d->db, d->a, d->name, d->settings.runner.catch_up,
	    out);
}

/* Whether there is a repository to look at, and this runner has to. */
static bool
is_due(struct dispatch *d, struct catchups *c)
{
	struct push_source first;
	const struct err *e;
	bool done = true;

	e = push_source_next(d->db, d->a, 0, &first);
	if (e != NULL && e->code == ERR_NOTFOUND)
		return false;
	if (e == NULL)
		e = is_done(d, c, &done);
	if (!database_done(&d->database, e, CATCHUPS)) {
		c->at = time_mono_ms() + RETRY_MS;
		return false;
	}
	c->has_looked = true;
	return !done;
}

static void
catchups_work(struct dispatch *d, void *state, int64_t now)
{
	const pid_t dispatcher = getpid();
	struct catchups *c = state;

	if (now < catchups_next(d, state, now))
		return;
	c->at = now + d->settings.runner.catch_up * 1000;
	if (!is_due(d, c))
		return;
	arena_clear(d->a);
	if ((c->watcher = child_fork(-1)) == 0)
		watcher_run(d, dispatcher);
	if (c->watcher == -1) {
		log_err(err_errno("fork"), CATCHUPS);
		c->watcher = 0;
	}
}

static void
catchups_events(void *state, unsigned events)
{
	struct catchups *c = state;

	if ((events & EVENT_RELOAD) != 0)
		c->at = 0;
}

static void
catchups_child(struct dispatch *d, void *state, pid_t pid, int status)
{
	struct catchups *c = state;

	if (pid != c->watcher)
		return;
	c->watcher = 0;
	if (status != 0)
		c->at = time_mono_ms() + RETRY_MS;
	d->events |= EVENT_QUEUE | EVENT_STATUS;
}

/* With --once, deployments that the watcher creates run before the end. */
static bool
catchups_is_idle(const struct dispatch *d, const void *state, int64_t now)
{
	const struct catchups *c = state;

	return c->watcher == 0 && catchups_next(d, state, now) > now;
}

const struct part catchups_part = {
	.size = sizeof(struct catchups),
	.work = catchups_work,
	.next = catchups_next,
	.events = catchups_events,
	.child = catchups_child,
	.is_idle = catchups_is_idle,
};
