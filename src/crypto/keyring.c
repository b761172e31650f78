/* SPDX-License-Identifier: ISC */
#include "crypto/keyring.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "crypto/crypto.h"
#include "crypto/keyfile.h"

#define NONCE_BYTES ((size_t)crypto_aead_xchacha20poly1305_ietf_NPUBBYTES)
#define MAC_BYTES ((size_t)crypto_aead_xchacha20poly1305_ietf_ABYTES)
#define ID_BYTES ((size_t)KEYFILE_ID)
#define SEAL_VERSION 1 /* first byte of a sealed value; then id, nonce, text */
#define HEAD_BYTES (1 + ID_BYTES + NONCE_BYTES)
#define MAC_NUMBER ((size_t)(2 * KEYFILE_ID)) /* digits */

_Static_assert(KEYFILE_BYTES == crypto_aead_xchacha20poly1305_ietf_KEYBYTES,
    "a key fills its place");

struct keyring {
	struct keyfile file; /* the first seals */
	char path[];
};

const struct err *
keyring_open(const char *path, struct keyring **out)
{
	const size_t size = strlen(path) + 1;
	struct keyring *k = mem_alloc(1, sizeof(*k) + size);
	const struct err *e;

	*out = NULL;
	(void)memcpy(k->path, path, size);
	if ((e = keyfile_read(path, KEYFILE_SHARED, &k->file)) != NULL)
		keyring_close(k);
	else
		*out = k;
	return e;
}

void
keyring_close(struct keyring *k)
{
	if (k == NULL)
		return;
	sodium_memzero(k, sizeof(*k));
	mem_free(k);
}

const struct err *
keyring_renew(struct keyring *k)
{
	struct keyfile fresh;
	const struct err *e;

	if (!keyfile_changed(&k->file, k->path))
		return NULL;
	if ((e = keyfile_read(k->path, KEYFILE_SHARED, &fresh)) == NULL)
		k->file = fresh;
	sodium_memzero(&fresh, sizeof(fresh));
	return e;
}

size_t
keyring_names(const struct keyring *k, struct key_name out[KEYRING_KEYS])
{
	size_t i;

	for (i = 0; i < k->file.n; i++)
		keyfile_name(&k->file.keys[i], k->file.keys[i].bytes, &out[i]);
	return k->file.n;
}

const struct err *
keyring_prune(const char *path, const struct key_name *first)
{
	return keyfile_prune(path, KEYFILE_SHARED, first->id);
}

/* A missing key, or one of a plain hash, counts as none. */
static void
mac_make(const struct keyfile_key *key, const char *purpose, const void *data,
    size_t len, char out[CRYPTO_HASH_HEX])
{
	char own[CRYPTO_HASH_HEX], mac[CRYPTO_HASH_HEX];
	unsigned char number[KEYFILE_ID];

	if (key == NULL) {
		crypto_sha256(data, len, mac);
	} else {
		crypto_hmac(key->bytes, KEYFILE_BYTES, purpose, strlen(purpose),
		    own);
		crypto_hmac(own, sizeof(own) - 1, data, len, mac);
		sodium_memzero(own, sizeof(own));
	}
	keyfile_id_put(number, key == NULL ? 0 : key->id);
	(void)sodium_bin2hex(out, CRYPTO_HASH_HEX, number, sizeof(number));
	(void)memcpy(out + MAC_NUMBER, mac, CRYPTO_HASH_HEX - 1 - MAC_NUMBER);
	out[CRYPTO_HASH_HEX - 1] = '\0';
}

void
keyring_hmac(const struct keyring *k, const char *purpose, const void *data,
    size_t len, char out[CRYPTO_HASH_HEX])
{
	mac_make(k == NULL ? NULL : &k->file.keys[0], purpose, data, len, out);
}

bool
keyring_hmac_fits(const struct keyring *k, const char *purpose,
    const void *data, size_t len, const char *mac)
{
	const struct keyfile_key *key = NULL;
	unsigned char number[KEYFILE_ID];
	char mine[CRYPTO_HASH_HEX];
	int64_t id = 0;
	size_t n = 0;

	if (sodium_hex2bin(number, sizeof(number), mac, MAC_NUMBER, NULL, &n,
		NULL) == 0 &&
	    n == sizeof(number))
		id = keyfile_id_get(number);
	if (id != 0 && k != NULL)
		key = keyfile_find(&k->file, id);
	if (id != 0 && key == NULL)
		return true;
	mac_make(key, purpose, data, len, mine);
	return crypto_equal(mine, mac);
}

const struct err *
keyring_rotate(const char *path)
{
	struct keyfile_key fresh;
	struct keyfile file;
	const struct err *e;

	e = keyfile_read(path, KEYFILE_SHARED, &file);
	if (e != NULL && e->sys != ENOENT)
		return e;
	fresh.id = keyfile_next(&file);
	randombytes_buf(fresh.bytes, KEYFILE_BYTES);
	if ((e = keyfile_push(&file, path, &fresh)) == NULL)
		e = keyfile_write(path, KEYFILE_SHARED, &file, KEYFILE_NOBODY);
	sodium_memzero(&fresh, sizeof(fresh));
	sodium_memzero(&file, sizeof(file));
	return e;
}

const struct err *
keyring_seal(const struct keyring *k, struct arena *a, const char *purpose,
    const char *text, struct blob *out)
{
	const struct keyfile_key *key = &k->file.keys[0];
	size_t len = strlen(text);
	unsigned char *sealed;

	*out = (struct blob){ .data = NULL };
	sealed = arena_alloc(a, HEAD_BYTES + len + MAC_BYTES, 1);
	sealed[0] = SEAL_VERSION;
	keyfile_id_put(sealed + 1, key->id);
	randombytes_buf(sealed + 1 + ID_BYTES, NONCE_BYTES);
	if (crypto_aead_xchacha20poly1305_ietf_encrypt(sealed + HEAD_BYTES,
		NULL, (const unsigned char *)text, len,
		(const unsigned char *)purpose, strlen(purpose), NULL,
		sealed + 1 + ID_BYTES, key->bytes) != 0)
		return err_new(ERR_INTERNAL, "seal %s", purpose);
	out->data = sealed;
	out->len = HEAD_BYTES + len + MAC_BYTES;
	return NULL;
}

const struct err *
keyring_unseal(const struct keyring *k, struct arena *a, const char *purpose,
    struct blob sealed, char **out)
{
	const unsigned char *data = sealed.data;
	const struct keyfile_key *key;
	int64_t id;
	size_t len;
	char *text;

	*out = NULL;
	if (sealed.len < HEAD_BYTES + MAC_BYTES || data[0] != SEAL_VERSION)
		return err_new(ERR_INTERNAL, "%s: is not a sealed value",
		    purpose);
	id = keyfile_id_get(data + 1);
	if ((key = keyfile_find(&k->file, id)) == NULL)
		return err_new(ERR_CONFIG,
		    "%s: sealed with key %lld, which the key file lacks",
		    purpose, (long long)id);
	len = sealed.len - HEAD_BYTES - MAC_BYTES;
	text = arena_alloc(a, len + 1, 1);
	if (crypto_aead_xchacha20poly1305_ietf_decrypt((unsigned char *)text,
		NULL, NULL, data + HEAD_BYTES, len + MAC_BYTES,
		(const unsigned char *)purpose, strlen(purpose),
		data + 1 + ID_BYTES, key->bytes) != 0)
		return err_new(ERR_INTERNAL, "%s: does not open", purpose);
	*out = text;
	return NULL;
}

int64_t
keyring_sealed_with(struct blob sealed)
{
	const unsigned char *data = sealed.data;

	return sealed.len < HEAD_BYTES + MAC_BYTES || data[0] != SEAL_VERSION ?
	    0 :
	    keyfile_id_get(data + 1);
}

const struct err *
keyring_reseal(const struct keyring *k, struct arena *a, const char *purpose,
    struct blob sealed, struct blob *out)
{
	const struct err *e;
	char *text;

	*out = (struct blob){ .data = NULL };
	if ((e = keyring_unseal(k, a, purpose, sealed, &text)) != NULL)
		return e;
	e = keyring_seal(k, a, purpose, text, out);
	sodium_memzero(text, strlen(text));
	return e;
}
