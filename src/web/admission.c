/* SPDX-License-Identifier: ISC */
#include "web/admission.h"

#include <string.h>
#include <strings.h>

#include "core/log.h"
#include "core/str.h"
#include "core/utf8.h"
#include "json/json.h"
#include "store/audit.h"
#include "store/identity.h"

#define LOGIN_MAX 100
#define CHANGES_MAX ((size_t)4096)

/* Whether text from outside is a valid value of the user's member. If not, the
 * stored value stays. */
static bool
member_fits(const char *member, const char *text)
{
	const struct field *f = field_find(user_shape.fields, member);
	size_t chars;

	if (f == NULL || text == NULL || *text == '\0' ||
	    !utf8_valid(text, strlen(text)) || str_has_control(text))
		return false;
	chars = str_chars(text);
	return (int64_t)chars >= f->min && (int64_t)chars <= f->max &&
	    (f->pattern == NULL || str_matches(text, f->pattern));
}

/* Whether `list` contains `word`, according to the comparison. */
static bool
is_listed(struct arena *a, const char *list, const char *word,
    int (*compare)(const char *, const char *))
{
	const char *s = list;
	size_t len;

	for (; s != NULL && *s != '\0'; s += len) {
		s += strspn(s, ", \t");
		len = strcspn(s, ", \t");
		if (len > 0 && compare(arena_strndup(a, s, len), word) == 0)
			return true;
	}
	return false;
}

static const char *
text_lower(struct arena *a, const char *s)
{
	char *out = arena_strdup(a, s), *c;

	for (c = out; *c != '\0'; c++)
		if (*c >= 'A' && *c <= 'Z')
			*c = (char)(*c - 'A' + 'a');
	return out;
}

/* The role of a new user; NULL if new users are not admitted. */
static const char *
signup_role(const struct req *rq)
{
	const char *signup = rq->settings->auth.signup;

	return role_of(signup) == ROLE_NONE ? NULL : signup;
}

static const struct err *
check_active(const struct user *u)
{
	return str_eq(u->status, "active") ?
	    NULL :
	    err_public(ERR_FORBIDDEN,
		"The user %s is disabled. Ask an administrator to enable "
		"it.",
		u->username);
}

static const struct err *
stranger_reject(const char *login)
{
	return err_public(ERR_FORBIDDEN,
	    "You have no user here. Ask an administrator to create a user "
	    "named \"%s\".",
	    login);
}

static const struct err *
deleted_reject(const char *login)
{
	return err_public(ERR_FORBIDDEN,
	    "Your user was deleted. Ask an administrator to create one named "
	    "\"%s\" again.",
	    login);
}

/* Whether this login becomes an administrator now, by auth.admins. */
static const struct err *
admin_promote(struct db *db, struct req *rq, const struct identity *who,
    const char *login, bool *out)
{
	*out = false;
	if (!is_listed(rq->a, rq->settings->auth.admins, login, strcasecmp))
		return NULL;
	return identity_claim(db, who, text_lower(rq->a, login), out);
}

/* The same account id at another address: either the server has moved, or this
 * is another server and the id belongs to another person. */
static const struct err *
account_moved(const struct identity *bound, const struct identity *who,
    const char *username)
{
	log_warn("%s is bound to account %s at %s, but account %s of %s signed "
		 "in; if the server has a new address, run: slipway-admin "
		 "gitserver move %s",
	    username, bound->forge_id, bound->forge, who->forge_id, who->forge,
	    bound->forge);
	return err_public(ERR_FORBIDDEN,
	    "The user \"%s\" is bound to an account at another address of the "
	    "Git server. If the server has moved, ask an administrator to move "
	    "the accounts to its new address (slipway-admin gitserver move).",
	    username);
}

/* An existing user of that name is bound to the account only if it is bound to
 * no other. The table's collation treats more names as equal than the Git
 * server does, so the bytes are compared. The locked row is read again because
 * an administrator may have changed it. */
static const struct err *
user_adopt(struct db *db, struct req *rq, struct identity *who,
    const char *login, struct user *u)
{
	const struct err *e;
	struct identity bound;

	e = user_lock(db, rq->a, u->id, u);
	if (e != NULL && e->code == ERR_NOTFOUND)
		return err_new(ERR_CONFLICT, "%s was deleted meanwhile", login);
	if (e != NULL)
		return e;
	if ((e = identity_of(db, rq->a, u->id, &bound)) != NULL)
		return e;
	if (bound.forge != NULL && str_eq(bound.forge_id, who->forge_id)) {
		if (!str_eq(bound.forge, who->forge))
			return account_moved(&bound, who, u->username);
		/* a concurrent sign-in of the same account was first */
		who->user_id = u->id;
		return check_active(u);
	}
	if (bound.forge != NULL || strcasecmp(u->username, login) != 0)
		return err_public(ERR_FORBIDDEN,
		    "The name \"%s\" belongs to another account. Ask an "
		    "administrator.",
		    u->username);
	if ((e = check_active(u)) != NULL)
		return e;
	who->user_id = u->id;
	return identity_bind(db, who);
}

/* Records that the service has created the user, or made it an
 * administrator. */
static const struct err *
admission_audit(struct req *rq, int64_t id, const struct user *u)
{
	const struct audit_object_ref object = { AUDIT_OF_USER, id, 0 };
	const struct user granted = { .username = u->username,
		.role = u->role };
	struct audit entry = { .user_id = { id, true },
		.username = u->username,
		.via = AUDIT_SESSION,
		.address = rq->in[IN_REMOTE_ADDR],
		.action = "admitUser" };
	const struct err *e;
	struct buf changes;

	buf_init(&changes, CHANGES_MAX);
	(void)json_changes(&changes, &user_shape, NULL, &granted);
	entry.changes.s = changes.data;
	if ((e = buf_check(&changes)) == NULL)
		e = audit_write(rq->db, &entry, &object);
	buf_release(&changes);
	return e;
}

static const struct err *
user_make(struct db *db, struct req *rq, struct identity *who,
    const char *login, struct user *u)
{
	const char *role = signup_role(rq);
	const struct err *e;
	bool yes;

	if ((e = identity_was_deleted(db, who, NULL, &yes)) != NULL)
		return e;
	if (yes)
		return deleted_reject(login);
	if ((e = admin_promote(db, rq, who, login, &yes)) != NULL)
		return e;
	if (yes)
		role = "admin";
	if (role == NULL)
		return stranger_reject(login);
	*u = (struct user){ .username = login, .role = role };
	if ((e = user_insert(db, u, &who->user_id)) != NULL)
		return e;
	if ((e = identity_bind(db, who)) != NULL)
		return e;
	return user_by_id(db, rq->a, who->user_id, u);
}

/* Sets `*member` to the Git server's value; true if that changes it. */
static bool
member_follow(const char *name, const char *said, const char **member)
{
	if (!member_fits(name, said) || str_eq(*member, said))
		return false;
	*member = said;
	return true;
}

/* Copies name, email address and picture from the Git server; the login too, if
 * no other user has that name. */
static const struct err *
profile_write(struct db *db, struct req *rq,
    const struct forge_account *account, struct user *u, unsigned changes)
{
	const struct err *e;
	struct user other;

	if (member_fits("username", account->login) &&
	    !str_eq(u->username, account->login)) {
		e = user_by_name(db, rq->a, account->login, &other);
		if (e != NULL && e->code != ERR_NOTFOUND)
			return e;
		if (e != NULL || other.id == u->id)
			changes += member_follow("username", account->login,
			    &u->username);
	}
	changes += member_follow("name", account->name, &u->name);
	changes += member_follow("email", account->email, &u->email);
	changes += member_follow("avatar_url", account->avatar_url,
	    &u->avatar_url);
	return changes > 0 ? user_update(db, u) : NULL;
}

const struct err *
admission_account(struct db *db, struct req *rq, const char *server,
    const struct forge_account *account, struct user *out)
{
	struct identity who = { .forge = server, .forge_id = account->id };
	const struct err *e;
	bool made = false, admin = false;

	e = user_by_account(db, rq->a, who.forge, who.forge_id, out);
	if (e != NULL && e->code == ERR_NOTFOUND) {
		if (!member_fits("username", account->login))
			return err_public(ERR_FORBIDDEN,
			    "Your login at the Git server is not a valid "
			    "username. It may contain letters, digits and . _ "
			    "@ + -.");
		e = user_by_name(db, rq->a, account->login, out);
		made = e != NULL && e->code == ERR_NOTFOUND;
		if (made)
			e = user_make(db, rq, &who, account->login, out);
		else if (e == NULL)
			e = user_adopt(db, rq, &who, account->login, out);
	}
	if (e != NULL || (e = check_active(out)) != NULL)
		return e;
	if (!made && role_of(out->role) < ROLE_ADMIN &&
	    (e = admin_promote(db, rq, &who, account->login, &admin)) != NULL)
		return e;
	if (admin)
		out->role = "admin";
	if ((e = profile_write(db, rq, account, out, admin ? 1 : 0)) != NULL ||
	    ((made || admin) &&
		(e = admission_audit(rq, out->id, out)) != NULL))
		return e;
	if ((e = identity_seen(db, out->id)) != NULL)
		return e;
	return user_by_id(db, rq->a, out->id, out);
}

struct newcomer {
	struct req *rq;
	const char *name;
	const char *role;
};

/* nginx supplies only a name, so a deleted user is recognized by name. */
static const struct err *
newcomer_body(struct db *db, void *context)
{
	const struct identity nobody = { .forge = NULL };
	struct newcomer *n = context;
	const struct user u = { .username = n->name, .role = n->role };
	const struct err *e;
	int64_t id;
	bool yes;

	if ((e = identity_was_deleted(db, &nobody, n->name, &yes)) != NULL)
		return e;
	if (yes)
		return deleted_reject(n->name);
	if ((e = user_insert(db, &u, &id)) != NULL)
		return e;
	return admission_audit(n->rq, id, &u);
}

const struct err *
admission_name(struct req *rq, const char *name, struct principal *out)
{
	struct newcomer n = { .rq = rq, .name = name, .role = signup_role(rq) };
	const struct err *e;
	struct user u;

	e = principal_by_name(rq->db, rq->a, name, out);
	if (e == NULL || e->code != ERR_NOTFOUND)
		return e;
	if (!member_fits("username", name))
		return err_public(ERR_FORBIDDEN,
		    "The name from nginx is not a valid username. It may "
		    "contain letters, digits and . _ @ + -.");
	e = user_by_name(rq->db, rq->a, name, &u);
	if (e == NULL && (e = check_active(&u)) == NULL)
		return stranger_reject(name);
	if (e->code != ERR_NOTFOUND)
		return e;
	if (is_listed(rq->a, rq->settings->auth.admins, name, strcmp))
		n.role = "admin";
	if (n.role == NULL)
		return stranger_reject(name);
	e = db_transaction(rq->db, newcomer_body, &n);
	if (e != NULL && e->code != ERR_CONFLICT)
		return e;
	return principal_by_name(rq->db, rq->a, name, out);
}
