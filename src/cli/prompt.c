/* SPDX-License-Identifier: ISC */
#include "cli/prompt.h"

#include <string.h>

#include <bsd/readpassphrase.h>

#define SECRET_MAX 4096

const struct err *
prompt_secret(struct arena *a, const char *what, const char **out)
{
	const char *text = arena_printf(a, "%s: ", what);
	char secret[SECRET_MAX];

	*out = NULL;
	if (readpassphrase(text, secret, sizeof(secret), RPP_REQUIRE_TTY) ==
	    NULL)
		return err_public(ERR_METHOD,
		    "there is no terminal to ask for %s", what);
	*out = arena_strdup(a, secret);
	explicit_bzero(secret, sizeof(secret));
	return NULL;
}
