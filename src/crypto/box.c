/* SPDX-License-Identifier: ISC */
#include "crypto/box.h"

#include <sodium.h>
#include <string.h>

#include "crypto/boxed.h"
#include "crypto/crypto.h"

static const struct err *
half_read(const char *path, struct keyfile *out)
{
	const struct err *e;

	if ((e = keyfile_read(path, KEYFILE_PUBLIC, out)) == NULL &&
	    out->n != 1)
		e = err_new(ERR_CONFIG, "%s: must hold one key", path);
	return e;
}

const struct err *
box_open(const char *path, struct box **out)
{
	const size_t size = strlen(path) + 1;
	struct box *b = mem_alloc(1, sizeof(*b) + size);
	const struct err *e;

	*out = NULL;
	(void)memcpy(b->path, path, size);
	if ((e = half_read(path, &b->file)) != NULL)
		box_close(b);
	else
		*out = b;
	return e;
}

const struct err *
box_renew(struct box *b)
{
	struct keyfile fresh;
	const struct err *e;

	if (!keyfile_changed(&b->file, b->path))
		return NULL;
	if ((e = half_read(b->path, &fresh)) == NULL)
		b->file = fresh;
	return e;
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
	keyfile_id_put(sealed + 1, b->file.keys[0].id);
	if (crypto_box_seal(sealed + BOXED_HEAD, plain, len,
		b->file.keys[0].bytes) != 0)
		e = err_new(ERR_INTERNAL, "%s: the public key is none",
		    purpose);
	else
		*out = crypto_base64(a, sealed, len + BOXED_MORE);
	sodium_memzero(plain, len);
	mem_free(plain);
	return e;
}

int64_t
box_key(struct arena *a, const char *sealed)
{
	const unsigned char *data;
	struct blob blob;

	if (!crypto_base64_read(a, sealed, strlen(sealed), &blob) ||
	    blob.len < BOXED_MORE)
		return 0;
	data = blob.data;
	return data[0] == BOXED_VERSION ? keyfile_id_get(data + 1) : 0;
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
