/* SPDX-License-Identifier: ISC */
#include "dispatch/commits.h"

#include <string.h>

#include "core/branch.h"
#include "core/log.h"
#include "core/num.h"
#include "core/str.h"
#include "dispatch/context.h"
#include "dispatch/text.h"
#include "json/json.h"
#include "store/gitrepo.h"

#define COMMITS_MAX 100
#define JSON_MAX ((size_t)8 << 20)
#define NAME_MAX_CHARS 200
#define MESSAGE_MAX_CHARS 4000
#define SECONDS_MAX INT64_C(253402300799) /* the year 9999 */

/* "HASH SECONDS\nAUTHOR\nEMAIL\nMESSAGE" */
static const struct err *
commit_read(struct arena *a, const char *value, struct git_commit *out)
{
	char *rest = arena_strdup(a, value), *head, *hash, *name, *email;
	int64_t seconds;

	head = strsep(&rest, "\n");
	name = strsep(&rest, "\n");
	email = strsep(&rest, "\n");
	hash = strsep(&head, " ");
	if (rest == NULL || head == NULL ||
	    !str_matches(hash, "[0-9a-f]{40}|[0-9a-f]{64}") ||
	    !num_parse(head, 0, NUM_SAFE, &seconds))
		return err_new(ERR_BAD_REQUEST, "a commit is malformed");
	*out = (struct git_commit){
		.hash = hash,
		.message = text_plain(a, rest, MESSAGE_MAX_CHARS, "\n\t"),
		.author_name = text_plain(a, name, NAME_MAX_CHARS, ""),
		.author_email = text_plain(a, email, NAME_MAX_CHARS, ""),
		.committed_at.ms = seconds <= SECONDS_MAX ? seconds * 1000 : 0,
	};
	return NULL;
}

static const struct err *
commits_read(struct arena *a, const char *records, struct list *out)
{
	struct git_commit *all = arena_alloc(a, COMMITS_MAX, sizeof(*all));
	const struct err *e;
	struct record r;
	size_t at = 0;
	bool found;

	*out = (struct list){ .items = all };
	while (out->n < COMMITS_MAX) {
		if ((e = record_read(a, records, strlen(records), &at, &r,
			 &found)) != NULL ||
		    !found)
			return e;
		if ((e = commit_read(a, r.value, &all[out->n])) != NULL)
			return e;
		out->n++;
	}
	return NULL;
}

static const struct err *
branch_store(const struct dispatch *d, int64_t project,
    const struct job_event *event)
{
	struct branch_commits row = { .project_id = project };
	const struct err *e;
	struct list list;
	struct buf json;

	if (event->branch[0] == '\0' || event->text[0] == '\0')
		return err_new(ERR_BAD_REQUEST, "commits without a branch");
	row.branch = text_plain(d->a, event->branch, BRANCH_MAX, "");
	if ((e = commits_read(d->a, event->text, &list)) != NULL)
		return e;
	buf_init(&json, JSON_MAX);
	json_write_list(&json, &git_commit_shape, &list, 0);
	row.commits.s = json.data;
	if ((e = buf_check(&json)) == NULL)
		e = commits_put(d->db, &row);
	buf_release(&json);
	return e;
}

const struct err *
commits_store(const struct dispatch *d, int64_t project, const char *name,
    const struct job_event *event)
{
	const struct err *e = branch_store(d, project, event);

	if (e == NULL || e->code == ERR_UNAVAILABLE || e->code == ERR_CONFIG)
		return e;
	log_err(e, name);
	return NULL;
}
