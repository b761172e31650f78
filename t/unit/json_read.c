/* SPDX-License-Identifier: ISC */
/* JSON bodies read into structs by field tables. */
#include "core/num.h"
#include "core/str.h"
#include "json/json.h"
#include "tap.h"

struct part {
	const char *label;
	const char *note;
	bool wanted;
	struct list parts;
};

struct thing {
	int64_t id;
	const char *name;
	const char *kind;
	const char *default_branch;
	const char *fallback; /* "default" outside */
	int64_t small;
	bool strict_env;
	bool valid;
	struct maybe timeout_seconds;
	struct when starts_at;
	struct json_text presets;
	struct map env_vars;
	struct list parts;
	struct list only;
	struct blob hash;
};

static const char *const kinds[] = { "red", "green", NULL };

static void
part_check(const void *item, const char *pointer, struct faults *faults)
{
	const struct part *part = item;

	if (str_eq(part->label, "odd") && part->note == NULL)
		faults_add(faults, fault_pointer(faults, pointer, "note"),
		    "is needed here");
}

static void
thing_check(const void *item, const char *pointer, struct faults *faults)
{
	const struct thing *thing = item;

	if (str_eq(thing->name, "clash"))
		faults_add(faults, pointer, "clashes");
}

#define P(m, ...) FIELD(struct part, m, FIELD_OUT | __VA_ARGS__)
#define F(m, ...) FIELD(struct thing, m, FIELD_OUT | __VA_ARGS__)

static const struct field leaf_fields[] = {
	P(label, FIELD_IN | FIELD_MUST, .max = 5),
	P(note, FIELD_IN | FIELD_NULL),
	FIELD_END,
};
static const struct shape leaf_shape = {
	.name = "Leaf",
	.fields = leaf_fields,
	.size = sizeof(struct part),
};

static const struct field part_fields[] = {
	P(label, FIELD_IN | FIELD_MUST, .min = 1, .max = 5),
	P(note, FIELD_IN),
	P(wanted, FIELD_IN),
	P(parts, FIELD_IN, .shape = &leaf_shape, .max = 2),
	FIELD_END,
};
static const struct shape part_shape = {
	.name = "Part",
	.fields = part_fields,
	.size = sizeof(struct part),
	.check = part_check,
};

static const struct field thing_fields[] = {
	F(id, 0),
	F(name, FIELD_IN | FIELD_MUST | FIELD_LINE, .min = 1, .max = 8),
	F(kind, FIELD_IN, .values = kinds),
	F(default_branch, FIELD_IN | FIELD_NULL, .pattern = "[a-z/]+"),
	F(fallback, FIELD_IN | FIELD_NULL, .min = 2, .outside = "default"),
	F(small, FIELD_IN | FIELD_ONCE, .min = 1, .max = 9),
	F(strict_env, FIELD_IN),
	F(valid, FIELD_IN | FIELD_NUMBER),
	F(timeout_seconds, FIELD_IN | FIELD_NULL),
	F(starts_at, FIELD_IN | FIELD_NULL),
	F(presets, FIELD_IN | FIELD_ONCE, .shape = &part_shape, .max = 3),
	F(env_vars, FIELD_IN, .max = 3),
	F(parts, FIELD_IN, .shape = &part_shape, .min = 1, .max = 3),
	F(only, FIELD_IN | FIELD_ONE | FIELD_NULL, .shape = &part_shape),
	FIELD(struct thing, hash, 0),
	FIELD_END,
};
static const struct shape thing_shape = {
	.name = "Thing",
	.fields = thing_fields,
	.size = sizeof(struct thing),
	.check = thing_check,
};

/* A body and the expected result: the object as it is written, or the faults,
 * each as "pointer: detail" and a newline. */
struct row {
	const char *body;
	const char *want;
};

#define HEAD "{\"id\":0,\"name\":\"x\",\"kind\":"
#define TAIL ",\"presets\":[],\"envVars\":{},\"parts\":[],\"only\":null}"
#define REST                                                                   \
	"\"small\":0,\"strictEnv\":false,\"valid\":0,"                         \
	"\"timeoutSeconds\":null,\"startsAt\":null" TAIL

static const struct row good[] = {
	{ "{\"name\":\"x\"}",
	    HEAD "null,\"defaultBranch\":null,\"default\":null," REST },
	{ " { \"kind\" : \"green\", \"n\\u0061me\" : \"x\",\n"
	  "\"defaultBranch\":\"a/b\",\"default\":\"\xc3\xa9\\u00e9\"}",
	    HEAD "\"green\",\"defaultBranch\":\"a/b\","
		 "\"default\":\"\xc3\xa9\xc3\xa9\"," REST },
	{ "{\"name\":\"x\",\"small\":9,\"strictEnv\":true,\"valid\":1,"
	  "\"timeoutSeconds\":0,\"startsAt\":\"2026-11-21T01:02:03+01:00\"}",
	    HEAD "null,\"defaultBranch\":null,\"default\":null,\"small\":9,"
		 "\"strictEnv\":true,\"valid\":1,\"timeoutSeconds\":0,"
		 "\"startsAt\":\"2026-11-21T00:02:03.000Z\"" TAIL },
	{ "{\"name\":\"x\",\"small\":0.9e1,\"valid\":true,"
	  "\"timeoutSeconds\":9007199254740991}",
	    HEAD "null,\"defaultBranch\":null,\"default\":null,\"small\":9,"
		 "\"strictEnv\":false,\"valid\":1,"
		 "\"timeoutSeconds\":9007199254740991,\"startsAt\":null" TAIL },
	{ "{\"name\":\"x\",\"timeoutSeconds\":10.00e-1,\"valid\":false}",
	    HEAD "null,\"defaultBranch\":null,\"default\":null,\"small\":0,"
		 "\"strictEnv\":false,\"valid\":0,"
		 "\"timeoutSeconds\":1,\"startsAt\":null" TAIL },
	{ "{\"name\":\"x\",\"defaultBranch\":null,\"default\":null,"
	  "\"timeoutSeconds\":null,\"startsAt\":null,\"only\":null}",
	    HEAD "null,\"defaultBranch\":null,\"default\":null," REST },
	{ "{\"name\":\"12345678\"}",
	    "{\"id\":0,\"name\":\"12345678\",\"kind\":null,"
	    "\"defaultBranch\":null,\"default\":null," REST },
	{ "{\"name\":\"\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac"
	  "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\"}",
	    "{\"id\":0,\"name\":\"\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac"
	    "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\","
	    "\"kind\":null,\"defaultBranch\":null,\"default\":null," REST },
	{ "{\"name\":\"x\",\"presets\":[{\"label\":\"a\",\"parts\":"
	  "[{\"label\":\"\"}]},{\"wanted\":true,\"note\":\"n\\/\","
	  "\"label\":\"odd\"}],"
	  "\"envVars\":{\"B\":\"\\u0041\\n\\u0007\",\"A\":\"\",\"\":\"\xc3\xa9"
	  "\"},\"parts\":[{\"label\":\"p\"}],\"only\":{\"label\":\"o\"}}",
	    HEAD
	    "null,\"defaultBranch\":null,\"default\":null,\"small\":0,"
	    "\"strictEnv\":false,\"valid\":0,\"timeoutSeconds\":null,"
	    "\"startsAt\":null,\"presets\":[{\"label\":\"a\",\"wanted\":false,"
	    "\"parts\":[{\"label\":\"\",\"note\":null}]},{\"label\":\"odd\",\"note\":\"n/\","
	    "\"wanted\":true,\"parts\":[]}],"
	    "\"envVars\":{\"B\":\"A\\n\\u0007\",\"A\":\"\",\"\":\"\xc3\xa9"
	    "\"},\"parts\":[{\"label\":\"p\",\"note\":null,\"wanted\":false,"
	    "\"parts\":[]}],\"only\":{\"label\":\"o\",\"note\":null,"
	    "\"wanted\":false,\"parts\":[]}}" },
};

#define WHOLE "must be a whole number from "

static const struct row bad[] = {
	{ "[]", ": must be an object\n" },
	{ "null", ": must be an object\n" },
	{ "\"{}\"", ": must be an object\n" },
	{ "{}", "/name: is missing\n" },
	{ "{\"name\":null}", "/name: must not be null\n" },
	{ "{\"name\":1}", "/name: must be a string\n" },
	{ "{\"name\":[\"x\"]}", "/name: must be a string\n" },
	{ "{\"name\":\"\"}", "/name: must not be empty\n" },
	{ "{\"name\":\"123456789\"}",
	    "/name: must have at most 8 characters, has 9\n" },
	{ "{\"name\":\"a\\nb\"}",
	    "/name: must not contain control characters, or "
	    "any that change the direction of writing\n" },
	{ "{\"Name\":\"x\"}",
	    "/Name: unknown member \"Name\"\n/name: is missing\n" },
	{ "{\"name\":\"clash\"}", ": clashes\n" },
	{ "{\"name\":\"x\",\"id\":1}",
	    "/id: is set by the service; leave it out\n" },
	{ "{\"name\":\"x\",\"hash\":1}", "/hash: unknown member \"hash\"\n" },
	{ "{\"name\":\"x\",\"strict_env\":true,\"fallback\":\"ab\"}",
	    "/strict_env: unknown member \"strict_env\"\n"
	    "/fallback: unknown member \"fallback\"\n" },
	{ "{\"name\":\"x\",\"a/b~c\":1}",
	    "/a~1b~0c: unknown member \"a/b~c\"\n" },
	{ "{\"name\":\"x\",\"kind\":\"Red\"}",
	    "/kind: must be one of: red, green\n" },
	{ "{\"name\":\"x\",\"kind\":null}", "/kind: must not be null\n" },
	{ "{\"name\":\"x\",\"defaultBranch\":\"a b\"}",
	    "/defaultBranch: must match the pattern [a-z/]+\n" },
	{ "{\"name\":\"x\",\"default\":\"a\"}",
	    "/default: must have at least 2 characters, has 1\n" },
	{ "{\"name\":\"x\",\"small\":0}", "/small: " WHOLE "1 to 9\n" },
	{ "{\"name\":\"x\",\"small\":10}", "/small: " WHOLE "1 to 9\n" },
	{ "{\"name\":\"x\",\"small\":1.5}", "/small: " WHOLE "1 to 9\n" },
	{ "{\"name\":\"x\",\"small\":\"1\"}", "/small: " WHOLE "1 to 9\n" },
	{ "{\"name\":\"x\",\"small\":true}", "/small: " WHOLE "1 to 9\n" },
	{ "{\"name\":\"x\",\"small\":1.00000000000000000000000000001}",
	    "/small: " WHOLE "1 to 9\n" },
	{ "{\"name\":\"x\",\"timeoutSeconds\":9007199254740992}",
	    "/timeoutSeconds: " WHOLE "0 to 9007199254740991\n" },
	{ "{\"name\":\"x\",\"timeoutSeconds\":9007199254740991.4}",
	    "/timeoutSeconds: " WHOLE "0 to 9007199254740991\n" },
	{ "{\"name\":\"x\",\"timeoutSeconds\":-1}",
	    "/timeoutSeconds: " WHOLE "0 to 9007199254740991\n" },
	{ "{\"name\":\"x\",\"timeoutSeconds\":1e-9}",
	    "/timeoutSeconds: " WHOLE "0 to 9007199254740991\n" },
	{ "{\"name\":\"x\",\"timeoutSeconds\":1e300}",
	    "/timeoutSeconds: " WHOLE "0 to 9007199254740991\n" },
	{ "{\"name\":\"x\",\"timeoutSeconds\":0.000000000000000000000000000000"
	  "0000000000000000000000000000000000000000000000000000000000001}",
	    "/timeoutSeconds: " WHOLE "0 to 9007199254740991\n" },
	{ "{\"name\":\"x\",\"strictEnv\":1,\"valid\":2}",
	    "/strictEnv: must be true or false\n/valid: " WHOLE "0 to 1\n" },
	{ "{\"name\":\"x\",\"startsAt\":\"2026-11-21\"}",
	    "/startsAt: must be a time like 2026-11-21T01:02:03Z\n" },
	{ "{\"name\":\"x\",\"startsAt\":17}",
	    "/startsAt: must be a time like 2026-11-21T01:02:03Z\n" },
	{ "{\"name\":\"x\",\"presets\":{}}", "/presets: must be an array\n" },
	{ "{\"name\":\"x\",\"presets\":null}", "/presets: must not be null\n" },
	{ "{\"name\":\"x\",\"presets\":[{\"label\":\"a\"},{\"label\":\"b\"},"
	  "{\"label\":\"c\"},{\"label\":\"d\"}]}",
	    "/presets: must have at most 3 members, has 4\n" },
	{ "{\"name\":\"x\",\"presets\":[1,{\"label\":\"123456\",\"x\":1},{},"
	  "{\"label\":\"odd\"}]}",
	    "/presets: must have at most 3 members, has 4\n" },
	{ "{\"name\":\"x\",\"presets\":[1,{\"label\":\"123456\",\"x\":1},{}]}",
	    "/presets/0: must be an object\n"
	    "/presets/1/label: must have at most 5 characters, has 6\n"
	    "/presets/1/x: unknown member \"x\"\n"
	    "/presets/2/label: is missing\n" },
	{ "{\"name\":\"x\",\"presets\":[{\"label\":\"odd\"}],\"parts\":"
	  "[{\"label\":\"odd\"}],\"only\":{\"label\":\"odd\"}}",
	    "/presets/0/note: is needed here\n"
	    "/parts/0/note: is needed here\n"
	    "/only/note: is needed here\n" },
	{ "{\"name\":\"x\",\"parts\":[{\"label\":\"a\",\"parts\":[{},"
	  "{\"label\":\"b\",\"wanted\":true}]}]}",
	    "/parts/0/parts/0/label: is missing\n"
	    "/parts/0/parts/1/wanted: unknown member \"wanted\"\n" },
	{ "{\"name\":\"x\",\"parts\":[]}",
	    "/parts: must have at least 1 members, has 0\n" },
	{ "{\"name\":\"x\",\"parts\":[{\"label\":null}]}",
	    "/parts/0/label: must not be null\n" },
	{ "{\"name\":\"x\",\"only\":[]}", "/only: must be an object\n" },
	{ "{\"name\":\"x\",\"envVars\":[]}",
	    "/envVars: must be an object of strings\n" },
	{ "{\"name\":\"x\",\"envVars\":{\"A\":1,\"B~/\":null,\"C\":{}}}",
	    "/envVars/A: must be a string\n/envVars/B~0~1: must be a string\n"
	    "/envVars/C: must be a string\n" },
	{ "{\"name\":\"x\",\"envVars\":{\"A\":\"\",\"B\":\"\",\"C\":\"\","
	  "\"D\":\"\"}}",
	    "/envVars: must have at most 3 members, has 4\n" },
	{ "{\"nam\":1,\"kind\":1,\"small\":0,\"valid\":\"\"}",
	    "/nam: unknown member \"nam\"\n/kind: must be a string\n"
	    "/small: " WHOLE "1 to 9\n/valid: " WHOLE "0 to 1\n"
	    "/name: is missing\n" },
};

/* The result of json_read() over an existing item, as for a row. */
static const char *
outcome(struct arena *a, enum json_mode mode, const char *body,
    struct thing *item)
{
	struct faults faults;
	const struct err *e;
	struct buf b;
	const char *text;
	size_t i;

	buf_init(&b, 1 << 20);
	faults_init(&faults, a);
	e = json_read(&thing_shape, mode, body, strlen(body), item, &faults);
	if (e != NULL)
		buf_puts(&b, e->msg);
	else if (faults.n == 0)
		json_write(&b, &thing_shape, item, 0);
	for (i = 0; i < faults.n; i++)
		buf_printf(&b, "%s: %s\n", faults.item[i].pointer,
		    faults.item[i].detail);
	text = arena_strdup(a, b.data);
	buf_release(&b);
	return text;
}

static void
rows_check(const struct row *rows, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		struct arena *a = arena_open(1 << 20);
		struct thing thing = { .id = 0 };

		is_str(outcome(a, JSON_CREATE, rows[i].body, &thing),
		    rows[i].want, rows[i].body);
		arena_close(a);
	}
}

#define ROW                                                                       \
	"{\"id\":7,\"name\":\"old\",\"kind\":\"red\",\"defaultBranch\":\"main\"," \
	"\"default\":null,\"small\":5,\"strictEnv\":true,\"valid\":1,"            \
	"\"timeoutSeconds\":60,\"startsAt\":null,"                                \
	"\"presets\":[{\"label\":\"a\",\"wanted\":false,\"parts\":[]}],"          \
	"\"envVars\":{},\"parts\":[],\"only\":null}"

/* Changes of the same row. */
static const struct row changes[] = {
	{ "{}", ROW },
	{ "{\"small\":5,\"presets\":[ {\"parts\":[],\"label\":\"a\"} ]}", ROW },
	{ "{\"name\":\"new\",\"defaultBranch\":null,\"timeoutSeconds\":null}",
	    "{\"id\":7,\"name\":\"new\",\"kind\":\"red\",\"defaultBranch\":null,"
	    "\"default\":null,\"small\":5,\"strictEnv\":true,\"valid\":1,"
	    "\"timeoutSeconds\":null,\"startsAt\":null,"
	    "\"presets\":[{\"label\":\"a\",\"wanted\":false,\"parts\":[]}],"
	    "\"envVars\":{},\"parts\":[],\"only\":null}" },
	{ "{\"name\":null}", "/name: must not be null\n" },
	{ "{\"small\":6}", "/small: can no longer be changed\n" },
	{ "{\"presets\":[]}", "/presets: can no longer be changed\n" },
	{ "{\"parts\":[{}]}", "/parts/0/label: is missing\n" },
	{ "{\"only\":{}}", "/only/label: is missing\n" },
	{ "{\"name\":\"clash\"}", ": clashes\n" },
	/* read-only members may be sent unchanged */
	{ "{\"id\":7,\"small\":5,\"valid\":1}", ROW },
	{ ROW, "/parts: must have at least 1 members, has 0\n" },
	{ "{\"id\":8}",
	    "/id: is set by the service, which has another value: leave it "
	    "out\n" },
	{ "{\"id\":\"7\"}",
	    "/id: is set by the service, which has another value: leave it "
	    "out\n" },
	{ "{\"id\":null}",
	    "/id: is set by the service, which has another value: leave it "
	    "out\n" },
};

static void
updates(void)
{
	struct arena *a = arena_open(1 << 20);
	size_t i;

	for (i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		struct thing thing = {
			.id = 7,
			.name = "old",
			.kind = "red",
			.default_branch = "main",
			.small = 5,
			.strict_env = true,
			.valid = true,
			.timeout_seconds = { .n = 60, .set = true },
			.presets = { "[{\"label\":\"a\",\"wanted\":false,"
				     "\"parts\":[]}]" },
		};

		is_str(outcome(a, JSON_UPDATE, changes[i].body, &thing),
		    changes[i].want, changes[i].body);
		if (changes[i].want[0] != '{')
			ok(thing.small == 5,
			    "  a rejected value is not stored");
	}
	arena_close(a);
}

static void
many_faults(void)
{
	struct arena *a = arena_open(8 << 20);
	struct thing thing = { .id = 0 };
	struct faults faults;
	const struct err *e;
	struct buf b;
	int i;

	buf_init(&b, 1 << 20);
	for (i = 0; i < 19000; i++)
		buf_printf(&b, "%c\"k%d\":0", i == 0 ? '{' : ',', i);
	buf_putc(&b, '}');
	faults_init(&faults, a);
	e = json_read(&thing_shape, JSON_CREATE, b.data, b.len, &thing,
	    &faults);
	ok(e == NULL && faults.n == 19001,
	    "all faults of a large body are counted");
	ok(arena_used(a) < 100000,
	    "the faults of a large body need little memory");
	buf_release(&b);
	arena_close(a);
}

/* The pointer of the fault of a member with a name of `len` tildes. */
static const char *
long_name(struct arena *a, int len)
{
	struct thing thing = { .name = NULL };
	struct faults faults;
	struct buf b;
	int i;

	buf_init(&b, 1 << 20);
	buf_puts(&b, "{\"name\":\"x\",\"");
	for (i = 0; i < len; i++)
		buf_putc(&b, '~');
	buf_puts(&b, "\":0}");
	faults_init(&faults, a);
	ok(json_read(&thing_shape, JSON_CREATE, b.data, b.len, &thing,
	       &faults) == NULL &&
		faults.n == 1,
	    "a name of %d bytes is rejected", len);
	buf_release(&b);
	return faults.n == 0 ? "" : faults.item[0].pointer;
}

static void
long_names(void)
{
	struct arena *a = arena_open(8 << 20);
	const char *pointer = long_name(a, 256);

	is_int((long long)strlen(pointer), 513,
	    "the pointer to a long name is complete");
	is_str(long_name(a, 257), "", "the pointer to a longer name is empty");
	is_str(long_name(a, 1000000), "",
	    "the pointer to a name of a megabyte is empty");
	ok(arena_used(a) < 100000, "pointers to long names need little memory");
	arena_close(a);
}

static void
rest_of(void)
{
	struct arena *a = arena_open(1 << 20);
	struct thing thing = { .name = "x" };

	is_str(outcome(a, JSON_UPDATE,
		   "{\"envVars\":{\"A\":1,\"B\":\"b\"},\"presets\":"
		   "[{\"label\":\"odd\",\"x\":0},7,{\"note\":\"n\"}],"
		   "\"name\":\"clash\",\"kind\":\"blue\"}",
		   &thing),
	    "/envVars/A: must be a string\n"
	    "/presets/0/x: unknown member \"x\"\n"
	    "/presets/0/note: is needed here\n"
	    "/presets/1: must be an object\n"
	    "/presets/2/label: is missing\n"
	    "/kind: must be one of: red, green\n"
	    ": clashes\n",
	    "all faults are reported, whatever else is wrong");
	ok(thing.env_vars.n == 1 && str_eq(thing.env_vars.items[0].key, "B") &&
		str_eq(thing.env_vars.items[0].value, "b"),
	    "the valid members of an object are stored");
	(void)outcome(a, JSON_UPDATE, "{\"envVars\":[]}", &thing);
	is_int((long long)thing.env_vars.n, 1,
	    "a value that is not an object changes nothing");
	ok(thing.presets.s == NULL,
	    "a rejected change does not alter a read-only array");
	arena_close(a);
}

static void
stored(void)
{
	struct arena *a = arena_open(1 << 20);
	const struct part *part;
	const struct pair *pair;
	const struct err *e;
	struct list list;
	struct map map;
	struct buf b;

	e = json_items(a, &part_shape,
	    "[{\"label\":\"odd\",\"wanted\":true,\"parts\":[]},"
	    "{\"label\":\"b\",\"note\":\"n\"}]",
	    &list);
	part = list.items;
	ok(e == NULL && list.n == 2 && part[0].wanted && !part[1].wanted &&
		str_eq(part[0].label, "odd") && str_eq(part[1].note, "n"),
	    "a stored array is read without validation");
	e = json_items_sent(a, &part_shape,
	    "[{\"label\":\"123456\",\"wanted\":true},{\"note\":\"n\"}]", &list);
	part = list.items;
	ok(e == NULL && list.n == 2 && part[0].label == NULL &&
		part[0].wanted && str_eq(part[1].note, "n"),
	    "the readable members of an invalid item are read");
	ok(json_items(a, &part_shape, NULL, &list) == NULL && list.n == 0,
	    "a missing text is an empty array");
	e = json_items(a, &part_shape, "{}", &list);
	ok(e != NULL && e->code == ERR_INTERNAL,
	    "an object instead of an array is an internal error");
	e = json_items(a, &part_shape, "[{\"label\":1}]", &list);
	ok(e != NULL && e->code == ERR_INTERNAL && e->detail[0] == '\0',
	    "a damaged array is not an error of the client");
	e = json_items(a, &part_shape, "[", &list);
	ok(e != NULL && e->code == ERR_INTERNAL && e->detail[0] == '\0',
	    "text that is not JSON is an internal error");

	e = json_map(a, "{\"B\":\"1\",\"A\":null,\"\":\"\"}", &map);
	pair = map.items;
	ok(e == NULL && map.n == 3 && str_eq(pair[0].key, "B") &&
		str_eq(pair[0].value, "1") && pair[1].value == NULL &&
		str_eq(pair[2].value, ""),
	    "a stored map keeps its order, and null is NULL");
	buf_init(&b, 1000);
	json_write_map(&b, &map);
	is_str(b.data, "{\"B\":\"1\",\"A\":null,\"\":\"\"}",
	    "a map is written as it was read");
	buf_release(&b);
	ok(json_map(a, NULL, &map) == NULL && map.n == 0,
	    "a missing text is an empty map");
	e = json_map(a, "[]", &map);
	ok(e != NULL && e->code == ERR_INTERNAL,
	    "an array instead of a map is an internal error");
	e = json_map(a, "{\"A\":1}", &map);
	ok(e != NULL && e->code == ERR_INTERNAL,
	    "a number in a map is an internal error");
	arena_close(a);
}

int
main(void)
{
	rows_check(good, sizeof(good) / sizeof(good[0]));
	rows_check(bad, sizeof(bad) / sizeof(bad[0]));
	updates();
	many_faults();
	long_names();
	rest_of();
	stored();
	return tap_done();
}
