/* SPDX-License-Identifier: ISC */
/* Structs as JSON, and the schemas that describe them. */
#include "core/str.h"
#include "json/json.h"
#include "tap.h"

struct leaf {
	const char *key;
	const char *note;
};

struct tree {
	int64_t id;
	const char *name;
	const char *kind;
	bool dirty;
	bool valid;
	struct maybe size;
	struct when seen_at;
	struct json_text leaves;
	struct json_text env_vars;
	struct list many;
	struct list one;
	const char *secret;
	struct blob raw;
};

static const char *const kinds[] = { "oak", "ash", NULL };

#define L(m, ...) FIELD(struct leaf, m, __VA_ARGS__)
#define F(m, ...) FIELD(struct tree, m, __VA_ARGS__)
#define BOTH (FIELD_OUT | FIELD_IN)

static const struct field leaf_fields[] = {
	L(key, BOTH | FIELD_MUST, .min = 1, .max = 9),
	L(note, BOTH),
	FIELD_END,
};
static const struct shape leaf_shape = {
	.name = "Leaf",
	.fields = leaf_fields,
	.size = sizeof(struct leaf),
};

static const struct field tree_fields[] = {
	F(id, FIELD_OUT, .doc = "Its number."),
	F(name, BOTH | FIELD_MUST | FIELD_LINE, .min = 1, .max = 9),
	F(kind, BOTH | FIELD_NULL, .values = kinds),
	F(dirty, BOTH, .outside = "unclean"),
	F(valid, FIELD_OUT | FIELD_NUMBER),
	F(size, BOTH | FIELD_NULL, .max = 99),
	F(seen_at, FIELD_OUT | FIELD_NULL),
	F(leaves, BOTH, .shape = &leaf_shape, .max = 5),
	F(env_vars, BOTH | FIELD_MAP, .max = 7),
	F(many, FIELD_OUT | FIELD_DETAIL, .shape = &leaf_shape),
	F(one, FIELD_OUT | FIELD_DETAIL | FIELD_ONE, .shape = &leaf_shape),
	F(secret, FIELD_IN, .pattern = "[a-z]+", .max = 4),
	FIELD(struct tree, raw, FIELD_NULL),
	FIELD_END,
};
static const struct shape tree_shape = {
	.name = "Tree",
	.fields = tree_fields,
	.size = sizeof(struct tree),
};

static const struct field fine_fields[] = {
	F(id, FIELD_OUT),
	F(name, BOTH | FIELD_LINE, .max = 9, .shown = "(?!x)[a-z]*"),
	F(kind, BOTH | FIELD_NULL, .values = kinds, .named = "Wood"),
	F(leaves, BOTH | FIELD_ONCE, .shape = &leaf_shape, .max = 5),
	F(env_vars, BOTH | FIELD_MAP, .max = 7, .named = "Vars"),
	F(secret, FIELD_IN | FIELD_LINE, .pattern = "[^@[:space:]]+", .max = 4),
	FIELD_END,
};
static const struct shape fine_shape = {
	.name = "Fine",
	.fields = fine_fields,
	.size = sizeof(struct tree),
	.doc = "A thing.",
};

static struct buf out;

static void
is_out(const char *want, const char *name)
{
	is_str(out.data, want, name);
	buf_clear(&out);
}

static const struct {
	const char *text, *want;
} strings[] = {
	{ "", "\"\"" },
	{ "plain", "\"plain\"" },
	{ "a\"b\\c/d", "\"a\\\"b\\\\c/d\"" },
	{ "\b\f\n\r\t", "\"\\b\\f\\n\\r\\t\"" },
	{ "\x01\x1f\x7f", "\"\\u0001\\u001f\x7f\"" },
	{ "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
	    "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"" },
	{ "a\xff"
	  "b",
	    "\"a\\ufffdb\"" },
	{ "\xc3", "\"\\ufffd\"" },
	{ "\xe2\x82x", "\"\\ufffd\\ufffdx\"" },
	{ "\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\"" },
	{ NULL, "null" },
};

static void
values(void)
{
	size_t i;

	for (i = 0; i < sizeof(strings) / sizeof(strings[0]); i++) {
		json_string(&out, strings[i].text);
		ok(json_strict(out.data, out.len) == NULL,
		    "the output is strict JSON");
		is_out(strings[i].want, strings[i].want);
	}
	json_when(&out, (struct when){ INT64_C(1795222923456) });
	is_out("\"2026-11-21T01:02:03.456Z\"", "a time is written in RFC 3339");
	json_when(&out, (struct when){ 0 });
	is_out("null", "an unset time is written as null");
}

static void
objects(void)
{
	struct leaf leaves[] = { { "a", "b" }, { "c", NULL } };
	struct tree tree = {
		.id = 9007199254740991,
		.name = "n\n",
		.dirty = true,
		.valid = true,
		.size = { .n = -3, .set = true },
		.seen_at = { 1 },
		.leaves = { "[{\"key\":\"k\"}]" },
		.env_vars = { "{\"A\":null}" },
		.many = { leaves, 2 },
		.one = { leaves, 1 },
		.secret = "hidden",
	};
	struct tree trees[2] = { { .id = 1 }, { .id = 2 } };
	const struct list list = { trees, 2 }, none = { NULL, 0 };

	json_write(&out, &tree_shape, &tree, 0);
	is_out("{\"id\":9007199254740991,\"name\":\"n\\n\",\"kind\":null,"
	       "\"unclean\":true,\"valid\":1,\"size\":-3,"
	       "\"seenAt\":\"1970-01-01T00:00:00.001Z\","
	       "\"leaves\":[{\"key\":\"k\"}],\"envVars\":{\"A\":null}}",
	    "a list has the members for lists");
	json_write(&out, &tree_shape, &tree, FIELD_DETAIL);
	is_out("{\"id\":9007199254740991,\"name\":\"n\\n\",\"kind\":null,"
	       "\"unclean\":true,\"valid\":1,\"size\":-3,"
	       "\"seenAt\":\"1970-01-01T00:00:00.001Z\","
	       "\"leaves\":[{\"key\":\"k\"}],\"envVars\":{\"A\":null},"
	       "\"many\":[{\"key\":\"a\",\"note\":\"b\"},"
	       "{\"key\":\"c\",\"note\":null}],"
	       "\"one\":{\"key\":\"a\",\"note\":\"b\"}}",
	    "a single object has all members except write-only ones");
	json_write_list(&out, &tree_shape, &list, FIELD_DETAIL);
	is_out("[{\"id\":1,\"name\":null,\"kind\":null,\"unclean\":false,"
	       "\"valid\":0,\"size\":null,\"seenAt\":null,\"leaves\":[],"
	       "\"envVars\":{},\"many\":[],\"one\":null},"
	       "{\"id\":2,\"name\":null,\"kind\":null,\"unclean\":false,"
	       "\"valid\":0,\"size\":null,\"seenAt\":null,\"leaves\":[],"
	       "\"envVars\":{},\"many\":[],\"one\":null}]",
	    "a zeroed struct is written with empty values");
	json_write_list(&out, &tree_shape, &none, 0);
	is_out("[]", "an empty list is written as an array");
}

#define STR "{\"type\":\"string\""
/* clang-format off */
#define STEERS "\\\\u007f-\\\\u009f\\\\u061c\\\\u200e\\\\u200f"		\
	"\\\\u2028-\\\\u202e\\\\u2066-\\\\u2069"
#define UNSEEN "\\\\u00ad\\\\u034f\\\\u115f\\\\u1160\\\\u17b4\\\\u17b5"	\
	"\\\\u180b-\\\\u180f\\\\u200b-\\\\u200d\\\\u2060-\\\\u206f\\\\u2800"	\
	"\\\\u3164\\\\ufe00-\\\\ufe0f\\\\ufeff\\\\uffa0\\\\ufff0-\\\\ufffb"	\
	"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"			\
	"\U000e0000-\U000e0fff"
#define LINE								\
	"(?:[^\\\\u0000-\\\\u001f" STEERS "]*"				\
	"[^\\\\s\\\\u0000-\\\\u001f" STEERS UNSEEN "]"			\
	"[^\\\\u0000-\\\\u001f" STEERS "]*)?"
#define SEEN "^(?:" LINE ")$"
#define ANY "\"pattern\":\"^(?:[^\\\\u0000]*)$\""
/* clang-format on */
#define REF(name) "{\"$ref\":\"#/components/schemas/" name "\"}"

static void
schemas(void)
{
	json_schema(&out, &tree_shape, JSON_SCHEMA_OUT, FIELD_DETAIL);
	is_out(
	    "{\"type\":\"object\",\"properties\":{"
	    "\"id\":{\"type\":\"integer\",\"format\":\"int64\",\"description\":\"Its number.\"},"
	    "\"name\":" STR "},"
	    "\"kind\":{\"type\":[\"string\",\"null\"],"
	    "\"enum\":[\"oak\",\"ash\",null]},"
	    "\"unclean\":{\"type\":\"boolean\"},"
	    "\"valid\":{\"type\":\"integer\",\"enum\":[0,1]},"
	    "\"size\":{\"type\":[\"integer\",\"null\"],\"format\":\"int32\"},"
	    "\"seenAt\":{\"type\":[\"string\",\"null\"],"
	    "\"format\":\"date-time\"},"
	    "\"leaves\":{\"type\":\"array\",\"items\":" REF(
		"Leaf") "},"
			"\"envVars\":{\"type\":\"object\",\"additionalProperties\":"
			"{\"type\":[\"string\",\"null\"]}},"
			"\"many\":{\"type\":\"array\",\"items\":" REF(
			    "Leaf") "},"
				    "\"one\":" REF(
					"Leaf") "},"
						"\"required\":[\"id\",\"name\",\"kind\",\"unclean\",\"valid\","
						"\"size\",\"seenAt\",\"leaves\",\"envVars\",\"many\",\"one\"],"
						"\"additionalProperties\":false}",
	    "the schema of a response");
	json_schema(&out, &tree_shape, JSON_SCHEMA_CREATE, 0);
	is_out(
	    "{\"type\":\"object\",\"properties\":{"
	    "\"name\":" STR ",\"minLength\":1,\"maxLength\":9,"
	    "\"pattern\":\"" SEEN "\"},"
	    "\"kind\":{\"type\":[\"string\",\"null\"],"
	    "\"enum\":[\"oak\",\"ash\",null]},"
	    "\"unclean\":{\"type\":\"boolean\"},"
	    "\"size\":{\"type\":[\"integer\",\"null\"],\"format\":\"int32\",\"minimum\":0,"
	    "\"maximum\":99},"
	    "\"leaves\":{\"type\":\"array\",\"items\":" REF(
		"LeafInput") ",\"maxItems\":5},"
			     "\"envVars\":{\"type\":\"object\",\"additionalProperties\":"
			     "{\"type\":\"string\"},\"maxProperties\":7},"
			     "\"secret\":" STR ",\"maxLength\":4,"
			     "\"pattern\":\"^(?:[a-z]+)$\"}},"
			     "\"required\":[\"name\"],\"additionalProperties\":false}",
	    "the schema of POST");
}

static void
changes(void)
{
	json_schema(&out, &leaf_shape, JSON_SCHEMA_UPDATE, 0);
	is_out("{\"type\":\"object\",\"properties\":{"
	       "\"key\":" STR ",\"minLength\":1,\"maxLength\":9," ANY "},"
	       "\"note\":" STR ",\"maxLength\":65535," ANY "}},"
	       "\"additionalProperties\":false}",
	    "the schema of PUT has no required members");
	json_schema(&out, &fine_shape, JSON_SCHEMA_UPDATE, 0);
	is_out(
	    "{\"type\":\"object\",\"description\":\"A thing. The form for "
	    "changes: members left out are unchanged, and read-only members "
	    "are accepted with their present value.\",\"properties\":{"
	    "\"id\":{\"readOnly\":true,\"type\":\"integer\","
	    "\"format\":\"int64\"},"
	    "\"name\":" STR ",\"maxLength\":9,\"pattern\":"
	    "\"^(?=" LINE "$)(?:(?!x)[a-z]*)$\"},"
	    "\"kind\":{\"oneOf\":[" REF(
		"Wood") ",{\"type\":\"null\"}]},"
			"\"leaves\":{\"readOnly\":true,\"type\":\"array\",\"items\":" REF(
			    "Leaf") "},"
				    "\"envVars\":{\"type\":\"object\",\"$ref\":\"#/components/schemas/Vars\","
				    "\"maxProperties\":7},"
				    "\"secret\":" STR
				    ",\"maxLength\":4,\"pattern\":"
				    "\"^(?=" LINE "$)"
				    "(?:[^@\\\\t-\\\\r ]+)$\"}},"
				    "\"additionalProperties\":false}",
	    "members that cannot be changed are read-only, names stand for "
	    "the schema of PUT has read-only members and no POSIX classes");
}

static void
answers(void)
{
	json_schema(&out, &leaf_shape, JSON_SCHEMA_OUT, 0);
	is_out("{\"type\":\"object\",\"properties\":{"
	       "\"key\":" STR "},\"note\":" STR "}},"
	       "\"required\":[\"key\",\"note\"],"
	       "\"additionalProperties\":false}",
	    "the schema of a response requires all members");
	json_schema(&out, &leaf_shape, JSON_SCHEMA_STORED, 0);
	is_out("{\"type\":\"object\",\"properties\":{"
	       "\"key\":" STR "},\"note\":" STR "}},"
	       "\"required\":[\"key\"],\"additionalProperties\":false}",
	    "an optional string is not nullable");
}

struct word {
	const char *text;
};
struct holder {
	struct json_text words;
};

static const struct field word_fields[] = {
	FIELD(struct word, text, FIELD_OUT | FIELD_IN, .min = 1, .max = 5),
	FIELD_END,
};
static const struct shape word_shape = { .name = "Word",
	.fields = word_fields,
	.size = sizeof(struct word),
	.bare = true };
static const struct field holder_fields[] = {
	FIELD(struct holder, words, FIELD_OUT | FIELD_IN, .max = 2,
	    .shape = &word_shape),
	FIELD_END,
};
static const struct shape holder_shape = { .name = "Holder",
	.fields = holder_fields,
	.size = sizeof(struct holder) };

/* Reads the body; returns the text of the array, or the first fault. */
static const char *
words_read(struct arena *a, const char *body)
{
	struct holder holder = { .words = { .s = NULL } };
	struct faults faults;

	faults_init(&faults, a);
	if (json_read(&holder_shape, JSON_CREATE, body, strlen(body), &holder,
		&faults) != NULL)
		return "error";
	if (faults.n > 0)
		return arena_printf(a, "%s %s", faults.item[0].pointer,
		    faults.item[0].detail);
	return holder.words.s;
}

static void
bare(void)
{
	struct arena *a = arena_open(100000);
	const struct word *word;
	const struct err *e;
	struct list list;
	struct buf b;

	is_str(words_read(a, "{\"words\":[\"a\",\"b/*\"]}"), "[\"a\",\"b/*\"]",
	    "an array of strings is stored as such");
	is_str(words_read(a, "{\"words\":[]}"), "[]",
	    "an array of strings can be empty");
	is_str(words_read(a, "{\"words\":[\"a\",1]}"),
	    "/words/1 must be a string",
	    "a number in an array of strings is a fault");
	is_str(words_read(a, "{\"words\":[null]}"), "/words/0 must not be null",
	    "null in an array of strings is a fault");
	is_str(words_read(a, "{\"words\":[{\"text\":\"a\"}]}"),
	    "/words/0 must be a string",
	    "an object in an array of strings is a fault");
	is_str(words_read(a, "{\"words\":[\"\"]}"),
	    "/words/0 must not be empty",
	    "an item of an array of strings has the limits of its entry");
	is_str(words_read(a, "{\"words\":[\"a\",\"b\",\"c\"]}"),
	    "/words must have at most 2 members, has 3",
	    "an array of strings has a limit");
	e = json_items(a, &word_shape, "[\"x\",\"y\"]", &list);
	word = list.items;
	ok(e == NULL && list.n == 2 && str_eq(word[1].text, "y"),
	    "a stored array of strings is read");
	buf_init(&b, 1000);
	json_schema(&b, &holder_shape, JSON_SCHEMA_CREATE, 0);
	ok(strstr(b.data,
	       "\"items\":{\"type\":\"string\",\"minLength\":1,"
	       "\"maxLength\":5,") != NULL,
	    "the schema of an array of strings describes its items");
	buf_release(&b);
	arena_close(a);
}

int
main(void)
{
	bare();
	buf_init(&out, 1 << 20);
	values();
	objects();
	schemas();
	changes();
	answers();
	buf_release(&out);
	return tap_done();
}
