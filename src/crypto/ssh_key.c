/* SPDX-License-Identifier: ISC */
#include "crypto/ssh_key.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

#include "crypto/crypto.h"

#define TYPE "ssh-ed25519"
#define MAGIC "openssh-key-v1" /* with its NUL */
#define BEGIN "-----BEGIN OPENSSH PRIVATE KEY-----\n"
#define END "-----END OPENSSH PRIVATE KEY-----\n"
#define LINE 70 /* of base64 */
#define BLOCK 8 /* the private part is padded to a multiple */
#define WIRE 304
#define TEXT sodium_base64_ENCODED_LEN(WIRE, sodium_base64_VARIANT_ORIGINAL)

_Static_assert(sizeof(BEGIN) + sizeof(END) + TEXT + TEXT / LINE <=
	SSH_KEY_PRIVATE,
    "a private half fits");

/* Data types of the SSH protocol (RFC 4251, 5). */
struct wire {
	unsigned char data[WIRE];
	size_t len;
};

static void
put(struct wire *w, const void *data, size_t len)
{
	assert(len <= sizeof(w->data) - w->len);
	(void)memcpy(w->data + w->len, data, len);
	w->len += len;
}

static void
put_number(struct wire *w, size_t n)
{
	const unsigned char bytes[] = { (unsigned char)(n >> 24 & 0xff),
		(unsigned char)(n >> 16 & 0xff), (unsigned char)(n >> 8 & 0xff),
		(unsigned char)(n & 0xff) };

	put(w, bytes, sizeof(bytes));
}

static void
put_string(struct wire *w, const void *data, size_t len)
{
	put_number(w, len);
	put(w, data, len);
}

static void
put_text(struct wire *w, const char *text)
{
	put_string(w, text, strlen(text));
}

/* What would be encrypted with a passphrase (PROTOCOL.key of OpenSSH). */
static void
put_secret(struct wire *w, const unsigned char *public,
    const unsigned char *secret, const char *comment)
{
	struct wire inner = { .len = 0 };
	unsigned char check[4], pad;

	crypto_random(check, sizeof(check));
	put(&inner, check, sizeof(check));
	put(&inner, check, sizeof(check));
	put_text(&inner, TYPE);
	put_string(&inner, public, crypto_sign_PUBLICKEYBYTES);
	put_string(&inner, secret, crypto_sign_SECRETKEYBYTES);
	put_text(&inner, comment);
	for (pad = 1; inner.len % BLOCK != 0; pad++)
		put(&inner, &pad, 1);
	put_string(w, inner.data, inner.len);
	sodium_memzero(&inner, sizeof(inner));
}

static char *
append(char *at, const char *text, size_t len)
{
	(void)memcpy(at, text, len);
	return at + len;
}

/* Writes the data in lines of base64. */
static void
armor(const struct wire *w, char *out)
{
	char text[TEXT], *from = text;
	size_t left, len;

	(void)sodium_bin2base64(text, sizeof(text), w->data, w->len,
	    sodium_base64_VARIANT_ORIGINAL);
	out = append(out, BEGIN, strlen(BEGIN));
	for (left = strlen(text); left > 0; left -= len, from += len) {
		len = left < LINE ? left : LINE;
		out = append(out, from, len);
		*out++ = '\n';
	}
	(void)append(out, END, sizeof(END));
	sodium_memzero(text, sizeof(text));
}

void
ssh_key_make(struct arena *a, const char *comment, struct ssh_key *out)
{
	unsigned char public[crypto_sign_PUBLICKEYBYTES];
	unsigned char secret[crypto_sign_SECRETKEYBYTES];
	struct wire half = { .len = 0 }, whole = { .len = 0 };

	assert(strlen(comment) <= SSH_KEY_COMMENT);
	(void)crypto_sign_keypair(public, secret);
	put_text(&half, TYPE);
	put_string(&half, public, sizeof(public));
	put(&whole, MAGIC, sizeof(MAGIC));
	put_text(&whole, "none"); /* cipher */
	put_text(&whole, "none"); /* derivation of its key */
	put_text(&whole, "");
	put_number(&whole, 1);
	put_string(&whole, half.data, half.len);
	put_secret(&whole, public, secret, comment);
	armor(&whole, out->private_half);
	out->public_half = arena_printf(a, TYPE " %s %s",
	    crypto_base64(a, half.data, half.len), comment);
	sodium_memzero(secret, sizeof(secret));
	sodium_memzero(&whole, sizeof(whole));
}

void
ssh_key_clear(struct ssh_key *key)
{
	sodium_memzero(key->private_half, sizeof(key->private_half));
}

const char *
ssh_key_fingerprint(struct arena *a, const char *base64, size_t len)
{
	unsigned char hash[crypto_hash_sha256_BYTES];
	char text[sodium_base64_ENCODED_LEN(crypto_hash_sha256_BYTES,
	    sodium_base64_VARIANT_ORIGINAL_NO_PADDING)];
	struct blob blob;

	if (!crypto_base64_read(a, base64, len, &blob) || blob.len == 0)
		return NULL;
	(void)crypto_hash_sha256(hash, blob.data, blob.len);
	(void)sodium_bin2base64(text, sizeof(text), hash, sizeof(hash),
	    sodium_base64_VARIANT_ORIGINAL_NO_PADDING);
	return arena_printf(a, "SHA256:%s", text);
}
