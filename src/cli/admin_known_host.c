/* SPDX-License-Identifier: ISC */
/* Host keys of Git servers, in the file that gitserver.ssh_known_hosts names. */
#include <ctype.h>
#include <err.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/admin.h"
#include "cli/admin_known_hosts.h"
#include "cli/child.h"
#include "cli/prompt.h"
#include "core/address.h"
#include "core/str.h"

#define SCAN_MAX ((size_t)1 << 20)
#define SCAN_SECONDS "20" /* for ssh-keyscan to wait */
#define KEYS 16           /* of one host */
#define PORT 22

struct host {
	struct arena *a;
	const char *file; /* of host keys */
	const char *word; /* as given */
	const char *address;
	int64_t port;
	const char *name; /* in the file */
};

/* A key that the host presents. */
struct presented {
	struct known_host key;
	bool is_chosen; /* its fingerprint was given */
	bool is_known;
};

struct keys {
	struct presented item[KEYS];
	size_t n;
};

/* Reads HOST, HOST:PORT, or the address of a repository. */
static const struct err *
name_read(struct host *host, const char *word)
{
	char *address, *p;
	struct address ad;
	bool brackets;

	if (!address_read_host(word, strlen(word), &ad) &&
	    !(address_read(word, &ad) && address_is_ssh(&ad)))
		return err_public(ERR_METHOD,
		    "%s: must be HOST, HOST:PORT or the address of a "
		    "repository over SSH",
		    address_public(host->a, word));
	brackets = ad.host[0] == '[';
	host->word = word;
	address = arena_strndup(host->a, ad.host + (brackets ? 1 : 0),
	    ad.host_len - (brackets ? 2 : 0));
	/* some resolvers know "localhost" in this case only */
	for (p = address; *p != '\0'; p++)
		*p = (char)tolower((unsigned char)*p);
	host->address = address;
	host->port = ad.port == 0 ? PORT : ad.port;
	host->name = known_hosts_name(host->a, &ad);
	return NULL;
}

static const struct err *
host_begin(struct admin *admin, struct host *host, const char *word)
{
	const char *path = admin->set.gitserver.ssh_known_hosts;
	const struct err *e;

	*host = (struct host){ .a = admin->a };
	if (path == NULL)
		return err_public(ERR_CONFIG,
		    "no file of host keys is configured: set ssh_known_hosts "
		    "in [gitserver] in %s, for example to "
		    "/etc/slipway/known_hosts, and reload the services",
		    admin->conf);
	if (word != NULL && (e = name_read(host, word)) != NULL)
		return e;
	return known_hosts_file(host->a, path, &host->file);
}

static const struct err *
keys_scan(const struct host *host, struct keys *out)
{
	const char *const argv[] = { "ssh-keyscan", "-T", SCAN_SECONDS, "-p",
		arena_printf(host->a, "%lld", (long long)host->port),
		host->address, NULL };
	char *rest, *line;
	const struct err *e;
	struct buf text;
	int status;

	out->n = 0;
	buf_init(&text, SCAN_MAX);
	e = child_output(argv, true, &text, &status);
	rest = e == NULL ? text.data : NULL;
	while ((line = strsep(&rest, "\n")) != NULL && out->n < KEYS) {
		struct presented *one = &out->item[out->n];

		*one = (struct presented){ .is_known = false };
		if (known_host_parse(host->a, line, &one->key) &&
		    one->key.marker[0] == '\0')
			out->n++;
	}
	if (e == NULL && status == 127)
		e = err_public(ERR_CONFIG,
		    "ssh-keyscan cannot be run: install openssh-client");
	else if (e == NULL && out->n == 0)
		e = err_public(ERR_UPSTREAM,
		    "%s port %lld presents no host key: check that its SSH "
		    "server can be reached from here",
		    host->address, (long long)host->port);
	buf_release(&text);
	return e;
}

/* A second key of the same type would hide that another host responds. */
static const struct err *
key_compare(const struct host *host, const struct known_host *known,
    struct presented *one)
{
	const bool is_same = str_eq(known->key, one->key.key);

	if (str_eq(known->marker, "@cert-authority"))
		return NULL;
	if (str_eq(known->marker, "@revoked"))
		return !is_same ?
		    NULL :
		    err_public(ERR_CONFLICT,
			"line %lld of %s revokes the %s key that %s presents",
			(long long)known->line, host->file, one->key.type,
			host->name);
	if (is_same)
		one->is_known = true;
	else if (str_eq(known->type, one->key.type))
		return err_public(ERR_CONFLICT,
		    "line %lld of %s has another %s key of %s (%s): if its "
		    "operator has changed it, run slipway-admin known-host "
		    "remove %s first",
		    (long long)known->line, host->file, known->type, host->name,
		    known->fingerprint, host->word);
	return NULL;
}

/* Finds which keys are known. */
static const struct err *
keys_compare(const struct host *host, struct keys *keys)
{
	const struct known_host *known;
	const struct err *e;
	struct list list;
	size_t i, j;

	e = known_hosts_find(host->a, host->file, host->name, &list);
	known = list.items;
	for (i = 0; i < list.n && e == NULL; i++)
		for (j = 0; j < keys->n && e == NULL; j++)
			e = key_compare(host, &known[i], &keys->item[j]);
	return e;
}

/* Leaves only keys with the given fingerprints, all of which must be there. */
static const struct err *
keys_choose(const struct host *host, const struct option_list *prints,
    struct keys *keys)
{
	bool found;
	size_t i, j;

	for (j = 0; j < keys->n; j++)
		keys->item[j].is_chosen = prints->n == 0;
	for (i = 0; i < prints->n; i++) {
		found = false;
		for (j = 0; j < keys->n; j++)
			if (str_eq(prints->item[i],
				keys->item[j].key.fingerprint))
				found = keys->item[j].is_chosen = true;
		if (!found)
			return err_public(ERR_CONFLICT,
			    "%s presents no key with the fingerprint %s: "
			    "nothing was added",
			    host->name, prints->item[i]);
	}
	return NULL;
}

static void
keys_print(const struct host *host, const struct keys *keys)
{
	const struct presented *one;

	(void)printf("%s presents these host keys:\n", host->name);
	for (one = keys->item; one < keys->item + keys->n; one++)
		(void)printf("  %-20s %s%s\n", one->key.type,
		    one->key.fingerprint, one->is_known ? " (known)" : "");
	(void)fflush(stdout);
}

/* The lines of chosen keys that are not known; "" = none. */
static const char *
keys_lines(const struct host *host, const struct keys *keys)
{
	const struct presented *one;
	const char *out = "";

	for (one = keys->item; one < keys->item + keys->n; one++)
		if (one->is_chosen && !one->is_known)
			out = arena_printf(host->a, "%s%s %s %s\n", out,
			    host->name, one->key.type, one->key.key);
	return out;
}

/* Another process may have changed the file since the question. */
static const struct err *
keys_store(const struct host *host, struct keys *keys)
{
	const struct err *e;
	const char *lines;
	int lock = -1;

	if ((e = known_hosts_lock(host->a, host->file, &lock)) == NULL &&
	    (e = keys_compare(host, keys)) == NULL &&
	    *(lines = keys_lines(host, keys)) != '\0')
		e = known_hosts_append(host->a, host->file, lines);
	if (lock != -1)
		(void)close(lock);
	return e;
}

const struct err *
admin_known_host_add(void *context, struct command_call *call)
{
	const struct admin_known_host *options = call->options;
	const struct err *e;
	struct host host;
	struct keys keys;
	bool yes = options->yes;

	if (yes && options->fingerprint.n == 0)
		return err_public(ERR_METHOD,
		    "--yes requires --fingerprint, so that the key is "
		    "verified");
	if ((e = host_begin(context, &host, call->word[0])) != NULL ||
	    (e = keys_scan(&host, &keys)) != NULL)
		return e;
	e = keys_compare(&host, &keys);
	keys_print(&host, &keys);
	if (e != NULL ||
	    (e = keys_choose(&host, &options->fingerprint, &keys)) != NULL)
		return e;
	if (*keys_lines(&host, &keys) == '\0') {
		(void)printf("%s contains these keys\n", host.file);
		return NULL;
	}
	if (!yes &&
	    (e = prompt_confirm(host.a,
		 "Compare the fingerprints with those that the operator of "
		 "the host publishes. Add the keys (yes/no)?",
		 &yes)) != NULL)
		return e;
	if (!yes)
		return err_public(ERR_CONFLICT, "nothing was added");
	if ((e = keys_store(&host, &keys)) != NULL)
		return e;
	(void)printf("added to %s\n", host.file);
	return NULL;
}

const struct err *
admin_known_host_list(void *context, struct command_call *call)
{
	const struct known_host *known;
	const struct err *e;
	struct host host;
	struct list list;
	size_t i;

	(void)call;
	if ((e = host_begin(context, &host, NULL)) != NULL ||
	    (e = known_hosts_all(host.a, host.file, &list)) != NULL)
		return e;
	known = list.items;
	for (i = 0; i < list.n; i++)
		(void)printf("%s%s%s\t%s\t%s\n",
		    str_visible(host.a, known[i].marker),
		    known[i].marker[0] == '\0' ? "" : " ",
		    known[i].names[0] == '|' ?
			"(hashed)" :
			str_visible(host.a, known[i].names),
		    known[i].type, known[i].fingerprint);
	return NULL;
}

/* A line that names other hosts as well, or a pattern, is not removed. */
static const struct err *
shared_find(const struct host *host, const struct list *list)
{
	const struct known_host *known = list->items;
	size_t i;

	for (i = 0; i < list->n; i++)
		if (known[i].marker[0] != '\0' ||
		    strpbrk(known[i].names, ",*?!") != NULL)
			return err_public(ERR_CONFLICT,
			    "line %lld of %s is not only for %s: edit the file",
			    (long long)known[i].line, host->file, host->name);
	return NULL;
}

const struct err *
admin_known_host_remove(void *context, struct command_call *call)
{
	const struct err *e;
	struct host host;
	struct list list;
	int lock = -1;

	if ((e = host_begin(context, &host, call->word[0])) != NULL ||
	    (e = known_hosts_lock(host.a, host.file, &lock)) != NULL ||
	    (e = known_hosts_find(host.a, host.file, host.name, &list)) !=
		NULL ||
	    (e = shared_find(&host, &list)) != NULL)
		goto out;
	if (list.n == 0)
		e = err_public(ERR_NOTFOUND, "%s has no key of %s", host.file,
		    host.name);
	else
		e = known_hosts_remove(host.a, host.file, &list);
	if (e == NULL)
		(void)printf("removed %zu keys of %s from %s\n", list.n,
		    host.name, host.file);
out:
	if (lock != -1)
		(void)close(lock);
	return e;
}
