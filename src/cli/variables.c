/* SPDX-License-Identifier: ISC */
#include "cli/variables.h"

#include <string.h>
#include <unistd.h>

#include "cli/prompt.h"
#include "core/str.h"

#define VALUE_MAX ((size_t)64 << 10)
#define FILE_MAX ((size_t)1 << 20)

struct preset {
	const char *key;
	const char *fallback;
	bool required;
	bool secret;
};
static const struct json_path preset_paths[] = {
	JSON_PATH(struct preset, key, "key", .must = true),
	JSON_PATH(struct preset, fallback, "default"),
	JSON_PATH(struct preset, required, "required"),
	JSON_PATH(struct preset, secret, "secret"),
	JSON_PATH_END,
};

static const struct err *
presets_get(struct client *c, int64_t project, struct list *out)
{
	struct http_response r;
	const struct err *e;

	if ((e = client_get(c,
		 arena_printf(c->a, "/api/projects/%lld", (long long)project),
		 &r)) != NULL)
		return e;
	return json_pick_member(c->a, "envPresets", preset_paths,
	    sizeof(struct preset), r.body, r.len, out);
}

/* Errors about a secret name --secret. */
static void
secrets_note(struct client *c, const struct list *presets)
{
	const struct preset *p = presets->items;
	const char **names = arena_alloc(c->a, presets->n, sizeof(*names));
	size_t i;

	c->secrets = (struct list){ .items = names };
	for (i = 0; i < presets->n; i++)
		if (p[i].secret)
			names[c->secrets.n++] = p[i].key;
}

static const struct pair *
variable_find(const struct map *map, const char *key)
{
	size_t i;

	for (i = 0; i < map->n; i++)
		if (str_eq(map->items[i].key, key))
			return &map->items[i];
	return NULL;
}

/* Sets a variable, or replaces its value. */
static void
variable_set(struct arena *a, struct map *map, const char *key,
    const char *value)
{
	struct pair *grown;
	size_t i = 0;

	while (i < map->n && !str_eq(map->items[i].key, key))
		i++;
	if (i == map->n) {
		/* memory for twice as many whenever the number is a power */
		if ((map->n & (map->n + 1)) == 0) {
			grown = arena_alloc(a, 2 * map->n + 2, sizeof(*grown));
			if (map->n > 0)
				(void)memcpy(grown, map->items,
				    map->n * sizeof(*grown));
			map->items = grown;
		}
		map->n++;
	}
	map->items[i] = (struct pair){ key, value };
}

/* "KEY=VALUE"; false if it lacks the sign or the key. */
static bool
pair_read(struct arena *a, const char *text, const char **key,
    const char **value)
{
	const size_t len = strcspn(text, "=");

	*key = arena_strndup(a, text, len);
	*value = text[len] == '=' ? text + len + 1 : NULL;
	return *value != NULL && len > 0;
}

/* Lines of KEY=VALUE, with blank ones and comments. */
static const struct err *
file_read(struct arena *a, const char *path, struct map *out)
{
	const char *text, *line, *key, *value;
	const struct err *e;
	size_t len;
	int number = 0;

	if ((e = prompt_file(a, path, FILE_MAX, &text)) != NULL)
		return e;
	for (; *text != '\0'; text += len + (text[len] == '\n')) {
		len = strcspn(text, "\n");
		number++;
		line = arena_strndup(a, text,
		    len > 0 && text[len - 1] == '\r' ? len - 1 : len);
		if (*line == '\0' || *line == '#')
			continue;
		if (!pair_read(a, line, &key, &value))
			return err_public(ERR_INVALID,
			    "%s:%d: must have the form KEY=VALUE", path,
			    number);
		variable_set(a, out, key, value);
	}
	return NULL;
}

static const struct err *
arguments_read(struct client *c, const struct option_list *list,
    const struct list *presets, struct map *out)
{
	const char *command = c->call->command->name;
	const struct preset *p = presets->items;
	const char *key, *value;
	size_t i, n;

	for (i = 0; i < list->n; i++) {
		if (!pair_read(c->a, list->item[i], &key, &value))
			return err_public(ERR_METHOD,
			    "%s: --env requires KEY=VALUE, not \"%s\"", command,
			    list->item[i]);
		for (n = 0; n < presets->n; n++)
			if (p[n].secret && str_eq(p[n].key, key))
				return err_public(ERR_METHOD,
				    "%s: %s is a secret, and other users can "
				    "see arguments: use --secret %s, or "
				    "--secret %s=FILE",
				    command, key, key, key);
		variable_set(c->a, out, key, value);
	}
	return NULL;
}

/* "KEY" is asked for, "KEY=FILE" is read. */
static const struct err *
secrets_read(struct arena *a, const struct option_list *list, struct map *out)
{
	const char *key, *path, *value;
	const struct err *e;
	size_t i;

	for (i = 0; i < list->n; i++) {
		if (pair_read(a, list->item[i], &key, &path))
			e = prompt_file(a, path, VALUE_MAX, &value);
		else
			e = prompt_secret(a, key, &value);
		if (e != NULL)
			return e;
		variable_set(a, out, key, value);
	}
	return NULL;
}

/* Asks for required secrets that were not given.  Without a terminal, the
 * service says what is missing. */
static const struct err *
missing_ask(struct arena *a, const struct list *presets, struct map *out)
{
	const struct preset *p = presets->items;
	const struct err *e;
	const char *value;
	size_t i;

	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return NULL;
	for (i = 0; i < presets->n; i++) {
		if (!p[i].secret || !p[i].required || p[i].fallback != NULL ||
		    variable_find(out, p[i].key) != NULL)
			continue;
		if ((e = prompt_secret(a, p[i].key, &value)) != NULL)
			return e;
		variable_set(a, out, p[i].key, value);
	}
	return NULL;
}

const struct err *
variables_read(struct client *c, int64_t project,
    const struct variable_options *options, struct map *out)
{
	struct list presets;
	const struct err *e;
	size_t i;

	*out = (struct map){ .items = NULL };
	if ((e = presets_get(c, project, &presets)) != NULL)
		return e;
	secrets_note(c, &presets);
	for (i = 0; i < options->env_file.n; i++)
		if ((e = file_read(c->a, options->env_file.item[i], out)) !=
		    NULL)
			return e;
	if ((e = arguments_read(c, &options->env, &presets, out)) != NULL ||
	    (e = secrets_read(c->a, &options->secret, out)) != NULL)
		return e;
	return missing_ask(c->a, &presets, out);
}
