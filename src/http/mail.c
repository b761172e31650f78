/* SPDX-License-Identifier: ISC */
#include "http/mail.h"

#include <stdio.h>
#include <string.h>

#include "core/str.h"
#include "http/inner.h"

#define URL_MAX 300

struct upload {
	const char *text;
	size_t left;
};

static size_t
give_text(char *to, size_t size, size_t n, void *context)
{
	struct upload *u = context;
	const size_t len = size * n < u->left ? size * n : u->left;

	(void)memcpy(to, u->text, len);
	u->text += len;
	u->left -= len;
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
set_numbers(CURL *curl, const struct mail_server *s, const struct mail *m)
{
	const struct {
		CURLoption option;
		long value;
	} numbers[] = {
		{ CURLOPT_NOSIGNAL, 1 },
		{ CURLOPT_NETRC, CURL_NETRC_IGNORED },
		{ CURLOPT_UPLOAD, 1 },
		{ CURLOPT_USE_SSL,
		    s->security == MAIL_PLAIN ? CURLUSESSL_NONE :
						CURLUSESSL_ALL },
		{ CURLOPT_SSL_VERIFYPEER, 1 },
		{ CURLOPT_SSL_VERIFYHOST, 2 },
		{ CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2 },
		{ CURLOPT_TIMEOUT_MS, (long)m->deadline_ms },
		{ CURLOPT_QUICK_EXIT, 1 },
	};
	CURLcode rc = CURLE_OK;
	size_t i;

	for (i = 0; rc == CURLE_OK && i < sizeof(numbers) / sizeof(*numbers);
	     i++)
		rc = curl_easy_setopt(curl, numbers[i].option,
		    numbers[i].value);
	return rc;
}

static CURLcode
set_all(CURL *curl, const struct mail_server *s, const struct mail *m,
    const char *url, struct curl_slist *to, struct upload *u, char *text)
{
	const struct {
		CURLoption option;
		const void *value;
	} pointers[] = {
		{ CURLOPT_URL, url },
		{ CURLOPT_PROXY, "" },
		{ CURLOPT_PROTOCOLS_STR, "smtp,smtps" },
		{ CURLOPT_MAIL_FROM, m->from },
		{ CURLOPT_MAIL_RCPT, to },
		{ CURLOPT_USERNAME, s->user },
		{ CURLOPT_PASSWORD, s->password },
		{ CURLOPT_READDATA, u },
		{ CURLOPT_ERRORBUFFER, text },
	};
	CURLcode rc = set_numbers(curl, s, m);
	size_t i;

	for (i = 0; rc == CURLE_OK && i < sizeof(pointers) / sizeof(*pointers);
	     i++)
		rc = curl_easy_setopt(curl, pointers[i].option,
		    pointers[i].value);
	if (rc == CURLE_OK && s->tls_ca != NULL &&
	    (rc = curl_easy_setopt(curl, CURLOPT_CAPATH, NULL)) == CURLE_OK)
		rc = curl_easy_setopt(curl, CURLOPT_CAINFO, s->tls_ca);
	return rc != CURLE_OK ?
	    rc :
	    curl_easy_setopt(curl, CURLOPT_READFUNCTION, give_text);
}

static const struct err *
send_failed(const struct mail_server *s, CURLcode rc, long reply,
    const char *text)
{
	const struct failure *f = http_failure(rc);
	const struct err *cause = err_number(f->code,
	    reply >= 400 ? (int)reply : 0, "libcurl %d, %s", (int)rc, text);

	if (reply >= 400 && rc != CURLE_LOGIN_DENIED)
		return err_explain(cause, ERR_UPSTREAM,
		    "%s rejected the mail with reply %ld", s->address, reply);
	return err_explain(cause, f->code, "%s %s", s->address, f->text);
}

const struct err *
mail_send(const struct mail_server *s, const struct mail *m)
{
	struct curl_slist to[MAIL_RECIPIENTS_MAX + 1];
	struct upload u = { .text = m->text, .left = strlen(m->text) };
	char url[URL_MAX], text[CURL_ERROR_SIZE] = "";
	const struct err *e;
	long reply = 0;
	CURLcode rc;
	CURL *curl;

	if ((e = http_library_start()) != NULL)
		return e;
	if ((curl = curl_easy_init()) == NULL)
		return err_new(ERR_INTERNAL, "libcurl: no handle");
	recipients_build(m, to);
	(void)snprintf(url, sizeof(url), "%s://%s",
	    s->security == MAIL_TLS ? "smtps" : "smtp", s->address);
	if ((rc = set_all(curl, s, m, url, to, &u, text)) == CURLE_OK)
		rc = curl_easy_perform(curl);
	(void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &reply);
	e = rc == CURLE_OK ? NULL : send_failed(s, rc, reply, text);
	curl_easy_cleanup(curl);
	return e;
}
