/* SPDX-License-Identifier: ISC */
#include "crypto/webhook.h"

#include <sodium.h>
#include <string.h>

#include "core/str.h"
#include "crypto/crypto.h"

#define START "whsec_"
#define KEY_BYTES 32

const char *
webhook_secret(struct arena *a)
{
	unsigned char key[KEY_BYTES];

	crypto_random(key, sizeof(key));
	return arena_printf(a, START "%s", crypto_base64(a, key, sizeof(key)));
}

bool
webhook_sign(struct arena *a, const char *secret, const struct webhook *w,
    const char **out)
{
	unsigned char mac[crypto_auth_hmacsha256_BYTES];
	crypto_auth_hmacsha256_state state;
	struct blob key;
	const char *head;

	*out = NULL;
	if (!str_starts(secret, START) ||
	    !crypto_base64_read(a, secret + strlen(START),
		strlen(secret) - strlen(START), &key))
		return false;
	head = arena_printf(a, "%s.%lld.", w->id, (long long)w->at);
	(void)crypto_auth_hmacsha256_init(&state, key.data, key.len);
	(void)crypto_auth_hmacsha256_update(&state, (const unsigned char *)head,
	    strlen(head));
	(void)crypto_auth_hmacsha256_update(&state, w->body.data, w->body.len);
	(void)crypto_auth_hmacsha256_final(&state, mac);
	sodium_memzero(&state, sizeof(state));
	*out = arena_printf(a, "v1,%s", crypto_base64(a, mac, sizeof(mac)));
	return true;
}
