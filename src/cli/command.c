/* SPDX-License-Identifier: ISC */
#include "cli/command.h"

#include <assert.h>
#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "core/num.h"
#include "core/str.h"

#define ARENA ((size_t)64 << 20)
#define NAME_MAX_LEN 64 /* of a command's name */
/* A word may be meant if it differs in this many letters. */
#define SUGGEST_MAX 2
#define NAMES_MAX ((size_t)16 << 10)

static const struct option_row own_options[] = {
	OPTION(struct command_call, help, "help", .letter = 'h',
	    .doc = "print help"),
	OPTION(struct command_call, version, "version", .letter = 'V',
	    .doc = "print the version"),
	OPTION_END,
};

/* Where the parser is. */
struct parser {
	struct command_call *call;
	int argc;
	char **argv;
	int at;
	size_t words;
	bool only_words; /* after "--" */
};

bool
command_in_group(const struct command *c, const char *group)
{
	const size_t len = strlen(group);

	return strncmp(c->name, group, len) == 0 && c->name[len] == ' ';
}

const struct command *
command_find(const struct program *p, int argc, char *const *argv, int *words)
{
	const struct command *c;
	char name[NAME_MAX_LEN];

	for (*words = COMMAND_WORDS; *words > 0; --*words) {
		if (*words > argc)
			continue;
		(void)snprintf(name, sizeof(name), "%s%s%s", argv[0],
		    *words > 1 ? " " : "", *words > 1 ? argv[1] : "");
		for (c = p->commands; c->name != NULL; c++)
			if (strcmp(c->name, name) == 0)
				return c;
	}
	return NULL;
}

static const struct option_row *
row_find(const struct option_row *o, const char *name, size_t len, char letter)
{
	for (; o != NULL && o->name != NULL; o++)
		if (name == NULL ? o->letter == letter :
				   strlen(o->name) == len &&
			    strncmp(o->name, name, len) == 0)
			return o;
	return NULL;
}

const struct option_row *
command_option(struct command_call *call, const char *name, size_t len,
    char letter, void **fills)
{
	const struct {
		const struct option_row *rows;
		void *fills;
	} tables[] = {
		{ call->command == NULL ? NULL : call->command->options,
		    call->options },
		{ call->program->options, call->settings },
		{ own_options, call },
	};
	const struct option_row *o = NULL;
	size_t i;

	for (i = 0; o == NULL && i < sizeof(tables) / sizeof(tables[0]); i++) {
		o = row_find(tables[i].rows, name, len, letter);
		*fills = tables[i].fills;
	}
	return o;
}

/* "deploy: ", or "" before there is a command. */
static const char *
prefix(const struct parser *p)
{
	const struct command *c = p->call->command;

	return c == NULL ? "" : arena_printf(p->call->a, "%s: ", c->name);
}

static const struct err *
number_set(const struct parser *p, const struct option_row *o,
    const char *value, int64_t *out)
{
	if (num_parse(value, o->min, o->max, out))
		return NULL;
	return err_public(ERR_METHOD,
	    "%s--%s must be a number from %lld to %lld", prefix(p), o->name,
	    (long long)o->min, (long long)o->max);
}

static const struct err *
text_set(const struct parser *p, const struct option_row *o, const char *value,
    const char **out)
{
	const char *const *choice = o->choices;
	struct buf names;
	const struct err *e;

	*out = value;
	if (choice == NULL)
		return NULL;
	buf_init(&names, NAMES_MAX);
	for (; *choice != NULL && strcmp(*choice, value) != 0; choice++)
		buf_printf(&names, " %s", *choice);
	e = *choice != NULL ? NULL :
			      err_public(ERR_METHOD, "%s--%s must be one of%s",
				  prefix(p), o->name, names.data);
	buf_release(&names);
	return e;
}

static const struct err *
option_set(const struct parser *p, const struct option_row *o, void *fills,
    const char *value)
{
	void *at = (char *)fills + o->offset;
	struct option_list *list = at;
	bool *flag = at;

	assert(fills != NULL);
	switch (o->type) {
	case OPTION_FLAG:
		*flag = true;
		break;
	case OPTION_TEXT:
		return text_set(p, o, value, at);
	case OPTION_INT:
		return number_set(p, o, value, at);
	case OPTION_LIST:
		if (list->item == NULL)
			list->item = arena_alloc(p->call->a, (size_t)p->argc,
			    sizeof(*list->item));
		list->item[list->n++] = value;
		break;
	}
	return NULL;
}

/* Sets an option to the value that follows it: the rest of the argument if that
 * is not NULL, else the next argument. */
static const struct err *
option_take(struct parser *p, const struct option_row *o, void *fills,
    const char *rest)
{
	if (rest == NULL && p->at + 1 >= p->argc)
		return err_public(ERR_METHOD, "%s--%s requires a value",
		    prefix(p), o->name);
	return option_set(p, o, fills, rest != NULL ? rest : p->argv[++p->at]);
}

/* The number of letters to insert, delete, replace or swap with the next one
 * that make `b` of `a` (optimal string alignment); lengths are limited. */
static size_t
distance(const char *a, const char *b)
{
	enum { MOST = 32 };
	size_t d[MOST + 1][MOST + 1] = { { 0 } };
	const size_t na = strlen(a), nb = strlen(b);
	size_t i, j, least;

	if (na > MOST || nb > MOST)
		return MOST;
	for (i = 0; i <= na; i++) {
		for (j = 0; j <= nb; j++) {
			if (i == 0 || j == 0) {
				d[i][j] = i + j;
				continue;
			}
			least = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
			if (d[i - 1][j] + 1 < least)
				least = d[i - 1][j] + 1;
			if (d[i][j - 1] + 1 < least)
				least = d[i][j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1] && d[i - 2][j - 2] < least)
				least = d[i - 2][j - 2] + 1;
			d[i][j] = least;
		}
	}
	return d[na][nb];
}

const char *
command_suggest(struct arena *a, const char *word, const struct buf *lines)
{
	const char *line = lines->data, *name, *best = NULL;
	size_t n, least = SUGGEST_MAX + 1;

	for (; line != NULL && *line != '\0'; line += strcspn(line, "\n") + 1) {
		name = arena_strndup(a, line, strcspn(line, "\t\n"));
		n = str_starts(name, word) && *word != '\0' ?
		    1 :
		    distance(word, name);
		if (n < least && n < strlen(name)) {
			least = n;
			best = name;
		}
	}
	return best;
}

static const struct err *
long_unknown(const struct parser *p, const char *arg)
{
	const struct command *c = p->call->command;
	const struct option_row *o = c == NULL ? p->call->program->options :
						 c->options;
	struct buf names;
	const char *meant;

	buf_init(&names, NAMES_MAX);
	for (; o != NULL && o->name != NULL; o++)
		buf_printf(&names, "--%s\n", o->name);
	meant = command_suggest(p->call->a, arg, &names);
	buf_release(&names);
	return err_public(ERR_METHOD, "%sunknown option %s%s%s%s", prefix(p),
	    arg, meant == NULL ? "" : "; did you mean ",
	    meant == NULL ? "" : meant, meant == NULL ? "" : "?");
}

/* --name VALUE or --name=VALUE */
static const struct err *
long_take(struct parser *p, const char *arg)
{
	const size_t len = strcspn(arg + 2, "=");
	const char *rest = arg[2 + len] == '=' ? arg + 2 + len + 1 : NULL;
	const struct option_row *o;
	void *fills;

	if ((o = command_option(p->call, arg + 2, len, 0, &fills)) == NULL)
		return long_unknown(p, arg);
	if (o->type != OPTION_FLAG)
		return option_take(p, o, fills, rest);
	if (rest != NULL)
		return err_public(ERR_METHOD, "%s--%s takes no value",
		    prefix(p), o->name);
	return option_set(p, o, fills, NULL);
}

/* -a -b VALUE, -bVALUE, -ab VALUE */
static const struct err *
short_take(struct parser *p, const char *arg)
{
	const struct option_row *o;
	const struct err *e;
	void *fills;

	for (arg++; *arg != '\0'; arg++) {
		o = command_option(p->call, NULL, 0, *arg, &fills);
		if (o == NULL)
			return err_public(ERR_METHOD, "%sinvalid option -%c",
			    prefix(p), *arg);
		if (o->type != OPTION_FLAG)
			return option_take(p, o, fills,
			    arg[1] != '\0' ? arg + 1 : NULL);
		if ((e = option_set(p, o, fills, NULL)) != NULL)
			return e;
	}
	return NULL;
}

/* The first word starts the command's name. */
static const struct err *
command_take(struct parser *p)
{
	struct command_call *call = p->call;
	int words;

	call->first = p->at;
	call->command = command_find(call->program, p->argc - p->at,
	    p->argv + p->at, &words);
	if (call->command == NULL)
		return err_public(ERR_METHOD, "unknown command %s",
		    p->argv[p->at]);
	call->options = arena_alloc(call->a, 1, call->command->size);
	p->at += words - 1;
	return NULL;
}

static const struct err *
word_take(struct parser *p, const char *arg)
{
	const struct command *c = p->call->command;

	if (c == NULL)
		return command_take(p);
	if (p->words == COMMAND_WORDS || c->word[p->words].name == NULL)
		return err_public(ERR_METHOD, "%sunexpected argument \"%s\"",
		    prefix(p), arg);
	p->call->word[p->words++] = arg;
	return NULL;
}

const struct err *
command_parse(struct command_call *call, int argc, char **argv)
{
	struct parser p = { .call = call, .argc = argc, .argv = argv };
	const struct err *e = NULL;
	const struct command_word *next;
	const char *arg;

	call->settings = arena_alloc(call->a, 1, call->program->size);
	for (p.at = 1; p.at < argc && e == NULL; p.at++) {
		arg = argv[p.at];
		if (p.only_words || *arg != '-' || arg[1] == '\0')
			e = word_take(&p, arg);
		else if (strcmp(arg, "--") == 0)
			p.only_words = true;
		else if (arg[1] == '-')
			e = long_take(&p, arg);
		else
			e = short_take(&p, arg);
	}
	if (e != NULL || call->help || call->version || call->command == NULL ||
	    p.words == COMMAND_WORDS)
		return e;
	next = &call->command->word[p.words];
	if (next->name == NULL || next->optional)
		return NULL;
	return err_public(ERR_METHOD, "%smissing argument", prefix(&p));
}

const char *
command_meant(const struct command_call *call, const char *word)
{
	const struct command *c;
	const char *meant;
	struct buf names;

	buf_init(&names, NAMES_MAX);
	for (c = call->program->commands; c->name != NULL; c++)
		buf_printf(&names, "%s\n%.*s\n", c->name,
		    (int)strcspn(c->name, " "), c->name);
	meant = command_suggest(call->a, word, &names);
	buf_release(&names);
	return meant;
}

/* Names the subcommands of the group that the first word is. */
static void
group_report(const struct command_call *call, int argc, char **argv)
{
	const struct program *p = call->program;
	const struct command *c;
	const char *separator = "";

	if (argc > 1)
		(void)fprintf(stderr,
		    "%s: unknown command %s %s; existing ones:", p->name,
		    argv[0], str_visible(call->a, argv[1]));
	else
		(void)fprintf(stderr, "%s: %s requires a subcommand:", p->name,
		    argv[0]);
	for (c = p->commands; c->name != NULL; c++) {
		if (!command_in_group(c, argv[0]))
			continue;
		(void)fprintf(stderr, "%s %s", separator, c->name);
		separator = ",";
	}
	(void)fprintf(stderr, "\n");
}

/* Reports words that name no command. */
static void
unknown_report(struct command_call *call, int argc, char **argv)
{
	const struct command *c = call->program->commands;
	const char *meant;

	while (c->name != NULL && !command_in_group(c, argv[0]))
		c++;
	if (c->name != NULL) {
		group_report(call, argc, argv);
		command_print_usage(stderr, call->program, argv[0]);
		return;
	}
	warnx("unknown command %s", str_visible(call->a, argv[0]));
	if ((meant = command_meant(call, argv[0])) != NULL)
		(void)fprintf(stderr, "Did you mean \"%s %s\"?\n",
		    call->program->name, meant);
	else
		command_print_usage(stderr, call->program, NULL);
}

/* Ends quietly, as programs do whose reader has ended.  The HTTP client ignores
 * the signal for its connections. */
static void
pipe_end(void)
{
	struct sigaction end = { .sa_handler = SIG_DFL };

	if (sigaction(SIGPIPE, &end, NULL) == 0)
		(void)raise(SIGPIPE);
}

int
command_report(const struct command_call *call, const struct err *e)
{
	if (e->sys == EPIPE && ferror(stdout))
		pipe_end();
	warnx("%s", str_visible(call->a, e->msg));
	if (e->code == ERR_METHOD && call->command != NULL)
		command_print_synopsis(stderr, call->program, call->command);
	return err_kinds[e->code].exit;
}

/* Whether the words are a name and an option for help. */
static bool
asks_group(const struct command_call *call, int argc, char **argv)
{
	return call->first > 0 && call->first + 2 == argc &&
	    (strcmp(argv[argc - 1], "-h") == 0 ||
		strcmp(argv[argc - 1], "--help") == 0);
}

/* Does what the command line says, if it is right. */
static int
call_run(struct command_call *call, int argc, char **argv)
{
	const struct err *e = command_parse(call, argc, argv);

	if (e == NULL && call->version) {
		(void)printf("%s %s\n", call->program->name, SLIPWAY_VERSION);
		return EX_OK;
	}
	if (e == NULL && call->help) {
		command_print_help(call);
		return EX_OK;
	}
	if (call->command != NULL)
		return e == NULL ? call->program->run(call) :
				   command_report(call, e);
	if (asks_group(call, argc, argv) &&
	    command_print_group(call->program, argv[call->first]))
		return EX_OK;
	if (call->first > 0) {
		unknown_report(call, argc - call->first, argv + call->first);
		return EX_USAGE;
	}
	if (e != NULL)
		(void)command_report(call, e);
	command_print_usage(stderr, call->program, NULL);
	return EX_USAGE;
}

int
command_main(const struct program *p, int argc, char **argv)
{
	struct command_call call = { .program = p, .a = arena_open(ARENA) };
	int status;

	if (argc > 1 && strcmp(argv[1], "__complete") == 0) {
		command_complete(&call, argc - 2, argv + 2);
		status = EX_OK;
	} else {
		status = call_run(&call, argc, argv);
	}
	arena_close(call.a);
	if (fflush(stdout) != 0) {
		if (errno == EPIPE)
			pipe_end();
		err(EX_IOERR, "standard output");
	}
	return status;
}
