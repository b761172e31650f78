/* SPDX-License-Identifier: ISC */
#include "store/preset.h"

#include <string.h>

#include "core/ere.h"
#include "core/str.h"
#include "store/env_name.h"

#define WORK_MAX ((size_t)100000000) /* of patterns, for one input: 0.5 s */
#define O(m, fl, ...)                                                          \
	FIELD(struct preset_option, m, FIELD_OUT | FIELD_IN | (fl), __VA_ARGS__)
#define P(m, fl, ...)                                                          \
	FIELD(struct preset, m, FIELD_OUT | FIELD_IN | (fl), __VA_ARGS__)
#define T(m, fl, ...)                                                          \
	FIELD(struct trigger, m, FIELD_OUT | FIELD_IN | (fl), __VA_ARGS__)

static const char *const types[] = { "select", "multiselect", "input", NULL };

static const struct field option_fields[] = {
	O(label, FIELD_MUST | FIELD_LINE, .min = 1, .max = 200,
	    .doc = "Text to show."),
	O(value, FIELD_MUST, .max = 4096, .doc = "Value of the variable."),
	FIELD_END,
};
const struct shape preset_option_shape = {
	.name = "PresetOption",
	.fields = option_fields,
	.size = sizeof(struct preset_option),
	.doc = "An option of a preset.",
};

static const struct field preset_fields[] = {
	P(key, FIELD_MUST, .max = 128, .pattern = ENV_NAME_ERE,
	    .doc = "Name of the variable."),
	P(label, FIELD_MUST | FIELD_LINE, .min = 1, .max = 200,
	    .doc = "Label of the form field."),
	P(type, FIELD_MUST, .values = types, .named = "PresetType",
	    .doc = "select: one of the options; multiselect: any number of "
		   "them, separated by commas; input: free text."),
	P(options, 0, .max = 100, .shape = &preset_option_shape,
	    .doc = "Options of a select or multiselect."),
	P(required, 0, .doc = "Whether a deployment must have a value."),
	P(fallback, FIELD_NULL, .outside = "default", .max = 4096,
	    .doc =
		"Value if a deployment has none. A secret default is returned "
		"as null; null or no value keeps it, an empty text removes "
		"it."),
	P(description, FIELD_NULL | FIELD_TEXT, .max = 500,
	    .doc = "Help text."),
	P(pattern, FIELD_NULL, .max = 500,
	    .doc = "POSIX extended regular expression that must match the "
		   "complete input. Back-references, \\d and other forms that "
		   "POSIX does not define are not supported. With its "
		   "repetitions expanded it is limited to 1000 characters."),
	P(secret, 0,
	    .doc = "Whether the value of an input is encrypted and "
		   "masked."),
	FIELD_END,
};
static void preset_check(const void *item, const char *pointer,
    struct faults *);
const struct shape preset_shape = {
	.name = "EnvPreset",
	.fields = preset_fields,
	.size = sizeof(struct preset),
	.check = preset_check,
	.doc = "A form field for an environment variable.",
};

static const struct field path_fields[] = {
	FIELD(struct trigger_path, pattern, FIELD_OUT | FIELD_IN | FIELD_LINE,
	    .min = 1, .max = 255, .pattern = "[^/].*",
	    .doc = "A pattern of paths such as src/**, relative to the "
		   "repository."),
	FIELD_END,
};
const struct shape trigger_path_shape = {
	.name = "PathPattern",
	.fields = path_fields,
	.size = sizeof(struct trigger_path),
	.bare = true,
};

static const struct field trigger_fields[] = {
	T(branch, FIELD_NULL | FIELD_LATER | FIELD_LINE, .min = 1, .max = 255,
	    .shown = FIELD_BRANCHES,
	    .doc = "Branch name, or a pattern such as release/*. * matches any "
		   "characters except a slash, ? any one of them, ** any "
		   "characters. Required unless the trigger is for tags."),
	T(tag, FIELD_NULL | FIELD_LATER | FIELD_LINE, .min = 1, .max = 255,
	    .shown = FIELD_BRANCHES,
	    .doc = "Tag or pattern of tags such as v*, instead of a branch."),
	T(pipeline_id, FIELD_MUST, .min = 1, .doc = "Pipeline to start."),
	T(environment_id, FIELD_NULL | FIELD_LATER, .min = 1,
	    .doc = "Environment to deploy to; required if the project has "
		   "several."),
	T(env_vars, FIELD_GAPS, .max = 1000, .named = "EnvVars",
	    .doc = "Environment variables of the deployment. Values of secret "
		   "presets are returned as null; null keeps them."),
	T(paths, 0, .max = 100, .shape = &trigger_path_shape,
	    .doc = "Patterns of files, of which the push must change at least "
		   "one; empty = any. A push whose files the Git server does "
		   "not list completely starts the pipeline, too."),
	T(supersede, FIELD_TRUE,
	    .doc = "Whether a newer push cancels older pending deployments of "
		   "this trigger; true by default."),
	FIELD_END,
};
static void trigger_check(const void *item, const char *pointer,
    struct faults *);
const struct shape trigger_shape = {
	.name = "Trigger",
	.fields = trigger_fields,
	.size = sizeof(struct trigger),
	.check = trigger_check,
	.doc = "The pipeline that a push to matching branches or tags starts.",
};

/* Adds a fault of a preset; `member` is a JSON name. */
static void
member_fault(struct faults *f, const char *pointer, const char *member,
    const char *detail)
{
	faults_add(f, fault_pointer(f, pointer, member), "%s", detail);
}

static void
options_check(const struct preset *p, const char *pointer, struct faults *f)
{
	const struct preset_option *o = p->options.items;
	bool many = strcmp(p->type, "multiselect") == 0;
	size_t i, k;

	if (p->options.n == 0)
		member_fault(f, pointer, "options",
		    "must have at least one option");
	for (i = 0; i < p->options.n; i++) {
		if (o[i].value == NULL)
			continue;
		if (many && strchr(o[i].value, ',') != NULL)
			member_fault(f, pointer, "options",
			    "the value of a multiselect option must not "
			    "contain a comma");
		for (k = 0; k < i; k++)
			if (str_eq(o[k].value, o[i].value)) {
				member_fault(f, pointer, "options",
				    "option values must be unique");
				return;
			}
	}
}

static bool
is_option(const struct preset *p, const char *value, size_t len)
{
	const struct preset_option *o = p->options.items;
	size_t i;

	for (i = 0; i < p->options.n; i++)
		if (o[i].value != NULL && strlen(o[i].value) == len &&
		    memcmp(o[i].value, value, len) == 0)
			return true;
	return false;
}

/* The options as text, cut if there are many. */
static const char *
choices_text(const struct preset *p, struct arena *a)
{
	const struct preset_option *o = p->options.items;
	const char *text = "";
	size_t i;

	for (i = 0; i < p->options.n && i < 20; i++)
		text = arena_printf(a, "%s%s\"%s\"", text, i == 0 ? "" : ", ",
		    o[i].value == NULL ? "" : str_clip(a, o[i].value, 60));
	return i < p->options.n ? arena_printf(a, "%s, …", text) : text;
}

static void
select_check(const struct preset *p, const char *value, const char *at,
    struct faults *f)
{
	if (!is_option(p, value, strlen(value)))
		faults_add(f, at, "must be one of %s", choices_text(p, f->a));
}

static void
multiselect_check(const struct preset *p, const char *value, const char *at,
    struct faults *f)
{
	const char *part = value;
	size_t len;

	if (*value == '\0')
		return;
	for (;; part += len + 1) {
		len = strcspn(part, ",");
		if (!is_option(p, part, len)) {
			faults_add(f, at,
			    "must be some of %s, joined by commas",
			    choices_text(p, f->a));
			return;
		}
		if (part[len] == '\0')
			return;
	}
}

static void
input_check(const struct preset *p, const char *value, const char *at,
    struct faults *f)
{
	enum ere_result result;
	const char *wrong;

	if (p->pattern == NULL)
		return;
	result = ere_match_within(p->pattern, value, WORK_MAX, &f->work);
	if (result == ERE_MATCH)
		return;
	if (result == ERE_UNDECIDED) {
		faults_add(f, at,
		    "takes too long to match the pattern, together with the "
		    "other values: shorten the value, or simplify the pattern");
		return;
	}
	if ((wrong = ere_fault(p->pattern)) != NULL)
		faults_add(f, at,
		    "cannot be validated: the preset's pattern %s", wrong);
	else
		faults_add(f, at, "must match the pattern %s completely",
		    str_clip(f->a, p->pattern, 200));
}

static const char empty[] = "is required and must not be empty";

void
preset_check_sealed(const struct preset *p, struct sealed value, const char *at,
    struct faults *f)
{
	if (p->required && value.len == 0)
		faults_add(f, at, "%s", empty);
}

void
preset_check_value(const struct preset *p, const char *value, const char *at,
    struct faults *f)
{
	static const struct {
		const char *type;
		void (*check)(const struct preset *, const char *value,
		    const char *at, struct faults *);
	} checks[] = {
		{ "select", select_check },
		{ "multiselect", multiselect_check },
		{ "input", input_check },
	};
	size_t i;

	if (p->required && *value == '\0') {
		faults_add(f, at, "%s", empty);
		return;
	}
	for (i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
		if (str_eq(p->type, checks[i].type))
			checks[i].check(p, value, at, f);
}

static void
preset_check(const void *item, const char *pointer, struct faults *f)
{
	const struct preset *p = item;
	const char *wrong;

	if (p->key != NULL && (wrong = env_name_fault(p->key)) != NULL)
		member_fault(f, pointer, "key", wrong);
	if (p->type == NULL)
		return;
	if (strcmp(p->type, "input") == 0) {
		if (p->options.n > 0)
			member_fault(f, pointer, "options",
			    "are not allowed for an input");
		if (p->pattern != NULL &&
		    (wrong = ere_fault(p->pattern)) != NULL) {
			member_fault(f, pointer, "pattern", wrong);
			return;
		}
	} else {
		if (faults_has(f, fault_pointer(f, pointer, "options")))
			return;
		options_check(p, pointer, f);
		if (p->pattern != NULL)
			member_fault(f, pointer, "pattern",
			    "is allowed for inputs only");
		if (p->secret)
			member_fault(f, pointer, "secret",
			    "is allowed for inputs only");
	}
	if (p->fallback != NULL && !(p->secret && p->fallback[0] == '\0'))
		preset_check_value(p, p->fallback,
		    fault_pointer(f, pointer, "default"), f);
}

const struct preset *
preset_find(const struct list *presets, const char *key)
{
	const struct preset *p = presets->items;
	size_t i;

	for (i = 0; i < presets->n; i++)
		if (str_eq(p[i].key, key))
			return &p[i];
	return NULL;
}

void
preset_sizes_check(struct json_text presets, struct json_text triggers,
    const char *pointer, struct faults *f)
{
	const size_t asked = presets.s == NULL ? 0 : strlen(presets.s);
	const size_t started = triggers.s == NULL ? 0 : strlen(triggers.s);

	if (asked + started > PRESET_BYTES_MAX)
		faults_add(f, pointer,
		    "envPresets and triggers together must have at most 1 MiB");
}

static void
trigger_check(const void *item, const char *pointer, struct faults *f)
{
	const struct trigger *t = item;

	if (t->branch != NULL && t->branch[0] == '-')
		member_fault(f, pointer, "branch", "must not start with -");
	if (t->tag != NULL && t->tag[0] == '-')
		member_fault(f, pointer, "tag", "must not start with -");
	if (t->branch != NULL && t->tag != NULL)
		member_fault(f, pointer, "tag",
		    "cannot be combined with branch");
	if (t->branch == NULL && t->tag == NULL &&
	    !faults_has(f, fault_pointer(f, pointer, "branch")) &&
	    !faults_has(f, fault_pointer(f, pointer, "tag")))
		member_fault(f, pointer, "branch",
		    "is required, unless the trigger is for tags (tag)");
}
