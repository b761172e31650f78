/* SPDX-License-Identifier: ISC */
/*
 * Completion.  A short script for each shell passes the words to the program,
 * so that the tables of commands are the only source and all shells offer the
 * same.
 */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "core/str.h"

#define LINES_MAX ((size_t)1 << 20)
/* The line that asks the script to complete names of files. */
#define FILES ":files\n"

const char *const command_shells[] = { "bash", "zsh", "fish", NULL };

/* In the scripts, ~ stands for the program's name. */
static const char bash_script[] =
    "_~_complete() {\n"
    "	local word quote= line i\n"
    "	local -a words=() lines\n"
    "	for ((i = 1; i <= COMP_CWORD; i++)); do\n"
    "		word=${COMP_WORDS[i]}\n"
    "		quote=\n"
    "		[[ $word == [\\\"\\']* ]] && quote=${word:0:1}\n"
    "		word=${word#[\\\"\\']}\n"
    "		word=${word%[\\\"\\']}\n"
    "		words+=(\"${word//\\\\/}\")\n"
    "	done\n"
    "	mapfile -t lines < <(~ __complete \"${words[@]}\" 2>/dev/null)\n"
    "	COMPREPLY=()\n"
    "	if [[ ${lines[0]} == :files ]]; then\n"
    "		compopt -o default\n"
    "		return\n"
    "	fi\n"
    "	for line in \"${lines[@]}\"; do\n"
    "		line=${line%%$'\\t'*}\n"
    "		[[ $quote ]] || printf -v line %q \"$line\"\n"
    "		COMPREPLY+=(\"$line\")\n"
    "	done\n"
    "}\n"
    "complete -F _~_complete ~\n";

static const char zsh_script[] =
    "#compdef ~\n"
    "_~() {\n"
    "	local -a lines names shown\n"
    "	local line\n"
    "	lines=(\"${(@f)$(~ __complete \"${(@Q)words[2,CURRENT]}\""
    " 2>/dev/null)}\")\n"
    "	if [[ $lines[1] == :files ]]; then\n"
    "		_files\n"
    "		return\n"
    "	fi\n"
    "	for line in $lines; do\n"
    "		names+=(\"${line%%$'\\t'*}\")\n"
    "		shown+=(\"${line/$'\\t'/  -- }\")\n"
    "	done\n"
    "	compadd -l -d shown -a names\n"
    "}\n"
    "compdef _~ ~\n";

static const char fish_script[] =
    "function __~_complete\n"
    "	set -l words (commandline -opc) (commandline -ct)\n"
    "	set -l lines (~ __complete $words[2..-1] 2>/dev/null)\n"
    "	if test \"$lines[1]\" = :files\n"
    "		__fish_complete_path (commandline -ct)\n"
    "	else\n"
    "		printf '%s\\n' $lines\n"
    "	end\n"
    "end\n"
    "complete -c ~ -f -a '(__~_complete)'\n";

const struct err *
command_completion(void *context, struct command_call *call)
{
	static const char *const scripts[] = { bash_script, zsh_script,
		fish_script };
	const char *p;
	size_t i = 0;

	(void)context;
	while (command_shells[i] != NULL &&
	    strcmp(command_shells[i], call->word[0]) != 0)
		i++;
	if (command_shells[i] == NULL)
		return err_public(ERR_METHOD,
		    "completion: the shell must be one of bash, zsh, fish");
	for (p = scripts[i]; *p != '\0'; p++) {
		if (*p == '~')
			(void)fputs(call->program->name, stdout);
		else
			(void)putchar(*p);
	}
	return NULL;
}

void
command_names(struct command_call *call, struct buf *out)
{
	const struct command *c;

	for (c = call->program->commands; c->name != NULL; c++)
		buf_printf(out, "%s\t%s\n", c->name, c->doc);
}

/* The words before the incomplete one, as the parser sees them. */
struct typed {
	struct command_call *call;
	const char *last;   /* the incomplete word */
	const char *before; /* put before each name: "--branch=" */
	size_t words;       /* given after the command's name */
	const struct option_row *pending; /* the last word is its value */
};

/* Offers the next word of all commands that start with these words. */
static void
offer_commands(const struct typed *t, const char *group, struct buf *out)
{
	const struct command *c;
	const char *name, *last = NULL;
	size_t len;

	for (c = t->call->program->commands; c->name != NULL; c++) {
		if (group != NULL && !command_in_group(c, group))
			continue;
		name = c->name + (group == NULL ? 0 : strlen(group) + 1);
		len = strcspn(name, " ");
		/* the commands of a group are neighbours */
		if (last != NULL && strncmp(last, name, len) == 0 &&
		    strcspn(last, " ") == len)
			continue;
		last = name;
		buf_printf(out, "%.*s\t%s\n", (int)len, name,
		    name[len] == ' ' ? "" : c->doc);
	}
}

static void
offer_choices(const char *const *choices, struct buf *out)
{
	for (; choices != NULL && *choices != NULL; choices++)
		buf_printf(out, "%s\n", *choices);
}

static void
offer_options(const struct option_row *o, struct buf *out)
{
	for (; o != NULL && o->name != NULL; o++)
		buf_printf(out, "--%s\t%s\n", o->name, o->doc);
}

static void
offer_value(const struct typed *t, struct buf *out)
{
	const struct option_row *o = t->pending;

	if (o->file)
		buf_puts(out, FILES);
	offer_choices(o->choices, out);
	if (o->known != NULL)
		o->known(t->call, out);
}

static void
offer(const struct typed *t, const char *group, struct buf *out)
{
	const struct command *c = t->call->command;
	const struct command_word *word;

	if (t->pending != NULL) {
		offer_value(t, out);
	} else if (*t->last == '-') {
		if (c != NULL)
			offer_options(c->options, out);
		offer_options(t->call->program->options, out);
		buf_puts(out, "--help\tprint help\n");
	} else if (c == NULL) {
		offer_commands(t, group, out);
	} else if (t->words < COMMAND_WORDS) {
		word = &c->word[t->words];
		if (word->file)
			buf_puts(out, FILES);
		offer_choices(word->choices, out);
		if (word->known != NULL)
			word->known(t->call, out);
	}
}

/* Finds out which option an argument ends with, if its value is still to come
 * or, with "--name=", incomplete. */
static void
option_read(struct typed *t, const char *arg, bool is_last)
{
	const char *value = strchr(arg, '=');
	const bool is_long = arg[1] == '-';
	const struct option_row *o;
	void *fills;

	if (is_long)
		o = command_option(t->call, arg + 2, strcspn(arg + 2, "="), 0,
		    &fills);
	else
		o = command_option(t->call, NULL, 0, arg[1], &fills);
	if (o == NULL || o->type == OPTION_FLAG)
		return;
	if (is_last && is_long && value != NULL) {
		t->before = arena_strndup(t->call->a, arg,
		    (size_t)(value + 1 - arg));
		t->last = value + 1;
		t->pending = o;
	} else if (!is_last && (is_long ? value == NULL : arg[2] == '\0')) {
		t->pending = o;
	}
}

/* Reads the words; returns the group that the last one belongs to, or NULL. */
static const char *
words_read(struct typed *t, int argc, char **argv)
{
	struct command_call *call = t->call;
	const char *group = NULL;
	int i, n;

	for (i = 0; i + 1 < argc; i++) {
		/* bash takes --name=value apart */
		if (t->pending != NULL && strcmp(argv[i], "=") == 0)
			continue;
		if (t->pending != NULL) {
			t->pending = NULL;
		} else if (*argv[i] == '-') {
			option_read(t, argv[i], false);
		} else if (call->command != NULL) {
			t->words++;
		} else if ((call->command = command_find(call->program,
				argc - 1 - i, argv + i, &n)) != NULL) {
			i += n - 1;
		} else {
			group = argv[i];
		}
	}
	if (t->pending != NULL && strcmp(t->last, "=") == 0)
		t->last = "";
	if (t->pending == NULL && *t->last == '-')
		option_read(t, t->last, true);
	return group;
}

/* Parses what is complete, so that `known` functions see the options given.  An
 * error, such as the value that is still missing, ends that. */
static void
options_read(struct command_call *call, int argc, char **argv)
{
	char **args = arena_alloc(call->a, (size_t)argc + 1, sizeof(*args));
	const struct err *e;
	int i;

	for (i = 0; i + 1 < argc; i++)
		args[i + 1] = argv[i];
	e = command_parse(call, i + 1, args);
	(void)e;
}

void
command_complete(struct command_call *call, int argc, char **argv)
{
	struct typed t = { .call = call, .last = "", .before = "" };
	struct command_call known = *call;
	const char *group, *line;
	struct buf out;
	size_t len;

	if (argc > 0)
		t.last = argv[argc - 1];
	options_read(&known, argc, argv);
	group = words_read(&t, argc, argv);
	call->settings = known.settings;
	call->options = call->command == NULL ?
	    NULL :
	    known.command == call->command ?
	    known.options :
	    arena_alloc(call->a, 1, call->command->size);
	buf_init(&out, LINES_MAX);
	offer(&t, group, &out);
	for (line = out.data; line != NULL && *line != '\0'; line += len + 1) {
		len = strcspn(line, "\n");
		if (strncmp(line, FILES, len) == 0 || str_starts(line, t.last))
			(void)printf("%s%.*s\n", t.before, (int)len, line);
	}
	buf_release(&out);
}
