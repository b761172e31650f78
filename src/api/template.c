/* SPDX-License-Identifier: ISC */
#include "api/template.h"

#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "core/buf.h"
#include "core/log.h"
#include "core/str.h"
#include "core/utf8.h"
#include "deploy/presets.h"
#include "json/json.h"
#include "store/pipeline.h"
#include "store/preset.h"

#define ALL_MAX ((size_t)32 << 20) /* memory for all templates */
#define COUNT_MAX 1000
#define JSON_FILE_MAX ((size_t)1 << 20)
#define ID_ERE "[a-z0-9][a-z0-9._-]{0,63}"
/* Folder beside the templates for scripts, and parts of scripts, that several
 * of them share. */
#define COMMON "common"
#define NAME_ERE "[A-Za-z0-9_][A-Za-z0-9._-]{0,99}"
#define FILE_ERE "(\\.\\./" COMMON "/)?" NAME_ERE
#define PART_ERE "\\.\\./" COMMON "/" NAME_ERE
/* A line of a script that begins with this is replaced by a part. */
#define INCLUDE ". ../" COMMON "/"

static const char *const when[] = { "success", "failure", "always", NULL };

/* In template.json a step names its file; responses contain its script. */
#define S(m, ...) FIELD(struct template_step, m, __VA_ARGS__)
static const struct field step_fields[] = {
	S(name, FIELD_OUT | FIELD_IN | FIELD_MUST | FIELD_LINE, .min = 1,
	    .max = 100, .doc = "Name of the step."),
	S(file, FIELD_IN | FIELD_MUST, .pattern = FILE_ERE,
	    .doc = "File in the template's folder, or ../" COMMON "/FILE."),
	S(script, FIELD_OUT, .doc = "Script for bash(1)."),
	S(directory, FIELD_OUT | FIELD_IN | FIELD_NULL | FIELD_LINE, .min = 1,
	    .max = STEP_DIRECTORY_MAX, .shown = STEP_DIRECTORY_PATTERN,
	    .doc = "Directory of the workspace that it runs in; null = its "
		   "root."),
	S(run_when, FIELD_OUT | FIELD_IN, .values = when, .named = "RunWhen",
	    .doc = "Condition: success of the steps before it, a failure, or "
		   "always."),
	S(may_fail, FIELD_OUT | FIELD_IN,
	    .doc = "Whether the deployment succeeds, with a warning, although "
		   "the step failed."),
	S(timeout_seconds, FIELD_OUT | FIELD_IN | FIELD_NULL, .min = 1,
	    .max = PIPELINE_TIMEOUT_MAX,
	    .doc = "Time limit; the step fails if it takes longer."),
	FIELD_END,
};
static void
template_step_check(const void *item, const char *pointer,
    struct faults *faults)
{
	const struct template_step *s = item;
	const char *fault;

	if (s->directory != NULL &&
	    (fault = step_directory_fault(s->directory)) != NULL)
		faults_add(faults, fault_pointer(faults, pointer, "directory"),
		    "%s", fault);
}

static const struct shape template_step_shape = {
	.name = "TemplateStep",
	.fields = step_fields,
	.size = sizeof(struct template_step),
	.check = template_step_check,
	.doc = "A step of a template.",
};

#define T(m, ...) FIELD(struct template, m, FIELD_OUT | __VA_ARGS__)
static const struct field template_fields[] = {
	T(id, 0, .doc = "Id of the template."),
	T(name, FIELD_IN | FIELD_MUST | FIELD_LINE, .min = 1, .max = 100,
	    .doc = "Display name."),
	T(description, FIELD_IN | FIELD_NULL | FIELD_TEXT, .max = 500,
	    .doc = "What the pipeline does."),
	T(checkout, FIELD_IN, .values = pipeline_checkouts, .named = "Checkout",
	    .doc = "Which files the steps find."),
	T(env_presets, FIELD_IN, .max = 100, .shape = &preset_shape,
	    .doc = "envPresets that its steps require in a project."),
	T(steps, FIELD_IN | FIELD_MUST, .min = 1, .max = PIPELINE_STEPS_MAX,
	    .shape = &template_step_shape, .doc = "Steps in order."),
	FIELD_END,
};
const struct shape template_shape = {
	.name = "Template",
	.fields = template_fields,
	.size = sizeof(struct template),
	.doc = "A ready-made pipeline.",
};

static struct arena *memory;
static struct list loaded;
static struct template *table; /* COUNT_MAX of them */

/* Reads a regular file of the folder as text in the arena. */
static const struct err *
file_read(int dir, const char *name, size_t max, char **out)
{
	const struct err *e = NULL;
	struct stat st;
	ssize_t got;
	size_t len = 0;
	int fd;

	*out = NULL;
	fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd == -1 || fstat(fd, &st) == -1) {
		e = err_errno("%s", name);
		goto out;
	}
	if (!S_ISREG(st.st_mode) || (size_t)st.st_size > max) {
		e = err_new(ERR_CONFIG,
		    "%s: must be a regular file of at most %zu "
		    "bytes",
		    name, max);
		goto out;
	}
	*out = arena_alloc(memory, (size_t)st.st_size + 1, 1);
	while (len < (size_t)st.st_size) {
		got = read(fd, *out + len, (size_t)st.st_size - len);
		if (got <= 0)
			break;
		len += (size_t)got;
	}
	if (len == 0 || strlen(*out) != len || !utf8_valid(*out, len))
		e = err_new(ERR_CONFIG, "%s: must be non-empty UTF-8 text",
		    name);
out:
	if (fd != -1)
		(void)close(fd);
	return e;
}

/* Adds the text of a part without the comment at its head, which is about the
 * file. */
static const struct err *
part_add(int dir, const char *path, struct buf *script)
{
	const struct err *e;
	char *text;

	if (!str_matches(path, PART_ERE))
		return err_new(ERR_CONFIG, "%s: invalid name of a file", path);
	if ((e = file_read(dir, path, STEP_SCRIPT_MAX, &text)) != NULL)
		return e;
	while (*text == '#') {
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	text += *text == '\n';
	if (*text == '\0')
		return err_new(ERR_CONFIG, "%s: must not be empty", path);
	if (str_starts(text, INCLUDE) || strstr(text, "\n" INCLUDE) != NULL)
		return err_new(ERR_CONFIG, "%s: must not include another file",
		    path);
	buf_puts(script, text);
	if (!str_ends(text, "\n"))
		buf_putc(script, '\n');
	return NULL;
}

/* Reads a script with its parts. */
static const struct err *
script_read(int dir, const char *name, const char **out)
{
	const struct arena_mark mark = arena_mark(memory);
	const struct err *e;
	struct buf script;
	char *line, *path;
	size_t len;

	*out = NULL;
	buf_init(&script, STEP_SCRIPT_MAX);
	e = file_read(dir, name, STEP_SCRIPT_MAX, &line);
	while (e == NULL && *line != '\0') {
		len = strcspn(line, "\n");
		path = NULL;
		if (str_starts(line, INCLUDE))
			path = arena_strndup(memory, line + 2, len - 2);
		len += line[len] == '\n';
		if (path != NULL)
			e = part_add(dir, path, &script);
		else
			buf_add(&script, line, len);
		line += len;
	}
	if (e == NULL && (e = buf_check(&script)) != NULL)
		e = err_wrap(e, "%s", name);
	arena_rewind(memory, &mark);
	if (e == NULL)
		*out = arena_strndup(memory, script.data, script.len);
	buf_release(&script);
	return e;
}

static const struct err *
scripts_read(int dir, struct template *t)
{
	struct template_step *step = t->steps.items;
	const struct err *e;
	int64_t bytes = 0;
	size_t i, k;

	for (i = 0; i < t->steps.n; i++) {
		for (k = 0; k < i; k++)
			if (str_eq(step[k].name, step[i].name))
				return err_new(ERR_CONFIG,
				    "two steps are named %s", step[i].name);
		e = script_read(dir, step[i].file, &step[i].script);
		if (e != NULL)
			return e;
		bytes += (int64_t)strlen(step[i].script);
		if (bytes > PIPELINE_BYTES_MAX)
			return err_new(ERR_CONFIG,
			    "the scripts of a pipeline must have at most 1 MiB "
			    "together");
		if (step[i].run_when == NULL)
			step[i].run_when = when[0];
	}
	return NULL;
}

static const struct err *
template_read(int dir, struct template *out)
{
	static struct faults faults;
	const struct err *e;
	char *text;

	if ((e = file_read(dir, "template.json", JSON_FILE_MAX, &text)) != NULL)
		return e;
	faults_init(&faults, memory);
	e = json_read(&template_shape, JSON_CREATE, text, strlen(text), out,
	    &faults);
	if (e == NULL && out->checkout == NULL)
		out->checkout = pipeline_checkouts[0];
	if (e == NULL && out->env_presets.s == NULL)
		out->env_presets.s = "[]";
	if (e == NULL)
		e = presets_check(out->env_presets, &faults);
	if (e == NULL)
		e = faults_check(&faults);
	if (e != NULL)
		return err_wrap(e, "template.json");
	return scripts_read(dir, out);
}

/* The entry with that id, or a new one at the end. */
static struct template *
template_slot(const char *id)
{
	size_t i;

	for (i = 0; i < loaded.n; i++)
		if (strcmp(table[i].id, id) == 0)
			return &table[i];
	return loaded.n < COUNT_MAX ? &table[loaded.n++] : NULL;
}

static void
folder_read(int parent, const char *path, const char *id)
{
	struct template t = { .id = NULL }, *slot;
	const struct err *e;
	int dir;

	dir = openat(parent, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir == -1)
		return; /* a file next to the folders */
	if (!str_matches(id, ID_ERE))
		e = err_new(ERR_CONFIG, "invalid template name");
	else
		e = template_read(dir, &t);
	(void)close(dir);
	if (e == NULL && (slot = template_slot(id)) != NULL) {
		t.id = arena_strdup(memory, id);
		*slot = t;
	} else {
		log_warn("template %s/%s ignored: %s", path, id,
		    e == NULL ? "too many templates" : e->msg);
	}
}

static void
folders_read(const char *path)
{
	const struct dirent *entry;
	DIR *dir;

	if ((dir = opendir(path)) == NULL) {
		if (errno != ENOENT)
			log_warn("templates in %s: %s", path, strerror(errno));
		return;
	}
	while ((entry = readdir(dir)) != NULL)
		if (entry->d_name[0] != '.' &&
		    strcmp(entry->d_name, COMMON) != 0)
			folder_read(dirfd(dir), path, entry->d_name);
	(void)closedir(dir);
}

static int
by_id(const void *a, const void *b)
{
	const struct template *one = a, *other = b;

	return strcmp(one->id, other->id);
}

void
template_load(const struct settings *s)
{
	const char *word = s->api.templates;
	size_t len;

	if (memory == NULL)
		memory = arena_open(ALL_MAX);
	arena_clear(memory);
	table = arena_alloc(memory, COUNT_MAX, sizeof(*table));
	loaded = (struct list){ .items = table };
	while (word != NULL && *(word += strspn(word, ", \t")) != '\0') {
		len = strcspn(word, ", \t");
		folders_read(arena_strndup(memory, word, len));
		word += len;
	}
	qsort(table, loaded.n, sizeof(*table), by_id);
	log_debug("loaded %zu templates", loaded.n);
}

const struct list *
template_all(void)
{
	return &loaded;
}

const struct template *
template_find(const char *id)
{
	size_t i;

	for (i = 0; i < loaded.n; i++)
		if (strcmp(table[i].id, id) == 0)
			return &table[i];
	return NULL;
}
