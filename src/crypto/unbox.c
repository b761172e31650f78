/* SPDX-License-Identifier: ISC */
#include "crypto/unbox.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "crypto/boxed.h"
#include "crypto/crypto.h"

struct unbox {
	struct keyfile file;
	unsigned char halves[KEYFILE_KEYS][KEYFILE_BYTES]; /* their public */
};

const struct err *
unbox_open(const char *path, struct unbox **out)
{
	struct unbox *u = mem_alloc(1, sizeof(*u));
	const struct err *e;
	size_t i;

	*out = NULL;
	e = keyfile_read(path, KEYFILE_PRIVATE, &u->file);
	for (i = 0; e == NULL && i < u->file.n; i++)
		if (crypto_scalarmult_base(u->halves[i],
			u->file.keys[i].bytes) != 0)
			e = err_new(ERR_CONFIG, "%s: key %lld is none", path,
			    (long long)u->file.keys[i].id);
	if (e != NULL)
		unbox_close(u);
	else
		*out = u;
	return e;
}

void
unbox_close(struct unbox *u)
{
	if (u == NULL)
		return;
	sodium_memzero(u, sizeof(*u));
	mem_free(u);
}

const struct err *
unbox_text(const struct unbox *u, struct arena *a, const char *purpose,
    const char *sealed, const char **out)
{
	const size_t bound = strlen(purpose) + 1;
	const struct keyfile_key *key;
	const unsigned char *data;
	struct blob blob;
	size_t len;
	char *text;
	int64_t id;

	*out = NULL;
	if (!crypto_base64_read(a, sealed, strlen(sealed), &blob) ||
	    blob.len < BOXED_MORE + bound ||
	    ((const unsigned char *)blob.data)[0] != BOXED_VERSION)
		return err_new(ERR_INTERNAL, "it is not a sealed value");
	data = blob.data;
	id = keyfile_id_get(data + 1);
	if ((key = keyfile_find(&u->file, id)) == NULL)
		return err_new(ERR_CONFIG,
		    "it was sealed with key %lld, which the key file lacks",
		    (long long)id);
	len = blob.len - BOXED_MORE;
	text = arena_alloc(a, len + 1, 1);
	if (crypto_box_seal_open((unsigned char *)text, data + BOXED_HEAD,
		blob.len - BOXED_HEAD, u->halves[key - u->file.keys],
		key->bytes) != 0)
		return err_new(ERR_INTERNAL, "it is damaged");
	if (memcmp(text, purpose, bound) != 0)
		return err_new(ERR_INTERNAL, "it was sealed for another place");
	*out = text + bound;
	return NULL;
}

enum unbox_fit
unbox_fits(const struct unbox *u, const struct box *b)
{
	const struct keyfile_key *half = &b->file.keys[0],
				 *key = keyfile_find(&u->file, half->id);
	size_t at;

	if (key == NULL)
		return UNBOX_NONE;
	at = (size_t)(key - u->file.keys);
	if (memcmp(u->halves[at], half->bytes, KEYFILE_BYTES) != 0)
		return UNBOX_NONE;
	return at == 0 ? UNBOX_FIRST : UNBOX_OLDER;
}

/* A number that neither file has: what was sealed with a private half that is
 * lost shall not be taken for damaged. */
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
unbox_rotate(const char *path, const char *public_path, uid_t owner)
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
