/* SPDX-License-Identifier: ISC */
#include "job/checkout.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "core/address.h"
#include "core/branch.h"
#include "core/str.h"
#include "job/checkout_inner.h"
#include "job/files.h"
#include "job/job.h"
#include "job/log.h"
#include "job/outage.h"
#include "job/room.h"
#include "job/run.h"

#define STAY_MS 30000
#define NO_REFS 2 /* exit status of git ls-remote */
#define REF CHECKOUT_REF
#define OUTPUT_MAX CHECKOUT_OUTPUT
#define SHALLOW ".git/shallow"

/* Whether the files need no change at all. */
static bool
is_unchanged(const struct fetch *f)
{
	return f->how == WORKSPACE_SAME && str_eq(f->hash, f->was.commit);
}

/* The state of the files before the checkout. */
static enum files_before
files_before(const struct fetch *f)
{
	if (f->how == WORKSPACE_SAME && (f->was.flags & CLONE_FRESH) != 0)
		return FILES_COMMITTED;
	return f->how == WORKSPACE_NONE || f->how == WORKSPACE_FOREIGN ?
	    FILES_FOREIGN :
	    FILES_UNKNOWN;
}

/* Reads the message, and the commits of the branch if they were requested. */
static const struct err *
commit_describe(struct fetch *f, struct checkout *out)
{
	struct git_log log = { .ref = REF,
		.max = f->git.job->spec.commits,
		.hash = f->hash };
	const struct err *e;
	const char *text = NULL;

	if (is_unchanged(f) && (f->was.flags & CLONE_MESSAGE) != 0)
		text = f->was.message;
	/* without a fetch, nothing is known about the branch */
	if (log.max != 0 && f->moved && f->branch[0] != '\0') {
		if ((e = git_commits(&f->git, &log)) != NULL)
			return e;
		out->commits = log.records;
		if (log.message != NULL)
			text = log.message;
	}
	if (text == NULL && (e = git_message(&f->git, f->hash, &text)) != NULL)
		return e;
	out->message = text;
	return NULL;
}

static bool
is_shallow(void)
{
	struct stat st;

	return fstatat(JOB_FD(WIRE_FD_WORKSPACE), SHALLOW, &st,
		   AT_SYMLINK_NOFOLLOW) == 0;
}

/* Brings the files to the commit, and completes them. */
static const struct err *
files_bring(struct fetch *f)
{
	struct git *g = &f->git;
	const struct err *e = NULL;

	if (!is_unchanged(f)) {
		f->touched = true;
		e = files_checkout(g, f->hash, files_before(f));
	}
	if (e == NULL && (!f->touched || git_done(g)))
		e = checkout_missing(f);
	if (e == NULL && !git_done(g))
		lfs_explain(f);
	else if (e == NULL && f->touched && g->has_lfs)
		e = lfs_expire(g);
	return e;
}

static const struct err *
checkout_try(struct fetch *f, struct checkout *out)
{
	const char *at[] = { "update-ref", REF, NULL, NULL };
	struct git *g = &f->git;
	const struct err *e;

	f->hash = NULL;
	f->fault = NULL;
	f->moved = f->elsewhere = f->lfs_away = false;
	if ((e = fetch_known(f, g->job->spec.commit, &f->hash)) != NULL ||
	    g->end.how != RUN_EXITED)
		return e;
	if (f->hash == NULL) {
		f->moved = true;
		f->elsewhere = false;
		if ((e = fetch_all(f)) != NULL || f->hash == NULL ||
		    f->git.end.how != RUN_EXITED)
			return e;
		e = f->tags_few ? tags_pack(f) : tags_list(f);
		if (e != NULL || f->git.end.how != RUN_EXITED)
			return e;
	}
	at[2] = f->hash;
	if ((e = files_bring(f)) != NULL || !git_done(g) || f->fault != NULL)
		return e;
	out->branch = f->branch;
	out->hash = f->hash;
	if (f->elsewhere)
		fetch_elsewhere(f, out);
	if (f->moved && is_shallow())
		job_log_say(&g->job->log,
		    "==> warning: the repository is a shallow clone: its "
		    "history is incomplete");
	if ((e = commit_describe(f, out)) != NULL ||
	    str_eq(f->hash, fetch_tip(f)))
		return e;
	if ((e = git_run(g, NULL, at)) != NULL || !git_done(g))
		out->message = NULL;
	return e;
}

/* Checks that need no server. */
static const char *
request_rejection(const struct job_description *spec)
{
	struct address ad;

	if (!address_read(spec->repository, &ad) ||
	    str_has_control(spec->repository))
		return "The repository's address is invalid.";
	if (!spec->allow_local && address_is_local(&ad))
		return "Local repositories are not allowed here.";
	if (!spec->allow_http && ad.scheme == ADDRESS_HTTP)
		return "Repositories without TLS are not allowed here.";
	if (spec->branch != NULL && spec->branch[0] != '\0' &&
	    branch_fault(spec->branch) != NULL)
		return "The branch name is invalid.";
	if (spec->tag != NULL && branch_fault(spec->tag) != NULL)
		return "The name of the tag is invalid.";
	if (spec->commit != NULL && !commit_is_hash(spec->commit))
		return "The commit hash is invalid.";
	return NULL;
}

/* The repository had branches, so this is more likely a web page: git reads one
 * as a list without entries. */
static const char no_refs[] =
    "The Git server listed no branch or tag of the repository: its answer was "
    "not that of a Git repository, or all of them were deleted.";

static bool
is_known(const struct fetch *f)
{
	return f->git.job->spec.git_known ||
	    str_eq(f->was.address, f->git.job->spec.repository);
}

/* Finds out whether the repository has any branch or tag, if it does not have
 * the one that is wanted. */
static const struct err *
refs_check(struct fetch *f)
{
	const char *const args[] = { "ls-remote", "--exit-code", "--",
		f->git.job->spec.repository, NULL };
	const struct err *e;
	struct buf ignored;

	if (f->hash != NULL || f->superseded || f->git.end.how != RUN_EXITED ||
	    (strstr(f->git.job->log.last, "couldn't find remote ref") == NULL &&
		!f->is_gone))
		return NULL;
	buf_init(&ignored, OUTPUT_MAX);
	e = git_run(&f->git, &ignored, args);
	buf_release(&ignored);
	if (e == NULL && f->git.end.how == RUN_EXITED &&
	    WIFEXITED(f->git.end.status) &&
	    WEXITSTATUS(f->git.end.status) == NO_REFS)
		f->fault = is_known(f) ? no_refs :
					 "The repository is empty: push a "
					 "commit to it, then retry.";
	return e;
}

/* Whether the failure is that of the server, and may pass. */
static bool
is_away(const struct fetch *f)
{
	const struct job_description *spec = &f->git.job->spec;
	const char *line = f->git.job->log.last;

	if (f->fault != NULL)
		return f->lfs_away || f->fault == spec->offline ||
		    f->fault == no_refs;
	if (f->git.end.how != RUN_EXITED || git_done(&f->git))
		return false;
	return outage_is(line, is_known(f)) ||
	    (spec->silent != NULL && outage_is_denial(line));
}

/* Detail of a failure: git's message, else how it ended. */
static const char *
failure_text(struct fetch *f)
{
	const struct job_log *log = &f->git.job->log;

	if (f->fault != NULL)
		return f->fault;
	if (is_away(f) && !outage_is(log->last, true))
		return f->git.job->spec.silent;
	if (f->git.end.how == RUN_EXITED && log->last[0] != '\0')
		return arena_strdup(f->a, log->last);
	return arena_printf(f->a, "git %s.", run_text(f->a, &f->git.end));
}

static const struct err *
locks_remove(void *arg)
{
	static const char *const locks[] = { ".git/index.lock",
		".git/HEAD.lock", ".git/" REF ".lock" };
	size_t i;

	(void)arg;
	for (i = 0; i < sizeof(locks) / sizeof(locks[0]); i++)
		if (unlinkat(JOB_FD(WIRE_FD_WORKSPACE), locks[i], 0) == -1 &&
		    errno != ENOENT)
			return err_errno("%s", locks[i]);
	return NULL;
}

/* Records the state of the files in the rebuilt clone: unchanged, or changing
 * to a commit, in which case git reports the differences.  It has its own time
 * limit, because that of the checkout may be used up. */
static const struct err *
state_record(struct fetch *f, struct checkout *out)
{
	const char *at = f->touched ? f->hash : f->before;
	const char *const read_tree[] = { "read-tree", at, NULL };
	const char *const head[] = { "update-ref", "--no-deref", "HEAD", at,
		NULL };
	const char *const ref[] = { "update-ref", REF, at, NULL };
	const struct err *e;
	const char *ignored, *text;

	if (at == NULL)
		return NULL;
	if (f->how == WORKSPACE_SAME && !f->touched &&
	    (f->was.flags & CLONE_MESSAGE) != 0) {
		out->stayed.hash = at;
		out->stayed.message = f->was.message;
		return NULL;
	}
	git_close(&f->git);
	e = git_open_bare(f->git.job, time_mono_ms() + STAY_MS, &f->git);
	if (e != NULL ||
	    (e = git_call(&f->git, locks_remove, NULL, &ignored)) != NULL)
		return e;
	if ((e = git_run(&f->git, NULL, read_tree)) != NULL ||
	    !git_done(&f->git) || (e = git_run(&f->git, NULL, head)) != NULL ||
	    !git_done(&f->git) || (e = git_run(&f->git, NULL, ref)) != NULL ||
	    !git_done(&f->git) || (e = git_message(&f->git, at, &text)) != NULL)
		return e;
	if (f->touched)
		out->stayed.branch = f->branch;
	out->stayed.hash = at;
	out->stayed.message = text;
	return NULL;
}

static enum checkout_how
fetch_outcome(const struct fetch *f)
{
	const enum run_how how = f->git.end.how;

	if (f->superseded)
		return CHECKOUT_SUPERSEDED;
	if (is_away(f))
		return CHECKOUT_AWAY;
	if (how != RUN_TIMED_OUT && how != RUN_CANCELED)
		return CHECKOUT_FAILED;
	return f->git.job->cancel_at != 0 ? CHECKOUT_CANCELED :
					    CHECKOUT_TIMED_OUT;
}

/* Whether git says that the repository has another object format: the second
 * text if the server, or ssh(1) on the way to it, knows only the first protocol. */
static bool
is_other_format(const struct fetch *f)
{
	const char *last = f->git.job->log.last;

	return strstr(last, "mismatched algorithms") != NULL ||
	    strstr(last, "not support this repository's object format") != NULL;
}

/* Tries with a new clone, in the object format of the repository. */
static const struct err *
attempt_anew(struct fetch *f, enum checkout_format format, struct checkout *out)
{
	const char *branch = f->branch;
	const struct err *e;

	f->how = WORKSPACE_NONE;
	f->was.commit = f->was.ref = "";
	f->was.flags = 0;
	e = workspace_rebuild(&f->git, format);
	if ((e != NULL && e->code != ERR_NOTFOUND) ||
	    f->git.end.how != RUN_EXITED)
		return e;
	if ((e = checkout_try(f, out)) != NULL || out->message != NULL ||
	    format == FORMAT_SHA256 || !is_other_format(f))
		return e;
	job_log_forget(&f->git.job->log);
	f->branch = branch;
	return attempt_anew(f, FORMAT_SHA256, out);
}

/* Steps may have removed permissions from their own directory. */
static const struct err *
workspace_unlock(int workspace)
{
	struct stat st;

	if (fstat(workspace, &st) == -1)
		return err_errno("stat the workspace");
	if ((st.st_mode & S_IRWXU) != S_IRWXU &&
	    fchmod(workspace, (st.st_mode & 07777) | S_IRWXU) == -1)
		return err_errno("chmod the workspace");
	return NULL;
}

/* Whether the repository responds and has the branch, so that the clone is to
 * blame: neither an unreachable server nor a full disk must cost us the
 * checkout. */
static const struct err *
is_there(struct fetch *f, bool *out)
{
	const char *const args[] = { "ls-remote", "--exit-code", "--",
		f->git.job->spec.repository, fetch_ref(f), NULL };
	const struct err *e;
	struct buf ignored;

	*out = !is_away(f) && !room_fault(f->git.job, NULL, &f->no_room);
	if (!*out || is_other_format(f))
		return NULL;
	buf_init(&ignored, OUTPUT_MAX);
	e = git_run(&f->git, &ignored, args);
	buf_release(&ignored);
	*out = git_done(&f->git);
	return e;
}

/* Whether the workspace can be used as the last job left it. */
static bool
is_acceptable(const struct fetch *f)
{
	const struct job_description *spec = &f->git.job->spec;
	const int64_t enough = spec->checkout == CHECKOUT_KEEP ?
	    CLONE_FRESH | CLONE_KEPT :
	    CLONE_FRESH;

	return spec->submodules == SUBMODULES_NONE &&
	    f->was.commit[0] != '\0' && (f->was.flags & enough) != 0 &&
	    str_eq(f->was.address, spec->repository);
}

/* Tries with the existing clone; if that fails, with a new one. */
static const struct err *
checkout_retry(struct fetch *f, struct checkout *out)
{
	const int workspace = JOB_FD(WIRE_FD_WORKSPACE);
	struct job *job = f->git.job;
	const char *branch = f->branch;
	const struct err *e;
	bool has_clone, there;

	if (fchdir(workspace) == -1)
		return err_errno("enter the workspace");
	clone_state_read(f->a, job->spec.objects, &f->was);
	/* by the index, content of Git LFS is what the commit has */
	if ((f->was.flags & CLONE_LFS) != 0 && !f->git.has_lfs)
		f->was.flags &= CLONE_OWN;
	e = workspace_prepare(&f->git, &f->was, is_acceptable(f), &f->how);
	if (e != NULL || !git_done(&f->git))
		return e;
	has_clone = f->how != WORKSPACE_NONE && f->how != WORKSPACE_FOREIGN;
	if (!has_clone && (f->fault = job->spec.offline) != NULL)
		return NULL;
	if (f->how == WORKSPACE_FOREIGN)
		job_log_say(&job->log, "==> creating a new clone");
	if (has_clone) {
		f->before = fetch_tip(f);
		if ((e = checkout_try(f, out)) != NULL ||
		    out->message != NULL || f->git.end.how != RUN_EXITED ||
		    f->fault != NULL || (e = is_there(f, &there)) != NULL ||
		    !there)
			return e;
		/* one of the tags may be to blame */
		f->tags_apart = f->tags_few;
		job_log_say(&job->log, "==> creating a new clone");
		job_log_forget(&job->log);
		f->branch = branch;
		if ((e = workspace_empty(&f->git, NULL)) != NULL ||
		    !git_done(&f->git))
			return e;
		f->before = NULL;
		f->touched = false;
	}
	return attempt_anew(f, FORMAT_SHA1, out);
}

/* What the next job may rely on in the clone. */
static int64_t
state_flags(struct fetch *f, bool done, bool anew)
{
	const struct job_description *spec = &f->git.job->spec;
	int64_t flags = 0;

	if (anew ||
	    ((f->was.flags & CLONE_OWN) != 0 &&
		str_eq(f->was.address, spec->repository)))
		flags |= CLONE_OWN;
	if (done)
		flags |= CLONE_INDEX | CLONE_MESSAGE |
		    (f->git.has_lfs ? CLONE_LFS : 0);
	else if (f->how == WORKSPACE_SAME && !f->touched)
		flags |= f->was.flags & (CLONE_INDEX | CLONE_LFS);
	if (done && spec->submodules == SUBMODULES_NONE)
		flags |= spec->checkout == CHECKOUT_KEEP &&
			files_before(f) == FILES_UNKNOWN ?
		    CLONE_KEPT :
		    CLONE_FRESH;
	return flags;
}

/* Describes the clone for the next job. */
static void
state_report(struct fetch *f, struct checkout *out)
{
	struct job *job = f->git.job;
	const struct job_description *spec = &job->spec;
	const bool done = out->message != NULL;
	const bool anew = f->how == WORKSPACE_NONE ||
	    f->how == WORKSPACE_FOREIGN;
	struct clone_state now = { .address = spec->repository,
		.commit = done         ? out->hash :
		    anew || f->touched ? "" :
					 f->was.commit,
		.ref = done            ? f->elsewhere ? "" : fetch_ref(f) :
		    anew || f->touched ? "" :
					 f->was.ref,
		.message = out->message };

	if (f->how == WORKSPACE_UNKNOWN) /* its objects may be forged */
		return;
	if (done && is_unchanged(f) && !f->grown) {
		out->seen = now.seen = f->was.seen;
		now.flags = f->was.flags;
		out->state = clone_state_write(f->a, &now);
		return;
	}
	workspace_look(job, &now.seen);
	if (now.seen.objects == -1)
		return;
	now.flags = state_flags(f, done, anew);
	if (done && spec->submodules == SUBMODULES_NONE)
		out->seen = now.seen;
	out->state = clone_state_write(f->a, &now);
}

/* Checks that it can start. */
static bool
is_possible(const struct job *job, const char **detail)
{
	*detail = request_rejection(&job->spec);
	if (*detail == NULL &&
	    program_find(job->a, job->spec.path, "git") == NULL)
		*detail = "git is not installed on the runner.";
	return *detail == NULL;
}

static int64_t
checkout_deadline(const struct job *job)
{
	int64_t end = time_mono_ms() + job->spec.checkout_timeout * 1000;

	if (job->spec.checkout_timeout == 0 ||
	    (job->deadline != 0 && job->deadline < end))
		return job->deadline;
	return end;
}

static void
checkout_finish(struct fetch *f)
{
	struct job_description *spec = &f->git.job->spec;

	git_close(&f->git);
	spec->credential = NULL;
	spec->tls_ca = spec->ssh_key = spec->known_hosts = NULL;
}

const struct err *
job_head(struct job *job, enum checkout_how *how, const char **detail)
{
	struct fetch f = { .a = job->a,
		.branch = job->spec.branch,
		.tag = job->spec.tag };
	const struct err *e;

	*how = CHECKOUT_FAILED;
	if (!is_possible(job, detail))
		return NULL;
	job_log_forget(&job->log);
	if ((e = git_open(job, checkout_deadline(job), &f.git)) == NULL &&
	    (e = fetch_compare(&f)) == NULL && (e = refs_check(&f)) == NULL) {
		*how = f.hash != NULL ? CHECKOUT_DONE : fetch_outcome(&f);
		*detail = failure_text(&f);
	}
	checkout_finish(&f);
	return e;
}

const struct err *
job_checkout(struct job *job, struct checkout *out, enum checkout_how *how,
    const char **detail)
{
	struct fetch f = { .a = job->a,
		.branch = job->spec.branch == NULL ? "" : job->spec.branch,
		.tag = job->spec.tag };
	const struct err *e;

	(void)memset(out, 0, sizeof(*out));
	out->branch = f.branch;
	out->hash = "";
	out->seen.latest = -1;
	out->stayed = (struct job_event){ .kind = JOB_STAYED, .branch = "" };
	*how = CHECKOUT_FAILED;
	if (!is_possible(job, detail))
		return NULL;
	job_log_forget(&job->log);
	if ((e = git_open(job, checkout_deadline(job), &f.git)) != NULL)
		goto out;
	if ((e = workspace_unlock(JOB_FD(WIRE_FD_WORKSPACE))) != NULL ||
	    (e = checkout_retry(&f, out)) != NULL ||
	    (out->message == NULL && (e = refs_check(&f)) != NULL))
		goto out;
	if (out->message != NULL) {
		*how = CHECKOUT_DONE;
		job_log_say(&job->log, "==> at commit %s", out->hash);
	} else {
		*how = fetch_outcome(&f);
		*detail = failure_text(&f);
		if (*how == CHECKOUT_FAILED &&
		    (f.no_room != NULL || room_fault(job, NULL, &f.no_room))) {
			*how = CHECKOUT_NO_ROOM;
			*detail = f.no_room;
			room_make(&f);
		}
		/* the result is known; this cannot change it */
		if ((e = state_record(&f, out)) != NULL)
			job_log_say(&job->log,
			    "==> the state of the workspace is unknown: %s",
			    e->msg);
		e = NULL;
	}
	state_report(&f, out);
out:
	checkout_finish(&f);
	if (e != NULL && room_fault(job, e, detail)) {
		*how = CHECKOUT_NO_ROOM;
		e = NULL;
	}
	return e;
}
