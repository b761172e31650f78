/* SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <string.h>

#include "cli/admin.h"
#include "core/str.h"
#include "json/json.h"
#include "store/user.h"

#define BODY_MAX ((size_t)64 * 1024)
#define PAGE 100

struct change {
	struct admin *admin;
	const char *username;
	const struct admin_user *options; /* NULL = none */
};

static const struct err *
faults_tell(const struct faults *f)
{
	struct buf text;
	const struct err *e;
	size_t i;

	buf_init(&text, BODY_MAX);
	for (i = 0; i < f->n && i < FAULTS_MAX; i++)
		buf_printf(&text, "%s%s: %s", i == 0 ? "" : "; ",
		    f->item[i].pointer + 1, f->item[i].detail);
	e = err_public(ERR_INVALID, "%s", text.data == NULL ? "" : text.data);
	buf_release(&text);
	return e;
}

const struct err *
admin_read(struct admin *admin, const struct shape *shape, enum json_mode mode,
    const struct map *members, void *item)
{
	struct faults *faults = arena_alloc(admin->a, 1, sizeof(*faults));
	struct buf body;
	const struct err *e;

	faults_init(faults, admin->a);
	buf_init(&body, BODY_MAX);
	json_write_map(&body, members);
	if ((e = buf_check(&body)) == NULL)
		e = json_read(shape, mode, body.data, body.len, item, faults);
	buf_release(&body);
	return faults->n > 0 ? faults_tell(faults) : e;
}

/* Reads the options over the row or the defaults in `u`. An empty text clears a
 * value. */
static const struct err *
read_options(const struct change *c, enum json_mode mode, struct user *u)
{
	const struct pair wishes[] = {
		{ "username", c->username },
		{ "role", c->options->role },
		{ "status", c->options->status },
		{ "name", c->options->name },
		{ "email", c->options->email },
	};
	struct pair pairs[sizeof(wishes) / sizeof(wishes[0])];
	struct map map = { .items = pairs };
	size_t i;

	for (i = 0; i < sizeof(wishes) / sizeof(wishes[0]); i++) {
		if (wishes[i].value == NULL)
			continue;
		pairs[map.n] = wishes[i];
		if (*wishes[i].value == '\0')
			pairs[map.n].value = NULL;
		map.n++;
	}
	return admin_read(c->admin, &user_shape, mode, &map, u);
}

const struct err *
admin_user_find(struct admin *admin, const char *username, struct user *out)
{
	const struct err *e;

	e = user_by_name(admin->db, admin->a, username, out);
	if (e != NULL && e->code == ERR_NOTFOUND)
		return err_public(ERR_NOTFOUND, "unknown user %s", username);
	return e;
}

const struct err *
admin_user_list(void *context, struct command_call *call)
{
	struct admin *admin = context;
	const struct user_filter all = { .keyword = NULL };
	struct page page = { .page = 1, .limit = PAGE };
	const struct user *u;
	struct list list;
	const struct err *e;
	size_t i;

	(void)call;
	do {
		if ((e = user_page(admin->db, admin->a, &all, &page, &list)) !=
		    NULL)
			return e;
		u = list.items;
		for (i = 0; i < list.n; i++)
			(void)printf("%s\t%s\t%s\t%s\t%s\n",
			    str_visible(admin->a, u[i].username), u[i].role,
			    u[i].status,
			    str_visible(admin->a,
				u[i].name == NULL ? "" : u[i].name),
			    str_visible(admin->a,
				u[i].email == NULL ? "" : u[i].email));
	} while (page.page++ * PAGE < page.total);
	return NULL;
}

static struct audit_object_ref
user_object(int64_t id)
{
	return (struct audit_object_ref){ AUDIT_OF_USER, id, 0 };
}

static const struct err *
add(struct db *db, void *context)
{
	struct change *c = context;
	struct user u = { .username = NULL };
	const struct err *e;
	int64_t id;

	if ((e = read_options(c, JSON_CREATE, &u)) != NULL ||
	    (e = user_insert(db, &u, &id)) != NULL)
		return e;
	(void)admin_changes(c->admin, &user_shape, NULL, &u);
	c->admin->audit.object = user_object(id);
	return NULL;
}

const struct err *
admin_user_create(struct admin *admin, const char *username,
    const struct admin_user *options)
{
	struct change c = { .admin = admin,
		.username = username,
		.options = options };

	return admin_transaction(admin, add, &c);
}

const struct err *
admin_user_add(void *context, struct command_call *call)
{
	const char *username = call->word[0];
	const struct err *e;

	if ((e = admin_user_create(context, username, call->options)) != NULL)
		return e;
	(void)printf("user %s was created\n", username);
	return NULL;
}

static const struct err *
set(struct db *db, void *context)
{
	struct change *c = context;
	struct user u, old;
	const struct err *e;

	if ((e = admin_user_find(c->admin, c->username, &u)) != NULL ||
	    (e = user_lock(db, c->admin->a, u.id, &u)) != NULL)
		return e;
	old = u;
	if ((e = read_options(c, JSON_UPDATE, &u)) != NULL ||
	    !admin_changes(c->admin, &user_shape, &old, &u))
		return e;
	c->admin->audit.object = user_object(u.id);
	return user_update(db, &u);
}

const struct err *
admin_user_set(void *context, struct command_call *call)
{
	struct admin *admin = context;
	struct change c = { .admin = admin,
		.username = call->word[0],
		.options = call->options };
	const struct err *e;

	if ((e = admin_transaction(admin, set, &c)) != NULL)
		return e;
	(void)printf("user %s was changed\n", c.username);
	return NULL;
}

static const struct err *
drop(struct db *db, void *context)
{
	struct change *c = context;
	struct user u;
	const struct err *e;

	if ((e = admin_user_find(c->admin, c->username, &u)) != NULL ||
	    (e = user_lock(db, c->admin->a, u.id, &u)) != NULL)
		return e;
	c->admin->audit.object = user_object(u.id);
	return user_delete(db, u.id);
}

const struct err *
admin_user_delete(void *context, struct command_call *call)
{
	struct admin *admin = context;
	struct change c = { .admin = admin, .username = call->word[0] };
	const struct err *e;

	if ((e = admin_transaction(admin, drop, &c)) != NULL)
		return e;
	(void)printf("user %s was deleted\n", c.username);
	return NULL;
}
