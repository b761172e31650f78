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
			if (strcmp(err_kinds[k].name, kind->name) == 0 &&
			    err_kinds[k].http != kind->http)
				twins++;
	}
	is_int(holes, 0, "every code has a name, a text and both statuses");
	is_int(twins, 0, "every name has one HTTP status");
}

static void
texts_stay_apart(void)
{
	const struct err *e = err_new(ERR_NOTFOUND, "row %d", 7);

	is_str(e->msg, "row 7", "err_new formats the text for the log");
	is_str(e->detail, "", "err_new has no text for the client");
	is_int(e->code, ERR_NOTFOUND, "err_new keeps the code");
	is_int(e->sys, 0, "err_new has no errno");

	e = err_public(ERR_CONFLICT, "choose %s", "another");
	is_str(e->detail, "choose another",
	    "err_public has a text for the client");
	is_str(e->msg, "choose another",
	    "err_public has the same text for the log");

	e = err_public_number(ERR_RATE, 30, "wait %s", "a bit");
	is_str(e->detail, "wait a bit",
	    "err_public_number has a text for the client");
	is_str(e->msg, "wait a bit",
	    "err_public_number has the same text for the log");
	is_int(e->sys, 30, "err_public_number keeps the number");

	errno = ENOENT;
	e = err_errno("open %s", "/x");
	is_int(e->code, ERR_INTERNAL, "err_errno is an internal error");
	is_int(e->sys, ENOENT, "err_errno keeps errno");
	is_str(e->msg, "open /x: No such file or directory",
	    "err_errno has the text of errno");
	is_str(e->detail, "", "err_errno has no text for the client");
}

static void
wraps_keep(void)
{
	const struct err *e = err_public(ERR_RATE, "slow down");

	e = err_wrap(e, "user %d", 3);
	is_int(e->code, ERR_RATE, "err_wrap keeps the code");
	is_str(e->msg, "user 3: slow down", "err_wrap puts its text in front");
	is_str(e->detail, "slow down",
	    "err_wrap keeps the text for the client");
	errno = EACCES;
	e = err_wrap(err_errno("a"), "b");
	is_int(e->sys, EACCES, "err_wrap keeps errno");
}

static void
causes_are_for_the_log(void)
{
	const struct err *e;

	e = err_explain(err_number(ERR_UPSTREAM, 7, "TLS alert %d", 48),
	    ERR_CONFIG, "set %s", "tls_ca");
	is_int(e->code, ERR_CONFIG, "err_explain sets the code");
	is_str(e->detail, "set tls_ca",
	    "err_explain gives the client the sentence alone");
	is_str(e->msg, "set tls_ca: TLS alert 48",
	    "err_explain gives the log the sentence and the cause");
	is_int(e->sys, 7, "err_explain keeps the number of the cause");
	is_str(err_words(e), "set tls_ca", "err_words returns the sentence");

	e = err_as(err_public(ERR_UNAUTHENTICATED, "sign in"), ERR_UPSTREAM,
	    401);
	is_int(e->code, ERR_UPSTREAM, "err_as changes the code");
	is_int(e->sys, 401, "err_as changes the number");
	is_str(e->msg, "sign in", "err_as keeps the text for the log");
	is_str(e->detail, "sign in", "err_as keeps the text for the client");
	is_str(err_words(err_new(ERR_INTERNAL, "a %s", "bug")), "a bug",
	    "err_words without a sentence returns the text for the log");
}

static void
long_texts_are_cut(void)
{
	char text[2000];
	const struct err *e;

	(void)memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	e = err_public(ERR_INVALID, "%s", text);
	is_int((long long)strlen(e->detail), sizeof(e->detail) - 1,
	    "a long text is truncated");
	is_int((long long)strlen(err_wrap(e, "more")->msg), sizeof(e->msg) - 1,
	    "a long text is truncated when it is wrapped");
	errno = EIO;
	is_int((long long)strlen(err_errno("%s", text)->msg),
	    sizeof(e->msg) - 1, "a long text with an errno is truncated");
	(void)memcpy(text + sizeof(e->msg) - 3, "€", strlen("€"));
	is_int((long long)strlen(err_new(ERR_INVALID, "%s", text)->msg),
	    sizeof(e->msg) - 3, "a text is not truncated within a character");
	is_int((long long)strlen(err_wrap(e, "%s", text + 4)->msg),
	    sizeof(e->msg) - 1,
	    "a wrapped text is not truncated within a character");
}

static void
ring_holds_eight(void)
{
	const struct err *first = err_public(ERR_RATE, "first"), *e = first,
			 *kept;
	struct err room;
	int i;

	is_int(ERR_MORE, 8, "the contract says that eight errors may follow");
	kept = err_keep(&room, first);
	for (i = 0; i < 8; i++)
		e = err_new(ERR_INTERNAL, "later %d", i);
	is_str(first->msg, "first", "an error survives eight others");
	is_str(e->msg, "later 7", "the last error has its own text");
	e = err_new(ERR_INTERNAL, "ninth");
	is_str(first->msg, "ninth", "the ninth error replaces the first");
	is_int(e == first, 1, "the ninth error uses the slot of the first");
	is_str(kept->msg, "first", "a kept error survives");
	is_str(kept->detail, "first", "a kept error keeps its sentence");
	is_int(kept->code, ERR_RATE, "a kept error keeps its code");
}

int
main(void)
{
	kinds_are_complete();
	texts_stay_apart();
	wraps_keep();
	causes_are_for_the_log();
	long_texts_are_cut();
	ring_holds_eight();
	return tap_done();
}
