/* SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"

#define INDENT 28 /* column of the texts in lists */

static void
print_line(FILE *to, const char *left, const char *text)
{
	const int width = (int)strlen(left);

	(void)fprintf(to, "  %s", left);
	if (width > INDENT - 4)
		(void)fprintf(to, "\n%*s", INDENT, "");
	else
		(void)fprintf(to, "%*s", INDENT - 2 - width, "");
	(void)fprintf(to, "%s\n", text);
}

/* Appends "ID" or "[ID]" for each word. */
static void
add_words(struct buf *out, const struct command *c)
{
	size_t i;

	for (i = 0; i < COMMAND_WORDS && c->word[i].name != NULL; i++)
		buf_printf(out, c->word[i].optional ? " [%s]" : " %s",
		    c->word[i].name);
}

/* Appends "[--branch NAME]", with dots if it may be repeated. */
static void
add_option(struct buf *out, const struct option_row *o)
{
	buf_printf(out, " %s", o->must ? "" : "[");
	if (o->letter != '\0')
		buf_printf(out, "-%c", o->letter);
	else
		buf_printf(out, "--%s", o->name);
	if (o->value != NULL)
		buf_printf(out, " %s", o->value);
	buf_printf(out, "%s%s", o->must ? "" : "]",
	    o->type == OPTION_LIST ? "..." : "");
}

void
command_print_synopsis(FILE *to, const struct program *p,
    const struct command *c)
{
	const struct option_row *o;
	struct buf line;

	buf_init(&line, 4096);
	for (o = p->options; o != NULL && o->name != NULL; o++)
		add_option(&line, o);
	buf_printf(&line, " %s", c->name);
	add_words(&line, c);
	for (o = c->options; o != NULL && o->name != NULL; o++)
		add_option(&line, o);
	(void)fprintf(to, "usage: %s%s\n", p->name, line.data);
	buf_release(&line);
}

static void
print_options(FILE *to, const struct option_row *o)
{
	struct buf left;

	buf_init(&left, 256);
	for (; o != NULL && o->name != NULL; o++) {
		buf_clear(&left);
		if (o->letter != '\0')
			buf_printf(&left, "-%c, ", o->letter);
		buf_printf(&left, "--%s%s%s", o->name,
		    o->value == NULL ? "" : " ",
		    o->value == NULL ? "" : o->value);
		print_line(to, left.data, o->doc);
	}
	buf_release(&left);
}

/* Prints "program WORDS" for each line of "WORDS\tmeaning". */
static void
print_examples(const char *name, const char *lines)
{
	size_t words, meaning;

	for (; lines != NULL && *lines != '\0'; lines += meaning) {
		words = strcspn(lines, "\t");
		(void)printf("  %s %.*s\n", name, (int)words, lines);
		lines += words + 1;
		meaning = strcspn(lines, "\n");
		(void)printf("      %.*s\n", (int)meaning, lines);
		meaning += lines[meaning] == '\n';
	}
}

void
command_print_usage(FILE *to, const struct program *p, const char *group)
{
	const struct command *c;
	const struct option_row *o;
	struct buf left;

	buf_init(&left, 256);
	(void)fprintf(to, "usage: %s", p->name);
	for (o = p->options; o != NULL && o->name != NULL; o++) {
		buf_clear(&left);
		add_option(&left, o);
		(void)fprintf(to, "%s", left.data);
	}
	(void)fprintf(to, " COMMAND [ARGUMENT]...\n");
	for (c = p->commands; c->name != NULL; c++) {
		if (group != NULL && !command_in_group(c, group))
			continue;
		buf_clear(&left);
		buf_puts(&left, c->name);
		add_words(&left, c);
		print_line(to, left.data, c->doc);
	}
	buf_release(&left);
}

static void
print_own_options(const struct program *p)
{
	print_options(stdout, p->options);
	print_line(stdout, "-h, --help", "print help, also after a command");
	print_line(stdout, "-V, --version", "print the version");
}

void
command_print_help(const struct command_call *call)
{
	const struct program *p = call->program;
	const struct command *c = call->command;
	const char *name = c == NULL ? "" : c->name;
	const char *examples = c == NULL ? p->examples : c->examples;

	(void)printf("%s%s%s: %s\n\n", p->name, c == NULL ? "" : " ", name,
	    c == NULL ? p->doc : c->doc);
	if (examples != NULL) {
		print_examples(p->name, examples);
		(void)printf("\n");
	}
	if (c == NULL) {
		command_print_usage(stdout, p, NULL);
		(void)printf("\n");
	} else {
		command_print_synopsis(stdout, p, c);
		print_options(stdout, c->options);
	}
	print_own_options(p);
}

bool
command_print_group(const struct program *p, const char *group)
{
	const struct command *c, *first = p->commands;

	while (first->name != NULL && !command_in_group(first, group))
		first++;
	if (first->name == NULL)
		return false;
	for (c = first; c->name != NULL; c++)
		if (command_in_group(c, group) && c->examples != NULL) {
			print_examples(p->name, c->examples);
			(void)printf("\n");
		}
	command_print_usage(stdout, p, group);
	(void)printf("\n");
	print_own_options(p);
	return true;
}

const struct err *
command_help(void *context, struct command_call *call)
{
	struct command_call asked = { .program = call->program };
	char *words[COMMAND_WORDS];
	const char *meant;
	int n = 0, found;

	(void)context;
	while (n < COMMAND_WORDS && call->word[n] != NULL) {
		words[n] = arena_strdup(call->a, call->word[n]);
		n++;
	}
	if (n > 0)
		asked.command = command_find(call->program, n, words, &found);
	if (n == 0 || asked.command != NULL) {
		command_print_help(&asked);
		return NULL;
	}
	if (n == 1 && command_print_group(call->program, words[0]))
		return NULL;
	meant = command_meant(call, words[0]);
	return err_public(ERR_METHOD, "unknown command %s%s%s%s", words[0],
	    meant == NULL ? "" : "; did you mean ", meant == NULL ? "" : meant,
	    meant == NULL ? "" : "?");
}
