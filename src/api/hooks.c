/* SPDX-License-Identifier: ISC */
/* What the Git server tells of pushes. */
#include <string.h>

#include "api/handlers.h"
#include "api/shapes.h"
#include "store/deployment.h"
#include "store/hook.h"

#define SECRET_START "whsec_" /* Standard Webhooks: what follows is the key */
#define SECRET_BYTES 32
#define PURPOSE "push events of project %lld"

/* A new secret.  Its text is what servers sign with or send; where the key is
 * said in base64, the same text says that. */
static char *
secret_make(struct arena *a)
{
	unsigned char key[SECRET_BYTES];

	crypto_random(key, sizeof(key));
	return arena_printf(a, SECRET_START "%s",
	    crypto_base64(a, key, sizeof(key)));
}

/* Where the Git server sends to; NULL if nothing says how it gets here. */
static const char *
hook_url(const struct req *rq, int64_t project_id)
{
	const char *base = rq->settings->api.url;
	const char *rest;
	size_t len;

	if (base == NULL || *base == '\0') {
		base = rq->settings->gitserver.redirect_uri;
		if (base == NULL || (rest = strstr(base, "://")) == NULL)
			return NULL;
		len = (size_t)(rest - base) + 3;
		len += strcspn(base + len, "/?#");
	} else {
		for (len = strlen(base); len > 0 && base[len - 1] == '/';)
			len--;
	}
	return arena_printf(rq->a, "%.*s/api/hooks/%lld", (int)len, base,
	    (long long)project_id);
}

static const struct err *
secret_body(struct db *db, void *context)
{
	const struct hook_secret *one = context;
	struct arena *a = arena_open((size_t)16 * 1024);
	const struct err *e;

	e = deployment_hold_project(db, a, one->project_id);
	if (e == NULL)
		e = hook_secret_put(db, one);
	arena_close(a);
	return e;
}

const struct err *
api_hook_secret(struct req *rq)
{
	struct hook_secret one = { .project_id = rq->id[0] };
	struct hook_access shown = { .url = hook_url(rq, rq->id[0]) };
	const struct err *e;

	if (rq->keyring == NULL)
		return err_tell(ERR_UNAVAILABLE,
		    "The service has no key to seal the secret with: an "
		    "administrator makes it with \"slipway-admin key\" and "
		    "restarts the service.");
	shown.secret = secret_make(rq->a);
	e = seal(rq->keyring, rq->a,
	    arena_printf(rq->a, PURPOSE, (long long)one.project_id),
	    shown.secret, &one.secret);
	if (e != NULL)
		return e;
	if ((e = db_transaction(rq->db, secret_body, &one)) != NULL)
		return e;
	answer_item(rq, &hook_access_shape, &shown, 0);
	return NULL;
}
