/* SPDX-License-Identifier: ISC */
/*
 * The services that a user signs in to, in $XDG_CONFIG_HOME/slipway/config:
 * sections "[https://deploy.example.org]" with the keys token, token_command
 * and cacert.  The first section is the default.  The file may contain secrets,
 * so it is rejected if other users can read it.
 */
#ifndef SLIPWAY_CLI_HOST_H
#define SLIPWAY_CLI_HOST_H

#include "core/arena.h"
#include "core/field.h"

struct host {
	const char *url; /* "https://deploy.example.org", an origin */
	const char *token;
	const char *token_command; /* of the shell; prints the token */
	const char *cacert;        /* PEM file that replaces the system's CAs */
};

/* Chooses the service that `name` (a URL, or its host), else SLIPWAY_URL, else
 * the file names first, with SLIPWAY_TOKEN and SLIPWAY_CACERT if they are set.
 * ERR_CONFIG if there is none, or if it would get a token without TLS. */
MUSTCHECK const struct err *host_choose(struct arena *, const char *name,
    struct host *out);
/* Runs the command that prints the token, if there is one. */
MUSTCHECK const struct err *host_token(struct arena *, struct host *);
/* Adds or replaces a service; other lines of the file stay. */
MUSTCHECK const struct err *host_save(struct arena *, const struct host *);
/* ERR_NOTFOUND if the file does not have it. */
MUSTCHECK const struct err *host_remove(struct arena *, const char *url);
/* The origin that the text is; ERR_CONFIG if it is not https, or http on this
 * machine. */
MUSTCHECK const struct err *host_url(struct arena *, const char *text,
    const char **out);
/* Whether the service is on this machine, where no proxy is used. */
bool host_is_here(const char *url);

#endif
