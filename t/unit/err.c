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
causes_are_for_the_log(void)
{
	const struct err *e;

	e = err_explain(err_number(ERR_UPSTREAM, 7, "TLS alert %d", 48),
	    ERR_CONFIG, "set %s", "tls_ca");
	is_int(e->code, ERR_CONFIG, "an explanation has a code of its own");
	is_str(e->detail, "set tls_ca", "the client reads the sentence alone");
	is_str(e->msg, "set tls_ca: TLS alert 48", "the log the cause as well");
	is_int(e->sys, 7, "and the number is the cause's");
	is_str(err_words(e), "set tls_ca", "a person reads the sentence");

	e = err_as(err_tell(ERR_UNAUTHENTICATED, "sign in"), ERR_UPSTREAM, 401);
	is_int(e->code, ERR_UPSTREAM, "err_as changes the code");
	is_int(e->sys, 401, "and the number");
	is_str(e->msg, "sign in", "not the text for the log");
	is_str(e->detail, "sign in", "nor the one for the client");
	is_str(err_words(err_new(ERR_INTERNAL, "a %s", "bug")), "a bug",
	    "without a sentence a person reads the log's text");
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
	const struct err *first = err_tell(ERR_RATE, "first"), *e = first,
			 *kept;
	struct err room;
	int i;

	is_int(ERR_MORE, 8, "the contract says eight");
	kept = err_keep(&room, first);
	for (i = 0; i < 8; i++)
		e = err_new(ERR_INTERNAL, "later %d", i);
	is_str(first->msg, "first", "an error survives eight more");
	is_str(e->msg, "later 7", "the last is the last");
	e = err_new(ERR_INTERNAL, "ninth");
	is_str(first->msg, "ninth", "the ninth takes its place");
	is_int(e == first, 1, "in the same slot");
	is_str(kept->msg, "first", "one that is kept stays");
	is_str(kept->detail, "first", "with its sentence");
	is_int(kept->code, ERR_RATE, "and its code");
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
