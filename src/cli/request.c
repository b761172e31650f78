/* SPDX-License-Identifier: ISC */
/* slipway api: any request of the REST interface. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "cli/slipway.h"
#include "core/file.h"
#include "core/str.h"

#define BODY_MAX ((size_t)1 << 20)

static const char *const methods[HTTP__MAX] = {
	[HTTP_GET] = "GET",
	[HTTP_POST] = "POST",
	[HTTP_PUT] = "PUT",
	[HTTP_DELETE] = "DELETE",
};

static const struct err *
body_read(const char *path, struct buf *out)
{
	const struct err *e;
	int fd = STDIN_FILENO;

	if (strcmp(path, "-") != 0 &&
	    (fd = open(path, O_RDONLY | O_CLOEXEC)) == -1)
		return err_public(ERR_NOTFOUND, "%s: %s", path,
		    strerror(errno));
	if ((e = file_rest(fd, out)) != NULL)
		e = err_wrap(e, "%s", path);
	if (fd != STDIN_FILENO)
		(void)close(fd);
	return e;
}

static void
print_headers(const struct http_response *r)
{
	const struct http_header *h = r->headers.items;
	size_t i;

	(void)printf("%d\n", r->status);
	for (i = 0; i < r->headers.n; i++)
		(void)printf("%s: %s\n", h[i].name, h[i].value);
	(void)printf("\n");
}

const struct err *
slipway_api(void *context, struct command_call *call)
{
	const struct api_options *options = call->options;
	const char *path = call->word[1];
	struct client *c = context;
	struct client_request rq = { .path = path };
	struct http_response r;
	struct buf body;
	const struct err *e;
	int i = 0;

	while (i < HTTP__MAX && strcasecmp(methods[i], call->word[0]) != 0)
		i++;
	if (i == HTTP__MAX)
		return err_public(ERR_METHOD,
		    "api: the method must be one of GET, POST, PUT, DELETE");
	if (*path != '/')
		return err_public(ERR_METHOD,
		    "api: the path must start with a slash, as in "
		    "/api/projects");
	rq.method = (enum http_method)i;
	buf_init(&body, BODY_MAX);
	if (options->input != NULL &&
	    (e = body_read(options->input, &body)) != NULL)
		goto out;
	if (options->input != NULL)
		rq.body = body.data == NULL ? "" : body.data;
	if ((e = client_call(c, &rq, &r)) != NULL)
		goto out;
	if (options->headers)
		print_headers(&r);
	if (r.len > 0)
		client_print(&r);
out:
	buf_wipe(&body);
	return e;
}
