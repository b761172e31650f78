/* SPDX-License-Identifier: ISC */
/* How git is started: the same settings for each git of the service, so that
 * neither a repository nor an address makes it run or reach anything else. */
#ifndef SLIPWAY_CORE_GIT_H
#define SLIPWAY_CORE_GIT_H

#include <stddef.h>

#include "core/arena.h"

/* Each goes behind a -c; a protocol that they close has to be opened by one of
 * the two settings below. */
#define GIT_SETTINGS 41
extern const char *const git_settings[GIT_SETTINGS];
#define GIT_ALLOW_HTTP "protocol.http.allow=always"
#define GIT_ALLOW_LOCAL "protocol.file.allow=always"
/* Beside http.sslCAInfo: without it, curl trusts the CAs in the system's folder
 * as well.  An empty path would be an error to OpenSSL. */
#define GIT_NO_SYSTEM_CAS "http.sslCAPath=/dev/null"

/* The part of its environment that is the same for all. */
#define GIT_ENVIRONMENT 6
extern const char *const git_environment[GIT_ENVIRONMENT];

/* The files that ssh(1) reads for git; NULL = none. */
struct git_ssh {
	const char *key;
	const char *known_hosts;
	int timeout; /* seconds to connect */
};

/* NULL if git's shell and ssh(1) read the path of such a file as it is written,
 * else what is wrong with it.  The shell reads quotes, ssh(1) expands
 * percent signs and dollars, and splits a list of known_hosts at blanks. */
const char *git_ssh_key_fault(const char *path);
const char *git_known_hosts_fault(const char *path);
/* The setting core.sshCommand, in the arena; the paths have no such fault.
 * `home` is put before both, for the shell to expand: "" or "$HOME/".  With a
 * key, ssh(1) offers no other, and reads no configuration but the system's. */
const char *git_ssh_setting(struct arena *, const struct git_ssh *,
    const char *home);

#endif
