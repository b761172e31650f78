/* SPDX-License-Identifier: ISC */
#include "core/conf.h"

#include <sys/stat.h>

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/buf.h"
#include "core/file.h"
#include "core/log.h"
#include "core/num.h"
#include "core/str.h"

#define FILE_MAX ((size_t)1 << 20)
#define FAULT_TEXT 480
#define BYTE_ORDER_MARK "\xef\xbb\xbf" /* some editors write one */

struct reader {
	struct arena *a;
	const struct conf_key *keys;
	const char *path;
	unsigned how;
	void *out;
	struct buf faults;
};

static void
fault(struct reader *r, const char *where, const char *what, const char *name)
{
	struct buf line;

	buf_init(&line, FAULT_TEXT);
	buf_printf(&line, "%s%s: %s: %s", r->faults.len > 0 ? "\n" : "", where,
	    name, what);
	buf_add(&r->faults, line.data, line.len);
	buf_release(&line);
}

/* Reads a small file whole; ERR_NOTFOUND if it does not exist. */
static const struct err *
slurp(struct arena *a, const char *path, unsigned how, char **out)
{
	const struct err *e = NULL;
	struct stat st;
	struct buf text;
	int fd;

	*out = NULL;
	buf_init(&text, FILE_MAX);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY)) == -1) {
		if (errno == ENOENT)
			return err_new(ERR_NOTFOUND, "%s: no such file", path);
		return err_errno("%s", path);
	}
	if (fstat(fd, &st) == -1) {
		e = err_errno("%s", path);
		goto out;
	}
	if ((how & CONF_ROOT_OWNED) != 0 &&
	    (st.st_uid != 0 || (st.st_mode & (S_IWGRP | S_IWOTH)) != 0)) {
		e = err_public(ERR_CONFIG,
		    "%s: must belong to root and be writable only by root",
		    path);
		goto out;
	}
	e = file_rest(fd, &text);
	if (e != NULL && e->code == ERR_TOO_LARGE)
		e = err_public(ERR_CONFIG, "%s: larger than 1 MiB", path);
	else if (e != NULL)
		e = err_wrap(e, "%s", path);
	else if (text.len > 0 && memchr(text.data, '\0', text.len) != NULL)
		e = err_public(ERR_CONFIG, "%s: contains a NUL byte", path);
	else
		*out = arena_strndup(a, text.data == NULL ? "" : text.data,
		    text.len);
out:
	(void)close(fd);
	buf_release(&text);
	return e;
}

static bool
is_value(const char *const *values, const char *text)
{
	for (; *values != NULL; values++)
		if (strcmp(*values, text) == 0)
			return true;
	return false;
}

static const char *
set_string(struct reader *r, const struct conf_key *k, const char *text)
{
	struct buf choices;
	const char *const *v;
	const char *what = NULL;
	void *at;

	if ((k->flags & CONF_PATH) != 0 && text[0] != '/')
		return "must be an absolute path";
	if (k->check != NULL && (what = k->check(text)) != NULL)
		return what;
	if (k->values != NULL && !is_value(k->values, text)) {
		buf_init(&choices, FAULT_TEXT);
		buf_puts(&choices, "must be one of");
		for (v = k->values; *v != NULL; v++)
			buf_printf(&choices, " %s", *v);
		what = arena_strdup(r->a, choices.data);
		buf_release(&choices);
		return what;
	}
	at = (char *)r->out + k->offset;
	*(const char **)at = arena_strdup(r->a, text);
	return NULL;
}

static const char *
set_number(struct reader *r, const struct conf_key *k, const char *text)
{
	int64_t *out = (int64_t *)(void *)((char *)r->out + k->offset);
	int64_t value = 0;
	bool ok;

	if (k->type == C_MODE) {
		ok = text[0] != '\0' && strlen(text) <= 5;
		for (; ok && *text != '\0'; text++) {
			ok = *text >= '0' && *text <= '7';
			value = value * 8 + (*text - '0');
		}
		ok = ok && value >= k->min && value <= k->max;
		if (!ok)
			return "must be an octal mode like 0660";
	} else if (k->type == C_SIZE) {
		ok = num_parse_size(text, k->min, k->max, &value);
	} else {
		ok = num_parse(text, k->min, k->max, &value);
	}
	if (!ok)
		return arena_printf(r->a, "must be %s from %lld to %lld",
		    k->type == C_SIZE ? "a size (with an optional k, m or g)" :
			k->type == C_SECONDS ? "a number of seconds" :
					       "a number",
		    (long long)k->min, (long long)k->max);
	*out = value;
	return NULL;
}

/* Sets one key; returns NULL, or what is wrong with the value. */
static const char *
set(struct reader *r, const struct conf_key *k, const char *text)
{
	switch (k->type) {
	case C_STR:
	case C_LIST:
		return set_string(r, k, text);
	case C_BOOL:
		if (strcmp(text, "yes") != 0 && strcmp(text, "no") != 0)
			return "must be yes or no";
		*(bool *)((char *)r->out + k->offset) = text[0] == 'y';
		return NULL;
	case C_INT:
	case C_SIZE:
	case C_SECONDS:
	case C_MODE:
		return set_number(r, k, text);
	case C_GONE:
		return NULL;
	case C_MAP:
		break;
	}
	return "cannot be set";
}

static void
set_secret_file(struct reader *r, const struct conf_key *k, const char *where,
    const char *file)
{
	const struct err *e;
	const char *what;
	char *text;

	if ((r->how & CONF_NO_SECRETS) != 0)
		return;
	if (file[0] != '/') {
		fault(r, where, "must be an absolute path", k->name);
		return;
	}
	if ((e = slurp(r->a, file, 0, &text)) != NULL) {
		fault(r, where, e->msg, k->name);
		return;
	}
	text[strcspn(text, "\r\n")] = '\0';
	if ((what = set(r, k, text)) != NULL)
		fault(r, where, what, k->name);
}

static void
map_add(struct reader *r, const struct conf_key *k, const char *key,
    const char *value)
{
	struct conf_map *m = (struct conf_map *)(void *)((char *)r->out +
	    k->offset);
	struct conf_pair *grown;

	if ((m->n & (m->n - 1)) == 0) { /* full: double its size */
		grown = arena_alloc(r->a, 2 * m->n + 1, sizeof(*grown));
		if (m->n > 0)
			(void)memcpy(grown, m->items, m->n * sizeof(*grown));
		m->items = grown;
	}
	m->items[m->n].key = arena_strdup(r->a, key);
	m->items[m->n].value = arena_strdup(r->a, value);
	m->n++;
}

static bool
known_name(const struct conf_key *k, const char *name)
{
	for (; k->section != NULL; k++)
		if (k->name != NULL && strcmp(k->name, name) == 0)
			return true;
	return false;
}

static bool
known_section(const struct conf_key *k, const char *section)
{
	for (; k->section != NULL; k++)
		if (strcmp(k->section, section) == 0)
			return true;
	return false;
}

static void
assign(struct reader *r, const char *where, const char *section,
    const char *name, const char *value)
{
	const struct conf_key *k;
	const char *what;
	size_t len;

	for (k = r->keys; k->section != NULL; k++) {
		if (strcmp(k->section, section) != 0)
			continue;
		if (k->type == C_MAP) {
			map_add(r, k, name, value);
			return;
		}
		if (strcmp(k->name, name) == 0) {
			if (k->type == C_GONE)
				log_warn("%s: %s.%s has no effect any more: "
					 "remove the line",
				    where, section, name);
			if ((k->flags & CONF_SECRET) != 0 &&
			    (r->how & CONF_NO_SECRETS) != 0)
				return;
			if ((what = set(r, k, value)) != NULL)
				fault(r, where, what, name);
			return;
		}
		len = strlen(k->name);
		if ((k->flags & CONF_SECRET) != 0 &&
		    strncmp(name, k->name, len) == 0 &&
		    strcmp(name + len, "_file") == 0) {
			set_secret_file(r, k, where, value);
			return;
		}
	}
	fault(r, where, "unknown key in this section", name);
}

static char *
trim(char *s)
{
	size_t len;

	while (isspace((unsigned char)*s))
		s++;
	len = strlen(s);
	while (len > 0 && isspace((unsigned char)s[len - 1]))
		s[--len] = '\0';
	return s;
}

/* Reads one line; may change `section`. */
static void
line_read(struct reader *r, char *line, const char *where, const char **section)
{
	char *name, *value, *eq;
	size_t len;

	line = trim(line);
	len = strlen(line);
	if (len == 0 || line[0] == '#' || line[0] == ';')
		return;
	if (line[0] == '[') {
		if (line[len - 1] != ']') {
			fault(r, where, "a section must end with ]", line);
			*section = NULL;
			return;
		}
		line[len - 1] = '\0';
		*section = trim(line + 1);
		if (!known_section(r->keys, *section)) {
			fault(r, where, "unknown section", *section);
			*section = NULL;
		}
		return;
	}
	if ((eq = strchr(line, '=')) == NULL) {
		/* what follows may be a secret, and this message goes to the
		 * log */
		line[strcspn(line, " \t:")] = '\0';
		fault(r, where, "expected key = value",
		    known_name(r->keys, line) ? line : "the line");
		return;
	}
	*eq = '\0';
	name = trim(line);
	value = trim(eq + 1);
	len = strlen(value);
	if (len >= 2 && value[0] == '"' && value[len - 1] == '"') {
		value[len - 1] = '\0';
		value++;
	}
	if (*section == NULL)
		return; /* which has been reported */
	if (**section == '\0')
		fault(r, where, "a [section] must precede it", name);
	else
		assign(r, where, *section, name, value);
}

static void
file_read(struct reader *r, char *text)
{
	const char *section = "";
	char *line, where[FAULT_TEXT];
	int number = 0;

	if (str_starts(text, BYTE_ORDER_MARK))
		text += strlen(BYTE_ORDER_MARK);
	while ((line = strsep(&text, "\n")) != NULL) {
		(void)snprintf(where, sizeof(where), "%s:%d", r->path,
		    ++number);
		line_read(r, line, where, &section);
	}
}

static const char *
env_name(struct arena *a, const struct conf_key *k, const char *suffix)
{
	char *name = arena_printf(a, "SLIPWAY_%s_%s%s", k->section, k->name,
	    suffix);
	char *p;

	for (p = name; *p != '\0'; p++)
		*p = (char)toupper((unsigned char)*p);
	return name;
}

static void
env_try(struct reader *r, const struct conf_key *k, const char *name)
{
	const char *value = getenv(name), *what;

	if (value != NULL && (what = set(r, k, value)) != NULL)
		fault(r, "environment", what, name);
}

static void
env_read(struct reader *r)
{
	const struct conf_key *k;
	const char *file;

	for (k = r->keys; k->section != NULL; k++) {
		if (k->type == C_MAP)
			continue;
		if ((k->flags & CONF_SECRET) != 0) {
			if ((r->how & CONF_NO_SECRETS) != 0)
				continue;
			file = getenv(env_name(r->a, k, "_FILE"));
			if (file == NULL && k->alias != NULL)
				file = getenv(
				    arena_printf(r->a, "%s_FILE", k->alias));
			if (file != NULL)
				set_secret_file(r, k, "environment", file);
		}
		if (k->alias != NULL)
			env_try(r, k, k->alias);
		env_try(r, k, env_name(r->a, k, ""));
	}
}

static void
defaults(struct reader *r)
{
	const struct conf_key *k;
	const char *what;

	for (k = r->keys; k->section != NULL; k++)
		if (k->fallback != NULL &&
		    (what = set(r, k, k->fallback)) != NULL)
			fault(r, "default", what, k->name);
}

const struct err *
conf_read(struct arena *a, const struct conf_key *keys, const char *path,
    unsigned how, void *out)
{
	struct reader r = { .a = a,
		.keys = keys,
		.path = path,
		.how = how,
		.out = out };
	const struct err *e;
	char *text;

	buf_init(&r.faults, FAULT_TEXT);
	defaults(&r);
	e = slurp(a, path, how, &text);
	if (e == NULL) {
		file_read(&r, text);
	} else if (e->code != ERR_NOTFOUND || (how & CONF_OPTIONAL) == 0) {
		if (e->code == ERR_NOTFOUND)
			e = err_public(ERR_CONFIG, "%s: no such file", path);
		goto out;
	}
	e = NULL;
	if ((how & CONF_NO_ENV) == 0)
		env_read(&r);
	if (r.faults.len > 0 || r.faults.overflow)
		e = err_public(ERR_CONFIG, "%s",
		    r.faults.len > 0 ? r.faults.data : "a line is too long");
out:
	buf_release(&r.faults);
	return e;
}

const char *
conf_text(struct arena *a, const struct conf_key *k, const void *settings)
{
	const char *at = (const char *)settings + k->offset;
	const char *text;

	switch (k->type) {
	case C_STR:
	case C_LIST:
		text = *(const char *const *)(const void *)at;
		return text == NULL ? "" : text;
	case C_BOOL:
		return *(const bool *)(const void *)at ? "yes" : "no";
	case C_MODE:
		return arena_printf(a, "%04llo",
		    (unsigned long long)*(const int64_t *)(const void *)at);
	case C_INT:
	case C_SIZE:
	case C_SECONDS:
		return arena_printf(a, "%lld",
		    (long long)*(const int64_t *)(const void *)at);
	case C_MAP:
	case C_GONE:
		break;
	}
	return "";
}
