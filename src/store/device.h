/* SPDX-License-Identifier: ISC */
/* Devices that wait for a user to sign them in (RFC 8628). The device code is
 * passed as SHA-256 in hex. */
#ifndef SLIPWAY_STORE_DEVICE_H
#define SLIPWAY_STORE_DEVICE_H

#include "db/db.h"

#define DEVICE_SECONDS 900 /* lifetime of both codes */
#define DEVICE_INTERVAL                                                        \
	5 /* seconds between polls; each early poll adds as
			    * many */

/* Values of status. */
#define DEVICE_PENDING "pending"
#define DEVICE_APPROVED "approved"
#define DEVICE_DENIED "denied"

struct device {
	int64_t id;
	const char *hash;
	const char *user_code; /* eight letters */
	const char *name;      /* as the device calls itself */
	const char *address;
	const char *status;
	struct when created_at;
	struct when expires_at;
	/* the decision, while it is pending none: */
	struct maybe user_id;
	struct maybe token_id; /* API token with which the user approved, also
				* by a session that it started */
	const char *role;      /* of the token that the device gets */
	struct when token_expires_at;
};

/* The result of a poll. */
struct device_poll {
	int64_t id;
	const char *status;
	const char *name;
	bool is_early;
	int64_t user_id; /* 0 = no live, active user has approved */
	const char *username;
	bool is_refused; /* the Git server does not accept the user's account */
	bool is_revoked; /* the token with which the user approved has expired
			  * or was deleted */
	const char *role;
	struct when token_expires_at;
};

/* Counts those that have not expired, from all addresses and from that one, or
 * its network (/64) if it is one of IPv6. */
MUSTCHECK const struct err *device_count(struct db *, struct arena *,
    const char *address, int64_t *here, int64_t *all);
/* ERR_CONFLICT if another one has the user code. */
MUSTCHECK const struct err *device_insert(struct db *, const struct device *);
/* Finds one that is not yet approved or denied; ERR_NOTFOUND, also if it has
 * expired. */
MUSTCHECK const struct err *device_pending(struct db *, struct arena *,
    const char *user_code, struct device *out);
/* Stores status and decision; ERR_NOTFOUND if somebody else has decided
 * meanwhile, or it has expired. */
MUSTCHECK const struct err *device_decide(struct db *, const struct device *);
/* ERR_NOTFOUND if the device code is unknown, used or expired. */
MUSTCHECK const struct err *device_find(struct db *, struct arena *,
    const char *hash, struct device_poll *out);
/* Records a poll of a pending one; an early poll increases the interval. */
MUSTCHECK const struct err *device_polled(struct db *,
    const struct device_poll *);
/* Deletes an approved one, which only one of several concurrent requests can;
 * ERR_NOTFOUND. */
MUSTCHECK const struct err *device_take(struct db *,
    const struct device_poll *);
/* Deletes expired rows, some thousands per call; writes nothing if there are
 * none. */
MUSTCHECK const struct err *device_tidy(struct db *);

#endif
