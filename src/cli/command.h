/* SPDX-License-Identifier: ISC */
/*
 * The frame of slipway and slipway-admin: one table of commands each, from
 * which the command line is parsed and help, usage and completion are printed.
 *
 * A command's table of options says into which member of its struct each option
 * goes, so that a handler gets a filled struct.  Options can appear before,
 * between and after the words; "--" ends them.  Options of the program are
 * accepted before and after the command's name.
 */
#ifndef SLIPWAY_CLI_COMMAND_H
#define SLIPWAY_CLI_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/buf.h"

#define COMMAND_WORDS 2 /* of a command, and of its name */

struct command_call;

/* Appends lines with the possible values of a word or option: "name\n", or
 * "name\tdescription\n".  Prints nothing and ignores errors. */
typedef void command_known(struct command_call *, struct buf *out);

/* Every value given to an option that may be repeated. */
struct option_list {
	const char **item;
	size_t n;
};

enum option_type {
	OPTION_FLAG, /* bool */
	OPTION_TEXT, /* const char *; NULL if not given */
	OPTION_INT,  /* int64_t in min..max; unchanged if not given */
	OPTION_LIST, /* struct option_list */
};

struct option_row {
	const char *name; /* "branch" for --branch; NULL ends the table */
	char letter;      /* 'b' for -b; 0 = none */
	bool must;
	enum option_type type;
	size_t offset;
	int64_t min, max;
	const char *value;          /* what help calls it; NULL for a flag */
	const char *doc;            /* begins in lower case, has no full stop */
	const char *const *choices; /* the only values; ends with NULL */
	command_known *known;       /* values to complete; NULL = none */
	bool file;                  /* complete names of files */
	const char *member; /* of the request's body that it sets, for errors */
};
/* OPTION(struct, member, "name", .letter = 'n', .value = "NAME", …) */
/* clang-format off */
#define OPTION(T, m, n, ...) {						\
	.name = (n), .offset = offsetof(T, m),				\
	.type = _Generic(((T *)NULL)->m,				\
	    bool: OPTION_FLAG,						\
	    const char *: OPTION_TEXT,					\
	    int64_t: OPTION_INT,					\
	    struct option_list: OPTION_LIST),				\
	__VA_ARGS__ }
#define OPTION_END { .name = NULL }
/* clang-format on */

/* A word after the command's name. */
struct command_word {
	const char *name; /* what help calls it; NULL = there is none */
	bool optional;
	const char *const *choices;
	command_known *known;
	bool file;          /* complete names of files */
	const char *member; /* of the request's body that the file is */
};

typedef const struct err *command_run(void *context, struct command_call *);

struct command {
	const char *name; /* "deploy", "user add" */
	const char *doc;  /* begins in lower case, has no full stop */
	/* Lines for the beginning of its help: "deploy -f\tdeploy and follow"
	 * is printed with the program's name. */
	const char *examples;
	struct command_word word[COMMAND_WORDS];
	const struct option_row *options; /* NULL = none */
	size_t size;    /* of the struct that they fill; 0 = none */
	unsigned flags; /* of the program */
	command_run *run;
};

struct program {
	const char *name;
	const char *doc;
	const char *examples;
	const struct command *commands; /* ends with a NULL name */
	const struct option_row *options;
	size_t size; /* of the struct that these fill */
	/* Runs a command, reports its error, and returns the exit status. */
	int (*run)(struct command_call *);
};

/* One run of the program; everything lives in its arena. */
struct command_call {
	const struct program *program;
	struct arena *a;
	void *settings; /* filled by the program's options */
	const struct command *command;
	void *options;                   /* filled by the command's options */
	const char *word[COMMAND_WORDS]; /* NULL = not given */
	int first; /* index in argv of the first word; 0 = none */
	bool help;
	bool version;
	int status; /* exit status if there is no error */
};

/* Parses the command line, runs the command or prints help, and returns the
 * exit status.  Exits if standard output cannot be written. */
int command_main(const struct program *, int argc, char **argv);

/* Prints an error to standard error, with the command's usage if the command
 * line is wrong, and returns its exit status. */
int command_report(const struct command_call *, const struct err *);

/* Fills a call, which the caller has given a program and an arena.  ERR_METHOD
 * says what is wrong with the command line; `command` is NULL if it names no
 * command. */
MUSTCHECK const struct err *command_parse(struct command_call *, int argc,
    char **argv);
/* The command whose name the words start with, and the number of words in its
 * name; NULL = none. */
const struct command *command_find(const struct program *, int argc,
    char *const *argv, int *words);
/* The option of that name, or of that letter if `name` is NULL, of the command
 * or else of the program, and the struct that it fills; NULL = there is none.
 */
const struct option_row *command_option(struct command_call *, const char *name,
    size_t len, char letter, void **fills);
/* Whether the command is "group SUBCOMMAND". */
bool command_in_group(const struct command *, const char *group);

/* The name that was probably meant: the closest one in the list of lines, up to
 * their tabs, that differs in few letters; NULL = none is close. */
const char *command_suggest(struct arena *, const char *word,
    const struct buf *lines);

/* The same among the commands of the program and the groups of commands. */
const char *command_meant(const struct command_call *, const char *word);

/* Handlers that every program has: "help [COMMAND]" and "completion SHELL".
 * The first prints the help of the program or of one command, the second a
 * script for a shell, one of `command_shells`. */
command_run command_help, command_completion;
extern const char *const command_shells[];
command_known command_names; /* of all commands */
/* Prints the help of the call's command; NULL = of the program. */
void command_print_help(const struct command_call *);
/* Prints the help of a group of commands, "auth" for "auth login"; false if there
 * is none of that name. */
bool command_print_group(const struct program *, const char *group);
/* Prints "usage: …" and lists the commands of a group, or all. */
void command_print_usage(FILE *, const struct program *, const char *group);
/* Prints the usage of one command. */
void command_print_synopsis(FILE *, const struct program *,
    const struct command *);
/* Prints what can follow these words, of which the last may be incomplete: the
 * scripts for shells call the program with __complete and the words. */
void command_complete(struct command_call *, int argc, char **argv);

#endif
