/* SPDX-License-Identifier: ISC */
/*
 * Files of host keys (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT).  ssh-keygen(1)
 * looks names up, because names can be hashed, listed or patterns.
 */
#ifndef SLIPWAY_CLI_ADMIN_KNOWN_HOSTS_H
#define SLIPWAY_CLI_ADMIN_KNOWN_HOSTS_H

#include "core/arena.h"
#include "core/field.h"

struct address;

/* A line; the texts are in an arena. */
struct known_host {
	int64_t line;
	const char *marker; /* "@revoked", "@cert-authority" or "" */
	const char *names;
	const char *type;
	const char *key; /* in base64 */
	const char *fingerprint;
};

/* Parses "[MARKER] NAMES TYPE KEY [COMMENT]"; false if it is another line. */
bool known_host_parse(struct arena *, const char *line, struct known_host *out);

/* What a file calls the host of an address: "git.example.org" or
 * "[git.example.org]:2222". */
const char *known_hosts_name(struct arena *, const struct address *);
/* The file that the path leads to: a symbolic link stays one. */
MUSTCHECK const struct err *known_hosts_file(struct arena *, const char *path,
    const char **out);
/* Locks the file against other processes that use these functions, until `out`
 * is closed. */
MUSTCHECK const struct err *known_hosts_lock(struct arena *, const char *file,
    int *out);
/* All lines (struct known_host); none if the file does not exist. */
MUSTCHECK const struct err *known_hosts_all(struct arena *, const char *file,
    struct list *out);
/* The lines about one name. */
MUSTCHECK const struct err *known_hosts_find(struct arena *, const char *file,
    const char *name, struct list *out);
/* Replaces the file by one with these lines at its end, or without those.  It
 * keeps its owner and mode; a new one can be read by everybody. */
MUSTCHECK const struct err *known_hosts_append(struct arena *, const char *file,
    const char *lines);
MUSTCHECK const struct err *known_hosts_remove(struct arena *, const char *file,
    const struct list *);

#endif
