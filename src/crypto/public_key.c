/* SPDX-License-Identifier: ISC */
#include "crypto/public_key.h"

#include <sodium.h>
#include <string.h>

#include "crypto/crypto.h"
#include "crypto/public_inner.h"

static const struct err *
half_read(const char *path, struct keyfile *out)
{
	const struct err *e;

	if ((e = keyfile_read(path, KEYFILE_PUBLIC, out)) == NULL &&
	    out->n != 1)
		e = err_new(ERR_CONFIG, "%s: must contain exactly one key",
		    path);
	return e;
}

const struct err *
public_key_open(const char *path, struct public_key **out)
{
	const size_t size = strlen(path) + 1;
	struct public_key *key = mem_alloc(1, sizeof(*key) + size);
	const struct err *e;

	*out = NULL;
	(void)memcpy(key->path, path, size);
	if ((e = half_read(path, &key->file)) != NULL)
		public_key_close(key);
	else
		*out = key;
	return e;
}

const struct err *
public_key_renew(struct public_key *key)
{
	struct keyfile fresh;
	const struct err *e;

	if (!keyfile_changed(&key->file, key->path))
		return NULL;
	if ((e = half_read(key->path, &fresh)) == NULL)
		key->file = fresh;
	return e;
}

void
public_key_close(struct public_key *key)
{
	mem_free(key);
}

const struct err *
public_key_seal(const struct public_key *key, struct arena *a,
    const char *purpose, const char *text, const char **out)
{
	const size_t bound = strlen(purpose) + 1, len = bound + strlen(text);
	const struct err *e = NULL;
	unsigned char *plain, *sealed;

	*out = NULL;
	plain = mem_alloc(2 * len + PUBLIC_SEAL_EXTRA, 1);
	sealed = plain + len;
	(void)memcpy(plain, purpose, bound);
	(void)memcpy(plain + bound, text, len - bound);
	sealed[0] = PUBLIC_SEAL_VERSION;
	keyfile_id_put(sealed + 1, key->file.keys[0].id);
	if (crypto_box_seal(sealed + PUBLIC_SEAL_HEAD, plain, len,
		key->file.keys[0].bytes) != 0)
		e = err_new(ERR_INTERNAL, "%s: the public key is invalid",
		    purpose);
	else
		*out = crypto_base64(a, sealed, len + PUBLIC_SEAL_EXTRA);
	sodium_memzero(plain, len);
	mem_free(plain);
	return e;
}

int64_t
public_key_sealed_with(struct arena *a, const char *sealed)
{
	const unsigned char *data;
	struct blob blob;

	if (!crypto_base64_read(a, sealed, strlen(sealed), &blob) ||
	    blob.len < PUBLIC_SEAL_EXTRA)
		return 0;
	data = blob.data;
	return data[0] == PUBLIC_SEAL_VERSION ? keyfile_id_get(data + 1) : 0;
}

size_t
public_key_text_length(const char *purpose, const char *sealed)
{
	const size_t more = PUBLIC_SEAL_EXTRA + strlen(purpose) + 1,
		     n = strlen(sealed);
	size_t len = n / 4 * 3;

	if (n > 2)
		len -= (size_t)(sealed[n - 1] == '=') +
		    (size_t)(sealed[n - 2] == '=');
	return len > more ? len - more : 0;
}
