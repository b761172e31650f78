/* SPDX-License-Identifier: ISC */
/* unseal KEYFILE PROJECT < OBJECT: prints the object with its sealed variables
 * unsealed, for tests that compare them.  A key may be a trigger and a name,
 * separated by a space. */
#include <err.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "core/num.h"
#include "crypto/crypto.h"
#include "crypto/private_keyring.h"
#include "json/json.h"
#include "store/env.h"

int
main(int argc, char **argv)
{
	struct arena *a = arena_open((size_t)32 << 20);
	const char *blank;
	const struct err *e;
	struct pair *p;
	struct private_keyring *keys;
	struct map pairs;
	struct buf text;
	int64_t project;
	size_t i;

	if (argc != 3 || !num_parse(argv[2], 1, INT64_MAX, &project))
		errx(64, "usage: unseal KEYFILE PROJECT");
	buf_init(&text, (size_t)8 << 20);
	if ((e = crypto_init()) != NULL ||
	    (e = private_keyring_open(argv[1], &keys)) != NULL ||
	    (e = file_rest(STDIN_FILENO, &text)) != NULL ||
	    (e = json_map(a, text.data, &pairs)) != NULL)
		errx(1, "%s", e->msg);
	p = pairs.items;
	for (i = 0; i < pairs.n; i++) {
		blank = strrchr(p[i].key, ' ');
		e = private_keyring_unseal(keys, a,
		    arena_printf(a, ENV_PURPOSE, (long long)project,
			blank == NULL ? p[i].key : blank + 1),
		    p[i].value, &p[i].value);
		if (e != NULL)
			errx(1, "%s: %s", p[i].key, e->msg);
	}
	buf_clear(&text);
	json_write_map(&text, &pairs);
	(void)puts(text.data);
	private_keyring_close(keys);
	buf_release(&text);
	arena_close(a);
	return 0;
}
