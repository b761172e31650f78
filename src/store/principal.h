/* SPDX-License-Identifier: ISC */
#ifndef SLIPWAY_STORE_PRINCIPAL_H
#define SLIPWAY_STORE_PRINCIPAL_H

#include "core/field.h"

/* The authenticated user of a request. */
struct principal {
	int64_t user_id;
	const char *username;
	const char *role;   /* the lower role of user and token */
	const char *cap;    /* the token's role; NULL = none */
	int64_t token_id;   /* the token, or that which started the session; 0 =
			     * none */
	int64_t session_id; /* 0 = none; if both are 0, nginx has authenticated
			     * the user */
	struct when last_used_at;
	struct when expires_at; /* of the token */
	bool is_refused;        /* the Git server does not accept the account of
				 * the token's user */
};

#endif
