/* SPDX-License-Identifier: ISC */
#include "cli/prompt.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <bsd/readpassphrase.h>

#include "core/file.h"

#define SECRET_MAX 4096
#define ANSWER_MAX 64

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

const struct err *
prompt_confirm(struct arena *a, const char *question, bool *out)
{
	const char *text = arena_printf(a, "%s ", question);
	char answer[ANSWER_MAX];

	*out = false;
	if (readpassphrase(text, answer, sizeof(answer),
		RPP_REQUIRE_TTY | RPP_ECHO_ON) == NULL)
		return err_public(ERR_METHOD,
		    "there is no terminal to ask for confirmation");
	*out = strcmp(answer, "yes") == 0;
	return NULL;
}

const struct err *
prompt_file(struct arena *a, const char *path, size_t max, const char **out)
{
	const struct err *e;
	struct buf text;
	int fd = STDIN_FILENO;

	*out = NULL;
	if (strcmp(path, "-") != 0 &&
	    (fd = open(path, O_RDONLY | O_CLOEXEC)) == -1)
		return err_errno("%s", path);
	buf_init(&text, max);
	if ((e = file_rest(fd, &text)) != NULL)
		e = err_wrap(e, "%s", path);
	else if (text.len > 0 && memchr(text.data, '\0', text.len) != NULL)
		e = err_public(ERR_INVALID, "%s: contains a NUL byte", path);
	else
		*out = arena_strndup(a, text.data == NULL ? "" : text.data,
		    text.len > 0 && text.data[text.len - 1] == '\n' ?
			text.len - 1 :
			text.len);
	buf_wipe(&text);
	if (fd != STDIN_FILENO)
		(void)close(fd);
	return e;
}
