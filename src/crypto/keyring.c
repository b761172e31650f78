/* SPDX-License-Identifier: ISC */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/buf.h"
#include "core/num.h"
#include "crypto/crypto.h"

#define KEY_BYTES ((size_t)crypto_aead_xchacha20poly1305_ietf_KEYBYTES)
#define NONCE_BYTES ((size_t)crypto_aead_xchacha20poly1305_ietf_NPUBBYTES)
#define MAC_BYTES ((size_t)crypto_aead_xchacha20poly1305_ietf_ABYTES)
#define ID_BYTES ((size_t)4)
#define SEAL_VERSION 1 /* first byte of what is sealed, then id, nonce, text */
#define HEAD_BYTES (1 + ID_BYTES + NONCE_BYTES)
#define KEYS 64
#define FILE_MAX ((size_t)8192)
#define VARIANT sodium_base64_VARIANT_ORIGINAL
#define TEXT_SIZE                                                              \
	sodium_base64_ENCODED_LEN(crypto_aead_xchacha20poly1305_ietf_KEYBYTES, \
	    sodium_base64_VARIANT_ORIGINAL)

struct key {
	int64_t id;
	unsigned char bytes[crypto_aead_xchacha20poly1305_ietf_KEYBYTES];
};

struct keyring {
	struct key keys[KEYS]; /* the first seals */
	size_t n;
};

/* On the open descriptor, so that nobody can change what it names. */
static const struct err *
check_file(int fd, const char *path)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return err_errno("%s", path);
	if (!S_ISREG(st.st_mode))
		return err_new(ERR_CONFIG, "%s: is no regular file", path);
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return err_new(ERR_CONFIG,
		    "%s: must belong to root or to the account that reads it",
		    path);
	if ((st.st_mode & (S_IWGRP | S_IRWXO)) != 0)
		return err_new(ERR_CONFIG,
		    "%s: mode %03o lets others at it: chmod 0640", path,
		    (unsigned)(st.st_mode & 0777));
	if (st.st_size > (off_t)FILE_MAX)
		return err_new(ERR_CONFIG, "%s: is too large", path);
	return NULL;
}

static const struct err *
read_file(const char *path, char text[FILE_MAX + 1], size_t *len)
{
	const struct err *e;
	ssize_t n = 1;
	int fd;

	*len = 0;
	if ((fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) < 0) {
		e = err_errno("%s", path);
		return errno == ENOENT ?
		    err_number(ERR_CONFIG, ENOENT,
			"%s: is missing: run slipway-admin key", path) :
		    e;
	}
	if ((e = check_file(fd, path)) != NULL)
		goto out;
	while (*len < FILE_MAX && n > 0) {
		n = read(fd, text + *len, FILE_MAX - *len);
		if (n > 0)
			*len += (size_t)n;
		else if (n < 0 && errno == EINTR)
			n = 1;
	}
	text[*len] = '\0';
	if (n < 0)
		e = err_errno("%s", path);
out:
	(void)close(fd);
	return e;
}

/* "ID BASE64" */
static bool
parse_line(char *line, struct key *out)
{
	char *text = strchr(line, ' ');
	size_t len;

	if (text == NULL)
		return false;
	*text++ = '\0';
	return num_parse(line, 1, UINT32_MAX, &out->id) &&
	    sodium_base642bin(out->bytes, KEY_BYTES, text, strlen(text), NULL,
		&len, NULL, VARIANT) == 0 &&
	    len == KEY_BYTES;
}

static const struct key *
key_find(const struct keyring *k, int64_t id)
{
	size_t i;

	for (i = 0; i < k->n; i++)
		if (k->keys[i].id == id)
			return &k->keys[i];
	return NULL;
}

static const struct err *
parse(struct keyring *k, char *text, const char *path)
{
	struct key *key;
	char *line, *end;
	size_t number = 0;

	for (line = text; *line != '\0'; line = end) {
		number++;
		end = line + strcspn(line, "\n");
		if (*end != '\0')
			*end++ = '\0';
		if (k->n == KEYS)
			return err_new(ERR_CONFIG, "%s: more than %d keys",
			    path, KEYS);
		key = &k->keys[k->n];
		if (!parse_line(line, key) || key_find(k, key->id) != NULL)
			return err_new(ERR_CONFIG,
			    "%s:%zu: must be a number of its own, a blank and"
			    " %zu bytes in base64",
			    path, number, KEY_BYTES);
		k->n++;
	}
	if (k->n == 0)
		return err_new(ERR_CONFIG,
		    "%s: holds no key: run slipway-admin key", path);
	return NULL;
}

const struct err *
keyring_open(const char *path, struct keyring **out)
{
	char text[FILE_MAX + 1];
	struct keyring *k = NULL;
	const struct err *e;
	size_t len;

	*out = NULL;
	if ((e = read_file(path, text, &len)) != NULL)
		goto out;
	if (strlen(text) != len) {
		e = err_new(ERR_CONFIG, "%s: holds a NUL", path);
		goto out;
	}
	k = mem_alloc(1, sizeof(*k));
	if ((e = parse(k, text, path)) != NULL)
		goto out;
	*out = k;
	k = NULL;
out:
	keyring_close(k);
	sodium_memzero(text, sizeof(text));
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

void
keyring_hmac(const struct keyring *k, const char *purpose, const void *data,
    size_t len, char out[CRYPTO_HASH_HEX])
{
	char key[CRYPTO_HASH_HEX];

	crypto_hmac(k->keys[k->n - 1].bytes, KEY_BYTES, purpose,
	    strlen(purpose), key);
	crypto_hmac(key, sizeof(key) - 1, data, len, out);
	sodium_memzero(key, sizeof(key));
}

static void
print_key(const struct key *key, struct buf *out)
{
	char text[TEXT_SIZE];

	(void)sodium_bin2base64(text, sizeof(text), key->bytes, KEY_BYTES,
	    VARIANT);
	buf_printf(out, "%lld %s\n", (long long)key->id, text);
	sodium_memzero(text, sizeof(text));
}

/* Whole or not at all, and never readable by others in between. The owner and
 * group of the file that is replaced stay. */
static const struct err *
replace(const char *path, const struct buf *content)
{
	char temp[4096];
	const struct err *e = NULL;
	struct stat old;
	int fd;

	if ((size_t)snprintf(temp, sizeof(temp), "%s.new", path) >=
	    sizeof(temp))
		return err_new(ERR_CONFIG, "%s: path is too long", path);
	if (unlink(temp) != 0 && errno != ENOENT)
		return err_errno("%s", temp);
	fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
	    0600);
	if (fd < 0)
		return err_errno("%s", temp);
	if (stat(path, &old) == 0 && geteuid() == 0 &&
	    fchown(fd, old.st_uid, old.st_gid) != 0)
		e = err_errno("%s", temp);
	else if (fchmod(fd, 0640) != 0 ||
	    write(fd, content->data, content->len) != (ssize_t)content->len ||
	    fsync(fd) != 0)
		e = err_errno("%s", temp);
	if (close(fd) != 0 && e == NULL)
		e = err_errno("%s", temp);
	if (e == NULL && rename(temp, path) != 0)
		e = err_errno("%s", path);
	if (e != NULL)
		(void)unlink(temp);
	return e;
}

const struct err *
keyring_rotate(const char *path)
{
	struct keyring *k = NULL;
	struct key fresh = { .id = 1 };
	struct buf content;
	const struct err *e;
	size_t i;

	buf_init(&content, FILE_MAX);
	e = keyring_open(path, &k);
	if (e != NULL && e->sys != ENOENT)
		goto out;
	for (i = 0; k != NULL && i < k->n; i++)
		if (k->keys[i].id >= fresh.id)
			fresh.id = k->keys[i].id + 1;
	randombytes_buf(fresh.bytes, KEY_BYTES);
	print_key(&fresh, &content);
	for (i = 0; k != NULL && i < k->n; i++)
		print_key(&k->keys[i], &content);
	if (k != NULL && k->n == KEYS)
		e = err_new(ERR_CONFIG,
		    "%s: holds %d keys already: remove old "
		    "ones that nothing is sealed with",
		    path, KEYS);
	else if ((e = buf_check(&content)) == NULL)
		e = replace(path, &content);
	sodium_memzero(&fresh, sizeof(fresh));
	sodium_memzero(content.data, content.len);
out:
	keyring_close(k);
	buf_release(&content);
	return e;
}

const struct err *
seal(const struct keyring *k, struct arena *a, const char *purpose,
    const char *text, struct blob *out)
{
	const struct key *key = &k->keys[0];
	size_t len = strlen(text), i;
	unsigned char *sealed;

	*out = (struct blob){ .data = NULL };
	sealed = arena_alloc(a, HEAD_BYTES + len + MAC_BYTES, 1);
	sealed[0] = SEAL_VERSION;
	for (i = 0; i < ID_BYTES; i++)
		sealed[1 + i] = (unsigned char)(key->id >> (24 - 8 * i) & 255);
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
unseal(const struct keyring *k, struct arena *a, const char *purpose,
    struct blob sealed, char **out)
{
	const unsigned char *data = sealed.data;
	const struct key *key;
	int64_t id = 0;
	size_t i, len;
	char *text;

	*out = NULL;
	if (sealed.len < HEAD_BYTES + MAC_BYTES || data[0] != SEAL_VERSION)
		return err_new(ERR_INTERNAL, "%s: is not a sealed value",
		    purpose);
	for (i = 0; i < ID_BYTES; i++)
		id = id * 256 + data[1 + i];
	if ((key = key_find(k, id)) == NULL)
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
