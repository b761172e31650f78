/* SPDX-License-Identifier: ISC */
#include <string.h>

#include <cjson/cJSON.h>

#include "core/str.h"
#include "json/inner.h"

static bool
is_none(const struct field *f, const void *present)
{
	const struct maybe *maybe = present;
	const struct when *when = present;
	const struct list *list = present;

	switch (f->type) {
	case F_STR:
		return *(const char *const *)present == NULL;
	case F_MAYBE:
		return !maybe->set;
	case F_WHEN:
		return when->ms == 0;
	case F_LIST:
		return (f->flags & FIELD_ONE) != 0 && list->n == 0;
	case F_JSON:
		return (f->flags & FIELD_NULL) != 0 &&
		    ((const struct json_text *)present)->s == NULL;
	case F_INT:
	case F_BOOL:
	case F_MAP:
	case F_BLOB:
		break;
	}
	return false;
}

static bool
same_number(const cJSON *value, int64_t present)
{
	return cJSON_IsNumber(value) &&
	    !(value->valuedouble < (double)present) &&
	    !(value->valuedouble > (double)present);
}

static bool
same_truth(const struct field *f, const cJSON *value, bool present)
{
	if (cJSON_IsBool(value))
		return (cJSON_IsTrue(value) != 0) == present;
	return (f->flags & FIELD_NUMBER) != 0 &&
	    same_number(value, present ? 1 : 0);
}

static bool
maybe_same(const struct field *f, const cJSON *value, int64_t present)
{
	return (f->flags & FIELD_TRUTH) != 0 ?
	    same_truth(f, value, present != 0) :
	    same_number(value, present);
}

/* One instant can be written in several ways. */
static bool
same_time(const cJSON *value, int64_t present)
{
	int64_t ms;

	return cJSON_IsString(value) &&
	    str_time_parse(value->valuestring, &ms) && ms == present;
}

static bool
same_text(const struct field *f, const cJSON *value, const char *present)
{
	const char *empty = (f->flags & FIELD_MAP) != 0 ? "{}" : "[]";
	cJSON *tree;
	bool is_same;

	tree = cJSON_Parse(present == NULL ? empty : present);
	is_same = tree != NULL && cJSON_Compare(tree, value, 1) != 0;
	cJSON_Delete(tree);
	return is_same;
}

/* Members that were left out are not compared. */
static bool
same_object(const struct shape *shape, const cJSON *object, const void *present)
{
	const struct field *f = shape->fields;
	const cJSON *member;

	if (shape->bare)
		return json_same(f, object, field_of(present, f));
	if (!cJSON_IsObject(object))
		return false;
	cJSON_ArrayForEach(member, object) {
		for (f = shape->fields; f->name != NULL; f++)
			if ((f->flags & FIELD_OUT) != 0 &&
			    json_is_name(f, member->string))
				break;
		if (f->name == NULL ||
		    !json_same(f, member, field_of(present, f)))
			return false;
	}
	return true;
}

static bool
same_list(const struct field *f, const cJSON *value, const struct list *present)
{
	const char *item = present->items;
	const cJSON *one;

	if ((f->flags & FIELD_ONE) != 0)
		return present->n == 1 && same_object(f->shape, value, item);
	if (!cJSON_IsArray(value) ||
	    (size_t)cJSON_GetArraySize(value) != present->n)
		return false;
	cJSON_ArrayForEach(one, value) {
		if (!same_object(f->shape, one, item))
			return false;
		item += f->shape->size;
	}
	return true;
}

/* Compares in any order, since members of an object have none. */
static bool
same_map(const cJSON *value, const struct map *present)
{
	const cJSON *one;
	size_t i;

	if (!cJSON_IsObject(value) ||
	    (size_t)cJSON_GetArraySize(value) != present->n)
		return false;
	for (i = 0; i < present->n; i++) {
		one = cJSON_GetObjectItemCaseSensitive(value,
		    present->items[i].key);
		if (one == NULL ||
		    !str_eq(cJSON_GetStringValue(one), present->items[i].value))
			return false;
	}
	return true;
}

bool
json_same(const struct field *f, const cJSON *value, const void *present)
{
	if (cJSON_IsNull(value))
		return is_none(f, present);
	if (is_none(f, present))
		return false;
	switch (f->type) {
	case F_INT:
		return same_number(value, *(const int64_t *)present);
	case F_STR:
		return cJSON_IsString(value) &&
		    str_eq(value->valuestring, *(const char *const *)present);
	case F_BOOL:
		return same_truth(f, value, *(const bool *)present);
	case F_MAYBE:
		return maybe_same(f, value, ((const struct maybe *)present)->n);
	case F_WHEN:
		return same_time(value, ((const struct when *)present)->ms);
	case F_JSON:
		return same_text(f, value,
		    ((const struct json_text *)present)->s);
	case F_LIST:
		return same_list(f, value, present);
	case F_MAP:
		return same_map(value, present);
	case F_BLOB:
		break;
	}
	return false;
}

static bool
maps_same(const struct map *a, const struct map *b)
{
	size_t i, k;

	if (a->n != b->n)
		return false;
	for (i = 0; i < a->n; i++) {
		for (k = 0; k < b->n; k++)
			if (str_eq(a->items[i].key, b->items[k].key))
				break;
		if (k == b->n || !str_eq(a->items[i].value, b->items[k].value))
			return false;
	}
	return true;
}

static bool
items_same(const struct shape *shape, const void *a, const void *b)
{
	const struct field *f;

	for (f = shape->fields; f->name != NULL; f++)
		if ((f->flags & FIELD_IN) != 0 &&
		    !json_value_same(f, field_of(a, f), field_of(b, f)))
			return false;
	return true;
}

static bool
lists_same(const struct shape *shape, const struct list *a,
    const struct list *b)
{
	const char *left = a->items, *right = b->items;
	size_t i;

	if (a->n != b->n)
		return false;
	for (i = 0; i < a->n; i++, left += shape->size, right += shape->size)
		if (!items_same(shape, left, right))
			return false;
	return true;
}

bool
json_value_same(const struct field *f, const void *a, const void *b)
{
	const struct maybe *left = a, *right = b;

	switch (f->type) {
	case F_INT:
		return *(const int64_t *)a == *(const int64_t *)b;
	case F_STR:
		return str_eq(*(const char *const *)a, *(const char *const *)b);
	case F_BOOL:
		return *(const bool *)a == *(const bool *)b;
	case F_MAYBE:
		return left->set == right->set && left->n == right->n;
	case F_WHEN:
		return ((const struct when *)a)->ms ==
		    ((const struct when *)b)->ms;
	case F_JSON:
		return str_eq(((const struct json_text *)a)->s,
		    ((const struct json_text *)b)->s);
	case F_LIST:
		return lists_same(f->shape, a, b);
	case F_MAP:
		return maps_same(a, b);
	case F_BLOB:
		break;
	}
	return false;
}
