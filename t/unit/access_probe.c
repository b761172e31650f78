/* SPDX-License-Identifier: ISC */
/* access_probe CONF COMMAND USER [WORD…]: which token is used with the Git
 * server for a user.  Prints the token, or the code and text of the error.
 *
 *   put USER ACCESS REFRESH|- SECONDS   stores a pair with this lifetime and
 *                   binds the user to an account there
 *   of USER         the user's own token
 *   renew USER TOKEN                    after the server rejected that one
 *   for USER        the user's or the service's token
 *   call USER       the account that the Git server returns */
#include <err.h>
#include <stdio.h>
#include <string.h>

#include "access/access.h"
#include "core/log.h"
#include "core/num.h"
#include "core/str.h"
#include "db/db.h"
#include "probe.h"
#include "store/identity.h"

static struct arena *arena;
static int64_t user;
static char **words;

/* Like a sign-in, but replaces any binding of the user. */
static const struct err *
bind(const struct access *x)
{
	static const struct field args[] = {
		FIELD(struct identity, forge, 0),
		FIELD(struct identity, forge_id, 0),
		FIELD(struct identity, user_id, 0),
		FIELD_END,
	};
	static const struct stmt bind_user = {
		.name = "probe_bind",
		.sql = "UPDATE user SET forge = ?, forge_id = ? WHERE id = ?",
		.args = args,
	};
	const struct identity who = { .user_id = user,
		.forge = forge_server(x->forge),
		.forge_id = arena_printf(arena, "%lld", (long long)user) };

	return db_exec(x->db, &bind_user, &who, NULL);
}

static const struct err *
put(const struct access *x, const char **out)
{
	struct forge_token t = { .access = words[0] };
	const struct err *e;
	int64_t seconds;

	if (!num_parse(words[2], -NUM_SAFE, NUM_SAFE, &seconds))
		errx(64, "%s: no number", words[2]);
	if (strcmp(words[1], "-") != 0)
		t.refresh = words[1];
	if (seconds != 0)
		t.expires_at.ms = time_now_ms() + seconds * 1000;
	*out = "put";
	if ((e = bind(x)) != NULL)
		return e;
	return access_put(x, arena, user, &t);
}

static const struct err *
of(const struct access *x, const char **out)
{
	return access_of_user(x, arena, user, out);
}

static const struct err *
renew(const struct access *x, const char **out)
{
	return access_renew(x, arena, user, words[0], out);
}

static const struct err *
whichever(const struct access *x, const char **out)
{
	struct access_token token;
	const struct err *e = access_for(x, arena, user, &token);

	*out = token.text;
	return e;
}

static const struct err *
ask(struct forge *f, struct arena *a, const struct access_token *token,
    void *context)
{
	struct forge_account account;
	const struct err *e;

	e = forge_whoami(f, a, token->text, &account);
	*(const char **)context = account.login;
	return e;
}

static const struct err *
call(const struct access *x, const char **out)
{
	return access_call(x, arena, user, ask, out);
}

static const struct {
	const char *name;
	int words;
	const struct err *(*run)(const struct access *, const char **out);
} commands[] = {
	{ "put", 3, put },
	{ "of", 0, of },
	{ "renew", 1, renew },
	{ "for", 0, whichever },
	{ "call", 0, call },
};

static void
open_all(const char *conf, struct access *x)
{
	struct settings *s = arena_alloc(arena, 1, sizeof(*s));
	struct keyring *keys = NULL;
	const struct err *e;

	if ((e = crypto_init()) != NULL ||
	    (e = conf_read(arena, settings_keys, conf, 0, s)) != NULL ||
	    (e = db_open(s, 0, &x->db)) != NULL ||
	    (e = forge_open(&s->gitserver, &x->forge)) != NULL)
		errx(1, "%s", e->msg);
	if (s->secrets.key_file != NULL &&
	    (e = keyring_open(s->secrets.key_file, &keys)) != NULL)
		warnx("%s", e->msg);
	x->keyring = keys;
	x->settings = &s->gitserver;
}

int
main(int argc, char **argv)
{
	struct access x = { .db = NULL };
	const struct err *e;
	const char *out = NULL;
	size_t i;

	if (argc < 4 || !num_parse(argv[3], 0, NUM_SAFE, &user))
		errx(64, "usage: access_probe CONF COMMAND USER [WORD ...]");
	arena = arena_open((size_t)8 << 20);
	log_init("access_probe", 0);
	open_all(argv[1], &x);
	words = argv + 4;
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(commands[i].name, argv[2]) == 0 &&
		    argc == 4 + commands[i].words)
			break;
	if (i == sizeof(commands) / sizeof(commands[0]))
		errx(64, "no such command, or not so many words");
	e = commands[i].run(&x, &out);
	if (e != NULL)
		(void)printf("%s: %s\n", probe_code(e),
		    e->detail[0] != '\0' ? e->detail : e->msg);
	else
		(void)printf("%s\n", out == NULL ? "(none)" : out);
	forge_close(x.forge);
	db_close(x.db);
	arena_close(arena);
	return e != NULL;
}
