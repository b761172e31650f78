/* SPDX-License-Identifier: ISC */
#include "crypto/private_keyring.h"

#include <sys/file.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <unistd.h>

#include "crypto/crypto.h"
#include "crypto/public_inner.h"

struct private_keyring {
	struct keyfile file;
	unsigned char halves[KEYFILE_KEYS][KEYFILE_BYTES]; /* the public
							    * halves */
};

struct plain {
	char *text;
	size_t len;
};

const struct err *
private_keyring_open(const char *path, struct private_keyring **out)
{
	struct private_keyring *k = mem_alloc(1, sizeof(*k));
	const struct err *e;
	size_t i;

	*out = NULL;
	e = keyfile_read(path, KEYFILE_PRIVATE, &k->file);
	for (i = 0; e == NULL && i < k->file.n; i++)
		if (crypto_scalarmult_base(k->halves[i],
			k->file.keys[i].bytes) != 0)
			e = err_new(ERR_CONFIG, "%s: key %lld is invalid", path,
			    (long long)k->file.keys[i].id);
	if (e != NULL)
		private_keyring_close(k);
	else
		*out = k;
	return e;
}

void
private_keyring_close(struct private_keyring *k)
{
	if (k == NULL)
		return;
	sodium_memzero(k, sizeof(*k));
	mem_free(k);
}

/* Unseals the value to purpose, NUL and text; `len` is the length of the
 * text. */
static const struct err *
plain_open(const struct private_keyring *k, struct arena *a,
    const char *purpose, const char *sealed, struct plain *out)
{
	const size_t bound = strlen(purpose) + 1;
	const struct keyfile_key *key;
	const unsigned char *data;
	struct blob blob;
	int64_t id;

	*out = (struct plain){ .text = NULL };
	if (!crypto_base64_read(a, sealed, strlen(sealed), &blob) ||
	    blob.len < PUBLIC_SEAL_EXTRA + bound ||
	    ((const unsigned char *)blob.data)[0] != PUBLIC_SEAL_VERSION)
		return err_new(ERR_INTERNAL, "it is not a sealed value");
	data = blob.data;
	id = keyfile_id_get(data + 1);
	if ((key = keyfile_find(&k->file, id)) == NULL)
		return err_new(ERR_CONFIG,
		    "it was sealed with key %lld, which the key file lacks",
		    (long long)id);
	out->len = blob.len - PUBLIC_SEAL_EXTRA;
	out->text = arena_alloc(a, out->len + 1, 1);
	if (crypto_box_seal_open((unsigned char *)out->text,
		data + PUBLIC_SEAL_HEAD, blob.len - PUBLIC_SEAL_HEAD,
		k->halves[key - k->file.keys], key->bytes) != 0)
		return err_new(ERR_INTERNAL, "it is damaged");
	if (memcmp(out->text, purpose, bound) != 0)
		return err_new(ERR_INTERNAL, "it was sealed for another place");
	return NULL;
}

const struct err *
private_keyring_unseal(const struct private_keyring *k, struct arena *a,
    const char *purpose, const char *sealed, const char **out)
{
	const struct err *e;
	struct plain plain;

	*out = NULL;
	if ((e = plain_open(k, a, purpose, sealed, &plain)) == NULL)
		*out = plain.text + strlen(purpose) + 1;
	return e;
}

size_t
private_keyring_names(const struct private_keyring *k,
    struct key_name out[KEYRING_KEYS])
{
	size_t i;

	for (i = 0; i < k->file.n; i++)
		keyfile_name(&k->file.keys[i], k->halves[i], &out[i]);
	return k->file.n;
}

const struct err *
private_keyring_reseal(const struct private_keyring *k,
    const struct public_key *key, struct arena *a, const char *purpose,
    const char *sealed, const char **out)
{
	const struct err *e;
	struct plain plain;

	*out = NULL;
	if ((e = plain_open(k, a, purpose, sealed, &plain)) == NULL)
		e = public_key_seal(key, a, purpose,
		    plain.text + strlen(purpose) + 1, out);
	if (plain.text != NULL)
		sodium_memzero(plain.text, plain.len);
	return e;
}

enum key_match
private_keyring_match(const struct private_keyring *k,
    const struct public_key *public_key)
{
	const struct keyfile_key *half = &public_key->file.keys[0],
				 *key = keyfile_find(&k->file, half->id);
	size_t at;

	if (key == NULL)
		return KEY_MATCH_NONE;
	at = (size_t)(key - k->file.keys);
	if (memcmp(k->halves[at], half->bytes, KEYFILE_BYTES) != 0)
		return KEY_MATCH_NONE;
	return at == 0 ? KEY_MATCH_CURRENT : KEY_MATCH_OLDER;
}

/* An id that neither file contains, so that a value sealed for a lost private
 * key is not mistaken for a damaged one. */
static int64_t
next_id(const struct keyfile *file, const char *public_path)
{
	int64_t id = keyfile_next(file), other;
	struct keyfile half;

	if (keyfile_read(public_path, KEYFILE_PUBLIC, &half) != NULL)
		return id;
	other = keyfile_next(&half);
	return other > id ? other : id;
}

const struct err *
private_keyring_rotate(const char *path, const char *public_path, uid_t owner)
{
	struct keyfile file, half = { .n = 1 };
	struct keyfile_key fresh;
	const struct err *e;

	e = keyfile_read(path, KEYFILE_PRIVATE, &file);
	if (e != NULL && e->sys != ENOENT)
		return e;
	fresh.id = half.keys[0].id = next_id(&file, public_path);
	(void)crypto_box_keypair(half.keys[0].bytes, fresh.bytes);
	if ((e = keyfile_push(&file, path, &fresh)) == NULL &&
	    (e = keyfile_write(path, KEYFILE_PRIVATE, &file, owner)) == NULL)
		e = keyfile_write(public_path, KEYFILE_PUBLIC, &half,
		    KEYFILE_NOBODY);
	sodium_memzero(&fresh, sizeof(fresh));
	sodium_memzero(&file, sizeof(file));
	return e;
}

const struct err *
private_keyring_prune(const char *path, const struct key_name *first)
{
	return keyfile_prune(path, KEYFILE_PRIVATE, first->id);
}

/* Tries once; sets `again` if the file was replaced meanwhile. */
static const struct err *
lock_take(const char *path, int *out, bool *again)
{
	struct stat held, now;
	int fd;

	*again = false;
	if ((fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) < 0)
		return errno == ENOENT ? NULL : err_errno("%s", path);
	if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		const int why = errno;

		(void)close(fd);
		if (why == EWOULDBLOCK)
			return err_new(ERR_CONFLICT,
			    "%s: another slipway-admin key is running: wait "
			    "until it has ended",
			    path);
		errno = why;
		return err_errno("%s: lock", path);
	}
	*again = fstat(fd, &held) != 0 || stat(path, &now) != 0 ||
	    held.st_ino != now.st_ino || held.st_dev != now.st_dev;
	if (*again)
		(void)close(fd);
	else
		*out = fd;
	return NULL;
}

const struct err *
private_keyring_lock(const char *path, int *out)
{
	const struct err *e;
	bool again;

	*out = -1;
	do
		e = lock_take(path, out, &again);
	while (e == NULL && again);
	return e;
}
