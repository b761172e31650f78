/* SPDX-License-Identifier: ISC */
/*
 * Addresses: "scheme://[user@]host[:port][/path]", git's "user@host:path", and
 * paths.  This is the only grammar: repositories, the Git server and URLs are
 * read by it, so that no two readers take another host from the same text.
 */
#ifndef SLIPWAY_CORE_ADDRESS_H
#define SLIPWAY_CORE_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"

/* Matches the address of a mailbox, without quotes or a display name. */
#define ADDRESS_MAIL_ERE                                                       \
	"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}"                                \
	"@[A-Za-z0-9-]+([.][A-Za-z0-9-]+)*"

enum address_scheme {
	ADDRESS_HTTPS,
	ADDRESS_HTTP,
	ADDRESS_SSH,
	ADDRESS_SCP,  /* user@host:path, which is SSH as well */
	ADDRESS_FILE, /* file:///path */
	ADDRESS_PATH, /* /path */
	ADDRESS__MAX
};

/* The parts point into the text that was read; neither starts with a dash. */
struct address {
	enum address_scheme scheme;
	const char *user;
	size_t user_len; /* 0 = none */
	const char *host;
	size_t host_len;  /* with the brackets of IPv6; 0 = a path */
	int64_t port;     /* 0 = the scheme's own */
	const char *path; /* the rest: from its slash, or after the colon */
};

/* False if the text has none of these forms.  Schemes are compared without
 * regard to case; the path is not checked. */
bool address_read(const char *text, struct address *out);
/* The same for "[user@]host[:port]", as lists of hosts have it. */
bool address_read_host(const char *text, size_t len, struct address *out);

bool address_is_web(const struct address *);   /* https or http */
bool address_is_ssh(const struct address *);   /* in either form */
bool address_is_local(const struct address *); /* no host */
/* Whether the host is this machine by its name or a loopback address. */
bool address_is_loopback(const struct address *);
/* Whether no part of the path leads elsewhere or is read in two ways. */
bool address_path_is_plain(const char *path);

/* The text for messages: `***` instead of a password, or of whatever precedes
 * the @ of a URL other than SSH, which can be a token.  The text need not be a
 * valid address. */
const char *address_public(struct arena *, const char *text);

/* The port, or the scheme's own. */
int64_t address_port(const struct address *);
bool address_same_host(const struct address *, const struct address *);
/* Whether scheme, host and port are the same. */
bool address_same_origin(const struct address *, const struct address *);
/* "https://git.example.org:3000", in lower case, without the scheme's own port;
 * of an address that has a host. */
const char *address_origin(struct arena *, const struct address *);

#endif
