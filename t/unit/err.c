/* SPDX-License-Identifier: ISC */
#include "core/err.h"

#include <errno.h>
#include <string.h>

#include "tap.h"

static void
kinds_are_complete(void)
{
	int i, k, twins = 0, holes = 0;

	for (i = 0; i < ERR__MAX; i++) {
		const struct err_kind *kind = &err_kinds[i];

		if (kind->name == NULL || kind->text == NULL ||
		    kind->http < 400 || kind->http > 599 || kind->exit < 64 ||
		    kind->exit > 78)
			holes++;
		for (k = 0; k < i; k++)
			if (err_kinds[k].http == kind->http &&
			    strcmp(err_kinds[k].name, kind->name) != 0)
				twins++;
	}
	is_int(holes, 0, "every code has name, text and both statuses");
	is_int(twins, 0, "one HTTP status has one name");
}

static void
texts_stay_apart(void)
{
	const struct err *e = err_new(ERR_NOTFOUND, "row %d", 7);

	is_str(e->msg, "row 7", "err_new formats the log's text");
	is_str(e->detail, "", "and tells the client nothing");
	is_int(e->code, ERR_NOTFOUND, "its code is kept");
	is_int(e->sys, 0, "there is no errno");

	e = err_tell(ERR_CONFLICT, "choose %s", "another");
	is_str(e->detail, "choose another", "err_tell tells the client");
	is_str(e->msg, "choose another", "and the log");

	e = err_tell_number(ERR_RATE, 30, "wait %s", "a bit");
	is_str(e->detail, "wait a bit", "err_tell_number tells the client");
	is_str(e->msg, "wait a bit", "and the log");
	is_int(e->sys, 30, "and keeps the number");

	errno = ENOENT;
	e = err_errno("open %s", "/x");
	is_int(e->code, ERR_INTERNAL, "err_errno is internal");
	is_int(e->sys, ENOENT, "keeps errno");
	is_str(e->msg, "open /x: No such file or directory", "and its text");
	is_str(e->detail, "", "which the client does not see");
}

static void
wraps_keep(void)
{
	const struct err *e = err_tell(ERR_RATE, "slow down");

	e = err_wrap(e, "user %d", 3);
	is_int(e->code, ERR_RATE, "a wrap keeps the code");
	is_str(e->msg, "user 3: slow down", "puts its words in front");
	is_str(e->detail, "slow down", "and keeps what the client is told");
	errno = EACCES;
	e = err_wrap(err_errno("a"), "b");
	is_int(e->sys, EACCES, "and errno");
}

static void
long_texts_are_cut(void)
{
	char text[2000];
	const struct err *e;

	(void)memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	e = err_tell(ERR_INVALID, "%s", text);
	is_int((long long)strlen(e->detail), sizeof(e->detail) - 1,
	    "a long text is cut");
	is_int((long long)strlen(err_wrap(e, "more")->msg), sizeof(e->msg) - 1,
	    "also when it is wrapped");
	errno = EIO;
	is_int((long long)strlen(err_errno("%s", text)->msg),
	    sizeof(e->msg) - 1, "and with an errno");
}

static void
ring_holds_eight(void)
{
	const struct err *first = err_new(ERR_INTERNAL, "first"), *e = first;
	int i;

	for (i = 0; i < 8; i++)
		e = err_new(ERR_INTERNAL, "later %d", i);
	is_str(first->msg, "first", "an error survives eight more");
	is_str(e->msg, "later 7", "the last is the last");
}

int
main(void)
{
	kinds_are_complete();
	texts_stay_apart();
	wraps_keep();
	long_texts_are_cut();
	ring_holds_eight();
	return tap_done();
}
