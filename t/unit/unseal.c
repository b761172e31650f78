/* SPDX-License-Identifier: ISC */
/* unseal KEYFILE PURPOSE HEX: what was sealed, for tests that ask whether the
 * right thing was. */
#include <err.h>
#include <stdio.h>
#include <string.h>

#include "crypto/crypto.h"

int
main(int argc, char **argv)
{
	struct arena *a = arena_open((size_t)8 << 20);
	struct keyring *k;
	struct blob sealed;
	const struct err *e;
	unsigned char *data;
	unsigned byte;
	char *text;
	size_t i;

	if (argc != 4)
		errx(64, "usage: unseal KEYFILE PURPOSE HEX");
	sealed.len = strlen(argv[3]) / 2;
	sealed.data = data = arena_alloc(a, sealed.len, 1);
	for (i = 0; i < sealed.len; i++) {
		if (sscanf(argv[3] + 2 * i, "%2x", &byte) != 1)
			errx(65, "no hex");
		data[i] = (unsigned char)byte;
	}
	if ((e = crypto_init()) != NULL ||
	    (e = keyring_open(argv[1], &k)) != NULL ||
	    (e = unseal(k, a, argv[2], sealed, &text)) != NULL)
		errx(1, "%s", e->msg);
	(void)puts(text);
	keyring_close(k);
	arena_close(a);
	return 0;
}
