/* SPDX-License-Identifier: ISC */
#include "dispatch/deploy_key.h"

#include "core/settings.h"
#include "crypto/private_keyring.h"
#include "store/deploy_key.h"

const struct err *
deploy_key_open(const struct settings *s, struct arena *a, int64_t project_id,
    const char *sealed, const char **out)
{
	struct private_keyring *keys = NULL;
	const struct err *e;

	*out = NULL;
	e = private_keyring_open(settings_deploy_key(a, &s->secrets), &keys);
	if (e != NULL)
		return err_explain(e, ERR_CONFIG,
		    "The project's deploy key cannot be decrypted: the runner "
		    "cannot read the key file, see the runner's log.");
	e = private_keyring_unseal(keys, a,
	    arena_printf(a, DEPLOY_KEY_PURPOSE, (long long)project_id), sealed,
	    out);
	private_keyring_close(keys);
	if (e == NULL)
		return NULL;
	return err_public(ERR_CONFIG,
	    "The project's deploy key cannot be decrypted (%s): create a new "
	    "one, and replace its public half at the Git server.",
	    e->msg);
}
