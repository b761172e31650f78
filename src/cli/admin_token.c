/* SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <string.h>

#include "cli/admin.h"
#include "core/num.h"
#include "core/str.h"
#include "crypto/crypto.h"
#include "json/json.h"
#include "store/member.h"

#define PREFIX "slw_"
#define DAY_MS (INT64_C(24) * 3600 * 1000)
#define DAYS_MAX 36500
#define PAGE 100

/* Converts "90d" to a time that far from now; returns any other text
 * unchanged. */
static const char *
expiry(struct admin *admin, const char *text)
{
	size_t len = strlen(text);
	char time[STR_TIME_SIZE];
	int64_t days;

	if (len == 0 || text[len - 1] != 'd' ||
	    !num_parse(arena_strndup(admin->a, text, len - 1), 1, DAYS_MAX,
		&days))
		return text;
	str_time(time, time_now_ms() + days * DAY_MS);
	return arena_strdup(admin->a, time);
}

static const struct err *
read_options(struct admin *admin, const struct admin_token *options,
    struct api_token *t)
{
	struct pair pairs[3];
	struct map map = { .items = pairs };

	if (options->name != NULL)
		pairs[map.n++] = (struct pair){ "name", options->name };
	if (options->role != NULL)
		pairs[map.n++] = (struct pair){ "role", options->role };
	if (options->expires != NULL)
		pairs[map.n++] = (struct pair){ "expiresAt",
			expiry(admin, options->expires) };
	return admin_read(admin, &api_token_shape, JSON_CREATE, &map, t);
}

static const struct err *
fit(struct admin *admin, const struct user *u, struct api_token *t)
{
	const struct err *e;
	enum role most;

	if ((e = member_highest(admin->db, admin->a, u->id, &most)) != NULL)
		return e;
	if (most < role_of(u->role))
		most = role_of(u->role);
	if (most < ROLE_VIEWER)
		most = ROLE_VIEWER;
	t->user_id = u->id;
	if (t->role == NULL)
		t->role = role_name(most);
	if (role_of(t->role) > most)
		return err_public(ERR_INVALID,
		    "role: %s is higher than the user's role, %s", t->role,
		    role_name(most));
	if (t->expires_at.ms != 0 && t->expires_at.ms <= time_now_ms())
		return err_public(ERR_INVALID,
		    "expires: must be in the future");
	return NULL;
}

static struct audit_object_ref
token_object(int64_t id)
{
	return (struct audit_object_ref){ AUDIT_OF_TOKEN, id, 0 };
}

struct change {
	struct admin *admin;
	struct api_token token;
};

static const struct err *
add(struct db *db, void *context)
{
	struct change *c = context;
	const struct err *e;
	int64_t id;

	if ((e = token_insert(db, &c->token, &id)) != NULL)
		return e;
	(void)admin_changes(c->admin, &api_token_shape, NULL, &c->token);
	c->admin->audit.object = token_object(id);
	return NULL;
}

static const struct err *
drop(struct db *db, void *context)
{
	struct change *c = context;

	c->admin->audit.object = token_object(c->token.id);
	return token_delete(db, c->token.user_id, c->token.id);
}

const struct err *
admin_token_create(struct admin *admin, const char *username,
    const struct admin_token *options, const char **token)
{
	char text[CRYPTO_TOKEN_MAX], hash[CRYPTO_HASH_HEX];
	struct change c = { .admin = admin, .token.hash = hash };
	struct user u;
	const struct err *e;

	*token = NULL;
	if ((e = read_options(admin, options, &c.token)) != NULL ||
	    (e = admin_user_find(admin, username, &u)) != NULL ||
	    (e = fit(admin, &u, &c.token)) != NULL)
		return e;
	crypto_token(PREFIX, text);
	crypto_sha256(text, strlen(text), hash);
	if ((e = admin_transaction(admin, add, &c)) == NULL)
		*token = arena_strdup(admin->a, text);
	return e;
}

const struct err *
admin_token_add(void *context, struct command_call *call)
{
	const char *token;
	const struct err *e;

	if ((e = admin_token_create(context, call->word[0], call->options,
		 &token)) != NULL)
		return e;
	(void)printf("%s\n", token);
	return NULL;
}

const struct err *
admin_token_list(void *context, struct command_call *call)
{
	struct admin *admin = context;
	struct page page = { .page = 1, .limit = PAGE };
	char expires[STR_TIME_SIZE];
	const struct api_token *t;
	struct list list;
	struct user u;
	const struct err *e;
	size_t i;

	if ((e = admin_user_find(admin, call->word[0], &u)) != NULL)
		return e;
	do {
		if ((e = token_page(admin->db, admin->a, u.id, &page, &list)) !=
		    NULL)
			return e;
		t = list.items;
		for (i = 0; i < list.n; i++) {
			expires[0] = '\0';
			if (t[i].expires_at.ms != 0)
				str_time(expires, t[i].expires_at.ms);
			(void)printf("%lld\t%s\t%s\t%s\n", (long long)t[i].id,
			    t[i].role, str_visible(admin->a, t[i].name),
			    expires);
		}
	} while (page.page++ * PAGE < page.total);
	return NULL;
}

const struct err *
admin_token_delete(void *context, struct command_call *call)
{
	struct admin *admin = context;
	const char *const *words = call->word;
	struct change c = { .admin = admin };
	struct user u;
	const struct err *e;

	if (!num_parse(words[1], 1, NUM_SAFE, &c.token.id))
		return err_public(ERR_METHOD, "%s is not the number of a token",
		    words[1]);
	if ((e = admin_user_find(admin, words[0], &u)) != NULL)
		return e;
	c.token.user_id = u.id;
	e = admin_transaction(admin, drop, &c);
	if (e != NULL && e->code == ERR_NOTFOUND)
		return err_public(ERR_NOTFOUND, "%s has no token %s", words[0],
		    words[1]);
	if (e == NULL)
		(void)printf("token %s was deleted\n", words[1]);
	return e;
}
