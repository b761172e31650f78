/* SPDX-License-Identifier: ISC */
#include "job/userinfo.h"

#include <string.h>
#include <strings.h>

#define SCHEME_END "://"
#define SCHEME_END_LEN (sizeof(SCHEME_END) - 1)

static void
outside_feed(struct userinfo *u, char c, struct buf *out)
{
	const size_t last = sizeof(u->recent) - 1;

	buf_putc(out, c);
	(void)memmove(u->recent, u->recent + 1, last);
	u->recent[last] = c;
	if (memcmp(u->recent + sizeof(u->recent) - SCHEME_END_LEN, SCHEME_END,
		SCHEME_END_LEN) != 0)
		return;
	u->inside = true;
	u->is_ssh = strncasecmp(u->recent, "ssh", strlen("ssh")) == 0;
}

/* The user has ended; what follows may be another one, since a password may
 * contain an @. */
static void
user_end(struct userinfo *u, struct buf *out)
{
	if (u->is_ssh && memchr(u->held, ':', u->len) == NULL)
		buf_add(out, u->held, u->len);
	else if (u->len > 0)
		buf_puts(out, "***");
	buf_putc(out, '@');
	u->len = 0;
}

/* A quote does not end an authority: git takes it for a part of the password. */
static bool
is_end(char c)
{
	return (unsigned char)c <= ' ' || strchr("/?#", c) != NULL;
}

void
userinfo_feed(struct userinfo *u, const char *data, size_t len, struct buf *out)
{
	size_t i;

	for (i = 0; i < len; i++) {
		if (!u->inside) {
			outside_feed(u, data[i], out);
		} else if (data[i] == '@') {
			user_end(u, out);
		} else if (!is_end(data[i]) && u->len < sizeof(u->held)) {
			u->held[u->len++] = data[i];
		} else {
			userinfo_finish(u, out);
			outside_feed(u, data[i], out);
		}
	}
}

void
userinfo_finish(struct userinfo *u, struct buf *out)
{
	const size_t len = u->len;
	size_t i;

	u->inside = false;
	u->len = 0;
	/* they may be the scheme of another URL */
	for (i = 0; i < len; i++)
		outside_feed(u, u->held[i], out);
}
