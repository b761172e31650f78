/* SPDX-License-Identifier: ISC */
#include "api/signature.h"

#include <string.h>

#include "core/num.h"
#include "core/str.h"
#include "crypto/webhook.h"
#include "web/scoreboard.h"

#define SIGNATURES                                                             \
	8 /* signatures of one event; there are several while keys
		      * change */
#define FLOOD_MS 10000
#define FLOOD_MAX 300 /* wrong signatures per address and window */
#define COUNT_BITS 24

/* Counts an event with a wrong signature from that address. The limit does not
 * affect events with a valid signature, because a Git server may share its
 * address with others. Several addresses may share a counter. */
static bool
is_flood(struct req *rq)
{
	const char *from = rq->in[IN_REMOTE_ADDR];
	const int64_t window = time_mono_ms() / FLOOD_MS;
	atomic_int_least64_t *slot;
	uint32_t hash = 2166136261; /* FNV-1a */
	int64_t seen, next;

	for (; from != NULL && *from != '\0'; from++)
		hash = (hash ^ (unsigned char)*from) * 16777619;
	slot = &rq->scoreboard->rejected[hash % SCOREBOARD_REJECTED];
	seen = atomic_load(slot);
	do
		next = seen >> COUNT_BITS == window ?
		    seen + 1 :
		    (window << COUNT_BITS) + 1;
	while (!atomic_compare_exchange_weak(slot, &seen, next));
	return next - (window << COUNT_BITS) > FLOOD_MAX;
}

static const struct err *
reject(struct req *rq, const char *detail)
{
	if (is_flood(rq))
		return err_public_number(ERR_RATE, FLOOD_MS / 1000,
		    "Too many events with a missing or wrong signature came "
		    "from your address. Wait ten seconds.");
	answer_header(rq, "WWW-Authenticate", "Signature realm=\"slipway\"");
	return err_public(ERR_UNAUTHENTICATED, "%s", detail);
}

/* Decrypts the project's secret. If there is none, a random one is sealed and
 * opened in its place, so that the time does not reveal it. */
static const struct err *
secret_open(struct req *rq, int64_t project_id, struct hook_secret *found,
    bool *known, char **out)
{
	const char *purpose = arena_printf(rq->a, HOOK_PURPOSE,
	    (long long)project_id);
	const struct err *e;

	*out = NULL;
	*known = false;
	*found = (struct hook_secret){ .project_id = project_id };
	e = hook_secret_find(rq->db, rq->a, project_id, found);
	if (e != NULL && e->code == ERR_NOTFOUND)
		e = keyring_seal(rq->keyring, rq->a, purpose,
		    webhook_secret(rq->a), &found->secret);
	else
		*known = e == NULL;
	if (e != NULL)
		return e;
	return keyring_unseal(rq->keyring, rq->a, purpose, found->secret, out);
}

static bool
hmac_matches(struct req *rq, const struct hook_envelope *env,
    const char *secret)
{
	char mac[CRYPTO_HASH_HEX];

	crypto_hmac(secret, strlen(secret), rq->text, rq->len, mac);
	return crypto_equal(mac, env->signature);
}

/* Compares hashes, so that not even the length leaks. */
static bool
plain_matches(struct req *rq, const struct hook_envelope *env,
    const char *secret)
{
	char mine[CRYPTO_HASH_HEX], theirs[CRYPTO_HASH_HEX];

	(void)rq;
	crypto_sha256(secret, strlen(secret), mine);
	crypto_sha256(env->signature, strlen(env->signature), theirs);
	return crypto_equal(mine, theirs);
}

/* One of "v1,BASE64 v1,BASE64". */
static bool
standard_matches(struct req *rq, const struct hook_envelope *env,
    const char *secret)
{
	const struct webhook sent = { .id = env->signed_id,
		.at = env->signed_at,
		.body = { .data = rq->text, .len = rq->len } };
	const char *one = env->signature, *mine;
	bool good = false;
	size_t len, n;

	if (!webhook_sign(rq->a, secret, &sent, &mine))
		return false;
	for (n = 0; n < SIGNATURES && *one != '\0'; n++, one += len) {
		one += strspn(one, " ");
		len = strcspn(one, " ");
		if (crypto_equal(mine, arena_strndup(rq->a, one, len)))
			good = true;
	}
	return good;
}

static bool (*const matches[])(struct req *, const struct hook_envelope *,
    const char *secret) = {
	[HOOK_HMAC] = hmac_matches,
	[HOOK_PLAIN] = plain_matches,
	[HOOK_STANDARD] = standard_matches,
};

const struct err *
signature_check(struct req *rq, const struct hook_envelope *env,
    int64_t project_id, struct hook_secret *found)
{
	struct hook_envelope sent = *env;
	const struct err *e;
	int64_t off;
	char *secret;
	bool known, good;

	*found = (struct hook_secret){ .project_id = project_id };
	if (rq->keyring == NULL)
		return err_public(ERR_CONFIG,
		    "The service has no key to decrypt secrets. An "
		    "administrator must run \"slipway-admin key\" and reload "
		    "the service.");
	e = secret_open(rq, project_id, found, &known, &secret);
	if (e != NULL)
		return e;
	if (sent.signature == NULL)
		sent.signature = "";
	good = matches[sent.signing](rq, &sent, secret);
	if (!good || !known)
		return reject(rq,
		    "The signature is missing or wrong. Enter the project's "
		    "hook secret at the Git server.");
	if (sent.signing != HOOK_STANDARD)
		return NULL;
	off = time_now_ms() / 1000 - sent.signed_at;
	if (off > SIGNATURE_WINDOW || off < -SIGNATURE_WINDOW)
		return reject(rq,
		    "The event's timestamp differs from the current time by "
		    "more than five minutes. The event is old, or a clock is "
		    "wrong.");
	return NULL;
}
