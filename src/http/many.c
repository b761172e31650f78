/* SPDX-License-Identifier: ISC */
#include <string.h>

#include <curl/curl.h>

#include "core/str.h"
#include "http/inner.h"

#define BUFFER_BYTES 4096 /* responses are short */

struct http_one {
	struct http http; /* its handle, with the options of all */
	struct exchange exchange;
	struct arena *a;
	const char *origin;
	void *context; /* NULL = free */
	char sent[SENT_MAX];
	struct curl_slist node[HTTP_HEADERS + OWN_HEADERS];
};

struct http_many {
	CURLM *multi;
	struct http_options options;
	size_t n, max;
	struct http_one **items; /* made when they are first used */
};

const struct err *
http_many_open(const struct http_options *options, size_t max,
    struct http_many **out)
{
	const struct err *e;
	struct http_many *m;

	*out = NULL;
	if ((e = http_library_start()) != NULL)
		return e;
	m = mem_alloc(1, sizeof(*m));
	m->options = *options;
	m->max = max;
	m->items = mem_alloc(max, sizeof(struct http_one *));
	if ((m->multi = curl_multi_init()) == NULL) {
		mem_free(m->items);
		mem_free(m);
		return err_new(ERR_INTERNAL, "libcurl: no handle");
	}
	*out = m;
	return NULL;
}

static struct http_one *
one_free(struct http_many *m)
{
	size_t i = 0;

	while (
	    i < m->max && m->items[i] != NULL && m->items[i]->context != NULL)
		i++;
	if (i == m->max)
		return NULL;
	if (m->items[i] == NULL)
		m->items[i] = mem_alloc(1, sizeof(struct http_one));
	return m->items[i];
}

static void
one_release(struct http_many *m, struct http_one *one)
{
	curl_easy_cleanup(one->http.curl);
	buf_wipe(&one->exchange.body);
	buf_release(&one->exchange.lines);
	explicit_bzero(one->sent, sizeof(one->sent));
	one->context = NULL;
	m->n--;
}

static CURLcode
one_set(struct http_one *one, struct exchange *x)
{
	CURL *curl = one->http.curl;
	CURLcode rc;

	headers_build(x->request, one->sent, one->node);
	if ((rc = exchange_set(&one->http, x, one->node)) != CURLE_OK ||
	    (rc = curl_easy_setopt(curl, CURLOPT_PRIVATE, one)) != CURLE_OK ||
	    (rc = curl_easy_setopt(curl, CURLOPT_FORBID_REUSE, 1L)) != CURLE_OK)
		return rc;
	return curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, (long)BUFFER_BYTES);
}

const struct err *
http_many_begin(struct http_many *m, struct arena *a,
    const struct http_request *r, void *context)
{
	const char *origin;
	struct http_one *one;

	if (!request_fit(r) || (origin = http_origin(a, r->url)) == NULL ||
	    (one = one_free(m)) == NULL)
		return err_new(ERR_INTERNAL, "http: invalid request");
	if (!m->options.allow_http && str_starts(origin, "http:"))
		return err_public(ERR_CONFIG,
		    "%s: requests without TLS are not allowed",
		    host_of(origin));
	one->http = (struct http){ .options = m->options };
	if ((one->http.curl = curl_easy_init()) == NULL)
		return err_new(ERR_INTERNAL, "libcurl: no handle");
	one->exchange = (struct exchange){ .request = r,
		.url = r->url,
		.left_ms = r->deadline_ms,
		.networks = m->options.networks };
	one->a = a;
	one->origin = origin;
	one->context = context;
	m->n++;
	buf_init(&one->exchange.lines, HTTP_HEAD_MAX);
	buf_init(&one->exchange.body, r->max);
	if (one_set(one, &one->exchange) == CURLE_OK &&
	    curl_multi_add_handle(m->multi, one->http.curl) == CURLM_OK)
		return NULL;
	one_release(m, one);
	return err_new(ERR_INTERNAL, "libcurl: the request cannot be set");
}

size_t
http_many_count(const struct http_many *m)
{
	return m->n;
}

void
http_many_wait(struct http_many *m, int64_t ms)
{
	int running;

	if (curl_multi_perform(m->multi, &running) == CURLM_OK &&
	    (size_t)running == m->n)
		(void)curl_multi_poll(m->multi, NULL, 0, (int)ms, NULL);
}

void *
http_many_next(struct http_many *m, struct http_response *out,
    const struct err **e)
{
	struct http_one *one = NULL;
	struct CURLMsg *message;
	long status = 0;
	void *context;
	CURLcode rc;
	int left;

	(void)memset(out, 0, sizeof(*out));
	*e = NULL;
	message = curl_multi_info_read(m->multi, &left);
	if (message == NULL || message->msg != CURLMSG_DONE)
		return NULL;
	rc = message->data.result;
	(void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &one);
	if (rc == CURLE_OK)
		rc = curl_easy_getinfo(one->http.curl, CURLINFO_RESPONSE_CODE,
		    &status);
	(void)curl_multi_remove_handle(m->multi, one->http.curl);
	if (rc == CURLE_OK && status < 200)
		rc = CURLE_WEIRD_SERVER_REPLY;
	if (rc == CURLE_OK)
		response_build(one->a, &one->exchange, (int)status, out);
	else
		*e = call_failed(NULL, one->origin, rc, &one->exchange);
	context = one->context;
	one_release(m, one);
	return context;
}
