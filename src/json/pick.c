/* SPDX-License-Identifier: ISC */
#include <string.h>

#include <cjson/cJSON.h>

#include "core/str.h"
#include "json/inner.h"

#define NAME_MAX_LEN 64 /* of one part of a path */

/* What a path leads to; NULL if something on the way is missing. */
static const cJSON *
walk(const cJSON *at, const char *path)
{
	char name[NAME_MAX_LEN];
	size_t len;

	for (; at != NULL; path += len + 1) {
		len = strcspn(path, ".");
		if (len >= sizeof(name))
			return NULL;
		(void)memcpy(name, path, len);
		name[len] = '\0';
		at = cJSON_GetObjectItemCaseSensitive(at, name);
		if (path[len] == '\0')
			break;
	}
	return at;
}

static bool
str_pick(struct arena *a, const cJSON *value, const char **out)
{
	if (cJSON_IsString(value)) {
		*out = arena_strdup(a, value->valuestring);
		return true;
	}
	if (!cJSON_IsNumber(value))
		return false;
	*out = arena_printf(a, "%.0f", value->valuedouble);
	return true;
}

static bool
int_pick(const cJSON *value, int64_t *out)
{
	if (!cJSON_IsNumber(value))
		return false;
	*out = (int64_t)value->valuedouble;
	return true;
}

static bool
when_pick(const cJSON *value, struct when *out)
{
	return cJSON_IsString(value) &&
	    str_time_parse(value->valuestring, &out->ms);
}

/* False where the value is of another type. */
static bool
value_pick(struct arena *a, const struct json_path *p, const cJSON *value,
    void *to)
{
	bool *flag;

	switch (p->type) {
	case F_STR:
		return str_pick(a, value, to);
	case F_INT:
		return int_pick(value, to);
	case F_WHEN:
		return when_pick(value, to);
	case F_BOOL:
		flag = to;
		*flag = cJSON_IsTrue(value) != 0;
		return cJSON_IsBool(value) != 0;
	case F_MAYBE:
	case F_JSON:
	case F_LIST:
	case F_BLOB:
		break;
	}
	return false;
}

static const struct err *
object_pick(struct arena *a, const struct json_path *table, const cJSON *object,
    void *item)
{
	const struct json_path *p;
	const cJSON *value;

	if (!cJSON_IsObject(object))
		return err_tell(ERR_UPSTREAM, "The answer is no JSON object.");
	for (p = table; p->path != NULL; p++) {
		value = walk(object, p->path);
		if (value != NULL && !cJSON_IsNull(value) &&
		    value_pick(a, p, value, (char *)item + p->offset))
			continue;
		if (p->must)
			return err_tell(ERR_UPSTREAM,
			    "The answer lacks the member \"%s\".", p->path);
	}
	return NULL;
}

static const struct err *
tree_of(const char *text, size_t len, cJSON **out)
{
	const struct err *e;

	if ((e = json_tree(text, len, JSON_FOREIGN_VALUES, out)) != NULL)
		return err_tell(ERR_UPSTREAM, "The answer is no JSON: %s",
		    e->detail[0] != '\0' ? e->detail : e->msg);
	return NULL;
}

const struct err *
json_pick(struct arena *a, const struct json_path *table, const char *text,
    size_t len, void *item)
{
	const struct err *e;
	cJSON *tree = NULL;

	if ((e = tree_of(text, len, &tree)) == NULL)
		e = object_pick(a, table, tree, item);
	cJSON_Delete(tree);
	return e;
}

static const struct err *
array_pick(struct arena *a, const struct json_path *table, size_t size,
    const cJSON *array, struct list *out)
{
	const struct err *e;
	const cJSON *member;
	char *item;

	if (array == NULL || cJSON_IsNull(array))
		return NULL;
	if (!cJSON_IsArray(array))
		return err_tell(ERR_UPSTREAM, "The answer is no JSON array.");
	item = arena_alloc(a, (size_t)cJSON_GetArraySize(array), size);
	out->items = item;
	cJSON_ArrayForEach(member, array) {
		if ((e = object_pick(a, table, member, item)) != NULL)
			return e;
		item += size;
		out->n++;
	}
	return NULL;
}

const struct err *
json_pick_list(struct arena *a, const struct json_path *table, size_t size,
    const char *text, size_t len, struct list *out)
{
	const struct err *e;
	cJSON *tree = NULL;

	*out = (struct list){ .items = NULL };
	if ((e = tree_of(text, len, &tree)) == NULL)
		e = array_pick(a, table, size, tree, out);
	cJSON_Delete(tree);
	return e;
}

const struct err *
json_pick_member(struct arena *a, const char *member,
    const struct json_path *table, size_t size, const char *text, size_t len,
    struct list *out)
{
	const struct err *e;
	cJSON *tree = NULL;

	*out = (struct list){ .items = NULL };
	if ((e = tree_of(text, len, &tree)) == NULL)
		e = array_pick(a, table, size, walk(tree, member), out);
	cJSON_Delete(tree);
	return e;
}
