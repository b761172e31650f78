/* SPDX-License-Identifier: ISC */
#include "job/outage.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "core/str.h"

/* Parts of messages of git, libcurl with its TLS libraries, and ssh(1). */
static const char *const outages[] = {
	"returned error: 5",
	"returned error: 408",
	"returned error: 429",
	"Failed to connect to",
	"Couldn't connect to",
	"Could not connect to",
	"Connection refused",
	"Connection reset",
	"Connection closed by",
	"No route to host",
	"Network is unreachable",
	" timed out",
	"Operation too slow",
	"Empty reply from server",
	"Recv failure",
	"Send failure",
	"SSL connection timeout",
	"SSL_ERROR_SYSCALL",
	"TLS connection was non-properly terminated",
	"Error in the pull function",
	"unexpected eof",
	"transfer closed",
	"was not closed cleanly",
	"Temporary failure in name resolution",
	"kex_exchange_identification",
	"banner exchange",
	" not responding.",
	"early EOF",
	"unexpected disconnect",
	"remote end hung up unexpectedly",
	/* of git-lfs, which is written in Go */
	"connection refused",
	"connection reset by peer",
	"no route to host",
	"network is unreachable",
	"i/o timeout",
	"TLS handshake timeout",
	"from HTTP 5",
	"from HTTP 429",
	": Fatal error: ", /* a status from 500 on */
	": Rate limit exceeded: ",
	NULL,
};

/* Those that a wrong address has, too. */
static const char *const doubtful[] = {
	"Could not resolve host",
	"Could not resolve proxy",
	"Name or service not known",
	"no such host",
	"returned error: 30",
	"unable to update url base from redirection",
	"not valid: is this a git repository?",
	"invalid server response",
	"bad line length",
	NULL,
};

static const char *const denials[] = {
	"could not read Username",
	"could not read Password",
	"Authentication failed",
	"Permission denied",
	"returned error: 401",
	"returned error: 403",
	"returned error: 404",
	"' not found",
	"Git credentials for",
	NULL,
};

static bool
has_any(const char *message, const char *const *parts)
{
	for (; *parts != NULL; parts++)
		if (strstr(message, *parts) != NULL)
			return true;
	return false;
}

bool
outage_is(const char *message, bool known)
{
	return has_any(message, outages) ||
	    (known && has_any(message, doubtful));
}

bool
outage_is_denial(const char *message)
{
	return has_any(message, denials);
}

static const int disk_errors[] = { ENOSPC, EDQUOT, EROFS, EIO };
#define DISK_ERRORS (sizeof(disk_errors) / sizeof(disk_errors[0]))

bool
outage_is_of_disk(int error)
{
	size_t i;

	for (i = 0; i < DISK_ERRORS; i++)
		if (disk_errors[i] == error)
			return true;
	return false;
}

/* Whether the message gives that as its reason: it ends with it.  Elsewhere, it is
 * a part of a name, which is that of a submodule for example.  git-lfs begins
 * reasons with small letters. */
static bool
is_reason(const char *message, const char *reason)
{
	const size_t len = strlen(message), n = strlen(reason);

	return len >= n + 2 && strncmp(message + len - n - 2, ": ", 2) == 0 &&
	    strcasecmp(message + len - n, reason) == 0;
}

int
outage_of_disk(const char *message)
{
	size_t i;

	if (str_starts(message, "remote: ") ||
	    strstr(message, "remote error: ") != NULL)
		return 0; /* the server's own disk */
	if (str_ends(message, "write error. Out of diskspace"))
		return ENOSPC;
	for (i = 0; i < DISK_ERRORS; i++)
		if (is_reason(message, strerror(disk_errors[i])))
			return disk_errors[i];
	return 0;
}
