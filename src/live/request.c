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
number_read(const char *text, const char *name, int64_t *out)
{
	char digits[24];

	return value_read(text, name, "& \r\n", digits, sizeof(digits)) &&
	    num_parse(digits, 0, NUM_SAFE, out);
}

bool
request_read(const char *text, struct scope *out)
{
	*out = (struct scope){ .project_id = 0 };
	/* a header that is too long or missing means: from now on */
	if (!value_read(text, "\r\nLast-Event-ID: ", "\r\n", out->last_id,
		sizeof(out->last_id)))
		out->last_id[0] = '\0';
	return str_starts(text, "GET ") &&
	    number_read(text, "?project=", &out->project_id) &&
	    number_read(text, "&deployment=", &out->deployment_id) &&
	    value_read(text, "&kind=", "& \r\n", out->kind,
		sizeof(out->kind)) &&
	    strlen(out->kind) == 1 && strchr("stu", out->kind[0]) != NULL &&
	    number_read(text, "&id=", &out->watcher_id);
}
