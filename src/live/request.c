/* SPDX-License-Identifier: ISC */
#include <string.h>
#include <strings.h>

#include "core/num.h"
#include "core/str.h"
#include "live/live.h"

/* The value that begins with `name` and ends before one of `ends`. */
static bool
value_read(const char *text, const char *name, const char *ends, char *out,
    size_t size)
{
	const char *at = strstr(text, name);
	size_t len;

	if (at == NULL)
		return false;
	at += strlen(name);
	len = strcspn(at, ends);
	if (len >= size)
		return false;
	(void)memcpy(out, at, len);
	out[len] = '\0';
	return true;
}

static bool
number_read(const char *text, const char *name, int64_t min, int64_t *out)
{
	char digits[24];

	return value_read(text, name, "& \r\n", digits, sizeof(digits)) &&
	    num_parse(digits, min, NUM_SAFE, out);
}

static bool
watcher_read(const char *text, struct scope *out)
{
	int64_t guest;

	if (!number_read(text, "&guest=", 0, &guest))
		return false;
	out->is_guest = guest != 0;
	return value_read(text, "&kind=", "& \r\n", out->kind,
		   sizeof(out->kind)) &&
	    strlen(out->kind) == 1 && strchr("stu", out->kind[0]) != NULL &&
	    number_read(text, "&id=", 0, &out->watcher_id);
}

static void
stream_read(const char *text, struct scope *out)
{
	/* a header that is too long or missing means: from now on */
	if (!value_read(text, "\r\nLast-Event-ID: ", "\r\n", out->last_id,
		sizeof(out->last_id)))
		out->last_id[0] = '\0';
}

static bool
wait_read(const char *text, struct scope *out)
{
	return number_read(text, "&from=", -1, &out->from) &&
	    number_read(text, "&since=", 0, &out->since) &&
	    number_read(text, "&ms=", 1, &out->ms) &&
	    number_read(text, "&again=", 0, &out->again);
}

bool
request_read(const char *text, struct scope *out)
{
	*out = (struct scope){ .waits = str_starts(text,
				   "GET /.slipway/wait?") };
	if (!out->waits)
		stream_read(text, out);
	return str_starts(text, "GET ") &&
	    number_read(text, "?project=", 0, &out->project_id) &&
	    number_read(text, "&deployment=", 0, &out->deployment_id) &&
	    number_read(text, "&user=", 0, &out->user_id) &&
	    watcher_read(text, out) && (!out->waits || wait_read(text, out));
}
