/* SPDX-License-Identifier: ISC */
#include "job/checkout.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "core/address.h"
#include "core/branch.h"
#include "core/str.h"

#define STAY_MS 30000
#define REF "refs/slipway/tip"
#define OUTPUT_MAX ((size_t)1 << 20)
#define DIRS_MAX ((size_t)64 << 20)
#define MESSAGE_MAX ((size_t)65535)

/* State of one fetch and checkout. */
struct fetch {
	struct git git;
	struct arena *a;
	const char *branch; /* "" = none */
	const char *hash;
	const char *fault;  /* shown to the user */
	bool superseded;    /* the reason for the failure */
	bool anew;          /* nothing in the workspace belongs to this clone */
	bool touched;       /* the files are changing to `hash` */
	const char *before; /* commit they were at, NULL = none */
};

static bool
is_hash(const char *text)
{
	const size_t len = strlen(text);

	return len >= 4 && len <= 64 &&
	    strspn(text, "0123456789abcdefABCDEF") == len;
}

/* Fetches one refspec, from the repository to REF or the ref it names. */
static const struct err *
fetch(struct fetch *f, const char *refspec)
{
	const char *const args[] = { "fetch", "--no-tags", "--prune", "--force",
		"--no-recurse-submodules", "--no-write-fetch-head", "--quiet",
		"--", f->git.job->spec.repository, refspec, NULL };

	return git_run(&f->git, NULL, args);
}

/* Finds the branch of the repository's HEAD. */
static const struct err *
head_branch(struct fetch *f)
{
	static const char head[] = "ref: refs/heads/";
	const char *const args[] = { "ls-remote", "--symref", "--",
		f->git.job->spec.repository, "HEAD", NULL };
	const struct err *e;
	struct buf out;
	size_t len;

	buf_init(&out, OUTPUT_MAX);
	if ((e = git_run(&f->git, &out, args)) != NULL)
		goto out;
	if (!git_done(&f->git)) { /* then git's output is the reason */
		job_log_feed(&f->git.job->log, out.data, out.len);
		job_log_finish(&f->git.job->log);
	} else if (out.len > 0 && str_starts(out.data, head)) {
		len = strcspn(out.data + strlen(head), "\t\n");
		f->branch = arena_strndup(f->a, out.data + strlen(head), len);
		if (branch_fault(f->branch) != NULL)
			f->branch = "";
	}
out:
	buf_release(&out);
	return e;
}

/* Resolves a name to the full hash of a commit that exists in the clone. */
static const struct err *
resolve(struct fetch *f, const char *name, const char **out)
{
	const char *const args[] = { "rev-parse", "--verify", "--quiet",
		"--end-of-options", arena_printf(f->a, "%s^{commit}", name),
		NULL };
	const struct err *e;
	struct buf text;

	*out = NULL;
	buf_init(&text, OUTPUT_MAX);
	e = git_run(&f->git, &text, args);
	if (e == NULL && git_done(&f->git) && text.len > 1)
		*out = arena_strndup(f->a, text.data, strcspn(text.data, "\n"));
	buf_release(&text);
	return e;
}

/* Reads what the fetch has just written; NULL if it is elsewhere.  Saves a git
 * process on the way to the first step. */
static const char *
tip(const struct fetch *f)
{
	char text[66] = "";
	struct stat st;
	ssize_t got;
	int fd;

	fd = openat(JOB_FD(WIRE_FD_WORKSPACE), ".git/" REF,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd == -1)
		return NULL;
	got = fstat(fd, &st) == -1 || !S_ISREG(st.st_mode) ?
	    -1 :
	    read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	if (got != 41 && got != 65)
		return NULL;
	text[got - 1] = '\0';
	return is_hash(text) ? arena_strdup(f->a, text) : NULL;
}

/* A push event may arrive late or twice: what is at the branch's head now is
 * newer.  The clone is restored to its state before the fetch. */
static const struct err *
head_check(struct fetch *f, const char *before)
{
	const char *const back[] = { "update-ref", REF, before, NULL };
	const char *const none[] = { "update-ref", "-d", REF, NULL };
	const struct job_spec *spec = &f->git.job->spec;
	const char *now = tip(f);
	const struct err *e;

	if (now == NULL && (e = resolve(f, REF, &now)) != NULL)
		return e;
	if (now == NULL || strcasecmp(now, spec->commit) == 0)
		return NULL;
	f->superseded = true;
	f->fault = arena_printf(f->a,
	    "The branch %s is now at commit %s, not at %s as in the push "
	    "event. Retry the deployment to deploy that commit anyway.",
	    f->branch, now, spec->commit);
	return git_run(&f->git, NULL, before != NULL ? back : none);
}

/* Fetches a commit that came without a branch: by its hash, which not every
 * server supports, else by fetching all branches. */
static const struct err *
fetch_commit(struct fetch *f, const char *commit)
{
	const bool full = strlen(commit) == 40 || strlen(commit) == 64;
	const struct err *e;

	if (full) {
		if ((e = fetch(f,
			 arena_printf(f->a, "+%s:refs/slipway/commit",
			     commit))) != NULL)
			return e;
		if (f->git.end.how != RUN_EXITED)
			return NULL;
	}
	if (!full || !git_done(&f->git)) {
		if ((e = fetch(f, "+refs/heads/*:refs/slipway/all/*")) != NULL)
			return e;
	}
	return git_done(&f->git) ? resolve(f, commit, &f->hash) : NULL;
}

static const struct err *
fetch_all(struct fetch *f)
{
	const struct job_spec *spec = &f->git.job->spec;
	const char *before = tip(f);
	const struct err *e;

	if (f->branch[0] == '\0') {
		if ((e = head_branch(f)) != NULL || !git_done(&f->git))
			return e;
	}
	if ((e = fetch(f,
		 f->branch[0] == '\0' ?
		     "+HEAD:" REF :
		     arena_printf(f->a, "+refs/heads/%s:" REF, f->branch))) !=
	    NULL)
		return e;
	if (!git_done(&f->git))
		return NULL;
	if (spec->commit == NULL) {
		f->hash = tip(f);
		return f->hash != NULL ? NULL : resolve(f, REF, &f->hash);
	}
	if (spec->head_only != 0 &&
	    ((e = head_check(f, before)) != NULL || f->superseded))
		return e;
	if ((e = resolve(f, spec->commit, &f->hash)) != NULL)
		return e;
	if (f->hash == NULL && f->git.end.how == RUN_EXITED &&
	    (e = fetch_commit(f, spec->commit)) != NULL)
		return e;
	if (f->hash == NULL && f->git.end.how == RUN_EXITED)
		f->fault = arena_printf(f->a,
		    "Commit %s was not found in the repository.", spec->commit);
	return NULL;
}

/* Empties the directories of submodules: git does not touch their content, and
 * its origin is unknown. */
static const struct err *
gitlinks_empty(struct fetch *f)
{
	const char *const args[] = { "ls-tree", "-r", "-d", "-z", f->hash,
		NULL };
	const struct err *e;
	struct buf out;

	buf_init(&out, DIRS_MAX);
	if ((e = git_run(&f->git, &out, args)) != NULL || !git_done(&f->git) ||
	    (e = buf_check(&out)) != NULL)
		goto out;
	if (out.len > 0)
		e = workspace_links_remove(&f->git, &out);
out:
	buf_release(&out);
	return e;
}

/* Checks out the files: first removes what does not belong there, then writes
 * what differs.  Unchanged files keep their times. */
static const struct err *
files(struct fetch *f)
{
	const char *const read_tree[] = { "read-tree", f->hash, NULL };
	const char *const refresh[] = { "update-index", "-q", "--refresh",
		NULL };
	const char *const clean[] = { "clean", "-ffdxq", NULL };
	const char *const checkout[] = { "checkout", "--quiet", "--detach",
		"--force", "--no-recurse-submodules", f->hash, "--", NULL };
	const struct err *e;
	struct buf ignored;

	f->touched = true;
	/* git clean gives up on directories that it cannot write */
	if (f->anew &&
	    ((e = workspace_empty(&f->git, ".git")) != NULL ||
		!git_done(&f->git)))
		return e;
	if (!f->anew && (e = workspace_specials_remove(&f->git)) != NULL)
		return e;
	if ((e = git_run(&f->git, NULL, read_tree)) != NULL ||
	    !git_done(&f->git))
		return e;
	buf_init(&ignored, OUTPUT_MAX);
	e = git_run(&f->git, &ignored, refresh);
	buf_release(&ignored);
	if (e != NULL || f->git.end.how != RUN_EXITED)
		return e;
	if ((e = git_run(&f->git, NULL, clean)) != NULL || !git_done(&f->git))
		return e;
	if ((e = gitlinks_empty(f)) != NULL || !git_done(&f->git))
		return e;
	return git_run(&f->git, NULL, checkout);
}

static const struct err *
submodules(struct fetch *f)
{
	const char *const args[] = { "submodule", "update", "--init",
		"--recursive", "--force", "--checkout", NULL };

	return git_run(&f->git, NULL, args);
}

static const struct err *
message(struct fetch *f, const char *hash, const char **out)
{
	const char *const args[] = { "log", "-1", "--no-show-signature",
		"--format=%B", hash, "--", NULL };
	const struct err *e;
	struct buf text;
	size_t len, i;
	char *copy;

	*out = "";
	buf_init(&text, OUTPUT_MAX);
	e = git_run(&f->git, &text, args);
	if (e != NULL || !git_done(&f->git) || text.len == 0)
		goto out;
	len = text.len < MESSAGE_MAX ? text.len : MESSAGE_MAX;
	while (len < text.len && len > 0 &&
	    ((unsigned char)text.data[len] & 0xc0) == 0x80)
		len--;
	while (len > 0 && text.data[len - 1] == '\n')
		len--;
	copy = arena_strndup(f->a, text.data, len);
	for (i = 0; i < len; i++)
		if (copy[i] == '\0')
			copy[i] = ' ';
	if (!str_utf8(copy, len))
		for (i = 0; i < len; i++)
			if (((unsigned char)copy[i] & 0x80) != 0)
				copy[i] = '?';
	*out = copy;
out:
	buf_release(&text);
	return e;
}

static const struct err *
attempt(struct fetch *f, struct checkout *out)
{
	/* Submodule addresses may be relative to it. */
	const char *const origin[] = { "config", "remote.origin.url",
		f->git.job->spec.repository, NULL };
	const char *at[] = { "update-ref", REF, NULL, NULL };
	const struct err *e;

	f->hash = NULL;
	f->fault = NULL;
	if ((e = git_run(&f->git, NULL, origin)) != NULL || !git_done(&f->git))
		return e;
	if ((e = fetch_all(f)) != NULL || f->hash == NULL)
		return e;
	at[2] = f->hash;
	if ((e = files(f)) != NULL || !git_done(&f->git))
		return e;
	if (f->git.job->spec.submodules != 0 &&
	    ((e = submodules(f)) != NULL || !git_done(&f->git)))
		return e;
	out->branch = f->branch;
	out->hash = f->hash;
	if (f->git.job->spec.commits != 0 && f->branch[0] != '\0' &&
	    (e = git_commits(&f->git, REF, f->git.job->spec.commits,
		 &out->commits)) != NULL)
		return e;
	if (!str_eq(f->hash, tip(f)) &&
	    ((e = git_run(&f->git, NULL, at)) != NULL || !git_done(&f->git)))
		return e;
	return message(f, f->hash, &out->message);
}

/* Checks that need no server. */
static const char *
refusal(const struct job_spec *spec)
{
	struct address ad;

	if (!address_read(spec->repository, &ad) ||
	    str_has_control(spec->repository))
		return "The repository's address is invalid.";
	if (spec->allow_local == 0 && address_is_local(&ad))
		return "Local repositories are not allowed here.";
	if (spec->allow_http == 0 && ad.scheme == ADDRESS_HTTP)
		return "Repositories without TLS are not allowed here.";
	if (spec->branch != NULL && spec->branch[0] != '\0' &&
	    branch_fault(spec->branch) != NULL)
		return "The branch name is invalid.";
	if (spec->commit != NULL && !is_hash(spec->commit))
		return "The commit hash is invalid.";
	return NULL;
}

/* Detail of a failure: git's message, else how it ended. */
static const char *
failure(struct fetch *f)
{
	const struct job_log *log = &f->git.job->log;

	if (f->fault != NULL)
		return f->fault;
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

/* Records in the rebuilt clone what the files are: unchanged, or changing to a
 * commit, in which case git reports the differences.  It has its own time
 * limit, because that of the checkout may be used up. */
static const struct err *
stay(struct fetch *f, struct checkout *out)
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
	git_close(&f->git);
	e = git_open_bare(f->git.job, time_mono_ms() + STAY_MS, &f->git);
	if (e != NULL ||
	    (e = git_call(&f->git, locks_remove, NULL, &ignored)) != NULL)
		return e;
	if ((e = git_run(&f->git, NULL, read_tree)) != NULL ||
	    !git_done(&f->git) || (e = git_run(&f->git, NULL, head)) != NULL ||
	    !git_done(&f->git) || (e = git_run(&f->git, NULL, ref)) != NULL ||
	    !git_done(&f->git) || (e = message(f, at, &text)) != NULL)
		return e;
	out->stayed = arena_printf(f->a, "%s\n%s\n%s",
	    f->touched ? f->branch : "", at, text);
	return NULL;
}

static enum checkout_how
outcome(const struct fetch *f)
{
	if (f->superseded)
		return CHECKOUT_SUPERSEDED;
	if (f->git.end.how == RUN_TIMED_OUT)
		return CHECKOUT_TIMED_OUT;
	if (f->git.end.how == RUN_CANCELED)
		return CHECKOUT_CANCELED;
	return CHECKOUT_FAILED;
}

/* Tries with a new clone, in the object format of the repository. */
static const struct err *
attempt_anew(struct fetch *f, enum checkout_format format, struct checkout *out)
{
	const char *branch = f->branch;
	const struct err *e;

	e = workspace_rebuild(&f->git, format);
	if ((e != NULL && e->code != ERR_NOTFOUND) ||
	    f->git.end.how != RUN_EXITED)
		return e;
	if ((e = attempt(f, out)) != NULL || out->message != NULL ||
	    format == FORMAT_SHA256 ||
	    strstr(f->git.job->log.last, "mismatched algorithms") == NULL)
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
 * blame: an unreachable server must not cost us the checkout. */
static const struct err *
is_there(struct fetch *f, bool *out)
{
	const char *const args[] = { "ls-remote", "--exit-code", "--",
		f->git.job->spec.repository,
		f->branch[0] == '\0' ?
		    "HEAD" :
		    arena_printf(f->a, "refs/heads/%s", f->branch),
		NULL };
	const struct err *e;
	struct buf ignored;

	*out = true;
	if (strstr(f->git.job->log.last, "mismatched algorithms") != NULL)
		return NULL;
	buf_init(&ignored, OUTPUT_MAX);
	e = git_run(&f->git, &ignored, args);
	buf_release(&ignored);
	*out = git_done(&f->git);
	return e;
}

/* Tries with the existing clone; if that fails, with a new one. */
static const struct err *
attempts(struct fetch *f, struct checkout *out)
{
	const int workspace = JOB_FD(WIRE_FD_WORKSPACE);
	struct job *job = f->git.job;
	const char *branch = f->branch;
	const struct err *e;
	bool removed, there;

	if (fchdir(workspace) == -1)
		return err_errno("enter the workspace");
	e = workspace_foreign_remove(&f->git, &removed);
	if (removed)
		job_log_say(&job->log, "==> creating a new clone");
	if (e != NULL || !git_done(&f->git))
		return e;
	e = workspace_rebuild(&f->git, FORMAT_SHA1);
	if ((e != NULL && e->code != ERR_NOTFOUND) ||
	    f->git.end.how != RUN_EXITED)
		return e;
	if (e == NULL) {
		f->before = tip(f);
		if ((e = attempt(f, out)) != NULL || out->message != NULL ||
		    f->git.end.how != RUN_EXITED || f->fault != NULL ||
		    (e = is_there(f, &there)) != NULL || !there)
			return e;
		job_log_say(&job->log, "==> creating a new clone");
		job_log_forget(&job->log);
		f->branch = branch;
		if ((e = workspace_empty(&f->git, NULL)) != NULL ||
		    !git_done(&f->git))
			return e;
		f->before = NULL;
		f->touched = false;
	}
	f->anew = true;
	return attempt_anew(f, FORMAT_SHA1, out);
}

const struct err *
job_checkout(struct job *job, struct checkout *out, enum checkout_how *how,
    const char **detail)
{
	int64_t deadline = time_mono_ms() + job->spec.checkout_timeout * 1000;
	struct fetch f = { .a = job->a,
		.branch = job->spec.branch == NULL ? "" : job->spec.branch };
	const struct err *e;

	(void)memset(out, 0, sizeof(*out));
	out->branch = f.branch;
	out->hash = "";
	out->objects = -1;
	*how = CHECKOUT_FAILED;
	if ((*detail = refusal(&job->spec)) != NULL)
		return NULL;
	if (git_program(job->a, job->spec.path) == NULL) {
		*detail = "git is not installed on the runner.";
		return NULL;
	}
	if (job->deadline != 0 && job->deadline < deadline)
		deadline = job->deadline;
	if (job->spec.checkout_timeout == 0)
		deadline = job->deadline;
	job_log_forget(&job->log);
	if ((e = git_open(job, deadline, &f.git)) != NULL)
		goto out;
	if ((e = workspace_unlock(JOB_FD(WIRE_FD_WORKSPACE))) != NULL ||
	    (e = attempts(&f, out)) != NULL)
		goto out;
	if (out->message != NULL) {
		*how = CHECKOUT_DONE;
		job_log_say(&job->log, "==> at commit %s", out->hash);
	} else {
		*how = outcome(&f);
		*detail = failure(&f);
		/* the result is known; this cannot change it */
		if ((e = stay(&f, out)) != NULL)
			job_log_say(&job->log,
			    "==> the state of the workspace is unknown: %s",
			    e->msg);
		e = NULL;
	}
	out->objects = workspace_objects(job);
out:
	git_close(&f.git);
	job->spec.credential = NULL;
	job->spec.tls_ca = job->spec.ssh_key = job->spec.known_hosts = NULL;
	return e;
}
