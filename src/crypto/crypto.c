/* SPDX-License-Identifier: ISC */
#include "crypto/crypto.h"

#include <assert.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#define TOKEN_BYTES 32

_Static_assert(CRYPTO_HASH_HEX == 2 * crypto_hash_sha256_BYTES + 1,
    "a hash in hex");
_Static_assert(CRYPTO_HASH_HEX == 2 * crypto_auth_hmacsha256_BYTES + 1,
    "a MAC in hex");
_Static_assert(CRYPTO_DIGEST_HEX == 2 * crypto_generichash_BYTES_MIN + 1,
    "a digest in hex");

const struct err *
crypto_init(void)
{
	if (sodium_init() < 0)
		return err_new(ERR_INTERNAL, "libsodium cannot be used here");
	return NULL;
}

void
crypto_sha256(const void *data, size_t len, char out[CRYPTO_HASH_HEX])
{
	unsigned char hash[crypto_hash_sha256_BYTES];

	(void)crypto_hash_sha256(hash, data, len);
	(void)sodium_bin2hex(out, CRYPTO_HASH_HEX, hash, sizeof(hash));
}

void
crypto_digest(const void *data, size_t len, char out[CRYPTO_DIGEST_HEX])
{
	unsigned char digest[crypto_generichash_BYTES_MIN];

	(void)crypto_generichash(digest, sizeof(digest), data, len, NULL, 0);
	(void)sodium_bin2hex(out, CRYPTO_DIGEST_HEX, digest, sizeof(digest));
}

void
crypto_token(const char *prefix, char out[CRYPTO_TOKEN_MAX])
{
	unsigned char random[TOKEN_BYTES];
	char text[sodium_base64_ENCODED_LEN(TOKEN_BYTES,
	    sodium_base64_VARIANT_URLSAFE_NO_PADDING)];
	int len;

	randombytes_buf(random, sizeof(random));
	(void)sodium_bin2base64(text, sizeof(text), random, sizeof(random),
	    sodium_base64_VARIANT_URLSAFE_NO_PADDING);
	len = snprintf(out, CRYPTO_TOKEN_MAX, "%s%s", prefix, text);
	assert(len > 0 && len < CRYPTO_TOKEN_MAX);
	sodium_memzero(random, sizeof(random));
	sodium_memzero(text, sizeof(text));
}

void
crypto_random(void *out, size_t len)
{
	randombytes_buf(out, len);
}

void
crypto_hmac(const void *key, size_t keylen, const void *data, size_t len,
    char out[CRYPTO_HASH_HEX])
{
	crypto_auth_hmacsha256_state state;
	unsigned char mac[crypto_auth_hmacsha256_BYTES];

	(void)crypto_auth_hmacsha256_init(&state, key, keylen);
	(void)crypto_auth_hmacsha256_update(&state, data, len);
	(void)crypto_auth_hmacsha256_final(&state, mac);
	(void)sodium_bin2hex(out, CRYPTO_HASH_HEX, mac, sizeof(mac));
	sodium_memzero(&state, sizeof(state));
}

bool
crypto_equal(const char *a, const char *b)
{
	size_t len = strlen(a);

	return strlen(b) == len && sodium_memcmp(a, b, len) == 0;
}

static char *
base64(struct arena *a, const void *data, size_t len, int variant)
{
	size_t size = sodium_base64_encoded_len(len, variant);
	char *out = arena_alloc(a, size, 1);

	return sodium_bin2base64(out, size, data, len, variant);
}

char *
crypto_challenge(struct arena *a, const char *verifier)
{
	unsigned char hash[crypto_hash_sha256_BYTES];

	(void)crypto_hash_sha256(hash, (const unsigned char *)verifier,
	    strlen(verifier));
	return crypto_base64url(a, hash, sizeof(hash));
}

char *
crypto_base64url(struct arena *a, const void *data, size_t len)
{
	return base64(a, data, len, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}

char *
crypto_base64(struct arena *a, const void *data, size_t len)
{
	return base64(a, data, len, sodium_base64_VARIANT_ORIGINAL);
}

bool
crypto_base64_read(struct arena *a, const char *text, size_t len,
    struct blob *out)
{
	const size_t size = len / 4 * 3 + 1;
	unsigned char *data = arena_alloc(a, size, 1);

	*out = (struct blob){ .data = data };
	return sodium_base642bin(data, size, text, len, NULL, &out->len, NULL,
		   sodium_base64_VARIANT_ORIGINAL) == 0;
}

char *
crypto_hex(struct arena *a, const void *data, size_t len)
{
	char *out = arena_alloc(a, 2 * len + 1, 1);

	return sodium_bin2hex(out, 2 * len + 1, data, len);
}
