/* SPDX-License-Identifier: ISC */
#include <assert.h>
#include <string.h>

#include "core/num.h"
#include "json/inner.h"

/* Control characters beyond tab and line ends; what a FIELD_LINE has, and what
 * makes it not blank; all as core/str.h says.  What lies beyond U+FFFF stands
 * for itself, because there is no escape that all readers of patterns know. */
/* clang-format off */
#define CONTROL "\\\\u007f-\\\\u009f\\\\u061c\\\\u200e\\\\u200f"		\
	"\\\\u2028-\\\\u202e\\\\u2066-\\\\u2069"
#define TEXT_CHAR "[^\\\\u0000-\\\\u0008\\\\u000b\\\\u000c"			\
	"\\\\u000e-\\\\u001f" CONTROL "]"
#define LINE_CHAR "[^\\\\u0000-\\\\u001f" CONTROL "]"
#define SEEN_CHAR "[^\\\\s\\\\u0000-\\\\u001f" CONTROL			\
	"\\\\u00ad\\\\u034f\\\\u115f\\\\u1160\\\\u17b4\\\\u17b5"		\
	"\\\\u180b-\\\\u180f\\\\u200b-\\\\u200d\\\\u2060-\\\\u206f"	\
	"\\\\u2800\\\\u3164\\\\ufe00-\\\\ufe0f\\\\ufeff\\\\uffa0"		\
	"\\\\ufff0-\\\\ufffb"						\
	"\\ud82f\\udca0-\\ud82f\\udca3\\ud834\\udd73-\\ud834\\udd7a"	\
	"\\udb40\\udc00-\\udb43\\udfff]"
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

/* `"key":` with a comma before it, except behind a brace. */
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

static void
choices(struct writer *w, const struct field *f)
{
	const char *const *v;

	key(w->b, "enum");
	buf_putc(w->b, '[');
	for (v = f->values; *v != NULL; v++) {
		if (v != f->values)
			buf_putc(w->b, ',');
		json_string(w->b, *v);
	}
	buf_puts(w->b, (f->flags & FIELD_NULL) != 0 ? ",null]" : "]");
}

/* An ERE as a pattern of JSON Schema; named classes have no like there. */
static void
pattern(struct writer *w, const char *ere)
{
	struct buf text;

	if (strstr(ere, "[:") != NULL)
		return;
	buf_init(&text, JSON_TEXT_MAX);
	buf_printf(&text, "^(?:%s)$", ere);
	key(w->b, "pattern");
	json_string(w->b, text.data);
	buf_release(&text);
}

static void
string(struct writer *w, const struct field *f)
{
	const struct json_limits limits = json_limits(f);

	type(w, f, "string");
	if (f->values != NULL) {
		choices(w, f);
		return;
	}
	if (is_out(w))
		return;
	if (limits.min > 0)
		number(w->b, "minLength", limits.min);
	number(w->b, "maxLength", limits.max);
	if (f->pattern != NULL)
		pattern(w, f->pattern);
	else if ((f->flags & FIELD_LINE) != 0)
		buf_puts(w->b,
		    ",\"pattern\":\"^(?:" LINE_CHAR "*" SEEN_CHAR LINE_CHAR
		    "*)?$\"");
	else if ((f->flags & FIELD_TEXT) != 0)
		buf_puts(w->b, ",\"pattern\":\"^" TEXT_CHAR "*$\"");
}

static void
integer(struct writer *w, const struct field *f)
{
	const struct json_limits limits = json_limits(f);

	type(w, f, "integer");
	if (is_out(w))
		return;
	number(w->b, "minimum", limits.min);
	number(w->b, "maximum", limits.max);
}

static void
boolean(struct writer *w, const struct field *f)
{
	if ((f->flags & FIELD_NUMBER) == 0) {
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

static void
reference(struct writer *w, const struct shape *shape)
{
	buf_printf(w->b, "{\"$ref\":\"#/components/schemas/%s%s\"}",
	    shape->name, is_out(w) ? "" : "Input");
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
	key(w->b, "additionalProperties");
	buf_puts(w->b,
	    is_out(w) || (f->flags & FIELD_GAPS) != 0 ?
		"{\"type\":[\"string\",\"null\"]}" :
		"{\"type\":\"string\"}");
	counts(w, f, "minProperties", "maxProperties");
}

static void
array(struct writer *w, const struct field *f)
{
	if ((f->flags & FIELD_MAP) != 0) {
		map(w, f);
		return;
	}
	if ((f->flags & FIELD_ONE) != 0) {
		key(w->b, "oneOf");
		buf_putc(w->b, '[');
		reference(w, f->shape);
		buf_puts(w->b, ",{\"type\":\"null\"}]");
		return;
	}
	type(w, f, "array");
	key(w->b, "items");
	reference(w, f->shape);
	counts(w, f, "minItems", "maxItems");
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
	};

	assert(f->type < F_BLOB);
	buf_putc(w->b, '{');
	writers[f->type](w, f);
	if (f->doc != NULL) {
		key(w->b, "description");
		json_string(w->b, f->doc);
	}
	buf_putc(w->b, '}');
}

static bool
is_shown(const struct writer *w, const struct field *f)
{
	if (!is_out(w))
		return (f->flags & FIELD_IN) != 0;
	return (f->flags & FIELD_OUT) != 0 &&
	    (f->flags & FIELD_DETAIL & ~w->detail) == 0;
}

static bool
is_required(const struct writer *w, const struct field *f)
{
	if (!is_shown(w, f) || w->which == JSON_SCHEMA_UPDATE)
		return false;
	if (w->which == JSON_SCHEMA_CREATE)
		return (f->flags & FIELD_MUST) != 0;
	return w->which == JSON_SCHEMA_OUT || f->type != F_STR ||
	    (f->flags & FIELD_IN) == 0 ||
	    (f->flags & (FIELD_MUST | FIELD_NULL)) != 0;
}

void
json_schema(struct buf *b, const struct shape *shape, enum json_schema which,
    unsigned detail)
{
	struct writer w = { .b = b, .which = which, .detail = detail };
	const struct field *f;
	const char *before = "";

	buf_puts(b, "{\"type\":\"object\",\"properties\":{");
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
