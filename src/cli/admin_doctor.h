/* SPDX-License-Identifier: ISC */
/* Shared by the parts of slipway-admin doctor. Each part checks one thing and
 * prints its result in a line. */
#ifndef SLIPWAY_CLI_ADMIN_DOCTOR_H
#define SLIPWAY_CLI_ADMIN_DOCTOR_H

#include "cli/admin.h"
#include "forge/forge.h"
#include "store/capacity.h"

struct doctor {
	struct admin *admin;
	struct forge *forge;      /* NULL = none is configured */
	bool no_keys;             /* no key file exists, which was reported */
	bool schema;              /* the schema is valid… */
	struct capacity capacity; /* …and what the server allows */
	bool answers;             /* the Git server responds */
	size_t faults;
};

enum verdict { VERDICT_OK, VERDICT_NOTE, VERDICT_FAULT, VERDICT__MAX };
void doctor_say(struct doctor *, enum verdict, const char *what,
    const char *fmt, ...) PRINTFLIKE(4, 5);
/* Returns the text to print. */
const char *doctor_words(const struct err *);

static inline bool
is_set(const char *s)
{
	return s != NULL && s[0] != '\0';
}

/* admin_doctor_database.c; sets d->schema and d->capacity. */
void doctor_database(struct doctor *);

/* admin_doctor_host.c: what the service and a runner require of this host. */
void doctor_live(struct doctor *);
void doctor_ids(struct doctor *);
void doctor_accounts(struct doctor *);
void doctor_directories(struct doctor *);
void doctor_programs(struct doctor *);
void doctor_cgroups(struct doctor *);

/* admin_doctor_ssh.c */
void doctor_ssh(struct doctor *);

/* admin_doctor_git.c, in this order; the first one opens d->forge. */
void doctor_server(struct doctor *);
void doctor_signup(struct doctor *);
void doctor_redirect(struct doctor *);
void doctor_client(struct doctor *);
void doctor_version(struct doctor *);
void doctor_token(struct doctor *);

#endif
