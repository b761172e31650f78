/* SPDX-License-Identifier: ISC */
/*
 * Reads JSON from other servers in place, without a tree.  A worker must stay
 * below 16 MB, but the sender chooses the size of the text, and a tree of the
 * 100,000 permitted values takes, in addition to the text, 8 MB for 300 kB of
 * "[]" and 9 MB for 1 MiB of an ordinary list.  So this file, unlike the rest
 * of the folder, does not use cJSON: it walks the text that strict.c has
 * validated, in which all brackets and quotes match, and copies the few members
 * that the table names.
 */
#include <string.h>

#include "core/num.h"
#include "core/str.h"
#include "json/inner.h"

#define NUMBER_SIZE 32
/* Arena space left for other members. */
#define SPARE ((size_t)256 << 10)

static const char *
blanks(const char *p)
{
	while (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')
		p++;
	return p;
}

/* The end of a string; `p` is its opening quote.  A quote after an odd number of
 * backslashes belongs to the string. */
static const char *
string_end(const char *p)
{
	const char *first;

	do {
		p = strchr(p + 1, '"');
		for (first = p; first[-1] == '\\'; first--)
			;
	} while ((p - first) % 2 != 0);
	return p + 1;
}

/* The end of a value in an array or object. */
static const char *
value_end(const char *p)
{
	size_t depth = 0;

	do {
		if (*p == '"') {
			p = string_end(p);
			continue;
		}
		depth += *p == '{' || *p == '[';
		depth -= *p == '}' || *p == ']';
		p++;
	} while (depth > 0 || strchr(",]} \t\r\n", *p) == NULL);
	return p;
}

/* Whether that is the member's name, with or without escapes. */
static bool
is_name(const char *p, const char *name, size_t len)
{
	const unsigned char *at = (const unsigned char *)p + 1;
	size_t i;

	for (i = 0; i < len; i++)
		if (json_code_next(&at) != (unsigned char)name[i])
			return false;
	return json_code_next(&at) == 0;
}

/* The value of a member; NULL if it is missing or `p` is not an object. */
static const char *
member_find(const char *p, const char *name, size_t len)
{
	const char *value;

	if (*p != '{')
		return NULL;
	for (p = blanks(p + 1); *p == '"'; p = blanks(p + 1)) {
		value = blanks(blanks(string_end(p)) + 1);
		if (is_name(p, name, len))
			return value;
		p = blanks(value_end(value));
		if (*p != ',')
			break;
	}
	return NULL;
}

/* The next element of an array; `p` is past the previous one or past the
 * bracket.  NULL at the end. */
static const char *
next_of(const char *p)
{
	p = blanks(p);
	if (*p == ',')
		p = blanks(p + 1);
	return *p == ']' ? NULL : p;
}

/* The first value in an array or object; NULL if it is empty. */
static const char *
first_of(const char *p)
{
	if (*p == '[')
		return next_of(p + 1);
	if (*p != '{' || *(p = blanks(p + 1)) != '"')
		return NULL;
	return blanks(blanks(string_end(p)) + 1);
}

/* The value that a path leads to; NULL if any part is missing. */
static const char *
walk(const char *at, const char *path)
{
	size_t len;

	for (; at != NULL; path += len + 1) {
		len = strcspn(path, ".");
		at = len == 1 && *path == '*' ? first_of(at) :
						member_find(at, path, len);
		if (path[len] == '\0')
			break;
	}
	return at;
}

static const struct err *
too_large(void)
{
	return err_public(ERR_UPSTREAM, "The response is too large.");
}

/* Strings come from outside: they must not exceed the arena's limit. */
static bool
fits(const struct arena *a, size_t n, size_t size)
{
	size_t left = arena_left(a);

	return left > SPARE && n <= (left - SPARE) / size;
}

static char *
code_put(char *to, uint32_t c)
{
	static const struct {
		uint32_t below;
		unsigned lead, shift;
	} forms[] = {
		{ 0x80, 0, 0 },
		{ 0x800, 0xc0, 6 },
		{ 0x10000, 0xe0, 12 },
		{ 0x110000, 0xf0, 18 },
	};
	size_t i = 0;
	unsigned shift;

	while (c >= forms[i].below)
		i++;
	shift = forms[i].shift;
	*to++ = (char)(forms[i].lead | c >> shift);
	while (shift > 0) {
		shift -= 6;
		*to++ = (char)(0x80 | (c >> shift & 0x3f));
	}
	return to;
}

/* Copies a string; returns the end of the copy. */
static char *
string_put(char *to, const char *p)
{
	const unsigned char *at = (const unsigned char *)p + 1;
	uint32_t c;

	while ((c = json_code_next(&at)) != 0)
		to = code_put(to, c);
	return to;
}

static char *
string_take(struct arena *a, const char *p)
{
	char *out = arena_alloc(a, (size_t)(string_end(p) - p), 1);

	(void)string_put(out, p);
	return out;
}

/* Formats a whole number as plain decimal; false if it is not one, or too
 * large. */
static bool
whole(const char *p, char out[NUMBER_SIZE])
{
	size_t len = (size_t)(value_end(p) - p);
	struct buf plain;
	bool good;

	buf_init(&plain, NUMBER_SIZE - 1);
	good = (*p == '-' || (*p >= '0' && *p <= '9')) &&
	    json_plain(p, len, 1, &plain) == NULL &&
	    strchr(plain.data, '.') == NULL;
	if (good)
		(void)memcpy(out, plain.data, plain.len + 1);
	buf_release(&plain);
	return good;
}

static bool
str_pick(struct arena *a, const char *p, const char **out)
{
	char number[NUMBER_SIZE];

	if (*p == '"')
		*out = string_take(a, p);
	else if (whole(p, number))
		*out = arena_strdup(a, number);
	else
		return false;
	return true;
}

/* Appends a string, or the digits of a number. */
static char *
element_put(char *to, const char *value)
{
	const size_t len = strspn(value, "0123456789");

	if (*value == '"')
		return string_put(to, value);
	(void)memcpy(to, value, len);
	return to + len;
}

/* Whether the value is a string, or a number without sign, fraction and
 * exponent. */
static bool
is_element(const char *value)
{
	return *value == '"' ||
	    (*value >= '0' && *value <= '9' &&
		value + strspn(value, "0123456789") == value_end(value));
}

/* The elements of an array, or those in a member of its objects, with commas between
 * them; false if it is no array. */
static bool
joined_pick(struct arena *a, const char *array, const char *member,
    const char **out)
{
	const char *p, *value;
	char *to;

	if (*array != '[')
		return false;
	*out = to = arena_alloc(a, (size_t)(value_end(array) - array), 1);
	for (p = next_of(array + 1); p != NULL; p = next_of(value_end(p))) {
		value = *member == '\0' ? p : walk(p, member);
		if (value == NULL || !is_element(value))
			continue;
		if (to > *out)
			*to++ = ',';
		to = element_put(to, value);
	}
	return true;
}

/* False if the value is of another type. */
static bool
value_pick(struct arena *a, const struct json_path *p, const char *value,
    void *to)
{
	char number[NUMBER_SIZE];
	struct when *when;
	bool *flag;

	switch (p->type) {
	case F_STR:
		return p->joined != NULL ?
		    joined_pick(a, value, p->joined, to) :
		    str_pick(a, value, to);
	case F_INT:
		return whole(value, number) &&
		    num_parse(number, -NUM_SAFE, NUM_SAFE, to);
	case F_WHEN:
		when = to;
		return *value == '"' &&
		    str_time_parse(string_take(a, value), &when->ms);
	case F_BOOL:
		flag = to;
		*flag = *value == 't';
		return *value == 't' || *value == 'f';
	case F_MAYBE:
	case F_JSON:
	case F_LIST:
	case F_MAP:
	case F_BLOB:
		break;
	}
	return false;
}

/* Fills a member; sets `done` to whether there was a value for it. */
static const struct err *
member_pick(struct arena *a, const struct json_path *p, const char *value,
    void *to, bool *done)
{
	*done = false;
	if (!fits(a, (size_t)(value_end(value) - value), 1))
		return p->spare ? NULL : too_large();
	*done = *value != 'n' && value_pick(a, p, value, to);
	return NULL;
}

static const struct err *
object_pick(struct arena *a, const struct json_path *table, const char *object,
    void *item)
{
	const struct json_path *p;
	const struct err *e;
	const char *value;
	bool done;

	if (*object != '{')
		return err_public(ERR_UPSTREAM,
		    "The response is not a JSON object.");
	for (p = table; p->path != NULL; p++) {
		value = walk(object, p->path);
		done = false;
		if (value != NULL &&
		    (e = member_pick(a, p, value, (char *)item + p->offset,
			 &done)) != NULL)
			return e;
		if (p->must && !done)
			return err_public(ERR_UPSTREAM,
			    "The response lacks the member \"%s\".", p->path);
	}
	return NULL;
}

/* Finds the value after validating the text. */
static const struct err *
text_open(const char *text, size_t len, size_t values, const char **out)
{
	const struct err *e;

	*out = NULL;
	if ((e = json_foreign(text, len, values)) != NULL)
		return err_public(ERR_UPSTREAM, "The response is not JSON: %s",
		    err_words(e));
	*out = blanks(text);
	return NULL;
}

const struct err *
json_pick(struct arena *a, const struct json_path *table, const char *text,
    size_t len, void *item)
{
	const struct err *e;
	const char *top;

	if ((e = text_open(text, len, JSON_FOREIGN_VALUES, &top)) != NULL)
		return e;
	return object_pick(a, table, top, item);
}

const struct err *
json_pick_event(struct arena *a, const struct json_path *table,
    const char *text, size_t len, void *item)
{
	const struct err *e;
	const char *top;

	if ((e = text_open(text, len, SIZE_MAX, &top)) != NULL)
		return e;
	return object_pick(a, table, top, item);
}

static const struct err *
array_pick(struct arena *a, const struct json_path *table, size_t size,
    const char *array, struct list *out)
{
	const struct err *e;
	const char *p;
	size_t n = 0;
	char *item;

	if (array == NULL || *array == 'n')
		return NULL;
	if (*array != '[')
		return err_public(ERR_UPSTREAM,
		    "The response is not a JSON array.");
	for (p = next_of(array + 1); p != NULL; p = next_of(value_end(p)))
		n++;
	if (!fits(a, n, size))
		return too_large();
	item = arena_alloc(a, n, size);
	out->items = item;
	for (p = next_of(array + 1); p != NULL; p = next_of(value_end(p))) {
		if ((e = object_pick(a, table, p, item)) != NULL)
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
	const char *top;

	*out = (struct list){ .items = NULL };
	if ((e = text_open(text, len, JSON_FOREIGN_VALUES, &top)) != NULL)
		return e;
	return array_pick(a, table, size, top, out);
}

const struct err *
json_pick_member(struct arena *a, const char *member,
    const struct json_path *table, size_t size, const char *text, size_t len,
    struct list *out)
{
	const struct err *e;
	const char *top;

	*out = (struct list){ .items = NULL };
	if ((e = text_open(text, len, SIZE_MAX, &top)) != NULL)
		return e;
	return array_pick(a, table, size, walk(top, member), out);
}

/* A member that is an array; empty otherwise. `p` is an object. */
static const char *
array_of(const char *p, const char *name)
{
	const char *at = member_find(p, name, strlen(name));

	return at != NULL && *at == '[' ? next_of(at + 1) : NULL;
}

/* Counts the texts in the named arrays of an object, and copies them to `out`
 * unless that is NULL. */
static size_t
texts_take(struct arena *a, const char *object, const char *const *names,
    const char **out)
{
	const char *p;
	size_t n = 0;

	for (; *names != NULL; names++)
		for (p = array_of(object, *names); p != NULL;
		     p = next_of(value_end(p))) {
			if (*p != '"')
				continue;
			if (out != NULL)
				out[n] = string_take(a, p);
			n++;
		}
	return n;
}

const struct err *
json_pick_texts(struct arena *a, const char *member, const char *const *names,
    const char *text, size_t len, struct list *out)
{
	const struct err *e;
	const char *top, *p;
	const char **items;
	size_t n = 0;

	*out = (struct list){ .items = NULL };
	if ((e = text_open(text, len, SIZE_MAX, &top)) != NULL)
		return e;
	for (p = array_of(top, member); p != NULL; p = next_of(value_end(p)))
		n += texts_take(a, p, names, NULL);
	/* the texts are shorter than the whole */
	if (!fits(a, len, 1) || !fits(a, n, 4 * sizeof(*items)))
		return too_large();
	out->items = items = arena_alloc(a, n, sizeof(*items));
	for (p = array_of(top, member); p != NULL; p = next_of(value_end(p)))
		out->n += texts_take(a, p, names, items + out->n);
	return NULL;
}

bool
json_is_only(const char *text, const char *member)
{
	const char *p = blanks(text);

	if (*p != '{' || *(p = blanks(p + 1)) != '"' ||
	    !is_name(p, member, strlen(member)))
		return false;
	p = value_end(blanks(blanks(string_end(p)) + 1));
	return *blanks(p) == '}';
}
