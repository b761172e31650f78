/* SPDX-License-Identifier: ISC */
/* A mail client (SMTP, RFC 5321) based on libcurl. */
#ifndef SLIPWAY_HTTP_MAIL_H
#define SLIPWAY_HTTP_MAIL_H

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

#define MAIL_RECIPIENTS_MAX 20

enum mail_security { MAIL_PLAIN, MAIL_STARTTLS, MAIL_TLS };

struct mail_server {
	const char *address; /* host[:port] */
	enum mail_security security;
	const char *user; /* NULL = no authentication */
	const char *password;
	const char *tls_ca; /* PEM file that replaces the system's; NULL */
};

/* Addresses without blanks, brackets and control characters. */
struct mail {
	const char *from;
	const char *to[MAIL_RECIPIENTS_MAX + 1]; /* ends with a NULL */
	const char *text; /* headers and body, lines end with CRLF */
	int64_t deadline_ms;
};

/* Sends the mail to the recipients that the server accepts.  TLS is always
 * verified.  ERR_UPSTREAM if the server rejects the mail or all recipients,
 * with the reply code as number, 0 if it cannot be reached;
 * ERR_UPSTREAM_TIMEOUT; ERR_CONFIG as http_call(). */
MUSTCHECK const struct err *mail_send(const struct mail_server *,
    const struct mail *);

#endif
