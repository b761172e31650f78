/* SPDX-License-Identifier: ISC */
#include <assert.h>
#include <math.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "core/num.h"
#include "core/str.h"
#include "json/inner.h"

/* Limit for reading one member before it becomes text: the largest body, and an
 * item for each of its values. */
#define SCRATCH_MAX ((size_t)24 << 20)

/* Longest name or value quoted in a fault. */
#define ECHO 100

enum read_flag {
	READ_TRUSTED = 1 << 0, /* validated when it was stored */
	READ_PARTS = 1 << 1,   /* or reported as invalid; read the valid
			        * parts */
};

struct reader {
	struct faults *faults;
	enum json_mode mode;
	unsigned flags;
};

static bool object_read(struct reader *, const struct shape *, const cJSON *,
    const char *pointer, void *item);

/* Longest name at the end of a pointer. */
#define POINTED 256

/* Adds the fault and evaluates to false. */
#define FAULT(r, pointer, ...)                                                 \
	(faults_add((r)->faults, (pointer), __VA_ARGS__), false)

/* Where a member is that the table does not have.  For a very long name, points
 * at the object; a fault that will not be stored needs no pointer. */
static const char *
stranger_pointer(struct reader *r, const char *base, const char *name)
{
	if (r->faults->n >= FAULTS_MAX || strlen(name) > POINTED)
		return base;
	return fault_pointer(r->faults, base, name);
}

static bool
int_read(struct reader *r, const struct field *f, const cJSON *value,
    const char *pointer, int64_t *out)
{
	const struct json_limits limits = json_limits(f);
	const double number = value->valuedouble;

	if (!cJSON_IsNumber(value) || number < (double)limits.min ||
	    number > (double)limits.max || trunc(number) < number ||
	    trunc(number) > number)
		return FAULT(r, pointer,
		    "must be a whole number from %lld to %lld",
		    (long long)limits.min, (long long)limits.max);
	*out = (int64_t)number;
	return true;
}

static bool
number_read(struct reader *r, const struct field *f, const cJSON *value,
    const char *pointer, void *to)
{
	return int_read(r, f, value, pointer, to);
}

static bool
maybe_read(struct reader *r, const struct field *f, const cJSON *value,
    const char *pointer, void *to)
{
	struct maybe *out = to;
	int64_t n;

	if ((f->flags & FIELD_TRUTH) != 0) {
		if (!cJSON_IsBool(value))
			return FAULT(r, pointer, "must be true or false");
		n = cJSON_IsTrue(value) != 0 ? 1 : 0;
	} else if (!int_read(r, f, value, pointer, &n)) {
		return false;
	}
	out->n = n;
	out->set = true;
	return true;
}

static bool
bool_read(struct reader *r, const struct field *f, const cJSON *value,
    const char *pointer, void *to)
{
	bool *out = to;
	int64_t n;

	if (cJSON_IsBool(value)) {
		*out = cJSON_IsTrue(value) != 0;
		return true;
	}
	if ((f->flags & FIELD_NUMBER) == 0)
		return FAULT(r, pointer, "must be true or false");
	if (!int_read(r, f, value, pointer, &n))
		return false;
	*out = n == 1;
	return true;
}

static bool
when_read(struct reader *r, const struct field *f, const cJSON *value,
    const char *pointer, void *to)
{
	struct when *out = to;
	int64_t ms;

	(void)f;
	if (!cJSON_IsString(value) ||
	    !str_time_parse(value->valuestring, &ms) || ms == 0)
		return FAULT(r, pointer,
		    "must be a time like 2026-11-21T01:02:03Z");
	out->ms = ms;
	return true;
}

static bool
choice_check(struct reader *r, const struct field *f, const char *text,
    const char *pointer)
{
	const char *const *v;
	const char *choices = "";

	for (v = f->values; *v != NULL; v++) {
		if (strcmp(*v, text) == 0)
			return true;
		choices = arena_printf(r->faults->a, "%s%s%s", choices,
		    v == f->values ? "" : ", ", *v);
	}
	return FAULT(r, pointer, "must be one of: %s", choices);
}

static bool
length_check(struct reader *r, const struct field *f, const char *text,
    const char *pointer)
{
	const struct json_limits limits = json_limits(f);
	const int64_t chars = (int64_t)str_chars(text);

	if (chars > limits.max)
		return FAULT(r, pointer,
		    "must have at most %lld characters, has %lld",
		    (long long)limits.max, (long long)chars);
	if (chars < limits.min && limits.min == 1)
		return FAULT(r, pointer, "must not be empty");
	if (chars < limits.min)
		return FAULT(r, pointer,
		    "must have at least %lld characters, has %lld",
		    (long long)limits.min, (long long)chars);
	return true;
}

/* Checks text that people read.  Stored text may predate a rule. */
static bool
text_check(struct reader *r, const struct field *f, const char *text,
    const char *pointer)
{
	const bool line = (f->flags & FIELD_LINE) != 0;

	if (line ?
		str_has_control(text) :
		(f->flags & FIELD_TEXT) != 0 && str_has_control_in_lines(text))
		return FAULT(r, pointer,
		    "must not contain control characters, or any that change "
		    "the direction of writing");
	if (line && *text != '\0' && str_is_blank(text))
		return FAULT(r, pointer, "must contain a visible character");
	return true;
}

static bool
str_read(struct reader *r, const struct field *f, const cJSON *value,
    const char *pointer, void *to)
{
	const char **out = to;
	const char *text = value->valuestring;

	if (!cJSON_IsString(value))
		return FAULT(r, pointer, "must be a string");
	if (f->values != NULL && !choice_check(r, f, text, pointer))
		return false;
	if (!length_check(r, f, text, pointer))
		return false;
	if ((r->flags & READ_TRUSTED) == 0 && !text_check(r, f, text, pointer))
		return false;
	if (f->pattern != NULL && !str_matches(text, f->pattern))
		return FAULT(r, pointer, "must match the pattern %s",
		    f->pattern);
	*out = arena_strdup(r->faults->a, text);
	return true;
}

/* Checks the number of members of an array or object against the entry's
 * limits. */
static bool
count_check(struct reader *r, const struct field *f, const cJSON *value,
    const char *pointer)
{
	const struct json_limits limits = json_limits(f);
	const int64_t n = cJSON_GetArraySize(value);

	if (n > limits.max)
		return FAULT(r, pointer,
		    "must have at most %lld members, has %lld",
		    (long long)limits.max, (long long)n);
	if (n < limits.min)
		return FAULT(r, pointer,
		    "must have at least %lld members, has %lld",
		    (long long)limits.min, (long long)n);
	return true;
}

static bool member_read(struct reader *, const struct field *, const cJSON *,
    const char *pointer, void *to);

static bool
item_read(struct reader *r, const struct shape *shape, const cJSON *value,
    const char *pointer, void *item)
{
	const struct field *only = shape->fields;

	return shape->bare ?
	    member_read(r, only, value, pointer, field_at(item, only)) :
	    object_read(r, shape, value, pointer, item);
}

/* Reads the items of a list into new memory, also when their owner is
 * updated. */
static bool
items_read(struct reader *outer, const struct shape *shape, const cJSON *value,
    const char *pointer, struct list *out)
{
	struct reader r = *outer;
	const cJSON *item;
	char *items;
	bool good = true;
	size_t i = 0;

	r.mode = JSON_CREATE;
	out->n = (size_t)cJSON_GetArraySize(value);
	items = arena_alloc(r.faults->a, out->n, shape->size);
	out->items = items;
	cJSON_ArrayForEach(item, value) {
		good = item_read(&r, shape, item,
			   fault_index(r.faults, pointer, i),
			   items + i * shape->size) &&
		    good;
		i++;
	}
	return good;
}

static bool
list_read(struct reader *r, const struct field *f, const cJSON *value,
    const char *pointer, void *to)
{
	struct reader fresh = *r;
	struct list list = { .n = 1 };

	fresh.mode = JSON_CREATE;
	if ((f->flags & FIELD_ONE) != 0) {
		list.items = arena_alloc(r->faults->a, 1, f->shape->size);
		if (!object_read(&fresh, f->shape, value, pointer, list.items))
			return false;
		*(struct list *)to = list;
		return true;
	}
	if (!cJSON_IsArray(value))
		return FAULT(r, pointer, "must be an array");
	if (!count_check(r, f, value, pointer))
		return false;
	return items_read(r, f->shape, value, pointer, to);
}

/* Leaves out values that are not strings. */
static bool
map_read(struct reader *r, const struct field *f, const cJSON *value,
    const char *pointer, void *to)
{
	struct map *out = to;
	const cJSON *member;
	struct pair *pair;
	bool good = true;

	if (!cJSON_IsObject(value))
		return FAULT(r, pointer, "must be an object of strings");
	if (!count_check(r, f, value, pointer))
		return false;
	pair = arena_alloc(r->faults->a, (size_t)cJSON_GetArraySize(value),
	    sizeof(*pair));
	out->items = pair;
	cJSON_ArrayForEach(member, value) {
		if (cJSON_IsString(member) ||
		    (cJSON_IsNull(member) && (f->flags & FIELD_GAPS) != 0)) {
			pair->key = arena_strdup(r->faults->a, member->string);
			if (cJSON_IsString(member))
				pair->value = arena_strdup(r->faults->a,
				    member->valuestring);
			pair++;
			out->n++;
		} else {
			good = FAULT(r,
			    stranger_pointer(r, pointer, member->string),
			    "must be a string");
		}
	}
	return good;
}

/* Validates a value, then stores it as text, with the valid parts of an invalid
 * value, so that others can check these.  Only the text stays in memory. */
static bool
json_text_read(struct reader *r, const struct field *f, const cJSON *value,
    const char *pointer, void *to)
{
	struct json_text *out = to;
	struct arena *scratch = arena_open(SCRATCH_MAX);
	struct faults faults = *r->faults;
	struct reader inner = *r;
	struct list list = { .n = 0 };
	struct buf text;
	bool good;

	faults.a = scratch;
	inner.faults = &faults;
	buf_init(&text, JSON_TEXT_MAX);
	good = list_read(&inner, f, value, pointer, &list);
	json_write_stored(&text, f->shape, &list);
	faults_take(r->faults, &faults);
	arena_close(scratch);
	if (buf_check(&text) != NULL)
		good = FAULT(r, pointer, "is too large");
	else if (good || list.n > 0)
		out->s = arena_strndup(r->faults->a, text.data, text.len);
	buf_release(&text);
	return good;
}

struct type {
	bool (*read)(struct reader *, const struct field *, const cJSON *,
	    const char *pointer, void *to);
	size_t size;
};

static const struct type types[] = {
	[F_INT] = { number_read, sizeof(int64_t) },
	[F_STR] = { str_read, sizeof(const char *) },
	[F_BOOL] = { bool_read, sizeof(bool) },
	[F_MAYBE] = { maybe_read, sizeof(struct maybe) },
	[F_WHEN] = { when_read, sizeof(struct when) },
	[F_JSON] = { json_text_read, sizeof(struct json_text) },
	[F_LIST] = { list_read, sizeof(struct list) },
	[F_MAP] = { map_read, sizeof(struct map) },
};

/* Holds a member of any type. */
union slot {
	int64_t number;
	const char *str;
	bool flag;
	struct maybe maybe;
	struct when when;
	struct json_text json;
	struct list list;
	struct map map;
};

/* Read-only members, and those written only once, may be sent with their
 * present value. */
static bool
is_fixed(const struct reader *r, const struct field *f)
{
	return (f->flags & FIELD_IN) == 0 ||
	    ((f->flags & FIELD_ONCE) != 0 && r->mode == JSON_UPDATE);
}

/* Reads one member into the item.  After a fault the item keeps its value, or
 * gets the valid parts of an array or object that is stored as text. */
static bool
member_read(struct reader *r, const struct field *f, const cJSON *value,
    const char *pointer, void *to)
{
	union slot fresh;

	assert(f->type < F_BLOB);
	(void)memset(&fresh, 0, sizeof(fresh));
	if (r->mode == JSON_UPDATE && is_fixed(r, f) && json_same(f, value, to))
		return true;
	if ((f->flags & FIELD_IN) == 0)
		return FAULT(r, pointer, "%s",
		    r->mode == JSON_UPDATE ?
			"is set by the service, which has another value: "
			"leave it out" :
			"is set by the service; leave it out");
	if (f->type == F_LIST && is_fixed(r, f))
		return FAULT(r, pointer,
		    "cannot be changed here: send what is stored, or leave it "
		    "out");
	if (cJSON_IsNull(value)) {
		if ((f->flags & FIELD_NULL) == 0)
			return FAULT(r, pointer, "must not be null");
	} else if (!types[f->type].read(r, f, value, pointer, &fresh)) {
		if (f->type == F_JSON && fresh.json.s != NULL &&
		    (f->flags & FIELD_ONCE) == 0)
			*(struct json_text *)to = fresh.json;
		if (f->type == F_MAP && fresh.map.n > 0 &&
		    (f->flags & FIELD_ONCE) == 0)
			*(struct map *)to = fresh.map;
		return false;
	}
	if (is_fixed(r, f) &&
	    (f->type != F_JSON ||
		!str_eq(fresh.json.s, ((const struct json_text *)to)->s)))
		return FAULT(r, pointer, "can no longer be changed");
	(void)memcpy(to, &fresh, types[f->type].size);
	return true;
}

static const struct field *
member_find(const struct shape *shape, const char *name)
{
	const struct field *f;

	for (f = shape->fields; f->name != NULL; f++)
		if ((f->flags & (FIELD_IN | FIELD_OUT)) != 0 &&
		    f->type != F_BLOB && json_is_name(f, name))
			return f;
	return NULL;
}

/* Returns the members present as bits, by their index in the table. */
static uint64_t
members_read(struct reader *r, const struct shape *shape, const cJSON *object,
    const char *base, void *item)
{
	uint64_t seen = 0;
	const struct field *f;
	const cJSON *value;
	const char *pointer;

	cJSON_ArrayForEach(value, object) {
		if ((f = member_find(shape, value->string)) == NULL) {
			faults_add(r->faults,
			    stranger_pointer(r, base, value->string),
			    "unknown member \"%.*s\"", ECHO, value->string);
			continue;
		}
		pointer = fault_pointer(r->faults, base, value->string);
		seen |= UINT64_C(1) << (f - shape->fields);
		(void)member_read(r, f, value, pointer, field_at(item, f));
	}
	return seen;
}

static void
defaults_set(const struct shape *shape, void *item)
{
	const struct field *f;

	for (f = shape->fields; f->name != NULL; f++)
		if ((f->flags & FIELD_TRUE) != 0)
			*(bool *)field_at(item, f) = true;
}

/* Reads everything and reports all faults; returns whether there were none. */
static bool
object_read(struct reader *r, const struct shape *shape, const cJSON *object,
    const char *pointer, void *item)
{
	const struct field *f;
	const size_t before = r->faults->n;
	uint64_t seen;

	if (!cJSON_IsObject(object))
		return FAULT(r, pointer, "must be an object");
	if (r->mode == JSON_CREATE)
		defaults_set(shape, item);
	seen = members_read(r, shape, object, pointer, item);
	for (f = shape->fields; f->name != NULL; f++) {
		if (r->mode == JSON_UPDATE || (f->flags & FIELD_IN) == 0 ||
		    (f->flags & FIELD_MUST) == 0 ||
		    (seen & UINT64_C(1) << (f - shape->fields)) != 0)
			continue;
		faults_add(r->faults,
		    fault_pointer(r->faults, pointer,
			json_name(r->faults->a, f)),
		    "is missing");
	}
	if (shape->check != NULL && (r->flags & READ_TRUSTED) == 0)
		shape->check(item, pointer, r->faults);
	return r->faults->n == before;
}

const struct err *
json_tree(const char *text, size_t len, size_t values, struct cJSON **out)
{
	const struct err *e;
	struct buf plain;

	*out = NULL;
	/* Rewriting makes a number longer by less than this. */
	buf_init(&plain, 16 * len + 1);
	if ((e = json_plain(text, len, values, &plain)) != NULL)
		goto out;
	*out = cJSON_ParseWithLength(plain.data, plain.len);
	if (*out == NULL)
		e = err_new(ERR_INTERNAL, "cJSON rejects %zu bytes of JSON",
		    len);
out:
	buf_release(&plain);
	return e;
}

const struct err *
json_read(const struct shape *shape, enum json_mode mode, const char *text,
    size_t len, void *item, struct faults *faults)
{
	struct reader r = { .faults = faults, .mode = mode };
	const struct err *e;
	cJSON *tree;

	if ((e = json_tree(text, len, JSON_VALUES, &tree)) != NULL)
		return e;
	(void)object_read(&r, shape, tree, "", item);
	cJSON_Delete(tree);
	return NULL;
}

static const struct err *
text_items(struct arena *a, const struct shape *shape, const char *text,
    unsigned flags, struct list *out)
{
	struct faults faults;
	struct reader r = { .faults = &faults, .flags = READ_TRUSTED | flags };
	const struct err *e;
	cJSON *tree;

	out->items = NULL;
	out->n = 0;
	if (text == NULL)
		return NULL;
	if ((e = json_tree(text, strlen(text), JSON_STORED_VALUES, &tree)) !=
	    NULL)
		goto out;
	faults_init(&faults, a);
	if (!cJSON_IsArray(tree))
		e = err_new(ERR_INTERNAL, "not an array");
	else if (!items_read(&r, shape, tree, "", out) &&
	    (flags & READ_PARTS) == 0)
		e = faults_check(&faults);
out:
	cJSON_Delete(tree);
	if (e != NULL)
		return err_new(ERR_INTERNAL, "stored %s: %s", shape->name,
		    e->msg);
	return NULL;
}

const struct err *
json_items(struct arena *a, const struct shape *shape, const char *text,
    struct list *out)
{
	return text_items(a, shape, text, 0, out);
}

const struct err *
json_items_sent(struct arena *a, const struct shape *shape, const char *text,
    struct list *out)
{
	return text_items(a, shape, text, READ_PARTS, out);
}
