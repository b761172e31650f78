/* SPDX-License-Identifier: ISC */
/* Objects of strings in their stored form. */
#include <string.h>

#include <cjson/cJSON.h>

#include "json/inner.h"

/* Longest name quoted in an error. */
#define ECHO 100

const struct err *
json_map(struct arena *a, const char *text, struct map *out)
{
	const struct err *e;
	struct pair *pair;
	const cJSON *member;
	cJSON *tree;

	out->items = NULL;
	out->n = 0;
	if (text == NULL)
		return NULL;
	if ((e = json_tree(text, strlen(text), JSON_STORED_VALUES, &tree)) !=
	    NULL)
		goto out;
	if (!cJSON_IsObject(tree)) {
		e = err_new(ERR_INTERNAL, "not an object");
		goto out;
	}
	pair = arena_alloc(a, (size_t)cJSON_GetArraySize(tree), sizeof(*pair));
	out->items = pair;
	cJSON_ArrayForEach(member, tree) {
		if (!cJSON_IsString(member) && !cJSON_IsNull(member)) {
			e = err_new(ERR_INTERNAL, "%.*s is not a string", ECHO,
			    member->string);
			goto out;
		}
		pair->key = arena_strdup(a, member->string);
		if (cJSON_IsString(member))
			pair->value = arena_strdup(a, member->valuestring);
		pair++;
		out->n++;
	}
out:
	cJSON_Delete(tree);
	if (e != NULL)
		return err_new(ERR_INTERNAL, "stored pairs: %s", e->msg);
	return NULL;
}
