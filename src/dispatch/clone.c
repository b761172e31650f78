/* SPDX-License-Identifier: ISC */
#include "dispatch/clone.h"

#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "access/access.h"
#include "access/moved.h"
#include "core/log.h"
#include "core/num.h"
#include "core/str.h"
#include "dispatch/child.h"
#include "dispatch/clone_find.h"
#include "dispatch/context.h"
#include "dispatch/remote.h"
#include "store/pipeline.h"

/* Then the deployment goes on, or ends, without an answer.  The finder is left
 * alone: it may have a new token to store. */
#define PATIENCE_MS 30000
#define CAUSE_MAX 1024

static const char *const notes[FOUND__MAX] = {
	[FOUND_NONE] = "There is no token for the Git server: sign in through "
		       "the Git server, or set gitserver.token.",
	[FOUND_SILENT] = "The Git server did not renew the token of the user "
			 "who deploys.",
	[FOUND_LATE] = "The token of the user who deploys was not found in "
		       "time.",
	[FOUND_REJECTED] = "The Git server rejects the access of the user who "
			   "deploys: sign in again, then retry.",
	[FOUND_BARRED] = "The Git server rejects the service's token "
			 "(gitserver.token).",
	[FOUND_CLIENT] = "The Git server does not accept this service's "
			 "application, so no user's token can be renewed: its "
			 "secret was changed or it was deleted there. An "
			 "administrator must check gitserver.client_id and "
			 "gitserver.client_secret (slipway-admin doctor); "
			 "signing in again does not help.",
	[FOUND_UNSEEN] = "The Git server knows no such repository, or the user "
			 "who deploys may not see it.",
	[FOUND_LOCKED] = "The Git server returned 403: the account of the user "
			 "who deploys may be locked there.",
	[FOUND_GONE] = "The Git server does not show the repository to the "
		       "user who deploys (404): the user has no access to it "
		       "any more, or it was removed. Give the user access at "
		       "the Git server, or let another user deploy.",
	[FOUND_TAKEN] = "Another repository has taken the name of the "
			"project's at the Git server. If it is the right one, "
			"a maintainer sends the project's repository again, "
			"with no other member (PUT /api/projects).",
	[FOUND_UNSURE] = "The Git server's API did not confirm that the "
			 "repository is still the project's.",
	[FOUND_FOREIGN] = "The user who set the project's repository cannot "
			  "read it at the Git server, so it is not fetched "
			  "with the access of others. A maintainer who can "
			  "read it there sends the project's repository again, "
			  "with no other member (PUT /api/projects).",
	[FOUND_LEFT] = "The user with whose access the repository is read, "
		       "who made the schedule, or the hook secret of the push, "
		       "may no longer deploy the project. A maintainer makes "
		       "the schedule anew, or a new hook secret (PUT "
		       "/api/projects/ID/hook-secret).",
};

bool
clone_is_needed(const struct claim *claim)
{
	return claim->head_only != 0 ||
	    !str_eq(claim->checkout, PIPELINE_CHECKOUT_NONE);
}

void
clone_init(struct clone *c)
{
	*c = (struct clone){ .answer = -1 };
	buf_init(&c->address, CLONE_CREDENTIAL_MAX);
	buf_init(&c->credential, CLONE_CREDENTIAL_MAX);
	buf_init(&c->cause, CAUSE_MAX);
	buf_init(&c->unsure, CAUSE_MAX);
	buf_init(&c->lent, CLONE_CREDENTIAL_MAX);
	buf_init(&c->refused, CLONE_CREDENTIAL_MAX);
}

/* The address, as far as it is known without a request to the Git server. */
static const char *
address_known(const struct dispatch *d, struct clone *c,
    const struct claim *claim)
{
	const struct remote remote = { claim->project_id, claim->repository };
	struct forge_repo repo;
	const struct err *e;

	if (!remote_is_known(d->forge, d->a, claim->repository))
		return claim->repository;
	e = remote_recall(d->forge, d->db, d->a, &remote, &repo);
	c->is_bound = e != NULL || repo.id != NULL;
	if (e == NULL)
		return moved_address(d->forge, d->a, claim->repository,
		    repo.path);
	log_err(e, "whether the repository was renamed");
	return claim->repository;
}

/* Whether git clones from that address with a token. */
static bool
takes_token(const struct dispatch *d, const char *address)
{
	struct forge_credential with;

	return d->forge != NULL &&
	    forge_clone_with(d->forge, d->a, address, "", &with) == NULL;
}

static void
note_set(const struct dispatch *d, struct clone *c, enum found why)
{
	if (why < FOUND__MAX && takes_token(d, c->address.data))
		c->note = notes[why];
}

/* What the server's API said, in place of what it did not. */
static const char *
unsure_text(struct clone *c)
{
	struct buf *b = &c->unsure;

	buf_clear(b);
	if (c->is_away && c->cause.len > 0)
		buf_printf(b,
		    "%s. Nothing was fetched, because the server did"
		    " not confirm the repository.",
		    c->cause.data);
	else if (c->cause.len > 0)
		buf_printf(b, "%s (%s) Nothing was fetched.",
		    notes[FOUND_UNSURE], c->cause.data);
	else
		buf_printf(b,
		    "%s Nothing was fetched. Retry the deployment"
		    " when the API responds.",
		    notes[FOUND_UNSURE]);
	return b->data;
}

/* The server did not confirm the repository.  An existing clone was confirmed
 * before, so a commit in it can run. */
static void
clone_reject(struct clone *c, enum found why)
{
	if (why != FOUND_UNSURE) {
		c->rejection = notes[why];
		return;
	}
	if (!c->has_commit) {
		c->rejection = unsure_text(c);
		return;
	}
	c->offline = unsure_text(c);
	c->note = NULL;
}

/* The finder gave no answer. */
static void
answer_miss(const struct dispatch *d, struct clone *c)
{
	note_set(d, c, FOUND_LATE);
	c->is_away = true;
	buf_clear(&c->cause);
	buf_puts(&c->cause, "The Git server did not respond in time");
	if (c->is_bound)
		clone_reject(c, FOUND_UNSURE);
	else
		c->silent = c->note;
}

static void
address_set(struct clone *c, const char *text, size_t len)
{
	buf_clear(&c->address);
	buf_add(&c->address, text, len);
}

static void
finder_start(const struct dispatch *d, struct clone *c,
    const struct claim *claim, const char *name)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) == -1) {
		log_err(err_errno("pipe"), name);
		answer_miss(d, c);
		return;
	}
	if ((c->finder = child_fork(ends[1])) == 0)
		clone_find(d, claim);
	(void)close(ends[1]);
	c->answer = ends[0];
	c->until = time_mono_ms() + PATIENCE_MS;
	if (c->finder != -1)
		return;
	log_err(err_errno("fork"), name);
	c->finder = 0;
	answer_miss(d, c);
	(void)close(c->answer);
	c->answer = -1;
}

void
clone_begin(const struct dispatch *d, struct clone *c,
    const struct claim *claim, const char *name)
{
	const char *address;
	bool known, has_service;

	c->has_commit = claim->commit_hash != NULL && claim->head_only == 0;
	if (!clone_is_needed(claim)) {
		address_set(c, claim->repository, strlen(claim->repository));
		return;
	}
	c->submodules = clone_submodules(d, claim);
	address = address_known(d, c, claim);
	known = remote_is_known(d->forge, d->a, address);
	/* the access of those on whose behalf it is fetched must be confirmed */
	if (known && !clone_has_deploy_key(claim) &&
	    (claim->set_by.set ||
		(claim->read_by.set && clone_has_service_key(d, claim))))
		c->is_bound = true;
	address_set(c, address, strlen(address));
	if (!known && !takes_token(d, address))
		return;
	/* It is also used if the finder is late. A user's access depends on the
	 * user's account, so nothing is assumed for users. */
	has_service = !claim->read_by.set && !claim->set_by.set &&
	    clone_credential(d->forge, d->a, address,
		d->settings.gitserver.token, &c->credential);
	if (known || claim->read_by.set)
		finder_start(d, c, claim, name);
	else if (!has_service)
		note_set(d, c, FOUND_NONE);
}

/* "SECONDS CAUSE" of a request that failed.  Returns what follows its line. */
static const char *
cause_read(struct clone *c, const char *line, const char *end)
{
	const char *next = memchr(line, '\n', (size_t)(end - line));
	const char *blank, *last = next;
	char seconds[24] = "";

	if (next == NULL)
		return end;
	blank = memchr(line, ' ', (size_t)(next - line));
	if (blank == NULL)
		return next + 1;
	while (last[-1] == '.')
		last--;
	(void)memcpy(seconds, line,
	    (size_t)(blank - line) < sizeof(seconds) ? (size_t)(blank - line) :
						       0);
	(void)num_parse(seconds, 0, NUM_SAFE, &c->retry_after);
	buf_clear(&c->cause);
	buf_add(&c->cause, blank + 1, (size_t)(last - blank - 1));
	return next + 1;
}

/* Takes a line.  Returns what follows it. */
static const char *
line_read(struct buf *b, const char *line, const char *end)
{
	const char *next = memchr(line, '\n', (size_t)(end - line));

	if (next == NULL)
		return end;
	buf_clear(b);
	buf_add(b, line, (size_t)(next - line));
	return next + 1;
}

/* The address differs only if the repository was renamed. */
static void
answer_read(struct clone *c, const struct buf *fresh, enum found how,
    const char *name)
{
	const char *end = memchr(fresh->data, '\n', fresh->len), *rest;
	size_t len;

	if (end == NULL)
		return;
	len = (size_t)(end - fresh->data);
	if (len > 0 &&
	    (len != c->address.len ||
		memcmp(c->address.data, fresh->data, len) != 0)) {
		address_set(c, fresh->data, len);
		log_info("%s: its repository moved to %s", name,
		    c->address.data);
	}
	rest = cause_read(c, end + 1, fresh->data + fresh->len);
	rest = line_read(&c->lent, rest, fresh->data + fresh->len);
	rest = line_read(&c->refused, rest, fresh->data + fresh->len);
	len = fresh->len - (size_t)(rest - fresh->data);
	if (how == FOUND_OK || len > 0) {
		buf_clear(&c->credential);
		buf_add(&c->credential, rest, len);
	}
}

/* Reads all that the finder wrote before it ended. */
static void
answer_take(const struct dispatch *d, struct clone *c, const char *name)
{
	const int status = WIFEXITED(c->status) ? WEXITSTATUS(c->status) :
						  FOUND_LATE;
	const enum found how = (enum found)(
	    status & ~(FOUND_STOP | FOUND_AWAY));
	char text[4096];
	struct buf fresh;
	ssize_t got;

	buf_init(&fresh, CLONE_CREDENTIAL_MAX);
	while ((got = read(c->answer, text, sizeof(text))) > 0 ||
	    (got == -1 && errno == EINTR))
		if (got > 0)
			buf_add(&fresh, text, (size_t)got);
	explicit_bzero(text, sizeof(text));
	if (fresh.len > 0)
		answer_read(c, &fresh, how, name);
	note_set(d, c, how);
	c->is_away = (status & FOUND_AWAY) != 0;
	if (c->is_away && how == FOUND_SILENT)
		c->silent = c->note;
	if (how == FOUND_LATE)
		answer_miss(d, c);
	if ((status & FOUND_STOP) != 0 && how < FOUND__MAX)
		clone_reject(c, how);
	buf_wipe(&fresh);
}

bool
clone_is_done(const struct dispatch *d, struct clone *c, const char *name)
{
	if (c->answer == -1)
		return true;
	if (c->finder != 0 && time_mono_ms() < c->until)
		return false;
	if (c->finder != 0)
		answer_miss(d, c);
	else
		answer_take(d, c, name);
	(void)close(c->answer);
	c->answer = -1;
	c->finder = 0;
	return true;
}

void
clone_release(struct clone *c)
{
	buf_wipe(&c->credential);
	buf_release(&c->address);
	buf_release(&c->cause);
	buf_release(&c->unsure);
	buf_release(&c->lent);
	buf_release(&c->refused);
	if (c->answer != -1)
		(void)close(c->answer);
	c->answer = -1;
}
