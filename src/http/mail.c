/* SPDX-License-Identifier: ISC */
#include "http/mail.h"

#include <stdio.h>
#include <string.h>

#include "core/str.h"
#include "http/inner.h"

#define URL_MAX 300

/* One mail on its way. */
struct transfer {
	CURL *curl;
	const struct mail_server *server;
	const struct mail *mail;
	char url[URL_MAX];
	struct curl_slist to[MAIL_RECIPIENTS_MAX + 1];
	const char *text; /* what is left of the mail */
	size_t left;
	char fault[CURL_ERROR_SIZE];
};

static size_t
give_text(char *to, size_t size, size_t n, void *context)
{
	struct transfer *t = context;
	const size_t len = size * n < t->left ? size * n : t->left;

	(void)memcpy(to, t->text, len);
	t->text += len;
	t->left -= len;
	return len;
}

/* Builds libcurl's list of recipients in memory of the caller. */
static void
recipients_build(const struct mail *m, struct curl_slist *node)
{
	size_t i;

	for (i = 0; m->to[i] != NULL; i++) {
		/* libcurl only reads the text */
		(void)memcpy(&node[i].data, &m->to[i], sizeof(node[i].data));
		node[i].next = m->to[i + 1] != NULL ? &node[i + 1] : NULL;
	}
}

static CURLcode
set_numbers(const struct transfer *t)
{
	const struct {
		CURLoption option;
		long value;
	} numbers[] = {
		{ CURLOPT_NOSIGNAL, 1 },
		{ CURLOPT_NETRC, CURL_NETRC_IGNORED },
		{ CURLOPT_UPLOAD, 1 },
		{ CURLOPT_MAIL_RCPT_ALLLOWFAILS, 1 },
		{ CURLOPT_USE_SSL,
		    t->server->security == MAIL_PLAIN ? CURLUSESSL_NONE :
							CURLUSESSL_ALL },
		{ CURLOPT_SSL_VERIFYPEER, 1 },
		{ CURLOPT_SSL_VERIFYHOST, 2 },
		{ CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2 },
		{ CURLOPT_TIMEOUT_MS, (long)t->mail->deadline_ms },
		{ CURLOPT_QUICK_EXIT, 1 },
	};
	CURLcode rc = CURLE_OK;
	size_t i;

	for (i = 0; rc == CURLE_OK && i < sizeof(numbers) / sizeof(*numbers);
	     i++)
		rc = curl_easy_setopt(t->curl, numbers[i].option,
		    numbers[i].value);
	return rc;
}

static CURLcode
set_all(struct transfer *t)
{
	const struct mail_server *s = t->server;
	const struct {
		CURLoption option;
		const void *value;
	} pointers[] = {
		{ CURLOPT_URL, t->url },
		{ CURLOPT_PROXY, "" },
		{ CURLOPT_PROTOCOLS_STR, "smtp,smtps" },
		{ CURLOPT_MAIL_FROM, t->mail->from },
		{ CURLOPT_MAIL_RCPT, t->to },
		{ CURLOPT_USERNAME, s->user },
		{ CURLOPT_PASSWORD, s->password },
		{ CURLOPT_READDATA, t },
		{ CURLOPT_ERRORBUFFER, t->fault },
	};
	CURLcode rc = set_numbers(t);
	size_t i;

	for (i = 0; rc == CURLE_OK && i < sizeof(pointers) / sizeof(*pointers);
	     i++)
		rc = curl_easy_setopt(t->curl, pointers[i].option,
		    pointers[i].value);
	if (rc == CURLE_OK && s->tls_ca != NULL &&
	    (rc = curl_easy_setopt(t->curl, CURLOPT_CAPATH, NULL)) == CURLE_OK)
		rc = curl_easy_setopt(t->curl, CURLOPT_CAINFO, s->tls_ca);
	return rc != CURLE_OK ?
	    rc :
	    curl_easy_setopt(t->curl, CURLOPT_READFUNCTION, give_text);
}

static const struct err *
send_failed(const struct transfer *t, CURLcode rc, long reply)
{
	const char *address = t->server->address;
	const struct failure *f = http_failure(rc);
	const struct err *cause = err_number(f->code,
	    reply >= 400 ? (int)reply : 0, "libcurl %d, %s", (int)rc, t->fault);

	if (reply >= 400 && rc != CURLE_LOGIN_DENIED)
		return err_explain(cause, ERR_UPSTREAM,
		    "%s rejected the mail with reply %ld", address, reply);
	return err_explain(cause, f->code, "%s %s", address, f->text);
}

const struct err *
mail_send(const struct mail_server *s, const struct mail *m)
{
	struct transfer t = { .server = s,
		.mail = m,
		.text = m->text,
		.left = strlen(m->text) };
	const struct err *e;
	long reply = 0;
	CURLcode rc;

	if ((e = http_library_start()) != NULL)
		return e;
	if ((t.curl = curl_easy_init()) == NULL)
		return err_new(ERR_INTERNAL, "libcurl: no handle");
	recipients_build(m, t.to);
	(void)snprintf(t.url, sizeof(t.url), "%s://%s",
	    s->security == MAIL_TLS ? "smtps" : "smtp", s->address);
	if ((rc = set_all(&t)) == CURLE_OK)
		rc = curl_easy_perform(t.curl);
	(void)curl_easy_getinfo(t.curl, CURLINFO_RESPONSE_CODE, &reply);
	e = rc == CURLE_OK ? NULL : send_failed(&t, rc, reply);
	curl_easy_cleanup(t.curl);
	return e;
}
