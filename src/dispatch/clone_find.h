/* SPDX-License-Identifier: ISC */
/*
 * The finder: asks the Git server where a repository is, and whether it accepts
 * the token of the user who deploys.
 *
 * It writes "ADDRESS\nSECONDS CAUSE\nLENT\nREFUSED\nUSER\nSECRET" to descriptor
 * 3; the lines may be empty, and user and secret may be missing.  The second line
 * says why a request failed, and how long the server wants to be left alone; the
 * next two are those of setter_lend().  Its exit status is an enum found.
 */
#ifndef SLIPWAY_DISPATCH_CLONE_FIND_H
#define SLIPWAY_DISPATCH_CLONE_FIND_H

#include <stdbool.h>

#include "core/buf.h"
#include "forge/forge.h"
#include "queue/claim.h"
#include "spool/description.h"

struct dispatch;

#define CLONE_CREDENTIAL_MAX ((size_t)32 << 10) /* a pipe holds as much */

enum found {
	FOUND_OK,
	FOUND_NONE,     /* no token */
	FOUND_SILENT,   /* the token was not renewed */
	FOUND_LATE,     /* the finder gave no status */
	FOUND_REJECTED, /* the user's token, or the user has none */
	FOUND_BARRED,   /* the service's token was rejected */
	FOUND_CLIENT,   /* the server rejects this application */
	FOUND_UNSEEN,   /* no such repository, or not for that token */
	FOUND_LOCKED,   /* 403: mostly because of the account */
	FOUND_GONE,     /* no repository with the number that is stored */
	FOUND_TAKEN,    /* another repository has the path */
	FOUND_UNSURE,   /* the server did not confirm the stored number */
	FOUND_FOREIGN,  /* the user who set the repository cannot read it */
	FOUND_LEFT,     /* the user on whose behalf it is read has left */
	FOUND__MAX
};
/* A bit beside these: the repository must not be cloned, because another one
 * may have its path, or because those on whose behalf it is read may not read
 * it. Set whenever a number is stored and the server did not confirm it. */
#define FOUND_STOP 0x40
/* Another one: the server does not respond, so the result may be another later.
 */
#define FOUND_AWAY 0x20

/* Whether the project's own key opens the repository, over SSH. */
bool clone_has_deploy_key(const struct claim *);
/* Whether that of the service does: then the Git server must confirm the access
 * of the user who deploys. */
bool clone_has_service_key(const struct dispatch *, const struct claim *);
/* What becomes of submodules: where users have rights at the Git server, a
 * credential that others may lend reads those of the project's list. */
enum job_submodules clone_submodules(const struct dispatch *,
    const struct claim *);
_Noreturn void clone_find(const struct dispatch *, const struct claim *);
/* Appends "USER\nSECRET"; false if there is no token, or none that git can
 * use. */
bool clone_credential(const struct forge *, struct arena *,
    const char *repository, const char *token, struct buf *out);

#endif
