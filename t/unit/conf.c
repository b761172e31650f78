/* SPDX-License-Identifier: ISC */
/*
 * The files in t/data/conf state the expected result:
 *   #= section.key=text   the value of the key
 *   #+ name=value         a pair of the [run_as] section
 *   #! text               a part of the error
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

/* Checks one line of expectations. */
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
	    "  the error has the expected text");
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
	ok(n > 15, "%s has more than 15 files", folder);
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
	    "a missing file is an error");
	e = reading(a, path, CONF_NO_ENV | CONF_OPTIONAL, &s);
	ok(e == NULL && s.api.workers == 4,
	    "a missing file is accepted if it is optional");
	e = reading(a, dir, CONF_NO_ENV, &s);
	ok(e != NULL, "a directory instead of a file is an error");

	large = arena_alloc(a, (1 << 20) + 1, 1);
	(void)memset(large, '\n', (1 << 20) + 1);
	write_file(path, large, (1 << 20) + 1, 0600);
	e = reading(a, path, CONF_NO_ENV, &s);
	ok(e != NULL && strstr(e->detail, "larger than 1 MiB") != NULL,
	    "a file above 1 MiB is an error");
	write_file(path, large, 1 << 20, 0600);
	ok(reading(a, path, CONF_NO_ENV, &s) == NULL,
	    "a file of 1 MiB is accepted");
	for (i = 0; i < 10000; i++)
		(void)memcpy(large + 9 + 4 * i, "a=b\n", 4);
	(void)memcpy(large, "[run_as]\n", 9);
	write_file(path, large, 40009, 0600);
	e = reading(a, path, CONF_NO_ENV, &s);
	ok(e == NULL && s.run_as.n == 10000 &&
		str_eq(s.run_as.items[9999].value, "b"),
	    "a section of pairs may be large");

	write_file(path, "", 0, 0644);
	e = reading(a, path, CONF_NO_ENV | CONF_ROOT_OWNED, &s);
	ok((e == NULL) == (geteuid() == 0),
	    "the owner of the file must be root or the caller");
	if (geteuid() == 0) {
		ok(chown(path, 1, 1) == 0 &&
			reading(a, path, CONF_NO_ENV | CONF_ROOT_OWNED, &s) !=
			    NULL &&
			chown(path, 0, 0) == 0,
		    "root accepts only its own file");
	}
	write_file(path, "", 0, 0664);
	e = reading(a, path, CONF_NO_ENV | CONF_ROOT_OWNED, &s);
	ok(e != NULL && strstr(e->detail, "belong to root") != NULL,
	    "a file that the group may write is rejected");
	write_file(path, "", 0, 0646);
	e = reading(a, path, CONF_NO_ENV | CONF_ROOT_OWNED, &s);
	ok(e != NULL, "a file that all may write is rejected");
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
	ok(e == NULL, "a secret is read from a file");
	is_str(s.database.password, "s3cret ",
	    "a secret is the first line of its file, with its spaces");
	e = reading(a, path, CONF_NO_ENV | CONF_NO_SECRETS, &s);
	ok(e == NULL && s.database.password == NULL,
	    "a secret is not read if it is not wanted");
	(void)unlink(secret);
	e = reading(a, path, CONF_NO_ENV, &s);
	ok(e != NULL && strstr(e->detail, "s3cret") == NULL,
	    "a missing secret file is an error");
	e = reading(a, path, CONF_NO_ENV | CONF_NO_SECRETS, &s);
	ok(e == NULL,
	    "a missing secret file is accepted if no secret is wanted");
	text = arena_printf(a, "[database]\npassword = hidden\n");
	write_file(path, text, strlen(text), 0600);
	e = reading(a, path, CONF_NO_ENV | CONF_NO_SECRETS, &s);
	ok(e == NULL && s.database.password == NULL,
	    "a secret in the file is not read if none is wanted");
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
	ok(e == NULL && s.api.workers == 9,
	    "the environment overrides the file");
	ok(s.gitserver.allow_local, "the environment overrides a default");
	is_str(s.gitserver.url, "https://git.example",
	    "some settings have their own variable");
	is_str(s.database.password, "from-file",
	    "a variable can name the file of a secret");
	is_str(s.gitserver.token, "from-file",
	    "a setting's own variable can name the file of a secret");
	e = reading(a, path, CONF_NO_ENV, &s);
	ok(e == NULL && s.api.workers == 2, "the environment can be ignored");
	(void)setenv("SLIPWAY_GITSERVER_URL", "https://other.example", 1);
	e = reading(a, path, 0, &s);
	ok(e == NULL && str_eq(s.gitserver.url, "https://other.example"),
	    "slipway's variable overrides the setting's own one");
	(void)setenv("SLIPWAY_API_WORKERS", "none", 1);
	(void)setenv("SLIPWAY_LOG_DEBUG", "1", 1);
	e = reading(a, path, 0, &s);
	ok(e != NULL &&
		strstr(e->detail,
		    "environment: SLIPWAY_API_WORKERS: must be") != NULL,
	    "an invalid variable is named in the error");
	ok(e != NULL && strstr(e->detail, "SLIPWAY_LOG_DEBUG") != NULL,
	    "every invalid variable is named in the error");
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
