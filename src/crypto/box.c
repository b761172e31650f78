/* SPDX-License-Identifier: ISC */
#include "crypto/box.h"

#include <sodium.h>
#include <string.h>

#include "crypto/boxed.h"
#include "crypto/crypto.h"

const struct err *
box_open(const char *path, struct box **out)
{
	const struct err *e;
	struct keyfile file;

	*out = NULL;
	if ((e = keyfile_read(path, KEYFILE_PUBLIC, &file)) != NULL)
		return e;
	if (file.n != 1)
		return err_new(ERR_CONFIG, "%s: must hold one key", path);
	*out = mem_alloc(1, sizeof(**out));
	(*out)->key = file.keys[0];
	return NULL;
}

void
box_close(struct box *b)
{
	mem_free(b);
}

const struct err *
box_seal(const struct box *b, struct arena *a, const char *purpose,
    const char *text, const char **out)
{
	const size_t bound = strlen(purpose) + 1, len = bound + strlen(text);
	const struct err *e = NULL;
	unsigned char *plain, *sealed;

	*out = NULL;
	plain = mem_alloc(2 * len + BOXED_MORE, 1);
	sealed = plain + len;
	(void)memcpy(plain, purpose, bound);
	(void)memcpy(plain + bound, text, len - bound);
	sealed[0] = BOXED_VERSION;
	keyfile_id_put(sealed + 1, b->key.id);
	if (crypto_box_seal(sealed + BOXED_HEAD, plain, len, b->key.bytes) != 0)
		e = err_new(ERR_INTERNAL, "%s: the public key is none",
		    purpose);
	else
		*out = crypto_base64(a, sealed, len + BOXED_MORE);
	sodium_memzero(plain, len);
	mem_free(plain);
	return e;
}

size_t
box_length(const char *purpose, const char *sealed)
{
	const size_t more = BOXED_MORE + strlen(purpose) + 1,
		     n = strlen(sealed);
	size_t len = n / 4 * 3;

	if (n > 2)
		len -= (size_t)(sealed[n - 1] == '=') +
		    (size_t)(sealed[n - 2] == '=');
	return len > more ? len - more : 0;
}
