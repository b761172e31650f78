/* SPDX-License-Identifier: ISC */
/* Lists branches and tags by the Git protocol (git-ls-remote(1)). */
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/branch.h"
#include "core/git.h"
#include "core/log.h"
#include "core/proc.h"
#include "core/str.h"
#include "forge/inner.h"

/* Limit of git's output; the branches need twice that. */
#define OUTPUT_MAX ((size_t)2 << 20)
#define HEADS "refs/heads/"
#define TAGS "refs/tags/"
#define PEELED "^{}"
#define READ_SIZE 16384
#define ARGS (2 * GIT_SETTINGS + 24)
#define ENVS (GIT_ENVIRONMENT + 6)

/* The owner of a local repository does not matter if only its refs are read.
 * git does not accept this setting on the command line. */
#define CONFIG "[safe]\n\tdirectory = *\n"
#define CONFIG_PATH "/proc/self/fd/3"
#define TICK_MS 2
#define SSH_SECONDS 5

/* git reads the credential from a descriptor, not from this text. */
#define HELPER "!f() { test \"$1\" = get && cat <&4; }; f"

static const char *const programs[] = { "/usr/bin/git", "/usr/local/bin/git",
	"/bin/git", NULL };

struct child {
	const char *argv[ARGS];
	size_t nargs;
	const char *envp[ENVS];
	size_t nenvs;
	int config;
	int credential; /* -1 = none, like the next */
	int key;        /* for ssh */
	int out;
	pid_t pid;
	int64_t deadline;   /* 0 = gitserver.timeout from now */
	const char *prefix; /* of the refs to list */
};

static void
set(struct child *c, const char *setting)
{
	c->argv[c->nargs++] = "-c";
	c->argv[c->nargs++] = setting;
}

/* Stores a text for a child to read from a descriptor; the caller closes it. */
static const struct err *
text_keep(const char *text, int *fd)
{
	ssize_t len = (ssize_t)strlen(text);

	if ((*fd = memfd_create("git", MFD_CLOEXEC)) == -1)
		return err_errno("memfd");
	if (pwrite(*fd, text, (size_t)len, 0) != len)
		return err_errno("write to memory");
	return NULL;
}

/* The service's credential, for its own server only. */
static const struct err *
credential_make(const struct settings_gitserver *s, struct arena *a,
    const char *repository, struct child *c)
{
	struct forge_credential cred;
	const struct err *e;
	struct forge *f;
	const char *text;

	if (s->token == NULL || s->url == NULL || forge_open(s, &f) != NULL)
		return NULL;
	e = forge_clone_with(f, a, repository, s->token, &cred);
	forge_close(f);
	if (e != NULL)
		return NULL; /* the URL is elsewhere */
	text = arena_printf(a, "username=%s\npassword=%s\n", cred.user,
	    cred.secret);
	if ((e = text_keep(text, &c->credential)) != NULL)
		return e;
	set(c, "credential.helper=" HELPER);
	return NULL;
}

/* ssh(1) closes the descriptors that it inherits, so it opens git's own: the
 * shell between them expands PPID. */
#define KEY_PATH "/proc/$PPID/fd/4"

/* Describes the files that ssh(1) reads.  It rejects a key that others than its
 * owner may read. */
static const struct err *
ssh_set(const struct settings_gitserver *s, struct arena *a, struct child *c)
{
	struct git_ssh ssh = { .key = s->ssh_key_file,
		.known_hosts = s->ssh_known_hosts,
		.timeout = SSH_SECONDS };
	const struct err *e;

	if (s->ssh_key != NULL) {
		if ((e = text_keep(s->ssh_key, &c->key)) != NULL)
			return e;
		if (fchmod(c->key, 0600) == -1)
			return err_errno("chmod");
		ssh.key = KEY_PATH;
	}
	set(c, git_ssh_setting(a, &ssh, ""));
	return NULL;
}

static const struct err *
child_describe(const struct settings_gitserver *s, struct arena *a,
    const char *repository, struct child *c)
{
	const struct err *e;
	size_t i;

	for (i = 0; programs[i] != NULL; i++)
		if (access(programs[i], X_OK) == 0)
			break;
	if (programs[i] == NULL)
		return err_public(ERR_CONFIG, "git is not installed.");
	c->argv[c->nargs++] = programs[i];
	for (i = 0; i < GIT_SETTINGS; i++)
		set(c, git_settings[i]);
	if (settings_plain(s, repository))
		set(c, GIT_ALLOW_HTTP);
	if (s->allow_local)
		set(c, GIT_ALLOW_LOCAL);
	if (s->tls_ca != NULL) {
		set(c, arena_printf(a, "http.sslCAInfo=%s", s->tls_ca));
		set(c, GIT_NO_SYSTEM_CAS);
	}
	if ((e = ssh_set(s, a, c)) != NULL ||
	    (e = text_keep(CONFIG, &c->config)) != NULL ||
	    (e = credential_make(s, a, repository, c)) != NULL)
		return e;
	c->argv[c->nargs++] = "ls-remote";
	c->argv[c->nargs++] = "--symref";
	c->argv[c->nargs++] = "--";
	c->argv[c->nargs++] = repository;
	c->argv[c->nargs++] = "HEAD";
	c->argv[c->nargs++] = arena_printf(a, "%s*", c->prefix);
	c->envp[c->nenvs++] = "PATH=/usr/local/bin:/usr/bin:/bin";
	c->envp[c->nenvs++] = "HOME=/nonexistent";
	c->envp[c->nenvs++] = "GIT_ASKPASS=/bin/false";
	c->envp[c->nenvs++] = "GIT_CONFIG_GLOBAL=" CONFIG_PATH;
	for (i = 0; i < GIT_ENVIRONMENT; i++)
		c->envp[c->nenvs++] = git_environment[i];
	return NULL;
}

/* Runs after fork and never returns. */
static void
child_become(const struct child *c, int out)
{
	int null = open("/dev/null", O_RDWR);
	int fds[] = { c->config, c->key != -1 ? c->key : c->credential };

	(void)setsid();
	proc_signals_default();
	if (null == -1 || dup2(null, STDIN_FILENO) == -1 ||
	    dup2(out, STDOUT_FILENO) == -1 || dup2(null, STDERR_FILENO) == -1 ||
	    proc_fds_place(fds, fds[1] == -1 ? 1 : 2) != NULL)
		_exit(127);
	(void)execve(c->argv[0], (char *const *)(uintptr_t)c->argv,
	    (char *const *)(uintptr_t)c->envp);
	_exit(127);
}

static const struct err *
child_start(struct child *c)
{
	const struct err *e = NULL;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) == -1)
		return err_errno("pipe");
	if ((c->pid = fork()) == 0)
		child_become(c, ends[1]);
	if (c->pid == -1)
		e = err_errno("fork");
	(void)close(ends[1]);
	c->out = ends[0];
	return e;
}

static const struct err *
output_read(const struct child *c, struct buf *out)
{
	struct pollfd p = { .fd = c->out, .events = POLLIN };
	char block[READ_SIZE];
	int64_t left;
	ssize_t n;

	for (;;) {
		left = c->deadline - time_mono_ms();
		if (left <= 0)
			return err_public(ERR_UPSTREAM_TIMEOUT,
			    "The Git server did not respond in time.");
		if (poll(&p, 1, (int)left) <= 0)
			continue;
		n = read(c->out, block, sizeof(block));
		if (n == 0)
			return buf_check(out) == NULL ?
			    NULL :
			    err_public(ERR_UPSTREAM,
				"The repository has too many branches or tags.");
		if (n == -1 && errno != EINTR)
			return err_errno("read from git");
		if (n > 0)
			buf_add(out, block, (size_t)n);
	}
}

/* Ends git and its helpers, which survive when git is killed. */
static const struct err *
child_end(struct child *c)
{
	int status = 0;
	pid_t got;

	if (c->out != -1)
		(void)close(c->out);
	if (c->pid <= 0)
		return NULL;
	while ((got = waitpid(c->pid, &status, WNOHANG)) == 0 &&
	    time_mono_ms() < c->deadline)
		(void)poll(NULL, 0, TICK_MS);
	(void)kill(-c->pid, SIGKILL);
	if (got == 0)
		(void)waitpid(c->pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return NULL;
	return err_public(ERR_UPSTREAM,
	    "git cannot read the repository: it does not exist, or requires "
	    "credentials that the service does not have.");
}

/* What a list consists of. */
struct refs {
	const char *prefix;
	const char *head; /* branch of the repository's HEAD */
	struct forge_branch *items;
	size_t n;
};

/* "HASH\trefs/heads/NAME" or "ref: refs/heads/NAME\tHEAD". The line of an
 * annotated tag is followed by one that ends in ^{}, with its commit. */
static void
line_take(struct arena *a, char *line, struct refs *refs)
{
	char *tab = strchr(line, '\t'), *name;
	struct forge_branch *next = refs->items + refs->n;

	if (tab == NULL)
		return;
	*tab++ = '\0';
	if (str_starts(line, "ref: " HEADS) && strcmp(tab, "HEAD") == 0) {
		refs->head = arena_strdup(a, line + strlen("ref: " HEADS));
		return;
	}
	if (!str_starts(tab, refs->prefix) ||
	    !str_matches(line, "[0-9a-f]{40}([0-9a-f]{24})?"))
		return;
	name = tab + strlen(refs->prefix);
	if (str_ends(name, PEELED)) {
		name[strlen(name) - strlen(PEELED)] = '\0';
		if (refs->n > 0 && str_eq(next[-1].name, name))
			next[-1].commit_hash = arena_strdup(a, line);
	} else if (branch_fault(name) == NULL) {
		next->name = arena_strdup(a, name);
		next->commit_hash = arena_strdup(a, line);
		refs->n++;
	}
}

/* Higher versions first. */
static int
tag_order(const void *a, const void *b)
{
	const struct forge_branch *left = a, *right = b;

	return strverscmp(right->name, left->name);
}

static void
refs_take(struct arena *a, const char *prefix, struct buf *text,
    struct forge_page *page, struct list *out)
{
	size_t lines = 0, n, i, first, end;
	struct refs refs = { .prefix = prefix };
	char *rest = text->data, *line;
	struct forge_branch *b;

	for (i = 0; i < text->len; i++)
		lines += text->data[i] == '\n';
	refs.items = b = arena_alloc(a, lines + 1, sizeof(*b));
	while (rest != NULL && (line = strsep(&rest, "\n")) != NULL)
		line_take(a, line, &refs);
	n = refs.n;
	if (strcmp(prefix, TAGS) == 0)
		qsort(b, n, sizeof(*b), tag_order);
	else
		for (i = 0; i < n; i++)
			b[i].is_default = str_eq(b[i].name, refs.head);
	first = (size_t)(page->page - 1) * (size_t)page->limit;
	if (first > n)
		first = n;
	end = first + (size_t)page->limit < n ? first + (size_t)page->limit : n;
	page->has_more = end < n;
	*out = (struct list){ .items = b + first, .n = end - first };
}

static const struct err *
refs_list(const struct settings_gitserver *s, struct arena *a,
    const char *repository, struct child *c, struct forge_page *page,
    struct list *out)
{
	const struct err *e, *ended;
	struct buf text;

	*out = (struct list){ .items = NULL };
	page->has_more = false;
	c->config = c->credential = c->key = c->out = -1;
	if (c->deadline == 0)
		c->deadline = time_mono_ms() + s->timeout * 1000;
	buf_init(&text, OUTPUT_MAX);
	if ((e = child_describe(s, a, repository, c)) == NULL &&
	    (e = child_start(c)) == NULL)
		e = output_read(c, &text);
	ended = child_end(c);
	if (e == NULL && (e = ended) == NULL)
		refs_take(a, c->prefix, &text, page, out);
	if (c->config != -1)
		(void)close(c->config);
	if (c->credential != -1)
		(void)close(c->credential);
	if (c->key != -1)
		(void)close(c->key);
	buf_release(&text);
	return e;
}

const struct err *
forge_ls_remote(const struct settings_gitserver *s, struct arena *a,
    const char *repository, int64_t until_ms, struct forge_page *page,
    struct list *out)
{
	struct child c = { .prefix = HEADS, .deadline = until_ms };

	return refs_list(s, a, repository, &c, page, out);
}

const struct err *
forge_ls_tags(const struct settings_gitserver *s, struct arena *a,
    const char *repository, int64_t until_ms, struct forge_page *page,
    struct list *out)
{
	struct child c = { .prefix = TAGS, .deadline = until_ms };

	return refs_list(s, a, repository, &c, page, out);
}
