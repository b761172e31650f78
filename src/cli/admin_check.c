/* SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <string.h>

#include "cli/admin.h"
#include "core/str.h"
#include "crypto/keyring.h"
#include "crypto/public_key.h"

static void
print_map(const struct conf_map *map)
{
	size_t i;

	for (i = 0; i < map->n; i++)
		(void)printf("%s = %s\n", map->items[i].key,
		    map->items[i].value);
}

/* Prints the set values in the form of the configuration file. */
static void
print_settings(struct admin *admin)
{
	const struct conf_key *k;
	const char *section = "";
	const char *text;

	for (k = settings_keys; k->section != NULL; k++) {
		if (strcmp(section, k->section) != 0)
			(void)printf("[%s]\n", k->section);
		section = k->section;
		if (k->type == C_MAP) {
			print_map(&admin->set.run_as);
			continue;
		}
		text = conf_text(admin->a, k, &admin->set);
		if (*text == '\0')
			continue;
		if ((k->flags & CONF_SECRET) != 0)
			(void)printf("# %s is set\n", k->name);
		else
			(void)printf("%s = %s\n", k->name, text);
	}
}

/* Prints the result of a check and keeps the first error. */
static void
report(const char *what, const struct err *e, struct err *room,
    const struct err **first)
{
	if (e == NULL) {
		(void)printf("# ok: %s\n", what);
		return;
	}
	(void)printf("# FAULT: %s: %s\n", what, e->msg);
	if (*first == NULL)
		*first = err_keep(room, e);
}

const struct err *
admin_check(void *context, struct command_call *call)
{
	struct admin *admin = context;
	const struct settings_secrets *s = &admin->set.secrets;
	struct keyring *keys = NULL;
	struct public_key *public_key = NULL;
	struct err room;
	const struct err *first = NULL;

	(void)call;
	print_settings(admin);
	report("key file", keyring_open(s->key_file, &keys), &room, &first);
	keyring_close(keys);
	report("public key for variables",
	    public_key_open(settings_deploy_public(admin->a, s), &public_key),
	    &room, &first);
	public_key_close(public_key);
	report("database and schema", db_check_schema(admin->db), &room,
	    &first);
	return first != NULL ? err_wrap(first, "check") : NULL;
}
