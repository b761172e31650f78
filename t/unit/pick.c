/* SPDX-License-Identifier: ISC */
/* JSON of other servers, read by paths to members. */

#include "core/str.h"
#include "json/json.h"
#include "tap.h"

struct thing {
	const char *name;
	int64_t number;
	bool flag;
	struct when at;
};
#define P(m, p, ...) JSON_PATH(struct thing, m, p, __VA_ARGS__)

static const struct json_path loose[] = {
	P(name, "a.b.name", .must = false),
	P(number, "number", .must = false),
	P(flag, "a.flag", .must = false),
	P(at, "at", .must = false),
	JSON_PATH_END,
};
static const struct json_path strict[] = {
	P(name, "name", .must = true),
	P(number, "number", .must = true),
	P(flag, "flag", .must = true),
	P(at, "at", .must = true),
	JSON_PATH_END,
};
static const struct json_path first[] = {
	P(name, "a.*.*", .must = false),
	P(number, "*", .must = false),
	JSON_PATH_END,
};
static const struct json_path named[] = {
	P(name, "name", .must = true),
	JSON_PATH_END,
};

static const struct json_path joined[] = {
	P(name, "names", .joined = ""),
	JSON_PATH_END,
};

static const struct json_path joined_names[] = {
	P(name, "names", .joined = "a.b"),
	JSON_PATH_END,
};

static struct arena *a;

static const struct row {
	const char *text;
	const char *name;
	int64_t number;
	bool flag;
	int64_t at;
} taken[] = {
	{ .text = "{}" },
	{ .text = " \t\r\n{ } " },
	{ .text = "{\"a\":null,\"number\":null,\"at\":null}" },
	{ .text = "{\"a\":{\"b\":{\"name\":\"x\"}}}", .name = "x" },
	{ .text = "{\"a\":{\"b\":{\"name\":\"\"}}}", .name = "" },
	{ .text = "{\"a\":{\"b\":{\"name\":7}}}", .name = "7" },
	{ .text = "{\"a\":{\"b\":{\"name\":7e2}}}", .name = "700" },
	{ .text = "{\"a\":{\"b\":{\"name\":-0}}}", .name = "0" },
	{ .text = "{\"a\":{\"b\":{\"name\":9007199254740991}}}",
	    .name = "9007199254740991" },
	{ .text = "{\"a\":{\"b\":{\"name\":9007199254740992}}}" },
	{ .text = "{\"a\":{\"b\":{\"name\":1e300}}}" },
	{ .text = "{\"a\":{\"b\":{\"name\":0.5}}}" },
	{ .text = "{\"a\":{\"b\":{\"name\":true}}}" },
	{ .text = "{\"a\":{\"b\":{\"name\":[\"x\"]}}}" },
	{ .text = "{\"a\":{\"b\":[{\"name\":\"x\"}]}}" },
	{ .text = "{\"a\":{\"b\":\"name\"}}" },
	{ .text = "{\"a\":[],\"b\":{\"name\":\"x\"},\"name\":\"x\"}" },
	{ .text = "{\"a.b.name\":\"x\"}" },
	{ .text = "{\"x\":{\"a\":{\"b\":{\"name\":\"x\"}}}}" },
	{ .text = "{\"\":1,\"nam\":1,\"names\":1,\"numbers\":1,\"number\":5}",
	    .number = 5 },
	{ .text = "{\"x\":\"}],\\\"number\\\":1\",\"number\":2}", .number = 2 },
	{ .text = "{\"x\":[[{\"y\":\"\\\\\"}],{}],\"number\":-3}",
	    .number = -3 },
	{ .text = "{\"x\":\"\\\",\",\"number\":6}", .number = 6 },
	{ .text = "{\"x\":\"\\\\\",\"number\":7}", .number = 7 },
	{ .text = "{\"number\":\"5\"}" },
	{ .text = "{\"number\":1.5}" },
	{ .text = "{\"number\":9007199254740993}" },
	{ .text = "{\"number\":-9007199254740991}",
	    .number = -9007199254740991 },
	{ .text = "{\"\\u006eumber\":4}", .number = 4 },
	{ .text = "{ \"number\" : 4 , \"x\" : 1 }", .number = 4 },
	{ .text = "{\"a\":{\"flag\":true}}", .flag = true },
	{ .text = "{\"a\":{\"flag\":false}}" },
	{ .text = "{\"a\":{\"flag\":1}}" },
	{ .text = "{\"a\":{\"flag\":\"true\"}}" },
	{ .text = "{\"at\":\"1970-01-01T00:00:01Z\"}", .at = 1000 },
	{ .text = "{\"at\":\"1970-01-01T02:00:01+02:00\"}", .at = 1000 },
	{ .text = "{\"at\":\"1970-01-01T00:00:01.5Z\"}", .at = 1500 },
	{ .text = "{\"at\":\"yesterday\"}" },
	{ .text = "{\"at\":1}" },
	{ .text = "{\"a\":{\"b\":{\"name\":\"\\u00fc\\ud83d\\ude80\\u20ac\\n\\t"
		  "\\b\\f\\r\\\\\\/\\\"\xc3\xbc\"}}}",
	    .name =
		"\xc3\xbc\xf0\x9f\x9a\x80\xe2\x82\xac\n\t\b\f\r\\/\"\xc3\xbc" },
};

/* The first member that exists, whatever its name. */
static const struct row firsts[] = {
	{ .text = "{\"a\":{\"b\":[\"x\",\"y\"],\"c\":[\"z\"]}}", .name = "x" },
	{ .text = "{ \"a\" : { \"b\" : [ \"x\" ] } }", .name = "x" },
	{ .text = "{\"a\":[{\"b\":\"x\"},{\"b\":\"y\"}]}", .name = "x" },
	{ .text = "{\"a\":[[\"x\"]]}", .name = "x" },
	{ .text = "{\"a\":{\"*\":{\"*\":\"x\"}}}", .name = "x" },
	{ .text = "{\"a\":[[7]]}", .name = "7" },
	{ .text = "{\"b\":5,\"a\":1}", .number = 5 },
	{ .text = "{\"b\":\"5\",\"*\":6}" },
	{ .text = "{}" },
	{ .text = "{ }" },
	{ .text = "{\"a\":null}" },
	{ .text = "{\"a\":[]}" },
	{ .text = "{\"a\":[ ]}" },
	{ .text = "{\"a\":{}}" },
	{ .text = "{\"a\":{ }}" },
	{ .text = "{\"a\":[[]]}" },
	{ .text = "{\"a\":[{}]}" },
	{ .text = "{\"a\":[null]}" },
	{ .text = "{\"a\":{\"b\":null}}" },
	{ .text = "{\"a\":\"[\\\"x\\\"]\"}" },
	{ .text = "{\"a\":[\"x\"]}" },
	{ .text = "{\"a\":[1]}" },
	{ .text = "{\"a\":[true]}" },
	{ .text = "{\"a\":[[[\"x\"]]]}" },
};

/* The strings of an array as one. */
static const struct row joins[] = {
	{ .text = "{\"names\":[\"x\",\"y\\u00fc\",\"z\"]}",
	    .name = "x,y\xc3\xbc,z" },
	{ .text = "{ \"names\" : [ \"x\" , \"\" ] }", .name = "x," },
	{ .text = "{\"names\":[\"x\",null,[\"y\"],{\"y\":\"y\"},\"z\"]}",
	    .name = "x,z" },
	{ .text = "{\"names\":[ 17 ,\"x\",0,9007199254740991]}",
	    .name = "17,x,0,9007199254740991" },
	{ .text = "{\"names\":[1.5,-2,1e3,true,7]}", .name = "7" },
	{ .text = "{\"names\":[]}", .name = "" },
	{ .text = "{\"names\":\"x\"}" },
	{ .text = "{\"names\":{\"x\":\"x\"}}" },
	{ .text = "{\"names\":null}" },
	{ .text = "{}" },
};

static const struct {
	const char *text;
	const char *says;
} refused[] = {
	{ "", "not JSON" },
	{ " ", "not JSON" },
	{ "{", "not JSON" },
	{ "{}x", "not JSON" },
	{ "{\"a\":1,}", "not JSON" },
	{ "{'a':1}", "not JSON" },
	{ "{\"a\":1,\"a\":2}", "not JSON" },
	{ "{\"a\":1,\"\\u0061\":2}", "not JSON" },
	{ "{\"a\":\"\\u0000\"}", "not JSON" },
	{ "{\"a\":\"\xff\"}", "not JSON" },
	{ "{\"a\":01}", "not JSON" },
	{ "{\"a\":1e999}", "not JSON" },
	{ "null", "not a JSON object" },
	{ "[]", "not a JSON object" },
	{ "[{}]", "not a JSON object" },
	{ "\"{}\"", "not a JSON object" },
	{ "7", "not a JSON object" },
	{ "true", "not a JSON object" },
	{ "<html></html>", "not JSON" },
};

#define NAME "\"name\":\"x\""
#define NUMBER "\"number\":1"
#define FLAG "\"flag\":false"
#define AT "\"at\":\"1970-01-01T00:00:01Z\""

static const struct {
	const char *text;
	const char *lacks; /* NULL = nothing */
} must[] = {
	{ "{" NAME "," NUMBER "," FLAG "," AT "}", NULL },
	{ "{" AT "," FLAG "," NUMBER ",\"name\":0}", NULL },
	{ "{}", "name" },
	{ "{" NUMBER "," FLAG "," AT "}", "name" },
	{ "{\"name\":null," NUMBER "," FLAG "," AT "}", "name" },
	{ "{\"name\":{}," NUMBER "," FLAG "," AT "}", "name" },
	{ "{\"name\":1.5," NUMBER "," FLAG "," AT "}", "name" },
	{ "{" NAME ",\"number\":\"1\"," FLAG "," AT "}", "number" },
	{ "{" NAME ",\"number\":1e20," FLAG "," AT "}", "number" },
	{ "{" NAME "," FLAG "," AT "}", "number" },
	{ "{" NAME "," NUMBER ",\"flag\":0," AT "}", "flag" },
	{ "{" NAME "," NUMBER ",\"flag\":null," AT "}", "flag" },
	{ "{" NAME "," NUMBER "," FLAG ",\"at\":\"1970\"}", "at" },
	{ "{" NAME "," NUMBER "," FLAG "}", "at" },
};

/* Copies the text to memory of its exact size, so that a sanitizer notices an
 * overrun. */
static char *
exact(const char *text, size_t len)
{
	char *copy = mem_alloc(len + (len == 0), 1);

	if (len > 0)
		(void)memcpy(copy, text, len);
	return copy;
}

static const struct err *
pick(const struct json_path *table, const char *text, struct thing *out)
{
	char *copy = exact(text, strlen(text));
	const struct err *e;

	*out = (struct thing){ .name = NULL };
	e = json_pick(a, table, copy, strlen(text), out);
	mem_free(copy);
	return e;
}

static const struct err *
pick_list(const char *text, size_t len, struct list *out)
{
	char *copy = exact(text, len);
	const struct err *e;

	e = json_pick_list(a, named, sizeof(struct thing), copy, len, out);
	mem_free(copy);
	return e;
}

static const struct err *
pick_member(const char *text, struct list *out)
{
	char *copy = exact(text, strlen(text));
	const struct err *e;

	e = json_pick_member(a, "x.list", named, sizeof(struct thing), copy,
	    strlen(text), out);
	mem_free(copy);
	return e;
}

static void
objects_run(void)
{
	const struct row *r;
	const struct err *e;
	struct thing got;
	size_t i;

	for (i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
		r = &taken[i];
		if (!ok((e = pick(loose, r->text, &got)) == NULL, "%s",
			r->text))
			continue;
		is_str(got.name, r->name, "... has its name");
		is_int(got.number, r->number, "... has its number");
		is_int(got.flag, r->flag, "... has its flag");
		is_int(got.at.ms, r->at, "... has its time");
	}
	for (i = 0; i < sizeof(firsts) / sizeof(firsts[0]); i++) {
		r = &firsts[i];
		if (!ok(pick(first, r->text, &got) == NULL,
			"the first existing member is read: %s", r->text))
			continue;
		is_str(got.name, r->name, "... has its text");
		is_int(got.number, r->number, "... has its number");
	}
	for (i = 0; i < sizeof(joins) / sizeof(joins[0]); i++)
		if (ok(pick(joined, joins[i].text, &got) == NULL,
			"the elements of an array are joined: %s",
			joins[i].text))
			is_str(got.name, joins[i].name, "... to one");
	ok(pick(joined_names,
	       "{\"names\":[{\"a\":{\"b\":\"x\"}},{\"a\":1},\"y\","
	       "{\"a\":{\"b\":\"z\"}}]}",
	       &got) == NULL,
	    "strings in members of an array's objects are joined");
	is_str(got.name, "x,z", "... to one");
	for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		e = pick(loose, refused[i].text, &got);
		ok(e != NULL && e->code == ERR_UPSTREAM &&
			strstr(e->detail, refused[i].says) != NULL,
		    "rejected: %s", refused[i].text);
	}
	for (i = 0; i < sizeof(must) / sizeof(must[0]); i++) {
		e = pick(strict, must[i].text, &got);
		if (must[i].lacks == NULL)
			ok(e == NULL, "all required members exist: %s",
			    must[i].text);
		else
			ok(e != NULL && e->code == ERR_UPSTREAM &&
				strstr(e->detail,
				    arena_printf(a, "lacks the member \"%s\"",
					must[i].lacks)) != NULL,
			    "lacks %s: %s", must[i].lacks, must[i].text);
	}
}

static const struct {
	const char *text;
	const char *names; /* NULL = rejected */
} lists[] = {
	{ "[]", "" },
	{ " [ ] ", "" },
	{ "null", "" },
	{ " null ", "" },
	{ "[{\"name\":\"a\"}]", "a " },
	{ "[{\"name\":\"a\"},{\"x\":[{\"name\":\"c\"}],\"name\":\"b\"}]",
	    "a b " },
	{ " [ { \"name\" : \"a\" } , { \"name\" : \"]\" } ] ", "a ] " },
	{ "{}", NULL },
	{ "{\"name\":\"a\"}", NULL },
	{ "[null]", NULL },
	{ "[1]", NULL },
	{ "[[]]", NULL },
	{ "[\"a\"]", NULL },
	{ "[{}]", NULL },
	{ "[{\"name\":\"a\"},{}]", NULL },
	{ "[{\"name\":\"a\"},]", NULL },
	{ "[{\"name\":\"a\"}", NULL },
	{ "nul", NULL },
	{ "\"[]\"", NULL },
	{ "0", NULL },
};

static const char *
names_of(const struct list *list)
{
	const struct thing *t = list->items;
	const char *out = "";
	size_t i;

	for (i = 0; i < list->n; i++)
		out = arena_printf(a, "%s%s ", out, t[i].name);
	return out;
}

static void
lists_run(void)
{
	const struct err *e;
	const char *within;
	struct list got;
	size_t i;

	for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		e = pick_list(lists[i].text, strlen(lists[i].text), &got);
		if (lists[i].names == NULL)
			ok(e != NULL && e->code == ERR_UPSTREAM, "rejected: %s",
			    lists[i].text);
		else if (ok(e == NULL, "%s", lists[i].text))
			is_str(names_of(&got), lists[i].names,
			    "... has its names");
		within = arena_printf(a, "{\"list\":1,\"x\":{\"list\":%s}}",
		    lists[i].text);
		e = pick_member(within, &got);
		if (lists[i].names == NULL)
			ok(e != NULL && e->code == ERR_UPSTREAM, "rejected: %s",
			    within);
		else if (ok(e == NULL, "%s", within))
			is_str(names_of(&got), lists[i].names,
			    "... has its names");
	}
	ok(pick_member("{}", &got) == NULL && got.n == 0,
	    "a missing member is an empty list");
	ok(pick_member("{\"x\":1}", &got) == NULL && got.n == 0,
	    "a missing parent is an empty list");
	ok(pick_member("[]", &got) == NULL && got.n == 0,
	    "an array instead of an object is an empty list");
	ok(pick_member("{\"x\":{\"list\":[}}", &got) != NULL,
	    "invalid JSON in a member is rejected");
}

/* `n` times the unit in brackets. */
static const struct err *
many(const char *unit, size_t n, struct list *out)
{
	const struct err *e;
	struct buf b;
	size_t i;

	buf_init(&b, (size_t)64 << 20);
	buf_putc(&b, '[');
	for (i = 0; i < n; i++) {
		buf_puts(&b, i == 0 ? "" : ",");
		buf_puts(&b, unit);
	}
	buf_putc(&b, ']');
	e = pick_list(b.data, b.len, out);
	buf_release(&b);
	return e;
}

/* What does not fit is rejected, and the process survives. */
static void
limits_run(void)
{
	struct arena *large = a;
	const struct err *e;
	struct list got;
	char *text;

	ok(many("{\"name\":\"x\"}", 49999, &got) == NULL && got.n == 49999,
	    "100,000 values are accepted");
	e = many("{\"name\":\"x\"}", 50000, &got);
	ok(e != NULL && strstr(e->detail, "too many values") != NULL,
	    "one value more is rejected");
	a = arena_open((size_t)1 << 20);
	e = many("{\"name\":\"x\"}", 24000, &got);
	ok(e != NULL && strstr(e->detail, "too large") != NULL,
	    "more structs than the arena can hold are rejected");
	arena_clear(a);
	e = many("{\"name\":\"0123456789012345678901234567890123456789012345678"
		 "9\"}",
	    11000, &got);
	ok(e != NULL && strstr(e->detail, "too large") != NULL,
	    "more strings than the arena can hold are rejected");
	arena_clear(a);
	ok(many("{\"other\":\"0123456789012345678901234567890123456789\"}", 9,
	       &got) != NULL,
	    "a struct without a required member is rejected");
	arena_close(a);
	a = arena_open((size_t)1 << 20);
	text = mem_alloc(900001, 1);
	(void)memset(text, 'x', 900000);
	(void)memcpy(text, "[{\"name\":\"", 10);
	(void)memcpy(text + 900000 - 3, "\"}]", 3);
	e = pick_list(text, 900000, &got);
	ok(e != NULL && strstr(e->detail, "too large") != NULL,
	    "a string that does not fit is rejected");
	(void)memcpy(text, "[{\"nope\":\"", 10);
	ok(pick_list(text, 900000, &got) != NULL &&
		arena_used(a) < (size_t)64 << 10,
	    "unused members need no memory");
	mem_free(text);
	arena_close(a);
	a = large;
	ok(many("[", 40, &got) != NULL, "deeply nested JSON is rejected");
}

int
main(void)
{
	a = arena_open((size_t)32 << 20);
	objects_run();
	lists_run();
	limits_run();
	arena_close(a);
	return tap_done();
}
