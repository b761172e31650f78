/* SPDX-License-Identifier: ISC */
/* JSON of other servers read by paths: the result equals that of a tree. */
#include <string.h>

#include <cjson/cJSON.h>

#include "core/num.h"
#include "core/str.h"
#include "fuzz.h"
#include "json/inner.h"

struct item {
	const char *text;
	const char *deep;
	const char *first;
	int64_t number;
	bool flag;
	struct when at;
};
#define P(m, p, ...) JSON_PATH(struct item, m, p, __VA_ARGS__)

static const struct json_path loose[] = {
	P(text, "a", .must = false),
	P(deep, "b.c", .must = false),
	P(first, "b.*.*", .must = false),
	P(number, "n", .must = false),
	P(flag, "f", .must = false),
	P(at, "t", .must = false),
	JSON_PATH_END,
};
static const struct json_path strict[] = {
	P(text, "a", .must = true),
	P(number, "n", .must = true),
	JSON_PATH_END,
};

/* The value for a number that is no integer or too large. */
static bool
is_half(const cJSON *n)
{
	return (int64_t)(2 * n->valuedouble) == 1;
}

static void
text_same(const cJSON *tree, const char *got)
{
	if (cJSON_IsString(tree))
		MUST(str_eq(tree->valuestring, got));
	else if (!cJSON_IsNumber(tree))
		MUST(got == NULL);
	else
		MUST((got == NULL) == is_half(tree));
}

static const cJSON *
first_of(const cJSON *tree)
{
	return cJSON_IsObject(tree) || cJSON_IsArray(tree) ? tree->child : NULL;
}

static void
item_same(const cJSON *tree, const struct item *got)
{
	const cJSON *b, *n;

	if (!cJSON_IsObject(tree))
		return;
	text_same(cJSON_GetObjectItemCaseSensitive(tree, "a"), got->text);
	b = cJSON_GetObjectItemCaseSensitive(tree, "b");
	text_same(cJSON_IsObject(b) ? cJSON_GetObjectItemCaseSensitive(b, "c") :
				      NULL,
	    got->deep);
	text_same(first_of(first_of(b)), got->first);
	n = cJSON_GetObjectItemCaseSensitive(tree, "n");
	if (cJSON_IsNumber(n) && !is_half(n))
		MUST(got->number == (int64_t)n->valuedouble);
	else
		MUST(got->number == 0);
	MUST(got->flag ==
	    (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(tree, "f")) != 0));
}

static void
list_same(struct arena *a, const char *text, size_t len, const cJSON *tree)
{
	const struct item *item;
	const cJSON *member;
	struct list list;
	size_t i = 0;

	if (json_pick_list(a, loose, sizeof(*item), text, len, &list) != NULL) {
		MUST(!cJSON_IsNull(tree));
		return;
	}
	MUST(cJSON_IsNull(tree) ||
	    (cJSON_IsArray(tree) &&
		(size_t)cJSON_GetArraySize(tree) == list.n));
	item = list.items;
	cJSON_ArrayForEach(member, tree) {
		MUST(cJSON_IsObject(member));
		item_same(member, &item[i++]);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const char *text = (const char *)data;
	struct item got = { .text = NULL }, must = { .text = NULL };
	const struct err *e, *bad;
	cJSON *tree = NULL;
	struct list list;
	struct arena *a;

	if (len > (1 << 20))
		return 0;
	a = arena_open(32 << 20);
	bad = json_tree(text, len, JSON_FOREIGN_VALUES, &tree);
	e = json_pick(a, loose, text, len, &got);
	MUST((e == NULL) == (bad == NULL && cJSON_IsObject(tree)));
	if (e == NULL)
		item_same(tree, &got);
	if (e == NULL && json_pick(a, strict, text, len, &must) == NULL)
		MUST(must.text != NULL && str_eq(must.text, got.text));
	if (bad == NULL)
		list_same(a, text, len, tree);
	e = json_pick_member(a, "b.l", strict, sizeof(got), text, len, &list);
	MUST(e == NULL || list.n < JSON_FOREIGN_VALUES);
	cJSON_Delete(tree);
	arena_close(a);
	return 0;
}
