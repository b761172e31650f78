/* SPDX-License-Identifier: ISC */
/* Validates the variables of a deployment against presets. */
#include "store/env.h"

#include "core/str.h"
#include "tap.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))
/* clang-format off */
#define V(n, v) { .name = (n), .value = (v) }
/* a sealed value, whose length alone is known */
#define SEALED(n, l) { .name = (n), .sealed = { "sealed", (l) } }
/* clang-format on */

static struct preset_option colors[] = { { "Red", "red" }, { "Green", "green" },
	{ "Nothing", "" } };
static struct preset_option sites[] = { { "A", "a" }, { "B", "b" },
	{ "Both", "ab" } };
static struct preset presets[] = {
	{ .key = "COLOR",
	    .type = "select",
	    .options = { colors, N(colors) },
	    .fallback = "red" },
	{ .key = "SITES",
	    .type = "multiselect",
	    .options = { sites, N(sites) } },
	{ .key = "TAG",
	    .type = "input",
	    .required = true,
	    .pattern = "v[0-9]+|latest" },
	{ .key = "TOKEN", .type = "input", .secret = true },
	{ .key = "MUST",
	    .type = "select",
	    .required = true,
	    .options = { colors, N(colors) },
	    .fallback = "green" },
};

/* Variables, and the expected faults as the start of "POINTER: DETAIL". */
struct sample {
	const char *name;
	bool strict;
	struct env_var given[4];
	const char *faults[5];
};

static const struct sample samples[] = {
	{ "only the required variable", false, { V("TAG", "v1") }, { NULL } },
	{ "another branch of the pattern", false, { V("TAG", "latest") },
	    { NULL } },
	{ "a choice", false, { V("TAG", "v1"), V("COLOR", "green") },
	    { NULL } },
	{ "an empty value that is a choice", false,
	    { V("TAG", "v1"), V("COLOR", "") }, { NULL } },
	{ "several choices", false, { V("TAG", "v1"), V("SITES", "b,a") },
	    { NULL } },
	{ "no choice of several", false, { V("TAG", "v1"), V("SITES", "") },
	    { NULL } },
	{ "an unknown variable", false,
	    { V("TAG", "v1"), V("OTHER", "x y\nz") }, { NULL } },
	{ "a secret", true, { V("TAG", "v1"), V("TOKEN", "s3cret") },
	    { NULL } },
	{ "no variable", false, { V(NULL, NULL) },
	    { "/envVars/TAG: is required" } },
	{ "an empty required variable", false, { V("TAG", "") },
	    { "/envVars/TAG: is required and" } },
	{ "a match in the middle", false, { V("TAG", "xv1") },
	    { "/envVars/TAG: must match" } },
	{ "a match with more text", false, { V("TAG", "v1;id") },
	    { "/envVars/TAG: must match" } },
	{ "a match with a newline", false, { V("TAG", "v1\n") },
	    { "/envVars/TAG: must match" } },
	{ "an unknown choice", false, { V("TAG", "v1"), V("COLOR", "blue") },
	    { "/envVars/COLOR: must be one of \"red\", \"green\"" } },
	{ "two choices where one is allowed", false,
	    { V("TAG", "v1"), V("COLOR", "red,green") },
	    { "/envVars/COLOR: must be one of" } },
	{ "an empty choice among several", false,
	    { V("TAG", "v1"), V("SITES", "a,") },
	    { "/envVars/SITES: must be some of" } },
	{ "a comma alone", false, { V("TAG", "v1"), V("SITES", ",") },
	    { "/envVars/SITES: must be some of" } },
	{ "an unknown variable where only presets are allowed", true,
	    { V("TAG", "v1"), V("OTHER", "x") },
	    { "/envVars/OTHER: is not among" } },
	{ "sealed values", true, { SEALED("TAG", 9), SEALED("TOKEN", 0) },
	    { NULL } },
	{ "an empty sealed required value", false, { SEALED("TAG", 0) },
	    { "/envVars/TAG: is required and" } },
	{ "a large sealed value", false,
	    { V("TAG", "v1"), SEALED("TOKEN", ENV_VALUE_MAX + 1) },
	    { "/envVars/TOKEN: must have at most 64 KiB" } },
	{ "an unknown sealed variable where only presets are allowed", true,
	    { V("TAG", "v1"), SEALED("OTHER", 1) },
	    { "/envVars/OTHER: is not among" } },
	{ "several faults", true,
	    { V("LD_PRELOAD", "/x.so"), V("COLOR", "blue"), V("MUST", "") },
	    { "/envVars/LD_PRELOAD: is a name", "/envVars/LD_PRELOAD: is not",
		"/envVars/COLOR: must be one", "/envVars/MUST: is required",
		"/envVars/TAG: is required" } },
};

static const char *const good_names[] = { "A", "_", "_a9", "APP_ENV", "PATHS",
	"MY_PATH", "LDFLAGS", "GITHUB", "OPENSSL", "PHP_VERSION",
	"XDG_DATA_HOME", "HOMEPAGE", "path", "PS1", "SLIPWAY", "ENVIRONMENT",
	"CI_TAG", "LANG", "TZ", NULL };
static const char *const bad_names[] = { "", "1A", "A-B", "A B", "A=B", "A\n",
	"\xc3\x84", "a.b", "PATH", "IFS", "BASH_ENV", "ENV", "LD_PRELOAD",
	"LD_LIBRARY_PATH", "GIT_SSH_COMMAND", "GIT_", "SLIPWAY_COMMIT", "HOME",
	"SHELL", "PS4", "CDPATH", "BASH_FUNC_ls", "BASH_FUNC_echo%%",
	"SHELLOPTS", "BASHOPTS", "GLOBIGNORE", "GCONV_PATH", "CI",
	"OPENSSL_CONF", "OPENSSL_MODULES", "GIT_DIR", "GIT_CONFIG_COUNT",
	"GIT_EXEC_PATH", "GIT_ASKPASS", "GIT_AUTHOR", "GIT_PROXY_COMMAND",
	"XDG_CONFIG_HOME", NULL };

static const char *const steering_names[] = { "PERL5LIB", "PYTHONPATH",
	"PYTHONUNBUFFERED", "RUBYOPT", "NODE_OPTIONS", "JAVA_TOOL_OPTIONS",
	"_JAVA_OPTIONS", "PHPRC", "PHP_INI_SCAN_DIR", "GIT_AUTHOR_NAME",
	"GIT_COMMITTER_EMAIL", "GIT_PAGER", "GIT_TRACE_CURL", NULL };

static void
names_test(void)
{
	static char longest[130];
	size_t i;

	for (i = 0; good_names[i] != NULL; i++)
		ok(env_name_fault(good_names[i]) == NULL, "valid name: %s",
		    good_names[i]);
	for (i = 0; bad_names[i] != NULL; i++)
		ok(env_name_fault(bad_names[i]) != NULL,
		    "invalid name number %zu", i);
	for (i = 0; steering_names[i] != NULL; i++)
		ok(env_name_fault(steering_names[i]) == NULL &&
			env_name_steers(steering_names[i]),
		    "%s is valid and steers a program", steering_names[i]);
	for (i = 0; good_names[i] != NULL; i++)
		ok(!env_name_steers(good_names[i]), "%s steers no program",
		    good_names[i]);
	(void)memset(longest, 'x', 128);
	ok(env_name_fault(longest) == NULL, "a name of 128 bytes is valid");
	(void)memset(longest, 'x', 129);
	ok(env_name_fault(longest) != NULL, "a name of 129 bytes is invalid");
}

static void
sample_test(const struct sample *s)
{
	const struct list all = { presets, N(presets) };
	const struct env_rules rules = { .presets = &all,
		.rejection = s->strict ? "is not among them" : NULL };
	static struct env_var given[4];
	struct list in = { given, 0 }, out;
	struct arena *a = arena_open((size_t)1 << 20);
	static struct faults f;
	size_t i, want = 0;
	const char *line;

	for (i = 0; i < 4 && s->given[i].name != NULL; i++)
		given[in.n++] = s->given[i];
	faults_init(&f, a);
	env_check(&rules, &in, "/envVars", &f, &out);
	while (want < N(s->faults) && s->faults[want] != NULL)
		want++;
	is_int((long long)f.n, (long long)want, s->name);
	for (i = 0; i < f.n && i < want; i++) {
		line = arena_printf(a, "%s: %s", f.item[i].pointer,
		    f.item[i].detail);
		if (!ok(str_starts(line, s->faults[i]), "%s: %s", s->name,
			s->faults[i]))
			(void)printf("# got: %s\n", line);
	}
	arena_close(a);
}

static void
defaults_test(void)
{
	const struct list all = { presets, N(presets) };
	const struct env_rules rules = { .presets = &all };
	struct env_var given[] = {
		{ .name = "ZED", .value = "1", .secret = true }, V("TAG", "v2"),
		V("TOKEN", "t")
	};
	struct list in = { given, N(given) }, out;
	struct arena *a = arena_open((size_t)1 << 20);
	static struct faults f;
	const struct env_var *v;

	faults_init(&f, a);
	env_check(&rules, &in, "/envVars", &f, &out);
	v = out.items;
	is_int((long long)f.n, 0, "valid variables have no fault");
	is_int((long long)out.n, 5,
	    "two defaults are added to three variables");
	is_str(v[0].name, "ZED", "variables keep their order");
	ok(!v[0].secret, "an unknown variable is not secret");
	ok(v[2].secret, "a secret variable is secret");
	is_str(v[3].name, "COLOR", "defaults follow the variables");
	is_str(v[3].value, "red", "a default has its value");
	is_str(v[4].value, "green", "a required variable gets its default");
	arena_close(a);
}

static void
sealed_test(void)
{
	struct preset one = { .key = "TOKEN",
		.type = "input",
		.secret = true,
		.required = true,
		.pattern = "[0-9]+",
		.sealed = { "sealed", 9 } };
	const struct list all = { &one, 1 };
	const struct env_rules rules = { .presets = &all };
	struct env_var given[] = { SEALED("OTHER", 3) };
	struct list in = { given, N(given) }, out;
	struct arena *a = arena_open((size_t)1 << 20);
	static struct faults f;
	const struct env_var *v;

	faults_init(&f, a);
	env_check(&rules, &in, "/envVars", &f, &out);
	v = out.items;
	is_int((long long)f.n, 0,
	    "a sealed default satisfies a required preset");
	is_int((long long)out.n, 2, "a sealed default is added");
	ok(v[0].secret, "a sealed value is secret, whatever the presets say");
	ok(v[1].secret && v[1].value == NULL,
	    "a sealed default has no plain value");
	is_str(v[1].sealed.text, "sealed",
	    "a sealed default is copied unchanged");
	in.n = 0;
	one.sealed.text = NULL;
	env_check(&rules, &in, "/envVars", &f, &out);
	is_int((long long)f.n, 1,
	    "without its default a required variable is missing");
	arena_close(a);
}

static void
sizes_test(void)
{
	static char big[ENV_VALUE_MAX + 2];
	struct env_var vars[9];
	struct list list = { vars, 1 };
	struct arena *a = arena_open((size_t)1 << 20);
	static struct faults f;
	size_t i;

	(void)memset(big, 'x', ENV_VALUE_MAX);
	vars[0] = (struct env_var)V("A", big);
	faults_init(&f, a);
	env_check_names(&list, "/envVars", &f);
	is_int((long long)f.n, 0, "a value of 64 KiB is valid");
	big[ENV_VALUE_MAX] = 'x';
	env_check_names(&list, "/envVars", &f);
	is_int((long long)f.n, 1, "a value above 64 KiB is a fault");
	is_str(f.item[0].pointer, "/envVars/A",
	    "the fault points to the variable");
	big[ENV_VALUE_MAX] = '\0';
	for (i = 0; i < 9; i++)
		vars[i] = (struct env_var)V("A", big);
	list.n = 7;
	faults_init(&f, a);
	env_check_names(&list, "/envVars", &f);
	is_int((long long)f.n, 0, "seven values of 64 KiB are valid");
	list.n = 8;
	env_check_names(&list, "/envVars", &f);
	is_int((long long)f.n, 1, "values above 512 KiB in total are a fault");
	is_str(f.item[0].pointer, "/envVars",
	    "the fault of the total points to all variables");
	for (i = 0; i < 9; i++)
		vars[i] = (struct env_var)SEALED("A", ENV_VALUE_MAX);
	list.n = 7;
	faults_init(&f, a);
	env_check_names(&list, "/envVars", &f);
	is_int((long long)f.n, 0, "seven sealed values of 64 KiB are valid");
	list.n = 8;
	env_check_names(&list, "/envVars", &f);
	is_int((long long)f.n, 1,
	    "sealed values count with the length of their content");
	arena_close(a);
}

int
main(void)
{
	size_t i;

	names_test();
	for (i = 0; i < N(samples); i++)
		sample_test(&samples[i]);
	defaults_test();
	sealed_test();
	sizes_test();
	return tap_done();
}
