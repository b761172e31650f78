/* SPDX-License-Identifier: ISC */
/* slipway export and apply: a project as a file. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/find.h"
#include "cli/prompt.h"
#include "cli/slipway.h"
#include "cli/table.h"
#include "core/str.h"

#define FILE_MAX ((size_t)8 << 20)
#define TEXT_MAX ((size_t)24 << 20) /* an export, indented */

/* What an import does with a part of the project. */
struct part {
	const char *action;
	const char *type;
	const char *name;
	const char *changes; /* names of members */
};
#define P(m, ...) JSON_PATH(struct part, m, __VA_ARGS__)
static const struct json_path part_paths[] = {
	P(action, "action", .must = true),
	P(type, "type"),
	P(name, "name"),
	P(changes, "changes", .joined = "name"),
	JSON_PATH_END,
};
static const struct column part_columns[] = {
	COLUMN(struct part, action, "ACTION", 0),
	COLUMN(struct part, type, "TYPE", 0),
	COLUMN(struct part, name, "NAME", 0),
	COLUMN(struct part, changes, "CHANGES", COLUMN_CUT),
	COLUMN_END,
};

/* Secrets that the service does not have. */
struct result {
	const char *missing;
};
static const struct json_path result_paths[] = {
	JSON_PATH(struct result, missing, "missing", .joined = ""),
	JSON_PATH_END,
};

const struct err *
slipway_export(void *context, struct command_call *call)
{
	const struct project_options *options = call->options;
	struct client *c = context;
	struct named project;
	struct http_response r;
	struct buf text;
	const struct err *e;

	if ((e = find_project(c, options->project, &project)) != NULL ||
	    (e = client_get(c,
		 arena_printf(c->a, "/api/projects/%lld/export",
		     (long long)project.id),
		 &r)) != NULL)
		return e;
	if (c->json) {
		client_print(&r);
		return NULL;
	}
	buf_init(&text, TEXT_MAX);
	json_indent(&text, r.body, r.len);
	if ((e = buf_check(&text)) == NULL)
		(void)printf("%s\n", text.data);
	buf_release(&text);
	return e;
}

/* Sends the document; `dry_run` is "true" or "false". */
static const struct err *
document_send(struct client *c, const char *document, const char *dry_run,
    struct http_response *out)
{
	const struct client_request rq = { .method = HTTP_POST,
		.path = "/api/projects/import",
		.body = arena_printf(c->a, "{\"dryRun\":%s,\"document\":%s}",
		    dry_run, document) };

	return client_call(c, &rq, out);
}

/* Prints the parts that differ, and counts them. */
static const struct err *
difference_print(struct client *c, const struct http_response *r, size_t *out)
{
	const struct err *e;
	struct part *parts;
	struct list list;
	size_t i;

	*out = 0;
	if ((e = json_pick_member(c->a, "items", part_paths,
		 sizeof(struct part), r->body, r->len, &list)) != NULL)
		return e;
	parts = list.items;
	for (i = 0; i < list.n; i++)
		if (!str_eq(parts[i].action, "unchanged"))
			parts[(*out)++] = parts[i];
	list.n = *out;
	if (c->json) {
		client_print(r);
		return NULL;
	}
	return table_print(c, part_columns, sizeof(struct part), &list);
}

/* Asks whether to go on; ERR_METHOD without a terminal. */
static const struct err *
confirm(const struct apply_options *options, bool *out)
{
	char line[8];

	*out = options->yes;
	if (options->yes)
		return NULL;
	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return err_public(ERR_METHOD,
		    "apply: there is no terminal to ask: repeat with --yes to "
		    "apply these changes");
	(void)fputs("Apply these changes? [y/N] ", stderr);
	*out = fgets(line, sizeof(line), stdin) != NULL &&
	    (*line == 'y' || *line == 'Y');
	return NULL;
}

/* Names the secrets that someone has to set. */
static const struct err *
missing_warn(struct client *c, const struct http_response *r)
{
	struct result result = { .missing = NULL };
	const struct err *e;

	if ((e = json_pick(c->a, result_paths, r->body, r->len, &result)) !=
	    NULL)
		return e;
	if (result.missing != NULL && *result.missing != '\0')
		(void)fprintf(stderr,
		    "slipway: warning: these secrets are not set: %s\n",
		    str_visible(c->a, result.missing));
	return NULL;
}

const struct err *
slipway_apply(void *context, struct command_call *call)
{
	const struct apply_options *options = call->options;
	struct client *c = context;
	struct http_response r;
	const char *document;
	const struct err *e;
	bool go = false;
	size_t n;

	if ((e = prompt_file(c->a, call->word[0], FILE_MAX, &document)) != NULL)
		return e;
	if ((e = json_strict(document, strlen(document))) != NULL)
		return err_public(ERR_INVALID, "%s: %s", call->word[0],
		    err_words(e));
	if ((e = document_send(c, document, "true", &r)) != NULL ||
	    (e = difference_print(c, &r, &n)) != NULL)
		return e;
	if (n == 0 && !c->json)
		(void)fprintf(stderr, "slipway: nothing to change\n");
	if (n == 0 || options->dry_run)
		return missing_warn(c, &r);
	if ((e = confirm(options, &go)) != NULL)
		return e;
	if (!go) {
		(void)fprintf(stderr, "slipway: nothing was changed\n");
		return NULL;
	}
	if ((e = document_send(c, document, "false", &r)) != NULL)
		return e;
	return missing_warn(c, &r);
}
