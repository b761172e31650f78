/* SPDX-License-Identifier: ISC */
#include "cli/admin_known_hosts.h"

#include <sys/file.h>
#include <sys/stat.h>

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/child.h"
#include "core/address.h"
#include "core/file.h"
#include "core/num.h"
#include "core/str.h"
#include "crypto/ssh_key.h"

#define FILE_MAX ((size_t)4 << 20)
#define PORT 22
#define BLANKS " \t\r"
#define FOUND " found: line "

/* The next word of a line; NULL = there is none. */
static char *
word_take(char **rest)
{
	char *word;

	do
		word = strsep(rest, BLANKS);
	while (word != NULL && *word == '\0');
	return word;
}

bool
known_host_parse(struct arena *a, const char *line, struct known_host *out)
{
	char *rest = arena_strdup(a, line), *word = word_take(&rest);

	*out = (struct known_host){ .marker = "" };
	if (word != NULL && *word == '@') {
		out->marker = word;
		word = word_take(&rest);
	}
	out->names = word;
	out->type = word_take(&rest);
	out->key = word_take(&rest);
	if (word == NULL || *word == '#' || out->key == NULL)
		return false;
	out->fingerprint = ssh_key_fingerprint(a, out->key, strlen(out->key));
	return out->fingerprint != NULL &&
	    str_matches(out->type, "[A-Za-z0-9][A-Za-z0-9@.-]{0,99}");
}

const char *
known_hosts_name(struct arena *a, const struct address *ad)
{
	const bool brackets = ad->host[0] == '[';
	char *name = arena_strndup(a, ad->host + (brackets ? 1 : 0),
		 ad->host_len - (brackets ? 2 : 0)),
	     *at;

	for (at = name; *at != '\0'; at++)
		*at = (char)tolower((unsigned char)*at);
	return ad->port == 0 || ad->port == PORT ?
	    name :
	    arena_printf(a, "[%s]:%lld", name, (long long)ad->port);
}

const struct err *
known_hosts_file(struct arena *a, const char *path, const char **out)
{
	char real[PATH_MAX];
	struct stat st;

	*out = path;
	if (realpath(path, real) != NULL)
		*out = arena_strdup(a, real);
	else if (errno != ENOENT)
		return err_errno("%s", path);
	else if (lstat(path, &st) == 0)
		return err_public(ERR_CONFIG,
		    "%s is a symbolic link to a file that does not exist: "
		    "create that file or remove the link",
		    path);
	return NULL;
}

static const char *
folder_of(struct arena *a, const char *file)
{
	const char *slash = strrchr(file, '/');

	if (slash == NULL)
		return ".";
	return slash == file ? "/" :
			       arena_strndup(a, file, (size_t)(slash - file));
}

/* The file itself is replaced, so its folder has the lock. */
const struct err *
known_hosts_lock(struct arena *a, const char *file, int *out)
{
	const char *folder = folder_of(a, file);

	*out = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*out == -1)
		return err_errno("%s", folder);
	while (flock(*out, LOCK_EX) == -1)
		if (errno != EINTR)
			return err_errno("%s: lock", folder);
	return NULL;
}

/* Appends the content; nothing if the file does not exist. */
static const struct err *
load(const char *file, struct buf *out)
{
	const struct err *e = file_load(file, out);

	return e != NULL && e->code == ERR_NOTFOUND ? NULL : e;
}

static size_t
lines_count(const char *text)
{
	size_t n = 1;

	for (; *text != '\0'; text++)
		n += *text == '\n';
	return n;
}

const struct err *
known_hosts_all(struct arena *a, const char *file, struct list *out)
{
	struct known_host *items;
	const struct err *e;
	char *rest, *line;
	struct buf text;
	int64_t number;

	*out = (struct list){ .items = NULL };
	buf_init(&text, FILE_MAX);
	if ((e = load(file, &text)) == NULL && text.len > 0) {
		out->items = items = arena_alloc(a, lines_count(text.data),
		    sizeof(*items));
		rest = text.data;
		for (number = 1; (line = strsep(&rest, "\n")) != NULL; number++)
			if (known_host_parse(a, line, &items[out->n]))
				items[out->n++].line = number;
	}
	buf_release(&text);
	return e;
}

/* Reads what ssh-keygen -F prints: "# Host NAME found: line N", then the
 * line. */
static void
found_read(struct arena *a, char *rest, struct list *out)
{
	struct known_host *items;
	char *line, *at;
	int64_t number = 0;

	out->items = items = arena_alloc(a, lines_count(rest), sizeof(*items));
	while ((line = strsep(&rest, "\n")) != NULL) {
		at = *line == '#' ? strstr(line, FOUND) : NULL;
		if (at != NULL) {
			at += strlen(FOUND);
			at[strcspn(at, " ")] = '\0';
			if (!num_parse(at, 1, (int64_t)FILE_MAX, &number))
				number = 0;
		} else if (number != 0 &&
		    known_host_parse(a, line, &items[out->n])) {
			items[out->n++].line = number;
			number = 0;
		}
	}
}

const struct err *
known_hosts_find(struct arena *a, const char *file, const char *name,
    struct list *out)
{
	const char *const argv[] = { "ssh-keygen", "-F", name, "-f", file,
		NULL };
	const struct err *e;
	struct buf text;
	int status;

	*out = (struct list){ .items = NULL };
	if (access(file, F_OK) == -1 && errno == ENOENT)
		return NULL;
	buf_init(&text, FILE_MAX);
	e = child_output(argv, true, &text, &status);
	if (e == NULL && status == 127)
		e = err_public(ERR_CONFIG,
		    "ssh-keygen cannot be run: install openssh-client");
	else if (e == NULL && status > 1)
		e = err_public(ERR_CONFIG, "ssh-keygen cannot read %s", file);
	else if (e == NULL && text.len > 0)
		found_read(a, text.data, out);
	buf_release(&text);
	return e;
}

/* Gives the new file the owner and the mode of the old one. */
static const struct err *
fill(int fd, const char *file, const struct buf *content)
{
	struct stat old;

	if (stat(file, &old) == -1) {
		if (errno != ENOENT)
			return err_errno("%s", file);
		old.st_mode = 0644;
	} else if (fchown(fd, old.st_uid, old.st_gid) == -1) {
		return err_errno("%s: owner", file);
	}
	if (fchmod(fd, old.st_mode & 07777) == -1)
		return err_errno("%s: mode", file);
	return file_store(fd, content->data, content->len);
}

static const struct err *
replace(struct arena *a, const char *file, const struct buf *content)
{
	const char *fresh = arena_printf(a, "%s.new", file);
	const struct err *e;
	int fd;

	if (unlink(fresh) == -1 && errno != ENOENT)
		return err_errno("%s", fresh);
	fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
	    0600);
	if (fd == -1)
		return err_errno("%s", fresh);
	if ((e = fill(fd, file, content)) == NULL && fsync(fd) == -1)
		e = err_errno("%s", fresh);
	if (close(fd) == -1 && e == NULL)
		e = err_errno("%s", fresh);
	if (e == NULL && rename(fresh, file) == -1)
		e = err_errno("%s", file);
	if (e != NULL)
		(void)unlink(fresh);
	return e;
}

const struct err *
known_hosts_append(struct arena *a, const char *file, const char *lines)
{
	const struct err *e;
	struct buf text;

	buf_init(&text, FILE_MAX);
	if ((e = load(file, &text)) == NULL) {
		if (text.len > 0 && text.data[text.len - 1] != '\n')
			buf_putc(&text, '\n');
		buf_puts(&text, lines);
		if ((e = buf_check(&text)) == NULL)
			e = replace(a, file, &text);
	}
	buf_release(&text);
	return e;
}

static bool
has_line(const struct list *list, int64_t line)
{
	const struct known_host *one = list->items;
	size_t i;

	for (i = 0; i < list->n && one[i].line != line; i++)
		;
	return i < list->n;
}

const struct err *
known_hosts_remove(struct arena *a, const char *file, const struct list *list)
{
	struct buf old, fresh;
	const struct err *e;
	int64_t number = 0;
	const char *at, *end;

	buf_init(&old, FILE_MAX);
	buf_init(&fresh, FILE_MAX);
	if ((e = load(file, &old)) != NULL)
		goto out;
	for (at = old.data; at != NULL && *at != '\0'; at = end) {
		end = at + strcspn(at, "\n");
		end += *end == '\n';
		if (!has_line(list, ++number))
			buf_add(&fresh, at, (size_t)(end - at));
	}
	if ((e = buf_check(&fresh)) == NULL)
		e = replace(a, file, &fresh);
out:
	buf_release(&old);
	buf_release(&fresh);
	return e;
}
