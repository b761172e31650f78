/* SPDX-License-Identifier: ISC */
#include <assert.h>
#include <string.h>

#include "core/num.h"
#include "core/str.h"
#include "json/inner.h"

/* Control characters besides tab and line ends; what a FIELD_LINE may contain,
 * and what makes it not blank; all as in core/str.h.  Characters beyond U+FFFF
 * are not escaped, because no escape works in all regular expression
 * dialects. */
/* clang-format off */
#define CONTROL "\\u007f-\\u009f\\u061c\\u200e\\u200f"			\
	"\\u2028-\\u202e\\u2066-\\u2069"
#define TEXT_CHAR "[^\\u0000-\\u0008\\u000b\\u000c"			\
	"\\u000e-\\u001f" CONTROL "]"
#define LINE_CHAR "[^\\u0000-\\u001f" CONTROL "]"
#define SEEN_CHAR "[^\\s\\u0000-\\u001f" CONTROL			\
	"\\u00ad\\u034f\\u115f\\u1160\\u17b4\\u17b5"			\
	"\\u180b-\\u180f\\u200b-\\u200d\\u2060-\\u206f"		\
	"\\u2800\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0"			\
	"\\ufff0-\\ufffb"						\
	"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"			\
	"\U000e0000-\U000e0fff]"
#define LINE LINE_CHAR "*" SEEN_CHAR LINE_CHAR "*"
/* clang-format on */

struct writer {
	struct buf *b;
	enum json_schema which;
	unsigned detail;
};

static bool
is_out(const struct writer *w)
{
	return w->which == JSON_SCHEMA_OUT || w->which == JSON_SCHEMA_STORED;
}

/* Writes `"key":`, preceded by a comma unless it follows a brace. */
static void
key(struct buf *b, const char *name)
{
	if (b->len > 0 && strchr("{[", b->data[b->len - 1]) == NULL)
		buf_putc(b, ',');
	buf_printf(b, "\"%s\":", name);
}

static void
number(struct buf *b, const char *name, int64_t value)
{
	key(b, name);
	buf_printf(b, "%lld", (long long)value);
}

static void
type(struct writer *w, const struct field *f, const char *name)
{
	key(w->b, "type");
	if ((f->flags & FIELD_NULL) != 0)
		buf_printf(w->b, "[\"%s\",\"null\"]", name);
	else
		buf_printf(w->b, "\"%s\"", name);
}

/* Writes a reference to a schema, or null where the member may be null. */
static void
reference(struct writer *w, const struct field *f, const char *name,
    const char *suffix)
{
	const bool null = (f->flags & FIELD_NULL) != 0;

	if (null) {
		key(w->b, "oneOf");
		buf_puts(w->b, "[{");
	}
	key(w->b, "$ref");
	buf_printf(w->b, "\"#/components/schemas/%s%s\"", name, suffix);
	if (null)
		buf_puts(w->b, "},{\"type\":\"null\"}]");
}

/* Writes everything except the closing bracket. */
static void
values_write(struct buf *b, const char *const *values)
{
	const char *const *v;

	key(b, "enum");
	buf_putc(b, '[');
	for (v = values; *v != NULL; v++) {
		if (v != values)
			buf_putc(b, ',');
		json_string(b, *v);
	}
}

void
json_schema_values(struct buf *b, const char *const *values)
{
	values_write(b, values);
	buf_putc(b, ']');
}

struct json_limits
json_limits(const struct field *f)
{
	static const int64_t most[] = {
		[F_INT] = NUM_SAFE,
		[F_STR] = 65535,
		[F_BOOL] = 1,
		[F_MAYBE] = NUM_SAFE,
		[F_WHEN] = 0,
		[F_JSON] = 100,
		[F_LIST] = 100,
		[F_MAP] = 100,
		[F_BLOB] = 0,
	};

	return (struct json_limits){
		.min = f->min,
		.max = f->max != 0 ? f->max : most[f->type],
	};
}

/* Translates a POSIX class such as "[:space:]" for JSON Schema; advances
 * *ere. */
static bool
class_write(struct buf *b, const char **ere)
{
	static const struct {
		const char *name, *range;
	} classes[] = {
		{ "[:space:]", "\\t-\\r " },
		{ "[:cntrl:]", "\\x00-\\x1f\\x7f" },
		{ "[:alnum:]", "A-Za-z0-9" },
		{ "[:alpha:]", "A-Za-z" },
		{ "[:digit:]", "0-9" },
	};
	size_t i;

	for (i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
		if (str_starts(*ere, classes[i].name)) {
			buf_puts(b, classes[i].range);
			*ere += strlen(classes[i].name);
			return true;
		}
	return false;
}

/* Writes the pattern for a whole string; `before` is a further condition. */
static void
pattern(struct writer *w, const char *before, const char *ere)
{
	struct buf text;

	buf_init(&text, JSON_TEXT_MAX);
	buf_printf(&text, "^%s(?:", before);
	while (*ere != '\0')
		if (*ere != '[' || !class_write(&text, &ere))
			buf_putc(&text, *ere++);
	buf_puts(&text, ")$");
	key(w->b, "pattern");
	json_string(w->b, text.data);
	buf_release(&text);
}

static void
patterns(struct writer *w, const struct field *f)
{
	const bool line = (f->flags & FIELD_LINE) != 0;

	if (f->shown != NULL || f->pattern != NULL)
		pattern(w, line ? "(?=(?:" LINE ")?$)" : "",
		    f->shown != NULL ? f->shown : f->pattern);
	else if (line)
		pattern(w, "", "(?:" LINE ")?");
	else if ((f->flags & FIELD_TEXT) != 0)
		pattern(w, "", TEXT_CHAR "*");
	else
		pattern(w, "", "[^\\u0000]*");
}

static void
string(struct writer *w, const struct field *f)
{
	const struct json_limits limits = json_limits(f);

	if (f->values != NULL && f->named != NULL) {
		reference(w, f, f->named, "");
		return;
	}
	type(w, f, "string");
	if (f->values != NULL) {
		values_write(w->b, f->values);
		buf_puts(w->b, (f->flags & FIELD_NULL) != 0 ? ",null]" : "]");
		return;
	}
	if (is_out(w))
		return;
	if (limits.min > 0)
		number(w->b, "minLength", limits.min);
	number(w->b, "maxLength", limits.max);
	patterns(w, f);
}

void
json_schema_format(struct buf *b, int64_t max)
{
	key(b, "format");
	buf_puts(b, max > INT32_MAX ? "\"int64\"" : "\"int32\"");
}

static void
integer(struct writer *w, const struct field *f)
{
	const struct json_limits limits = json_limits(f);

	if ((f->flags & FIELD_TRUTH) != 0) {
		type(w, f, "boolean");
		return;
	}
	type(w, f, "integer");
	json_schema_format(w->b, limits.max);
	if (is_out(w))
		return;
	number(w->b, "minimum", limits.min);
	number(w->b, "maximum", limits.max);
}

static void
boolean(struct writer *w, const struct field *f)
{
	if ((f->flags & FIELD_NUMBER) == 0) {
		/*
		 * FIELD_TRUE is not written as "default": openapi-typescript
		 * requires members that have one, in requests, too, so a new
		 * member would break clients.  The description tells it.
		 */
		type(w, f, "boolean");
		return;
	}
	type(w, f, "integer");
	key(w->b, "enum");
	buf_puts(w->b, "[0,1]");
}

static void
moment(struct writer *w, const struct field *f)
{
	type(w, f, "string");
	key(w->b, "format");
	buf_puts(w->b, "\"date-time\"");
}

static void member(struct writer *, const struct field *);

static void
item_reference(struct writer *w, const struct field *f)
{
	const struct field item = { .flags = f->flags & FIELD_NULL };
	const struct field plain = { .flags = 0 };
	const char *suffix = is_out(w) ? "" : "Input";

	if ((f->flags & FIELD_ONE) != 0) {
		reference(w, &item, f->shape->name, suffix);
		return;
	}
	key(w->b, "items");
	if (f->shape->bare) {
		member(w, f->shape->fields);
		return;
	}
	buf_putc(w->b, '{');
	reference(w, &plain, f->shape->name, suffix);
	buf_putc(w->b, '}');
}

static void
counts(struct writer *w, const struct field *f, const char *least,
    const char *most)
{
	const struct json_limits limits = json_limits(f);

	if (is_out(w))
		return;
	if (limits.min > 0)
		number(w->b, least, limits.min);
	number(w->b, most, limits.max);
}

static void
map(struct writer *w, const struct field *f)
{
	type(w, f, "object");
	if (f->named != NULL) {
		reference(w, f, f->named, "");
	} else {
		key(w->b, "additionalProperties");
		buf_puts(w->b,
		    is_out(w) || (f->flags & FIELD_GAPS) != 0 ?
			"{\"type\":[\"string\",\"null\"]}" :
			"{\"type\":\"string\"}");
	}
	counts(w, f, "minProperties", "maxProperties");
}

static void
array(struct writer *w, const struct field *f)
{
	if ((f->flags & FIELD_MAP) != 0) {
		map(w, f);
		return;
	}
	if ((f->flags & FIELD_ONE) == 0)
		type(w, f, "array");
	item_reference(w, f);
	if ((f->flags & FIELD_ONE) == 0)
		counts(w, f, "minItems", "maxItems");
}

bool
json_schema_fixed(const struct field *f, enum json_schema which)
{
	return which == JSON_SCHEMA_UPDATE &&
	    ((f->flags & FIELD_IN) == 0 || (f->flags & FIELD_ONCE) != 0);
}

static void
member(struct writer *w, const struct field *f)
{
	static void (*const writers[])(struct writer *,
	    const struct field *) = {
		[F_INT] = integer,
		[F_STR] = string,
		[F_BOOL] = boolean,
		[F_MAYBE] = integer,
		[F_WHEN] = moment,
		[F_JSON] = array,
		[F_LIST] = array,
		[F_MAP] = map,
	};

	const enum json_schema which = w->which;

	assert(f->type < F_BLOB);
	buf_putc(w->b, '{');
	if (json_schema_fixed(f, which)) {
		key(w->b, "readOnly");
		buf_puts(w->b, "true");
		w->which = JSON_SCHEMA_OUT;
	}
	writers[f->type](w, f);
	w->which = which;
	if (f->doc != NULL) {
		key(w->b, "description");
		json_string(w->b, f->doc);
	}
	buf_putc(w->b, '}');
}

static bool
is_shown(const struct writer *w, const struct field *f)
{
	if (w->which == JSON_SCHEMA_CREATE)
		return (f->flags & FIELD_IN) != 0;
	if (w->which == JSON_SCHEMA_UPDATE)
		return (f->flags & (FIELD_IN | FIELD_OUT)) != 0;
	return (f->flags & FIELD_OUT) != 0 &&
	    (f->flags & FIELD_DETAIL & ~w->detail) == 0;
}

static bool
is_required(const struct writer *w, const struct field *f)
{
	if (!is_shown(w, f) || w->which == JSON_SCHEMA_UPDATE ||
	    (f->flags & FIELD_LATER) != 0)
		return false;
	if (w->which == JSON_SCHEMA_CREATE)
		return (f->flags & FIELD_MUST) != 0;
	return w->which == JSON_SCHEMA_OUT || f->type != F_STR ||
	    (f->flags & FIELD_IN) == 0 ||
	    (f->flags & (FIELD_MUST | FIELD_NULL)) != 0;
}

/* clang takes two strings in an array for a missing comma. */
#define UPDATE_ABOUT                                                           \
	" The form for changes: members left out are unchanged, and "          \
	"read-only members are accepted with their present value."
static const char *const abouts[] = {
	[JSON_SCHEMA_OUT] = "",
	[JSON_SCHEMA_STORED] = "",
	[JSON_SCHEMA_CREATE] = " The form for creation.",
	[JSON_SCHEMA_UPDATE] = UPDATE_ABOUT,
};

void
json_schema(struct buf *b, const struct shape *shape, enum json_schema which,
    unsigned detail)
{
	struct writer w = { .b = b, .which = which, .detail = detail };
	const struct field *f;
	const char *before = "";
	struct buf about;

	buf_init(&about, JSON_TEXT_MAX);
	buf_puts(b, "{\"type\":\"object\"");
	if (shape->doc != NULL) {
		key(b, "description");
		buf_printf(&about, "%s%s", shape->doc, abouts[which]);
		json_string(b, about.data);
		buf_release(&about);
	}
	buf_puts(b, ",\"properties\":{");
	for (f = shape->fields; f->name != NULL; f++) {
		if (!is_shown(&w, f))
			continue;
		buf_puts(b, before);
		before = ",";
		json_name_write(b, f);
		buf_putc(b, ':');
		member(&w, f);
	}
	buf_putc(b, '}');
	before = ",\"required\":[";
	for (f = shape->fields; f->name != NULL; f++) {
		if (!is_required(&w, f))
			continue;
		buf_puts(b, before);
		json_name_write(b, f);
		before = ",";
	}
	if (before[1] == '\0')
		buf_putc(b, ']');
	buf_puts(b, ",\"additionalProperties\":false}");
}
