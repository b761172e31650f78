/* SPDX-License-Identifier: ISC */
/* Errors as clients see them: problem details (RFC 9457). */
#include <string.h>

#include "web/answer.h"

/* Seconds: an outage of MariaDB is rarely shorter, and an administrator who has
 * to change a setting first takes longer. */
#define RETRY_OUTAGE 5
#define RETRY_CONFIG 300

const char *
status_phrase(int status)
{
	static const struct {
		int status;
		const char *phrase;
	} phrases[] = {
		{ 200, "OK" },
		{ 201, "Created" },
		{ 202, "Accepted" },
		{ 204, "No Content" },
		{ 206, "Partial Content" },
		{ 304, "Not Modified" },
		{ 400, "Bad Request" },
		{ 401, "Unauthorized" },
		{ 403, "Forbidden" },
		{ 404, "Not Found" },
		{ 405, "Method Not Allowed" },
		{ 409, "Conflict" },
		{ 412, "Precondition Failed" },
		{ 413, "Content Too Large" },
		{ 415, "Unsupported Media Type" },
		{ 416, "Range Not Satisfiable" },
		{ 422, "Unprocessable Content" },
		{ 429, "Too Many Requests" },
		{ 500, "Internal Server Error" },
		{ 502, "Bad Gateway" },
		{ 503, "Service Unavailable" },
		{ 504, "Gateway Timeout" },
	};
	size_t i;

	for (i = 0; i < sizeof(phrases) / sizeof(phrases[0]); i++)
		if (phrases[i].status == status)
			return phrases[i].phrase;
	return "Status";
}

static void
error_write(struct buf *b, const char *pointer, const char *detail)
{
	buf_puts(b, "{\"pointer\":");
	json_string(b, pointer);
	buf_puts(b, ",\"detail\":");
	json_string(b, detail);
	buf_putc(b, '}');
}

/* Writes the errors of the body: its faults, or why it could not be parsed. */
static void
errors_write(struct buf *b, const struct faults *f, const struct err *e)
{
	size_t i, n = f->n < FAULTS_MAX ? f->n : FAULTS_MAX;

	if (n == 0 && (e->code != ERR_INVALID || e->detail[0] == '\0'))
		return;
	buf_puts(b, ",\"errors\":[");
	if (n == 0)
		error_write(b, "", e->detail);
	for (i = 0; i < n; i++) {
		buf_puts(b, i > 0 ? "," : "");
		error_write(b, f->item[i].pointer, f->item[i].detail);
	}
	buf_putc(b, ']');
}

void
problem_answer(struct req *rq, const struct err *e)
{
	const struct err_kind *kind = &err_kinds[e->code];
	struct answer *an = &rq->answer;
	struct buf *b = &an->body;

	buf_clear(b);
	an->source = NULL;
	an->etag = NULL;
	an->status = kind->http;
	an->type = "application/problem+json";
	buf_puts(b, "{\"type\":\"about:blank\",\"title\":");
	json_string(b, status_phrase(kind->http));
	buf_printf(b, ",\"status\":%d,\"detail\":", kind->http);
	json_string(b, e->detail[0] != '\0' ? e->detail : kind->text);
	buf_puts(b, ",\"code\":");
	json_string(b, kind->name);
	buf_puts(b, ",\"requestId\":");
	json_string(b, rq->request_id);
	if (rq->device_error != NULL) {
		buf_puts(b, ",\"error\":");
		json_string(b, rq->device_error);
	}
	errors_write(b, &rq->faults, e);
	buf_puts(b, "}\n");
	if (kind->http == 503)
		answer_header(rq, "Retry-After", "%d",
		    e->code == ERR_CONFIG ? RETRY_CONFIG : RETRY_OUTAGE);
	/* as the Git server specified */
	if (e->code == ERR_RATE && e->sys > 0)
		answer_header(rq, "Retry-After", "%d", e->sys);
}
