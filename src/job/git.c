/* SPDX-License-Identifier: ISC */
#include "job/git.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "core/address.h"
#include "core/file.h"
#include "core/git.h"
#include "core/str.h"
#include "job/job.h"
#include "job/lfs.h"
#include "job/log.h"
#include "job/run.h"

#define CONFIG_FILE "slipway-gitconfig"
/* Descriptor of the credential in the child. */
#define CREDENTIAL_FD "4"
#define ANSWER_MAX 8192
#define CREDENTIAL_MAX                                                         \
	(ANSWER_MAX + 16384) /* with the addresses that are lent */
#define SSH_KEY "slipway-ssh-key"
#define KNOWN_HOSTS "slipway-known-hosts"
#define SSH_SECONDS 30

/* Files for git, and through it for ssh, are in the home during the checkout,
 * because ssh(1) closes all inherited descriptors. */
static const struct {
	const char *name;
	size_t offset; /* of its text in struct job_description */
} materials[] = {
	{ "slipway-ca", offsetof(struct job_description, tls_ca) },
	{ SSH_KEY, offsetof(struct job_description, ssh_key) },
	{ KNOWN_HOSTS, offsetof(struct job_description, known_hosts) },
};
#define MATERIALS (sizeof(materials) / sizeof(materials[0]))

static const struct err *
home_write(const char *name, const char *text)
{
	const struct err *e;
	int fd;

	fd = openat(JOB_FD(WIRE_FD_HOME), name,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd == -1)
		return err_errno("create %s", name);
	e = file_store(fd, text, strlen(text));
	if (close(fd) == -1 && e == NULL)
		e = err_errno("close");
	return e == NULL ? NULL : err_wrap(e, "%s", name);
}

static const struct err *
materials_write(const struct job *job)
{
	const char *spec = (const char *)&job->spec, *text;
	const struct err *e;
	size_t i;

	for (i = 0; i < MATERIALS; i++) {
		text = *(const char *const *)(const void *)(spec +
		    materials[i].offset);
		if (text != NULL &&
		    (e = home_write(materials[i].name, text)) != NULL)
			return e;
	}
	return NULL;
}

/* A local repository usually belongs to another user; the program on its side
 * reads this file, not our command line. */
static const struct err *
config_write(struct job *job)
{
	const char *path = job->spec.repository, *text;

	if (str_starts(path, "file://"))
		path += strlen("file://");
	text = "";
	if (job->spec.allow_local && path[0] == '/' &&
	    strpbrk(path, "\"\\\n") == NULL)
		text = arena_printf(job->a,
		    "[safe]\n\tdirectory = \"%s\"\n"
		    "\tdirectory = \"%s/.git\"\n",
		    path, path);
	return home_write(CONFIG_FILE, text);
}

/* Uses memory that is in no file system and on no command line.  `only` are the
 * addresses for which it is, separated by blanks; NULL = all of the server. */
static const struct err *
credential_open(struct job *job, const char *only, int *out)
{
	struct address ad;
	const char *text;
	size_t len;

	*out = -1;
	if (job->spec.credential == NULL ||
	    !address_read(job->spec.repository, &ad) || !address_is_web(&ad))
		return NULL;
	text = arena_printf(job->a, "%s\n%s%s%s", address_origin(job->a, &ad),
	    job->spec.credential, only == NULL ? "" : "\n",
	    only == NULL ? "" : only);
	len = strlen(text);
	if ((*out = memfd_create("credential", MFD_CLOEXEC)) == -1)
		return err_errno("memfd");
	if (write(*out, text, len) != (ssize_t)len)
		return err_errno("write to memory");
	return NULL;
}

static const char *const *
git_variables(const struct job *job, const char *home, const char *self,
    int credential)
{
	struct arena *a = job->a;
	const char **env = arena_alloc(a,
	    GIT_ENVIRONMENT + LFS_ENVIRONMENT + 12, sizeof(*env));
	size_t n = 0, i;

	env[n++] = arena_printf(a, "PATH=%s", job->spec.path);
	env[n++] = arena_printf(a, "HOME=%s", home);
	env[n++] = self == NULL ?
	    "GIT_CONFIG_GLOBAL=/dev/null" :
	    arena_printf(a, "GIT_CONFIG_GLOBAL=%s/" CONFIG_FILE, home);
	env[n++] = arena_printf(a, "GIT_CEILING_DIRECTORIES=%s/..",
	    job->place.workspace);
	if (credential != -1) {
		env[n++] = arena_printf(a, "GIT_ASKPASS=%s", self);
		env[n++] = "SLIPWAY_ASKPASS=" CREDENTIAL_FD;
	} else {
		env[n++] = "GIT_ASKPASS=/bin/false";
	}
	lfs_environment(job, env + n);
	n += LFS_ENVIRONMENT;
	for (i = 0; i < GIT_ENVIRONMENT; i++)
		env[n++] = git_environment[i];
	return env;
}

const char *
program_find(struct arena *a, const char *path, const char *name)
{
	char *folders = arena_strdup(a, path), *folder;
	const char *file;

	while ((folder = strsep(&folders, ":")) != NULL) {
		file = arena_printf(a, "%s/%s", folder, name);
		if (folder[0] == '/' &&
		    faccessat(AT_FDCWD, file, X_OK, AT_EACCESS) == 0)
			return file;
	}
	return NULL;
}

static void
setting_add(struct git *g, const char *setting)
{
	g->argv[g->nargs++] = "-c";
	g->argv[g->nargs++] = setting;
}

/* Finds git and adds the settings common to all its commands. */
static const struct err *
settings_add(struct git *g)
{
	const struct job_description *spec = &g->job->spec;
	const struct git_ssh ssh = {
		.key = spec->ssh_key == NULL ? NULL : SSH_KEY,
		.known_hosts = spec->known_hosts == NULL ? NULL : KNOWN_HOSTS,
		.timeout = SSH_SECONDS,
	};
	size_t i;

	g->argv[g->nargs] = program_find(g->job->a, spec->path, "git");
	if (g->argv[g->nargs++] == NULL)
		return err_new(ERR_CONFIG, "git not found in %s", spec->path);
	for (i = 0; i < GIT_SETTINGS; i++)
		setting_add(g, git_settings[i]);
	if (spec->allow_http)
		setting_add(g, GIT_ALLOW_HTTP);
	if (spec->allow_local)
		setting_add(g, GIT_ALLOW_LOCAL);
	if (spec->tls_ca != NULL) {
		setting_add(g,
		    arena_printf(g->job->a, "http.sslCAInfo=%s/slipway-ca",
			g->job->place.home));
		setting_add(g, GIT_NO_SYSTEM_CAS);
	}
	/* the shell that git starts ssh(1) with expands HOME */
	setting_add(g, git_ssh_setting(g->job->a, &ssh, "$HOME/"));
	g->has_lfs = spec->lfs &&
	    program_find(g->job->a, spec->path, "git-lfs") != NULL;
	return NULL;
}

/* Finds a path of this program that exists here: under a chroot, /proc can name
 * one of the host. */
static const struct err *
self_find(const struct job *job, const char **out)
{
	char link[4096] = "";
	const char *const paths[] = { job->place.program, link };
	struct stat own, there;
	size_t i;

	if (readlink("/proc/self/exe", link, sizeof(link) - 1) == -1 ||
	    stat("/proc/self/exe", &own) == -1)
		return err_errno("find the path of slipway-job");
	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (paths[i] == NULL || paths[i][0] != '/' ||
		    stat(paths[i], &there) == -1 ||
		    there.st_dev != own.st_dev || there.st_ino != own.st_ino)
			continue;
		*out = arena_strdup(job->a, paths[i]);
		return NULL;
	}
	return err_new(ERR_CONFIG,
	    "slipway-job is neither %s nor %s: git could not run it",
	    job->place.program, link);
}

const struct err *
git_open(struct job *job, int64_t deadline, struct git *out)
{
	const struct err *e;
	const char *self;
	size_t i;

	(void)memset(out, 0, sizeof(*out));
	out->job = job;
	job->log.hides_users = true;
	out->deadline = deadline;
	out->credential = -1;
	out->flags = RUN_CANCEL_ENDS_IT;
	if ((e = config_write(job)) != NULL ||
	    (e = materials_write(job)) != NULL)
		return e;
	if ((e = credential_open(job, NULL, &out->credential)) != NULL)
		return e;
	if ((e = self_find(job, &self)) != NULL)
		return e;
	out->env = git_variables(job, job->place.home, self, out->credential);
	if ((e = settings_add(out)) != NULL || !out->has_lfs)
		return e;
	for (i = 0; i < LFS_SETTINGS; i++)
		setting_add(out, lfs_settings[i]);
	return NULL;
}

const struct err *
git_open_bare(struct job *job, int64_t deadline, struct git *out)
{
	const struct err *e;

	(void)memset(out, 0, sizeof(*out));
	out->job = job;
	out->deadline = deadline;
	out->credential = -1;
	out->env = git_variables(job, "/", NULL, -1);
	/* to compare content with its pointer: git-lfs clean would store it */
	if ((e = settings_add(out)) == NULL && out->has_lfs)
		setting_add(out,
		    "filter.lfs.clean=git-lfs pointer --file=%f 2>/dev/null");
	return e;
}

void
git_close(struct git *g)
{
	size_t i;

	for (i = 0; i < MATERIALS; i++)
		(void)unlinkat(JOB_FD(WIRE_FD_HOME), materials[i].name, 0);
	(void)unlinkat(JOB_FD(WIRE_FD_HOME), CONFIG_FILE, 0);
	if (g->has_lfs)
		lfs_close();
	if (g->credential != -1)
		(void)close(g->credential);
	g->credential = -1;
	job_log_finish(&g->job->log);
	g->job->log.hides_users = false;
}

const struct err *
git_run(struct git *g, struct buf *capture, const char *const *args)
{
	const struct run run = { .argv = g->argv,
		.envp = g->env,
		.deadline = g->deadline,
		.keep_fd = g->credential,
		.flags = g->flags,
		.input = g->input,
		.capture = capture };
	size_t n = g->nargs, i;

	for (i = 0; args[i] != NULL; i++) {
		if (n == GIT_ARGS - 1)
			return err_new(ERR_INTERNAL, "too many arguments");
		g->argv[n++] = args[i];
	}
	g->argv[n] = NULL;
	return job_run(g->job, &run, &g->end);
}

const struct err *
git_run_lent(struct git *g, const char *const *args)
{
	struct git lent = *g;
	struct job *job = g->job;
	const struct err *e;
	const char *self = "";

	lent.credential = -1;
	if (job->spec.lent != NULL && g->credential != -1 &&
	    ((e = credential_open(job, job->spec.lent, &lent.credential)) !=
		    NULL ||
		(e = self_find(job, &self)) != NULL))
		goto out;
	/* the configuration file is used, but not ssh(1), which could find the
	 * key */
	lent.env = git_variables(job, job->place.home, self, lent.credential);
	setting_add(&lent, "protocol.ssh.allow=never");
	/* git names the path, too, when it asks for a password */
	setting_add(&lent, "credential.useHttpPath=true");
	e = git_run(&lent, NULL, args);
	g->end = lent.end;
out:
	if (lent.credential != -1)
		(void)close(lent.credential);
	return e;
}

const struct err *
git_call(struct git *g, run_call *what, void *arg, const char **out)
{
	const struct run run = { .call = what,
		.arg = arg,
		.deadline = g->deadline,
		.flags = g->flags };

	return job_call(g->job, &run, &g->end, out);
}

/* The length of a path without what may follow the name of a repository. */
static size_t
path_len(const char *path, size_t len)
{
	while (len > 0 && path[len - 1] == '/')
		len--;
	if (len > 4 && strncmp(path + len - 4, ".git", 4) == 0)
		len -= 4;
	return len;
}

/* Whether an address is one of a list, which is cut up. */
static bool
is_listed(const struct address *asked, char *list)
{
	const size_t len = path_len(asked->path, strlen(asked->path));
	struct address ad;
	const char *item;

	while ((item = strsep(&list, " ")) != NULL)
		if (address_read(item, &ad) &&
		    address_same_origin(asked, &ad) &&
		    path_len(ad.path, strlen(ad.path)) == len &&
		    strncasecmp(ad.path, asked->path, len) == 0)
			return true;
	return false;
}

/* Whether the question of git or git-lfs is about that origin: "Password for
 * 'ORIGIN': " or "Password for "ORIGIN"", possibly with "user@" before the
 * host, and about one of the addresses in `only`; NULL = any. */
static bool
is_asked_for(const char *question, const char *origin, char *only)
{
	const char *url = strpbrk(question, "'\""), *end;
	struct address asked, own;
	char text[ANSWER_MAX];
	size_t len;

	if (url == NULL || (end = strrchr(question, *url)) == NULL ||
	    end < ++url || (len = (size_t)(end - url)) >= sizeof(text))
		return false;
	(void)memcpy(text, url, len);
	text[len] = '\0';
	return address_read(text, &asked) && address_read(origin, &own) &&
	    address_same_origin(&asked, &own) &&
	    (only == NULL || is_listed(&asked, only));
}

int
job_askpass(const char *question, const char *fd)
{
	char text[CREDENTIAL_MAX], *where, *only, *user, *secret;
	const char *answer = NULL;
	ssize_t got;

	if (strcmp(fd, CREDENTIAL_FD) != 0)
		return 1;
	got = pread(fd[0] - '0', text, sizeof(text) - 1, 0);
	if (got <= 0)
		return 1;
	text[got] = '\0';
	only = text;
	where = strsep(&only, "\n");
	user = strsep(&only, "\n");
	secret = strsep(&only, "\n");
	if (secret == NULL || !is_asked_for(question, where, only))
		return 1;
	if (str_starts(question, "Username"))
		answer = user;
	else if (str_starts(question, "Password"))
		answer = secret;
	if (answer == NULL)
		return 1;
	return puts(answer) == EOF || fflush(stdout) == EOF ? 1 : 0;
}
