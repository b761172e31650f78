/* SPDX-License-Identifier: ISC */
/* Secrets (lines up to an empty one), then a text: masked in pieces it equals
 * the text masked at once, and does not contain a secret. */
#include <string.h>

#include "fuzz.h"
#include "job/mask.h"

#define SECRETS 8
#define SECRET_MAX 256

static void
feed(struct mask *m, const char *text, size_t len, size_t piece,
    struct buf *out)
{
	size_t at, n;

	for (at = 0; at < len; at += n) {
		n = piece < len - at ? piece : len - at;
		mask_feed(m, text + at, n, out);
	}
	mask_finish(m, out);
	MUST(!mask_held(m));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct arena *a = arena_open((size_t)64 << 20);
	struct mask *m = mask_open(a);
	const char *text = (const char *)data, *end, *first = NULL;
	struct buf whole, pieces;
	size_t n, first_len = 0;
	int secrets;

	for (secrets = 0; secrets < SECRETS && len > 0; secrets++) {
		end = memchr(text, '\n', len);
		n = end == NULL ? len : (size_t)(end - text);
		if (n > 0 && n <= SECRET_MAX)
			mask_add(m, text, n);
		if (n >= MASK_MIN && n <= SECRET_MAX && first == NULL) {
			first = text;
			first_len = n;
		}
		text += n + (end != NULL);
		len -= n + (end != NULL);
		if (n == 0)
			break;
	}
	buf_init(&whole, (size_t)1 << 24);
	buf_init(&pieces, (size_t)1 << 24);
	feed(m, text, len, len + 1, &whole);
	feed(m, text, len, 3, &pieces);
	MUST(buf_check(&whole) == NULL && whole.len == pieces.len);
	MUST(whole.len == 0 || memcmp(whole.data, pieces.data, whole.len) == 0);
	MUST(whole.len <= 3 * len);
	if (first != NULL && whole.len > 0 &&
	    memchr(first, '*', first_len) == NULL)
		MUST(memmem(whole.data, whole.len, first, first_len) == NULL);
	buf_release(&whole);
	buf_release(&pieces);
	mask_close(m);
	arena_close(a);
	return 0;
}
