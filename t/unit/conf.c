/* SPDX-License-Identifier: ISC */
/*
 * The files in t/data/conf say themselves what is to come of them:
 *   #= section.key=text   the value that the key has then
 *   #+ name=value         a pair of the [run_as] section
 *   #! text               is part of what the refusal says
 */
#include "core/conf.h"

#include <sys/stat.h>

#include <dirent.h>
#include <unistd.h>

#include "core/settings.h"
#include "core/str.h"
#include "tap.h"

#define FILE_SIZE 4096

static const struct conf_key *
key_find(const char *section, const char *name)
{
	const struct conf_key *k;

	for (k = settings_keys; k->section != NULL; k++)
		if (strcmp(k->section, section) == 0 && k->name != NULL &&
		    strcmp(k->name, name) == 0)
			return k;
	return NULL;
}

static const char *
map_value(const struct conf_map *map, const char *key)
{
	size_t i;

	for (i = 0; i < map->n; i++)
		if (strcmp(map->items[i].key, key) == 0)
			return map->items[i].value;
	return NULL;
}

static void
write_file(const char *path, const void *text, size_t len, mode_t mode)
{
	FILE *out = fopen(path, "w");

	if (out == NULL || fwrite(text, 1, len, out) != len ||
	    fclose(out) != 0 || chmod(path, mode) != 0)
		ok(false, "%s is written", path);
}

static void
read_file(const char *path, char text[FILE_SIZE])
{
	FILE *in = fopen(path, "r");

	(void)memset(text, 0, FILE_SIZE);
	if (in == NULL || fread(text, 1, FILE_SIZE - 1, in) == 0)
		text[0] = '\0';
	if (in != NULL)
		(void)fclose(in);
}

/* One line of what a file says about itself. */
static void
claim_check(struct arena *a, char *line, const struct settings *s,
    const struct err *e)
{
	char *name = line + 3, *value, *dot;
	const struct conf_key *key;

	line[strcspn(line, "\r")] = '\0';
	if (line[0] != '#' || strchr("=+!", line[1]) == NULL || line[2] != ' ')
		return;
	if (line[1] == '!') {
		if (!ok(e != NULL && strstr(e->detail, name) != NULL, "  %s",
			name))
			(void)printf("# %s\n", e == NULL ? "" : e->detail);
		return;
	}
	value = strchr(name, '=');
	if (!ok(value != NULL, "the claim has a value"))
		return;
	*value++ = '\0';
	if (line[1] == '+') {
		is_str(map_value(&s->run_as, name), value, name);
		return;
	}
	dot = strchr(name, '.');
	if (!ok(dot != NULL, "the claim has a section"))
		return;
	*dot = '\0';
	key = key_find(name, dot + 1);
	*dot = '.';
	is_str(key == NULL ? NULL : conf_text(a, key, s), value, name);
}

static void
file_check(const char *path, bool good)
{
	struct arena *a = arena_open(1 << 22);
	struct settings s = { .log = { .debug = false } };
	const struct err *e;
	char text[FILE_SIZE], *rest = text, *line;

	e = conf_read(a, settings_keys, path, CONF_NO_ENV, &s);
	ok((e == NULL) == good, "%s", strrchr(path, '/') + 1);
	ok(e == NULL || (e->code == ERR_CONFIG && e->detail[0] != '\0'),
	    "  a refusal says why");
	read_file(path, text);
	while ((line = strsep(&rest, "\n")) != NULL)
		claim_check(a, line, &s, e);
	arena_close(a);
}

static void
folder_check(const char *folder, bool good)
{
	struct dirent **names;
	char path[1024];
	int i, n;

	n = scandir(folder, &names, NULL, alphasort);
	ok(n > 15, "%s has cases", folder);
	for (i = 0; i < n; i++) {
		if (names[i]->d_name[0] != '.') {
			(void)snprintf(path, sizeof(path), "%s/%s", folder,
			    names[i]->d_name);
			file_check(path, good);
		}
		free(names[i]);
	}
	if (n >= 0)
		free(names);
}

static const struct err *
reading(struct arena *a, const char *path, unsigned how, struct settings *out)
{
	(void)memset(out, 0, sizeof(*out));
	return conf_read(a, settings_keys, path, how, out);
}

static void
files(const char *dir)
{
	struct arena *a = arena_open(1 << 23);
	struct settings s;
	const struct err *e;
	char path[512], *large;
	size_t i;

	(void)snprintf(path, sizeof(path), "%s/conf", dir);
	e = reading(a, path, CONF_NO_ENV, &s);
	ok(e != NULL && strstr(e->detail, "no such file") != NULL,
	    "a missing file is told");
	e = reading(a, path, CONF_NO_ENV | CONF_OPTIONAL, &s);
	ok(e == NULL && s.api.workers == 4, "unless it may be missing");
	e = reading(a, dir, CONF_NO_ENV, &s);
	ok(e != NULL, "a folder is no file");

	large = arena_alloc(a, (1 << 20) + 1, 1);
	(void)memset(large, '\n', (1 << 20) + 1);
	write_file(path, large, (1 << 20) + 1, 0600);
	e = reading(a, path, CONF_NO_ENV, &s);
	ok(e != NULL && strstr(e->detail, "larger than 1 MiB") != NULL,
	    "a file past 1 MiB is refused");
	write_file(path, large, 1 << 20, 0600);
	ok(reading(a, path, CONF_NO_ENV, &s) == NULL, "one of 1 MiB is not");
	for (i = 0; i < 10000; i++)
		(void)memcpy(large + 9 + 4 * i, "a=b\n", 4);
	(void)memcpy(large, "[run_as]\n", 9);
	write_file(path, large, 40009, 0600);
	e = reading(a, path, CONF_NO_ENV, &s);
	ok(e == NULL && s.run_as.n == 10000 &&
		str_eq(s.run_as.items[9999].value, "b"),
	    "a section of pairs may be long");

	write_file(path, "", 0, 0644);
	e = reading(a, path, CONF_NO_ENV | CONF_ROOT_OWNED, &s);
	ok((e == NULL) == (geteuid() == 0), "whose file it is matters");
	if (geteuid() == 0) {
		ok(chown(path, 1, 1) == 0 &&
			reading(a, path, CONF_NO_ENV | CONF_ROOT_OWNED, &s) !=
			    NULL &&
			chown(path, 0, 0) == 0,
		    "root takes nobody else's");
	}
	write_file(path, "", 0, 0664);
	e = reading(a, path, CONF_NO_ENV | CONF_ROOT_OWNED, &s);
	ok(e != NULL && strstr(e->detail, "belong to root") != NULL,
	    "one that the group may write is refused");
	write_file(path, "", 0, 0646);
	e = reading(a, path, CONF_NO_ENV | CONF_ROOT_OWNED, &s);
	ok(e != NULL, "and one that all may write");
	(void)unlink(path);
	arena_close(a);
}

static void
secrets(const char *dir)
{
	struct arena *a = arena_open(1 << 20);
	struct settings s;
	const struct err *e;
	char path[512], secret[512], *text;

	(void)snprintf(path, sizeof(path), "%s/conf", dir);
	(void)snprintf(secret, sizeof(secret), "%s/secret", dir);
	text = arena_printf(a, "[database]\npassword_file = %s\n", secret);
	write_file(path, text, strlen(text), 0600);
	write_file(secret, "s3cret \nmore\n", 13, 0600);
	e = reading(a, path, CONF_NO_ENV, &s);
	ok(e == NULL, "a secret comes from a file");
	is_str(s.database.password, "s3cret ", "its first line, blanks kept");
	e = reading(a, path, CONF_NO_ENV | CONF_NO_SECRETS, &s);
	ok(e == NULL && s.database.password == NULL, "unless it is not wanted");
	(void)unlink(secret);
	e = reading(a, path, CONF_NO_ENV, &s);
	ok(e != NULL && strstr(e->detail, "s3cret") == NULL,
	    "a missing one is told without it");
	e = reading(a, path, CONF_NO_ENV | CONF_NO_SECRETS, &s);
	ok(e == NULL, "or not looked for");
	text = arena_printf(a, "[database]\npassword = hidden\n");
	write_file(path, text, strlen(text), 0600);
	e = reading(a, path, CONF_NO_ENV | CONF_NO_SECRETS, &s);
	ok(e == NULL && s.database.password == NULL,
	    "nor read where it stands");
	(void)unlink(path);
	arena_close(a);
}

static void
environment(const char *dir)
{
	struct arena *a = arena_open(1 << 20);
	struct settings s;
	const struct err *e;
	char path[512], secret[512];

	(void)snprintf(path, sizeof(path), "%s/conf", dir);
	(void)snprintf(secret, sizeof(secret), "%s/secret", dir);
	write_file(path, "[api]\nworkers = 2\n", 18, 0600);
	write_file(secret, "from-file\n", 10, 0600);
	(void)setenv("SLIPWAY_API_WORKERS", "9", 1);
	(void)setenv("SLIPWAY_GITSERVER_ALLOW_LOCAL", "yes", 1);
	(void)setenv("GITSERVER_URL", "https://git.example", 1);
	(void)setenv("SLIPWAY_DATABASE_PASSWORD_FILE", secret, 1);
	(void)setenv("GITSERVER_TOKEN_FILE", secret, 1);
	e = reading(a, path, 0, &s);
	ok(e == NULL && s.api.workers == 9, "the environment beats the file");
	ok(s.gitserver.allow_local, "and the default");
	is_str(s.gitserver.url, "https://git.example", "some have own names");
	is_str(s.database.password, "from-file", "a secret's file is named so");
	is_str(s.gitserver.token, "from-file", "by its own name, too");
	e = reading(a, path, CONF_NO_ENV, &s);
	ok(e == NULL && s.api.workers == 2, "it can be left aside");
	(void)setenv("SLIPWAY_GITSERVER_URL", "https://other.example", 1);
	e = reading(a, path, 0, &s);
	ok(e == NULL && str_eq(s.gitserver.url, "https://other.example"),
	    "slipway's own name wins");
	(void)setenv("SLIPWAY_API_WORKERS", "none", 1);
	(void)setenv("SLIPWAY_LOG_DEBUG", "1", 1);
	e = reading(a, path, 0, &s);
	ok(e != NULL &&
		strstr(e->detail,
		    "environment: SLIPWAY_API_WORKERS: must be") != NULL,
	    "a bad value is told by its name");
	ok(e != NULL && strstr(e->detail, "SLIPWAY_LOG_DEBUG") != NULL,
	    "all of them are");
	(void)unlink(path);
	(void)unlink(secret);
	arena_close(a);
}

int
main(void)
{
	char dir[] = "/tmp/slipway-conf-XXXXXX";

	folder_check(T_DATA "/conf/pass", true);
	folder_check(T_DATA "/conf/fail", false);
	if (!ok(mkdtemp(dir) != NULL, "there is a folder to write in"))
		return tap_done();
	files(dir);
	secrets(dir);
	environment(dir);
	(void)rmdir(dir);
	return tap_done();
}
