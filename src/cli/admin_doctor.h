/* SPDX-License-Identifier: ISC */
/* What the parts of slipway-admin doctor share: each tries one thing and says
 * in a line what it found. */
#ifndef SLIPWAY_CLI_ADMIN_DOCTOR_H
#define SLIPWAY_CLI_ADMIN_DOCTOR_H

#include "cli/admin.h"
#include "forge/forge.h"

struct doctor {
	struct admin *admin;
	struct forge *forge; /* NULL = there is none to ask */
	bool schema;         /* the tables can be read */
	bool answers;        /* the Git server does */
	size_t faults;
};

enum verdict { VERDICT_OK, VERDICT_NOTE, VERDICT_FAULT, VERDICT__MAX };
void doctor_say(struct doctor *, enum verdict, const char *what,
    const char *fmt, ...) PRINTFLIKE(4, 5);
/* For people. */
const char *doctor_words(const struct err *);

static inline bool
is_set(const char *s)
{
	return s != NULL && s[0] != '\0';
}

/* admin_doctor_git.c, in this order: the first opens d->forge. */
void doctor_server(struct doctor *);
void doctor_redirect(struct doctor *);
void doctor_client(struct doctor *);
void doctor_version(struct doctor *);
void doctor_token(struct doctor *);

#endif
