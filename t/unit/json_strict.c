/* SPDX-License-Identifier: ISC */
/*
 * Valid and invalid JSON: t/data/json/pass and t/data/json/fail, by the
 * categories in which parsers are known to fail.  Where RFC 8259 permits both,
 * the name says "implementation".  t/data/json/unfit is valid JSON that is
 * rejected, or nested too deeply to decide.
 */
#include <dirent.h>
#include <stdlib.h>

#include "core/arena.h"
#include "core/str.h"
#include "json/json.h"
#include "tap.h"

#define FILE_SIZE 131072

/* The kind of a directory's texts. */
struct kind {
	const char *folder;
	int least; /* minimal number of texts */
	enum { GOOD, MALFORMED, UNFIT } verdict;
	const char *detail; /* text for the client */
};

static const struct kind kinds[] = {
	{ T_DATA "/json/pass", 100, GOOD, NULL },
	{ T_DATA "/json/fail", 100, MALFORMED,
	    "This is not valid JSON at byte" },
	{ T_DATA "/json/unfit", 10, UNFIT, "At byte" },
};

static size_t
read_file(const char *path, char *text)
{
	FILE *in = fopen(path, "r");
	size_t len = 0;

	if (in != NULL) {
		len = fread(text, 1, FILE_SIZE, in);
		(void)fclose(in);
	}
	return len;
}

/* The text is in memory of its exact size, so that a sanitizer notices an
 * overrun. */
static void
file_check(const char *path, char *text, const struct kind *kind)
{
	static const struct field none[] = { FIELD_END };
	static const struct shape shape = {
		.name = "None",
		.fields = none,
		.size = 1,
	};
	static const enum err_code codes[] = {
		[GOOD] = ERR_INVALID, /* because it is no empty object */
		[MALFORMED] = ERR_BAD_REQUEST,
		[UNFIT] = ERR_INVALID,
	};
	struct arena *a = arena_open(4 << 20);
	struct faults faults;
	const struct err *e;
	size_t len = read_file(path, text);
	char *exact = mem_alloc(len + (len == 0), 1), item;

	(void)memcpy(exact, text, len);
	e = json_strict(exact, len);
	if (!ok((e == NULL) == (kind->verdict == GOOD), "%s",
		strrchr(path, '/') + 1) &&
	    e != NULL)
		(void)printf("# %s\n", e->msg);
	if (e != NULL)
		ok(e->code == codes[kind->verdict] && kind->detail != NULL &&
			str_starts(e->detail, kind->detail),
		    "  the client gets the position");
	faults_init(&faults, a);
	e = json_read(&shape, JSON_CREATE, exact, len, &item, &faults);
	ok(e == NULL || faults.n == 0, "  a body has faults or an error");
	if (e == NULL)
		e = faults_check(&faults);
	ok(e == NULL ? kind->verdict == GOOD : e->code == codes[kind->verdict],
	    "  json_read returns the same result");
	mem_free(exact);
	arena_close(a);
}

static void
folder_check(const struct kind *kind)
{
	char path[1024], *text = mem_alloc(FILE_SIZE, 1);
	struct dirent **names;
	int i, n = scandir(kind->folder, &names, NULL, alphasort);

	ok(n > kind->least, "%s has cases", kind->folder);
	for (i = 0; i < n; i++) {
		if (names[i]->d_name[0] != '.') {
			(void)snprintf(path, sizeof(path), "%s/%s",
			    kind->folder, names[i]->d_name);
			file_check(path, text, kind);
		}
		free(names[i]);
	}
	if (n >= 0)
		free(names);
	mem_free(text);
}

static const struct {
	const char *text;
	int byte;
	const char *why;
} reasons[] = {
	{ "", 1, "unexpected end of text" },
	{ "[1,", 4, "unexpected end of text" },
	{ "{\"a\":1,}", 8, "expected a member name in quotes" },
	{ "{\"a\" 1}", 6, "expected a colon" },
	{ "[1 2]", 4, "expected a comma or ]" },
	{ "{\"a\":1 2}", 8, "expected a comma or }" },
	{ "[1]x", 4, "text after the value" },
	{ "[tru]", 2, "expected a value" },
	{ "[012]", 3, "a number must not have a leading zero" },
	{ "[1.]", 4, "expected a digit" },
	{ "[1e999]", 2, "the number is too large" },
	{ "[\"ab\n\"]", 5, "a control byte must be escaped" },
	{ "[\"a\\x\"]", 4, "unknown escape" },
	{ "[\"a\\u12g4\"]", 8, "expected four hexadecimal digits" },
	{ "[\"a\\udc00\"]", 4, "unpaired surrogate" },
	{ "[\"a\xff\"]", 4, "invalid UTF-8" },
};

static const struct {
	const char *text;
	const char *detail;
} unfits[] = {
	{ "[\"a\\u0000\"]", "At byte 4: U+0000 is not allowed." },
	{ "{\"a\":1,\"a\":2}", "At byte 9: duplicate member." },
	{ "{\"a\":1,\"a\":2",
	    "This is not valid JSON at byte 13: unexpected "
	    "end of text." },
	{ "[\"\\u0000\",]",
	    "This is not valid JSON at byte 11: expected "
	    "a value." },
};

static void
places(void)
{
	const struct err *e;
	char want[200];
	size_t i;

	for (i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		(void)snprintf(want, sizeof(want),
		    "This is not valid JSON at byte %d: %s.", reasons[i].byte,
		    reasons[i].why);
		e = json_strict(reasons[i].text, strlen(reasons[i].text));
		is_str(e == NULL ? NULL : e->detail, want, reasons[i].text);
	}
	for (i = 0; i < sizeof(unfits) / sizeof(unfits[0]); i++) {
		e = json_strict(unfits[i].text, strlen(unfits[i].text));
		is_str(e == NULL ? NULL : e->detail, unfits[i].detail,
		    unfits[i].text);
	}
}

/* Many names with a long common prefix are the most expensive to compare. */
static void
many_names(void)
{
	struct buf b;
	int i;

	buf_init(&b, 1 << 21);
	for (i = 0; i < 19000; i++)
		buf_printf(&b, "%c\"%040d\":0", i == 0 ? '{' : ',', i);
	buf_putc(&b, '}');
	ok(json_strict(b.data, b.len) == NULL,
	    "19,000 different names are accepted");
	b.data[b.len - 1] = ',';
	buf_printf(&b, "\"%040d\":0}", 7);
	ok(json_strict(b.data, b.len) != NULL,
	    "a duplicate among 19,000 names is found");
	buf_release(&b);
}

/* The maximum number of values, and one more. */
static void
values_check(void)
{
	char text[2 * (JSON_VALUES + 1) + 1];
	const struct err *e;
	size_t i, n;

	for (n = JSON_VALUES; n <= JSON_VALUES + 1; n++) {
		for (i = 0; i < n; i++) { /* the array counts as a value */
			text[2 * i] = i == 0 ? '[' : ',';
			text[2 * i + 1] = '0';
		}
		text[2 * (n - 1)] = ']';
		e = json_strict(text, 2 * (n - 1) + 1);
		ok(n == JSON_VALUES ? e == NULL :
				      e != NULL && e->code == ERR_TOO_LARGE &&
			    str_ends(e->detail,
				"too many values; the limit is 40000."),
		    "%zu values", n);
	}
}

int
main(void)
{
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		folder_check(&kinds[i]);
	places();
	values_check();
	many_names();
	return tap_done();
}
