/* SPDX-License-Identifier: ISC */
/* doctor's check of host keys: of every host from which a project is cloned over
 * SSH, a runner must know one. */
#include <sys/stat.h>

#include <grp.h>
#include <pwd.h>
#include <string.h>

#include "cli/admin_doctor.h"
#include "cli/admin_known_hosts.h"
#include "core/address.h"
#include "core/str.h"
#include "store/project.h"

#define SSH "SSH hosts"
#define HOSTS 50
#define PROJECTS 100 /* in a page */
#define GROUPS 64    /* of an account */

struct ssh_host {
	const char *name;    /* as in the files */
	const char *word;    /* as in a command */
	const char *project; /* one that is there */
	size_t n;            /* projects */
};

struct ssh_hosts {
	struct ssh_host item[HOSTS];
	size_t n;
};

static void
host_note(struct doctor *d, const struct project *p, struct ssh_hosts *out)
{
	struct address ad;
	const char *name;
	size_t i;

	if (!address_read(p->repository, &ad) || !address_is_ssh(&ad))
		return;
	name = known_hosts_name(d->admin->a, &ad);
	for (i = 0; i < out->n && strcmp(out->item[i].name, name) != 0; i++)
		;
	if (i == HOSTS)
		return;
	if (i == out->n)
		out->item[out->n++] = (struct ssh_host){ name,
			arena_printf(d->admin->a, "%.*s:%lld", (int)ad.host_len,
			    ad.host, (long long)address_port(&ad)),
			arena_strdup(d->admin->a, p->name), 0 };
	out->item[i].n++;
}

static const struct err *
hosts_find(struct doctor *d, struct ssh_hosts *out)
{
	struct page page = { .page = 1, .limit = PROJECTS };
	const struct project *p;
	const struct err *e;
	struct list all;
	size_t i;

	do {
		e = project_page(d->admin->db, d->admin->a, NULL, &page, &all);
		if (e != NULL)
			return e;
		p = all.items;
		for (i = 0; i < all.n; i++)
			host_note(d, &p[i], out);
		page.page++;
	} while (all.n == PROJECTS && out->n < HOSTS);
	return NULL;
}

/* Whether one of the files that ssh(1) reads has a key of the host. */
static const struct err *
host_look(struct doctor *d, const char *name, bool *found)
{
	const char *const files[] = { d->admin->set.gitserver.ssh_known_hosts,
		"/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2" };
	const struct known_host *known;
	const struct err *e;
	struct list list;
	size_t i, j;

	*found = false;
	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if (files[i] == NULL)
			continue;
		e = known_hosts_find(d->admin->a, files[i], name, &list);
		if (e != NULL)
			return e;
		known = list.items;
		for (j = 0; j < list.n; j++)
			*found |= !str_eq(known[j].marker, "@revoked");
	}
	return NULL;
}

static void
host_say(struct doctor *d, const struct ssh_host *host)
{
	const char *file = d->admin->set.gitserver.ssh_known_hosts;
	const char *set = file != NULL ?
	    "" :
	    "set ssh_known_hosts in [gitserver], for example to "
	    "/etc/slipway/known_hosts, reload the services, and ";

	doctor_say(d, VERDICT_FAULT, SSH,
	    "no key of %s is in %s, so %s%s cannot be cloned: %srun "
	    "slipway-admin known-host add %s",
	    host->name, file != NULL ? file : "/etc/ssh/ssh_known_hosts",
	    host->project, host->n > 1 ? " and other projects" : "", set,
	    host->word);
}

static bool
can_read(const struct passwd *pw, const struct stat *st)
{
	gid_t groups[GROUPS];
	int i, n = GROUPS;

	if (st->st_uid == pw->pw_uid)
		return (st->st_mode & S_IRUSR) != 0;
	if (getgrouplist(pw->pw_name, pw->pw_gid, groups, &n) == -1)
		n = GROUPS;
	for (i = 0; i < n; i++)
		if (groups[i] == st->st_gid)
			return (st->st_mode & S_IRGRP) != 0;
	return (st->st_mode & S_IROTH) != 0;
}

/* A file that the dispatcher cannot read is as good as none; false if so. */
static bool
file_try(struct doctor *d, const char *setting, const char *path)
{
	const struct settings_runner *r = &d->admin->set.runner;
	const struct passwd *pw;
	struct stat st;

	if (path == NULL || !r->privilege_drop || stat(path, &st) == -1 ||
	    (pw = getpwnam(r->user)) == NULL || can_read(pw, &st))
		return true;
	doctor_say(d, VERDICT_FAULT, SSH,
	    "%s (%s in [gitserver]): the account of the dispatcher, %s, cannot "
	    "read it, so repositories over SSH are cloned without it: chgrp "
	    "the file to a group of that account, and chmod g+r it",
	    path, setting, pw->pw_name);
	return false;
}

void
doctor_ssh(struct doctor *d)
{
	const struct settings_gitserver *g = &d->admin->set.gitserver;
	struct ssh_hosts hosts = { .n = 0 };
	const struct ssh_host *host;
	const struct err *e;
	size_t missing = 0;
	bool found;

	if (!d->schema)
		return;
	e = hosts_find(d, &hosts);
	for (host = hosts.item; e == NULL && host < hosts.item + hosts.n;
	     host++) {
		e = host_look(d, host->name, &found);
		if (e == NULL && !found) {
			host_say(d, host);
			missing++;
		}
	}
	if (hosts.n > 0) {
		missing += !file_try(d, "ssh_known_hosts", g->ssh_known_hosts);
		missing += !file_try(d, "ssh_key_file", g->ssh_key_file);
	}
	if (e != NULL)
		doctor_say(d, VERDICT_FAULT, SSH, "%s", doctor_words(e));
	else if (hosts.n > 0 && missing == 0)
		doctor_say(d, VERDICT_OK, SSH,
		    "a key of every host is known (%zu)", hosts.n);
}
