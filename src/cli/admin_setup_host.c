/* SPDX-License-Identifier: ISC */
/* What setup creates on this host: system accounts, directories, files. */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#include "cli/admin_setup.h"
#include "cli/child.h"
#include "core/file.h"
#include "core/proc.h"

#define API_ACCOUNT "slipway-api" /* in the unit that is installed */
#define HOME "/var/lib/slipway"   /* of both accounts; they do not use it */
#define CONF_MAX ((size_t)1 << 20)
#define OUTPUT_MAX 4096

const char *
setup_runner_account(struct setup *s)
{
	const struct settings_runner *r = &s->admin->set.runner;

	return r->privilege_drop ? r->user : NULL;
}

const char *
setup_api_account(struct setup *s)
{
	const struct settings *set = &s->admin->set;

	if (!set->runner.privilege_drop)
		return NULL;
	return set->api.user != NULL ? set->api.user : API_ACCOUNT;
}

/* The API's account reads the configuration by its group. */
const char *
setup_membership(struct setup *s)
{
	const char *api = setup_api_account(s);

	if (api == NULL || strcmp(api, setup_runner_account(s)) == 0)
		return NULL;
	return arena_printf(s->admin->a, "of %s in the group %s", api,
	    setup_runner_account(s));
}

static const char *
parent(struct setup *s, const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == NULL || slash == path ?
	    NULL :
	    arena_strndup(s->admin->a, path, (size_t)(slash - path));
}

const char *
setup_conf_dir(struct setup *s)
{
	return parent(s, s->admin->conf);
}

const char *
setup_conf(struct setup *s)
{
	return s->admin->conf;
}

const char *
setup_tls_key(struct setup *s)
{
	return s->admin->set.database.tls_key;
}

const char *
setup_api_dir(struct setup *s)
{
	return parent(s, s->admin->set.api.socket);
}

const char *
setup_wake_dir(struct setup *s)
{
	return parent(s, s->admin->set.runner.wake_socket);
}

const char *
setup_workspaces_parent(struct setup *s)
{
	return parent(s, s->admin->set.runner.workspaces);
}

const char *
setup_workspaces(struct setup *s)
{
	return s->admin->set.runner.workspaces;
}

const char *
setup_spool(struct setup *s)
{
	return s->admin->set.runner.spool;
}

const char *
setup_keys(struct setup *s)
{
	return s->admin->set.secrets.key_file;
}

/* Runs a program that prints its own errors. */
static const struct err *
run(const char *const argv[])
{
	const struct err *e;
	struct buf out;
	int status;

	buf_init(&out, OUTPUT_MAX);
	e = child_output(argv, false, &out, &status);
	buf_release(&out);
	if (e == NULL && status != 0)
		e = err_new(ERR_CONFIG, "%s failed with status %d: %s", argv[0],
		    status,
		    geteuid() == 0 ? "see its message" :
				     "run the command as root");
	return e;
}

const struct err *
setup_account_find(struct setup *s, const struct part *part, const char *name,
    bool *found)
{
	(void)s;
	(void)part;
	*found = getpwnam(name) != NULL;
	return NULL;
}

const struct err *
setup_account_create(struct setup *s, const struct part *part, const char *name)
{
	const char *const argv[] = { "useradd", "--system", "--user-group",
		"--home-dir", HOME, "--no-create-home", "--shell",
		"/usr/sbin/nologin", name, NULL };

	(void)s;
	(void)part;
	return run(argv);
}

const struct err *
setup_membership_find(struct setup *s, const struct part *part,
    const char *name, bool *found)
{
	const struct group *group = getgrnam(setup_runner_account(s));
	char **member;

	(void)part;
	(void)name;
	*found = false;
	if (group == NULL)
		return NULL;
	for (member = group->gr_mem; *member != NULL; member++)
		*found |= strcmp(*member, setup_api_account(s)) == 0;
	return NULL;
}

const struct err *
setup_membership_create(struct setup *s, const struct part *part,
    const char *name)
{
	const char *const argv[] = { "usermod", "--append", "--groups",
		setup_runner_account(s), setup_api_account(s), NULL };

	(void)part;
	(void)name;
	return run(argv);
}

const struct err *
setup_path_find(struct setup *s, const struct part *part, const char *name,
    bool *found)
{
	struct stat st;

	(void)s;
	(void)part;
	*found = stat(name, &st) == 0;
	return *found || errno == ENOENT ? NULL : err_errno("stat");
}

/* Gives an open file or directory its owner, group and mode. */
static const struct err *
own(const struct part *part, const char *user, const char *group, int fd)
{
	const struct passwd *pw = user == NULL ? NULL : getpwnam(user);
	const struct passwd *gr = group == NULL ? NULL : getpwnam(group);

	if ((pw != NULL || gr != NULL) &&
	    fchown(fd, pw == NULL ? (uid_t)-1 : pw->pw_uid,
		gr == NULL ? (gid_t)-1 : gr->pw_gid) == -1)
		return err_errno("chown");
	return fchmod(fd, part->mode) == -1 ? err_errno("chmod") : NULL;
}

static bool
can_read(const struct proc_account *account, const struct stat *st)
{
	size_t i;

	if (account->uid == st->st_uid)
		return (st->st_mode & S_IRUSR) != 0;
	for (i = 0; i < account->ngroups; i++)
		if (account->groups[i] == st->st_gid)
			return (st->st_mode & S_IRGRP) != 0;
	return (st->st_mode & S_IROTH) != 0;
}

/* Includes access-control lists, which only root can test. */
static const struct err *
can_open(struct setup *s, const struct proc_account *account, const char *name,
    const char *path, bool *out)
{
	const char *const argv[] = { "setpriv",
		arena_printf(s->admin->a, "--reuid=%s", name),
		arena_printf(s->admin->a, "--regid=%u", (unsigned)account->gid),
		"--init-groups", "test", "-r", path, NULL };
	const struct err *e;
	struct buf text;
	int status;

	buf_init(&text, OUTPUT_MAX);
	e = child_output(argv, false, &text, &status);
	buf_release(&text);
	*out = e == NULL && status == 0;
	return e;
}

/* Whether the services can read a file.  An account that --dry-run misses can
 * read nothing. */
const struct err *
setup_access_find(struct setup *s, const struct part *part, const char *name,
    bool *found)
{
	const char *const accounts[] = { setup_runner_account(s),
		setup_api_account(s) };
	struct proc_account account;
	const struct err *e;
	struct stat st;
	size_t i;

	(void)part;
	*found = false;
	if (stat(name, &st) == -1)
		return errno == ENOENT ? NULL : err_errno("stat");
	*found = true;
	for (i = 0; i < 2 && *found; i++) {
		if (accounts[i] == NULL)
			continue;
		if ((e = proc_account_named(accounts[i], &account)) != NULL) {
			*found = false;
			return e->code == ERR_NOTFOUND ? NULL : e;
		}
		*found = can_read(&account, &st);
		if (!*found && geteuid() == 0 &&
		    (e = can_open(s, &account, accounts[i], name, found)) !=
			NULL)
			return e;
	}
	return NULL;
}

/* The configuration belongs to slipway alone, but a link is not followed. */
const struct err *
setup_access_create(struct setup *s, const struct part *part, const char *name)
{
	const struct part readable = { .what = part->what, .mode = 0640 };
	const struct err *e;
	int fd;

	if ((fd = open(name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)) == -1)
		return errno == ELOOP ? setup_access_advise(s, part, name) :
					err_errno("open");
	e = own(&readable, NULL, setup_runner_account(s), fd);
	(void)close(fd);
	return e;
}

/* Other services may use the file. */
const struct err *
setup_access_advise(struct setup *s, const struct part *part, const char *name)
{
	const char *account = setup_runner_account(s);

	(void)part;
	if (access(name, F_OK) == -1)
		return err_errno("access");
	return err_new(ERR_CONFIG,
	    "the services cannot read it: if no other service uses it, run "
	    "\"chgrp %s %s && chmod 640 %s\"; else run \"setfacl -m g:%s:r "
	    "%s\" or use a copy; then run setup again",
	    account, name, name, account, name);
}

const struct err *
setup_directory_create(struct setup *s, const struct part *part,
    const char *name)
{
	const char *owner = part->owner == NULL ? NULL : part->owner(s);
	const struct err *e;
	int fd;

	if (mkdir(name, part->mode) == -1)
		return err_errno("mkdir");
	if ((fd = open(name,
		 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) == -1)
		return err_errno("open");
	e = own(part, owner, owner, fd);
	(void)close(fd);
	return e;
}

/* Copies the example; the group of the accounts may read it. */
const struct err *
setup_conf_create(struct setup *s, const struct part *part, const char *name)
{
	const struct err *e;
	struct buf text;
	int fd;

	if ((fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) ==
	    -1)
		return err_errno("open");
	buf_init(&text, CONF_MAX);
	if ((e = file_load(SLIPWAY_EXAMPLE, &text)) == NULL &&
	    (e = file_store(fd, text.data, text.len)) == NULL &&
	    (e = own(part, NULL, setup_runner_account(s), fd)) == NULL &&
	    fsync(fd) == -1)
		e = err_errno("fsync");
	buf_release(&text);
	(void)close(fd);
	if (e != NULL)
		(void)unlink(name);
	return e;
}

/* A part of the files means that some were lost, which new keys do not mend. */
const struct err *
setup_keys_find(struct setup *s, const struct part *part, const char *name,
    bool *found)
{
	const struct settings_secrets *secrets = &s->admin->set.secrets;
	const char *const paths[] = { name,
		settings_deploy_key(s->admin->a, secrets),
		settings_deploy_public(s->admin->a, secrets) };
	const char *there = NULL, *missing = NULL;
	const struct err *e;
	bool one;
	size_t i;

	*found = false;
	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		if ((e = setup_path_find(s, part, paths[i], &one)) != NULL)
			return e;
		if (one)
			there = paths[i];
		else
			missing = paths[i];
	}
	if (there != NULL && missing != NULL)
		return err_new(ERR_CONFIG,
		    "%s exists, but %s does not: restore it from a backup, or "
		    "run slipway-admin key, and enter secret values again",
		    there, missing);
	*found = missing == NULL;
	return NULL;
}

/* Both accounts read the first file, by their group. */
const struct err *
setup_keys_create(struct setup *s, const struct part *part, const char *name)
{
	const char *account = setup_runner_account(s);
	const struct passwd *pw = account == NULL ? NULL : getpwnam(account);
	const struct err *e;

	(void)part;
	if ((e = admin_key_create(s->admin)) != NULL)
		return e;
	if (pw != NULL && chown(name, (uid_t)-1, pw->pw_gid) == -1)
		return err_errno("chown");
	return NULL;
}
