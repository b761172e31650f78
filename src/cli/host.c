/* SPDX-License-Identifier: ISC */
#include "cli/host.h"

#include <sys/stat.h>

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/child.h"
#include "core/address.h"
#include "core/file.h"
#include "core/str.h"

#define FILE_MAX ((size_t)1 << 20)
#define TOKEN_MAX ((size_t)4096)

static const struct {
	const char *name;
	size_t offset;
} keys[] = {
	{ "token", offsetof(struct host, token) },
	{ "token_command", offsetof(struct host, token_command) },
	{ "cacert", offsetof(struct host, cacert) },
};
#define KEYS (sizeof(keys) / sizeof(keys[0]))

/* The lines of the file, and the one that is being read. */
struct lines {
	struct arena *a;
	const char *next;
	const char *line; /* without blanks around it */
	int number;
};

static bool
line_next(struct lines *l)
{
	size_t len = strcspn(l->next, "\n"), end = len, start = 0;

	if (*l->next == '\0')
		return false;
	while (end > 0 && isspace((unsigned char)l->next[end - 1]))
		end--;
	while (start < end && isspace((unsigned char)l->next[start]))
		start++;
	l->line = arena_strndup(l->a, l->next + start, end - start);
	l->next += len + (l->next[len] == '\n');
	l->number++;
	return true;
}

/* "[name]" -> name; NULL if it is no header of a section. */
static const char *
header_read(const struct lines *l)
{
	const size_t len = strlen(l->line);

	return *l->line == '[' && len > 2 && l->line[len - 1] == ']' ?
	    arena_strndup(l->a, l->line + 1, len - 2) :
	    NULL;
}

/* Whether the line sets that key; `value` is what follows the sign. */
static bool
line_sets(const char *line, const char *key, const char **value)
{
	const size_t len = strlen(key);

	*value = line + len;
	if (strncmp(line, key, len) != 0)
		return false;
	*value += strspn(*value, " \t");
	if (**value != '=')
		return false;
	*value += 1 + strspn(*value + 1, " \t");
	return true;
}

/* The path of the file. */
static const struct err *
host_file(struct arena *a, const char **out)
{
	const char *base = getenv("XDG_CONFIG_HOME");
	const char *home = getenv("HOME");

	*out = NULL;
	if (base != NULL && *base == '/')
		*out = arena_printf(a, "%s/slipway/config", base);
	else if (home != NULL && *home == '/')
		*out = arena_printf(a, "%s/.config/slipway/config", home);
	else
		return err_public(ERR_CONFIG,
		    "HOME is not set: set it, or XDG_CONFIG_HOME");
	return NULL;
}

/* Reads the file, empty if it does not exist. */
static const struct err *
file_read(struct arena *a, const char *path, const char **out)
{
	const struct err *e = NULL;
	struct buf text;
	struct stat st;
	int fd;

	*out = "";
	if ((fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY)) == -1)
		return errno == ENOENT ? NULL : err_errno("%s", path);
	buf_init(&text, FILE_MAX);
	if (fstat(fd, &st) == -1)
		e = err_errno("%s", path);
	else if ((st.st_mode & (S_IRWXG | S_IRWXO)) != 0)
		e = err_public(ERR_CONFIG,
		    "%s: other users can read it: chmod 0600 it", path);
	else if ((e = file_rest(fd, &text)) != NULL)
		e = err_wrap(e, "%s", path);
	else
		*out = arena_strndup(a, text.data == NULL ? "" : text.data,
		    text.len);
	(void)close(fd);
	buf_wipe(&text);
	return e;
}

const struct err *
host_url(struct arena *a, const char *text, const char **out)
{
	struct address ad;

	*out = NULL;
	if (!address_read(text, &ad) || !address_is_web(&ad) ||
	    ad.user_len != 0 || (*ad.path != '\0' && strcmp(ad.path, "/") != 0))
		return err_public(ERR_CONFIG,
		    "\"%s\" is not the URL of a service: it must have the form "
		    "https://deploy.example.org",
		    address_public(a, text));
	if (ad.scheme == ADDRESS_HTTP && !address_is_loopback(&ad))
		return err_public(ERR_CONFIG,
		    "%s: slipway sends no token without TLS: use https",
		    address_public(a, text));
	*out = address_origin(a, &ad);
	return NULL;
}

bool
host_is_here(const char *url)
{
	struct address ad;

	return address_read(url, &ad) && address_is_loopback(&ad);
}

static const struct err *
line_wrong(const char *path, int number, const char *what)
{
	return err_public(ERR_CONFIG, "%s:%d: %s", path, number, what);
}

/* Sets the member that a line is for; false if it is for none. */
static bool
key_read(struct host *h, const char *line)
{
	const char *value;
	size_t i;

	for (i = 0; i < KEYS; i++)
		if (line_sets(line, keys[i].name, &value)) {
			*(const char **)(void *)((char *)h +
			    keys[i].offset) = value;
			return true;
		}
	return false;
}

/* Reads all services; none if the file does not exist. */
static const struct err *
host_list(struct arena *a, struct list *out)
{
	struct lines l = { .a = a };
	const char *path, *section;
	const struct err *e;
	struct host *host;

	*out = (struct list){ .items = NULL };
	if ((e = host_file(a, &path)) != NULL ||
	    (e = file_read(a, path, &l.next)) != NULL)
		return e;
	host = arena_alloc(a, strlen(l.next) / 3 + 1, sizeof(*host));
	out->items = host;
	while (line_next(&l)) {
		if (*l.line == '\0' || *l.line == '#')
			continue;
		if ((section = header_read(&l)) != NULL) {
			if ((e = host_url(a, section, &host[out->n].url)) !=
			    NULL)
				return err_public(ERR_CONFIG, "%s:%d: %s", path,
				    l.number, err_words(e));
			out->n++;
		} else if (out->n == 0) {
			return line_wrong(path, l.number,
			    "must be below a section: [https://HOST]");
		} else if (!key_read(&host[out->n - 1], l.line)) {
			return line_wrong(path, l.number,
			    "must set token, token_command or cacert");
		}
	}
	return NULL;
}

/* Finds the service that a URL or the host alone names; NULL = none. */
static const struct host *
host_find(const struct list *hosts, const char *name)
{
	const struct host *h = hosts->items;
	const char *alone;
	size_t i;

	for (i = 0; i < hosts->n; i++) {
		alone = strstr(h[i].url, "://") + 3;
		if (str_eq(h[i].url, name) || str_eq(alone, name))
			return &h[i];
	}
	return NULL;
}

const struct err *
host_choose(struct arena *a, const char *name, struct host *out)
{
	const char *token = getenv("SLIPWAY_TOKEN");
	const char *cacert = getenv("SLIPWAY_CACERT");
	const struct host *known;
	const struct err *e;
	struct list hosts;

	*out = (struct host){ .url = NULL };
	if (name == NULL)
		name = getenv("SLIPWAY_URL");
	if ((e = host_list(a, &hosts)) != NULL)
		return e;
	if (name == NULL || *name == '\0') {
		if (hosts.n == 0)
			return err_public(ERR_CONFIG,
			    "no service is configured: sign in with \"slipway "
			    "auth login URL\", or set SLIPWAY_URL "
			    "and SLIPWAY_TOKEN");
		*out = *(const struct host *)hosts.items;
	} else if ((known = host_find(&hosts, name)) != NULL) {
		*out = *known;
	} else {
		if ((e = host_url(a,
			 strstr(name, "://") != NULL ?
			     name :
			     arena_printf(a, "https://%s", name),
			 &out->url)) != NULL)
			return e;
		if ((known = host_find(&hosts, out->url)) != NULL)
			*out = *known;
	}
	if (token != NULL && *token != '\0') {
		out->token = token;
		out->token_command = NULL;
	}
	if (cacert != NULL && *cacert != '\0')
		out->cacert = cacert;
	return NULL;
}

const struct err *
host_token(struct arena *a, struct host *h)
{
	const char *argv[] = { "/bin/sh", "-c", h->token_command, NULL };
	const struct err *e;
	struct buf out;
	int status;

	if (h->token != NULL || h->token_command == NULL)
		return NULL;
	buf_init(&out, TOKEN_MAX);
	if ((e = child_output(argv, false, &out, &status)) != NULL)
		e = err_wrap(e, "token_command of %s", h->url);
	else if (status != 0 || out.len == 0)
		e = err_public(ERR_CONFIG,
		    "the token_command of %s printed no token (exit status "
		    "%d)",
		    h->url, status);
	else
		h->token = arena_strndup(a, out.data,
		    strcspn(out.data, "\r\n"));
	buf_wipe(&out);
	return e;
}

/* Creates the directories above a file, for the user alone. */
static const struct err *
parents_make(struct arena *a, const char *path)
{
	char *slash, *text = arena_strdup(a, path);

	for (slash = strchr(text + 1, '/'); slash != NULL;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(text, S_IRWXU) == -1 && errno != EEXIST)
			return err_errno("%s", text);
		*slash = '/';
	}
	return NULL;
}

/* Replaces the file at once, so that a reader sees the old or the new one. */
static const struct err *
file_write(struct arena *a, const char *path, const struct buf *text)
{
	const char *temporary = arena_printf(a, "%s.new", path);
	const struct err *e;
	int fd;

	if ((e = parents_make(a, path)) != NULL)
		return e;
	if (unlink(temporary) == -1 && errno != ENOENT)
		return err_errno("%s", temporary);
	fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
	    S_IRUSR | S_IWUSR);
	if (fd == -1)
		return err_errno("%s", temporary);
	if ((e = file_store(fd, text->data, text->len)) == NULL &&
	    fsync(fd) == -1)
		e = err_errno("%s", temporary);
	if (close(fd) == -1 && e == NULL)
		e = err_errno("%s", temporary);
	if (e == NULL && rename(temporary, path) == -1)
		e = err_errno("%s", path);
	if (e != NULL)
		(void)unlink(temporary);
	return e;
}

/* Copies the file without the section of that service, and says whether it had
 * one.  `kept` gets the lines of the section that set no key. */
static bool
copy_others(struct lines *l, const char *url, struct buf *out, struct buf *kept)
{
	struct host ignored;
	const char *section, *start, *origin;
	bool in_it = false, found = false;

	for (start = l->next; line_next(l); start = l->next) {
		section = header_read(l);
		if (section != NULL) {
			in_it = host_url(l->a, section, &origin) == NULL &&
			    str_eq(origin, url);
			found = found || in_it;
		}
		if (!in_it)
			buf_add(out, start, (size_t)(l->next - start));
		else if (section == NULL && !key_read(&ignored, l->line))
			buf_add(kept, start, (size_t)(l->next - start));
	}
	return found;
}

static void
section_add(struct buf *out, const struct host *h, const struct buf *kept)
{
	const char *value;
	size_t i;

	if (out->len > 0 && out->data[out->len - 1] != '\n')
		buf_putc(out, '\n');
	buf_printf(out, "[%s]\n", h->url);
	for (i = 0; i < KEYS; i++) {
		value = *(const char *const *)(const void *)((const char *)h +
		    keys[i].offset);
		if (value != NULL)
			buf_printf(out, "%s = %s\n", keys[i].name, value);
	}
	if (kept->len > 0)
		buf_add(out, kept->data, kept->len);
}

/* Writes the file without a service, and with `h` if that is not NULL. */
static const struct err *
file_change(struct arena *a, const char *url, const struct host *h)
{
	struct lines l = { .a = a };
	struct buf text, kept;
	const struct err *e;
	const char *path;
	bool found;

	if ((e = host_file(a, &path)) != NULL ||
	    (e = file_read(a, path, &l.next)) != NULL)
		return e;
	buf_init(&text, FILE_MAX);
	buf_init(&kept, FILE_MAX);
	found = copy_others(&l, url, &text, &kept);
	if (h != NULL)
		section_add(&text, h, &kept);
	if (h == NULL && !found)
		e = err_public(ERR_NOTFOUND, "%s has no section for %s", path,
		    url);
	else if ((e = buf_check(&text)) == NULL)
		e = file_write(a, path, &text);
	buf_wipe(&text);
	buf_wipe(&kept);
	return e;
}

const struct err *
host_save(struct arena *a, const struct host *h)
{
	return file_change(a, h->url, h);
}

const struct err *
host_remove(struct arena *a, const char *url)
{
	return file_change(a, url, NULL);
}
