/* SPDX-License-Identifier: ISC */
/* A JSON body read by a field table. */
#include "core/str.h"
#include "fuzz.h"
#include "json/json.h"

struct item {
	const char *label;
	const char *line;
	int64_t number;
};

struct body {
	const char *name;
	const char *kind;
	int64_t number;
	bool yes;
	bool flag;
	struct maybe seconds;
	struct when at;
	struct json_text items;
	struct map env_vars;
	struct list list;
	struct list one;
};

static const char *const kinds[] = { "a", "b", NULL };

#define I(m, ...) FIELD(struct item, m, FIELD_OUT | FIELD_IN | __VA_ARGS__)
#define B(m, ...) FIELD(struct body, m, FIELD_OUT | FIELD_IN | __VA_ARGS__)

static const struct field item_fields[] = {
	I(label, FIELD_MUST, .max = 100),
	I(line, FIELD_LINE | FIELD_NULL, .pattern = "[a-z]*"),
	I(number, 0),
	FIELD_END,
};
static const struct shape item_shape = {
	.name = "Item",
	.fields = item_fields,
	.size = sizeof(struct item),
};

static const struct field body_fields[] = {
	B(name, FIELD_NULL, .outside = "n"),
	B(kind, FIELD_NULL, .values = kinds),
	B(number, 0, .min = 0, .max = 99),
	B(yes, 0),
	B(flag, FIELD_NUMBER),
	B(seconds, FIELD_NULL),
	B(at, FIELD_NULL),
	B(items, 0, .shape = &item_shape, .max = 20000),
	B(env_vars, 0, .max = 20000),
	B(list, 0, .shape = &item_shape),
	B(one, FIELD_ONE | FIELD_NULL, .shape = &item_shape),
	FIELD_END,
};
static const struct shape body_shape = {
	.name = "Body",
	.fields = body_fields,
	.size = sizeof(struct body),
};

/* What was read is written as strict JSON, and reads back the same. */
static void
again(struct arena *a, const struct body *body)
{
	struct body twin = { .name = NULL };
	struct faults faults;
	struct list list;
	struct buf first, second;

	buf_init(&first, 16 << 20);
	buf_init(&second, 16 << 20);
	faults_init(&faults, a);
	json_write(&first, &body_shape, body, FIELD_DETAIL);
	MUST(json_strict(first.data, first.len) == NULL);
	MUST(json_read(&body_shape, JSON_UPDATE, first.data, first.len, &twin,
		 &faults) == NULL);
	json_write(&second, &body_shape, &twin, FIELD_DETAIL);
	MUST(str_eq(first.data, second.data));
	MUST(json_items(a, &item_shape, body->items.s, &list) == NULL);
	buf_release(&first);
	buf_release(&second);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const char *text = (const char *)data;
	struct arena *a;
	struct body body = { .name = NULL };
	struct faults faults;
	const struct err *e, *strict;

	if (len > (1 << 20))
		return 0;
	a = arena_open(32 << 20);
	faults_init(&faults, a);
	strict = json_strict(text, len);
	e = json_read(&body_shape, JSON_CREATE, text, len, &body, &faults);
	MUST(e == NULL || faults.n == 0);
	if (e == NULL)
		e = faults_check(&faults);
	MUST(strict == NULL || (e != NULL && e->code == strict->code));
	MUST(e == NULL || e->code == ERR_INVALID || strict != NULL);
	MUST(e == NULL || strict != NULL || faults.n > 0);
	if (e == NULL)
		again(a, &body);
	arena_close(a);
	return 0;
}
