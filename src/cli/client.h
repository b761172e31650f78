/* SPDX-License-Identifier: ISC */
/* slipway's side of the REST contract: requests, responses and errors. */
#ifndef SLIPWAY_CLI_CLIENT_H
#define SLIPWAY_CLI_CLIENT_H

#include "cli/command.h"
#include "cli/host.h"
#include "cli/screen.h"
#include "http/http.h"
#include "json/json.h"

#define CLIENT_WAIT_MAX 20 /* seconds that the service delays a response */

/* Options of every command. */
struct client_settings {
	const char *host;
	bool json;
};

/* What an error response says beyond its sentence. */
struct client_problem {
	const char *request_id;
	const char *error;  /* of RFC 8628; NULL = none */
	struct list errors; /* struct client_fault */
	bool passes;        /* it is worth trying again soon */
};
struct client_fault {
	const char *pointer;
	const char *detail;
};

struct client {
	struct command_call *call;
	struct arena *a;
	struct host host;
	struct http *http; /* not open until the first request */
	struct client_problem problem;
	struct list secrets; /* const char *: variables for --secret */
	bool json;           /* print the API's objects */
	bool table;          /* standard output is a terminal */
	bool color;          /* it shows colors */
	bool progress; /* standard error is a terminal that can be redrawn */
	bool shown;    /* there is a line of progress */
	struct screen screen; /* state of a log on the terminal */
	bool in_line;         /* the last byte of a log that was printed ends no
			* line */
};

struct client_request {
	enum http_method method;
	const char *path;  /* with the query */
	const char *body;  /* JSON; NULL = none */
	const char *key;   /* Idempotency-Key: repeat the request if no response
			   * arrives */
	const char *range; /* "bytes=0-99": 416 is no error */
	int64_t wait;      /* seconds that the response may be delayed */
	bool open;         /* send no token */
};

void client_init(struct client *, struct command_call *);
void client_release(struct client *);
/* Fills in client->host; ERR_UNAUTHENTICATED without a token. */
MUSTCHECK const struct err *client_sign_in(struct client *);
/* Sends a request.  A status of 400 or more is an error that has the service's
 * sentence; client->problem has the rest. */
MUSTCHECK const struct err *client_call(struct client *,
    const struct client_request *, struct http_response *out);
MUSTCHECK const struct err *client_get(struct client *, const char *path,
    struct http_response *out);
/* GETs an object and picks from it. */
MUSTCHECK const struct err *client_object(struct client *, const char *path,
    const struct json_path *, void *item, struct http_response *out);
/* GETs all pages of a list, of `size` bytes per item; `path` contains a
 * query. */
MUSTCHECK const struct err *client_all(struct client *, const char *path,
    const struct json_path *, size_t size, struct list *out);
/* The same, but prints the responses. */
MUSTCHECK const struct err *client_print_all(struct client *, const char *path);
/* Whether the request that failed may succeed later. */
bool client_is_temporary(const struct err *);
/* Prints a body and a line end. */
void client_print(const struct http_response *);
/* Prints the rest of an error after its sentence: errors of members, the
 * request's id, and what to try. */
void client_explain(const struct client *, const struct err *);

/* A line on standard error that the next one replaces; NULL removes it. */
void client_progress(struct client *, const char *fmt, ...) PRINTFLIKE(2, 3);
/* The address of a deployment's page in the console. */
const char *client_page(const struct client *, int64_t deployment);

#endif
