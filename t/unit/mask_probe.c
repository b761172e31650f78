/* SPDX-License-Identifier: ISC */
/*
 * mask_probe: masks texts. Each request on standard input is a line of decimal
 * numbers, "PIECE TEXT SECRET...", then the text and the secrets, of so many
 * bytes each. The text is fed in pieces of PIECE bytes; the response is a line
 * with the length of the output, then the output.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/num.h"
#include "job/mask.h"

#define TEXT_MAX ((size_t)1 << 22)
#define SECRETS_MAX 16
#define ARENA ((size_t)1 << 28)

static char data[TEXT_MAX];

/* Reads so many bytes. */
static void
take(int64_t n)
{
	if ((size_t)n > sizeof(data) ||
	    fread(data, 1, (size_t)n, stdin) != (size_t)n)
		errx(1, "the input cannot be read");
}

/* Returns how many numbers the line has. */
static size_t
numbers(char *line, int64_t out[2 + SECRETS_MAX])
{
	char *word;
	size_t n = 0;

	line[strcspn(line, "\n")] = '\0';
	while ((word = strsep(&line, " ")) != NULL)
		if (n == 2 + SECRETS_MAX ||
		    !num_parse(word, 0, INT32_MAX, &out[n++]))
			errx(1, "malformed request");
	return n;
}

static void
answer(char *line)
{
	struct arena *a = arena_open(ARENA);
	struct mask *m = mask_open(a);
	int64_t n[2 + SECRETS_MAX] = { 0 };
	const size_t words = numbers(line, n);
	struct buf text, out;
	size_t at, i, piece;

	if (words < 2 || n[0] == 0)
		errx(1, "malformed request");
	buf_init(&text, TEXT_MAX);
	buf_init(&out, 4 * TEXT_MAX);
	take(n[1]);
	buf_add(&text, data, (size_t)n[1]);
	for (i = 2; i < words; i++) {
		take(n[i]);
		mask_add(m, data, (size_t)n[i]);
	}
	for (at = 0; at < text.len; at += piece) {
		piece = text.len - at < (size_t)n[0] ? text.len - at :
						       (size_t)n[0];
		mask_feed(m, text.data + at, piece, &out);
	}
	mask_finish(m, &out);
	if (printf("%zu\n", out.len) < 0 ||
	    fwrite(out.data, 1, out.len, stdout) != out.len ||
	    fflush(stdout) == EOF)
		err(1, "write");
	buf_release(&text);
	buf_release(&out);
	mask_close(m);
	arena_close(a);
}

int
main(void)
{
	char line[256];

	while (fgets(line, sizeof(line), stdin) != NULL)
		answer(line);
	return 0;
}
