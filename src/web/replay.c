/* SPDX-License-Identifier: ISC */
#include "web/replay.h"

#include <string.h>

#include "core/str.h"
#include "web/audited.h"
#include "web/route.h"

#define QUOTED_ERE                                                             \
	"\"[]!#-[^-~]{1,255}\"" /* without quotes or backslashes
					    * inside */
#define PURPOSE "idempotency"
#define BARE_ERE "[!#-~][!-~]{0,254}"

/* The body may contain secrets, which could be guessed from a plain hash in the
 * database, so the hash is keyed. Without keys no secret is accepted. If the
 * key is dropped within a day, the idempotency key alone identifies the
 * request, because running a deployment twice would be worse. */
const struct err *
replay_init(struct req *rq, struct idempotency *out)
{
	const char *key = rq->in[IN_IDEMPOTENCY_KEY];
	char hash[CRYPTO_HASH_HEX];
	const char *what;

	*out = (struct idempotency){ .user_id = rq->who.user_id };
	if (key == NULL)
		return NULL;
	if (str_matches(key, QUOTED_ERE))
		key = arena_strndup(rq->a, key + 1, strlen(key) - 2);
	else if (!str_matches(key, BARE_ERE))
		return err_public(ERR_BAD_REQUEST,
		    "Idempotency-Key must have 1 to 255 visible ASCII "
		    "characters, optionally in double quotes.");
	crypto_sha256(rq->text == NULL ? "" : rq->text, rq->len, hash);
	what = arena_printf(rq->a, "%s %lld %s", rq->route->operation,
	    (long long)rq->id[0], hash);
	keyring_hmac(rq->keyring, PURPOSE, what, strlen(what), hash);
	out->idempotency_key = key;
	out->request = what;
	out->request_hash = arena_strdup(rq->a, hash);
	return NULL;
}

const struct err *
replay_find(struct req *rq, struct idempotency *key, bool *found)
{
	const struct err *e;
	struct idempotency old;

	*found = false;
	if (key->idempotency_key == NULL)
		return NULL;
	e = idempotency_find(rq->db, rq->a, key, &old);
	if (e != NULL && e->code == ERR_NOTFOUND)
		return NULL;
	if (e != NULL)
		return e;
	if (!keyring_hmac_fits(rq->keyring, PURPOSE, key->request,
		strlen(key->request), old.request_hash))
		return err_public(ERR_INVALID,
		    "This Idempotency-Key was used for another request in the "
		    "last 24 hours. Choose a new one.");
	key->deployment_id = old.deployment_id;
	key->answer = old.answer;
	*found = true;
	answer_json(rq, key->answer, strlen(key->answer), 0);
	audited_nothing(rq);
	return NULL;
}

const struct err *
replay_save(struct req *rq, struct idempotency *key, int64_t deployment_id)
{
	const struct err *e;

	key->deployment_id = deployment_id;
	if (key->idempotency_key == NULL)
		return NULL;
	if ((e = buf_check(&rq->answer.body)) != NULL)
		return e;
	key->answer = rq->answer.body.data;
	return idempotency_save(rq->db, key);
}
