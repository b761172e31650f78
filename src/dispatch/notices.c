/* SPDX-License-Identifier: ISC */
/*
 * Sends the messages of notifiers.
 *
 * Each receiver occupies one child at a time, so one that is slow delays no
 * other.  A message that fails is sent again with a growing delay; the
 * notifier's other messages wait behind it, in their order, unless the mail
 * server rejects only this one.
 */
#include <string.h>
#include <unistd.h>

#include "core/address.h"
#include "core/log.h"
#include "core/str.h"
#include "crypto/webhook.h"
#include "dispatch/child.h"
#include "dispatch/context.h"
#include "dispatch/link.h"
#include "dispatch/message.h"
#include "dispatch/sender.h"
#include "dispatch/text.h"
#include "http/http.h"
#include "http/mail.h"
#include "store/notifier.h"

#define FIRST_SECONDS 5 /* the first delay */
#define AGE_MAX 259200  /* three days: given up */
#define RESPONSE_MAX ((size_t)64 << 10)
#define HOST_MAX 256

#define STATUS_GONE 410
#define STATUS_LIMITED 429

/* In the child. */
struct courier {
	struct dispatch *d;
	struct arena *a;
	struct access access;
	struct http *http;
	struct notice notice; /* the one that is being sent */
	bool is_gone;         /* the receiver wants no more messages */
};

static const struct err *
sign(struct courier *x, struct blob sealed, const struct webhook *w,
    const char **out)
{
	const char *purpose = arena_printf(x->a, NOTIFIER_PURPOSE,
	    (long long)x->notice.notifier_id);
	const struct err *e;
	char *secret;

	*out = NULL;
	if (x->access.keyring == NULL)
		return err_public(ERR_CONFIG,
		    "The runner cannot read the key file, which decrypts the "
		    "secret.");
	e = keyring_unseal(x->access.keyring, x->a, purpose, sealed, &secret);
	if (e == NULL && !webhook_sign(x->a, secret, w, out))
		e = err_new(ERR_INTERNAL, "the secret is malformed");
	return e;
}

/* For a day after a rotation, both secrets sign. */
static const struct err *
signatures(struct courier *x, const struct webhook *w, const char **out)
{
	const struct notice *n = &x->notice;
	const struct err *e;
	const char *old;

	e = sign(x, n->secret, w, out);
	if (e != NULL || n->old_secret.len == 0)
		return e;
	if ((e = sign(x, n->old_secret, w, &old)) == NULL)
		*out = arena_printf(x->a, "%s %s", *out, old);
	return e;
}

/* Any status but 2xx is an error with the status as its number. */
static const struct err *
post(struct courier *x, struct http_request *request)
{
	struct http_response response;
	const struct err *e;
	int64_t wait;

	request->method = HTTP_POST;
	request->url = x->notice.target;
	request->type = "application/json";
	request->len = strlen(request->body);
	request->deadline_ms = SENDER_SEND_MS;
	request->max = RESPONSE_MAX;
	if ((e = http_call(x->http, x->a, request, &response)) != NULL)
		return e;
	if (response.status / 100 == 2)
		return NULL;
	x->is_gone = response.status == STATUS_GONE;
	wait = http_retry_after(&response);
	return err_public_number(response.status == STATUS_LIMITED ?
		ERR_RATE :
		ERR_UPSTREAM,
	    wait > 0 ? (int)wait : 0, "The receiver returned status %d.",
	    response.status);
}

static const struct err *
send_webhook(struct courier *x)
{
	struct webhook w = { .id = x->notice.message_id,
		.at = time_now_ms() / 1000 };
	const char *body, *signature;
	struct http_request request;
	const struct err *e;

	if ((e = message_webhook(x->a, &x->notice, &body)) != NULL)
		return e;
	w.body = (struct blob){ .data = body, .len = strlen(body) };
	if ((e = signatures(x, &w, &signature)) != NULL)
		return e;
	request = (struct http_request){ .body = body,
		.header = { { "webhook-id", w.id },
		    { "webhook-timestamp",
			arena_printf(x->a, "%lld", (long long)w.at) },
		    { "webhook-signature", signature } } };
	return post(x, &request);
}

static const struct err *
send_chat(struct courier *x)
{
	struct http_request request = { .body = NULL };
	const struct err *e;

	if ((e = message_chat(x->a, &x->notice, &request.body)) != NULL)
		return e;
	return post(x, &request);
}

/* Splits "a@example.org, b@example.org". */
static void
recipients_split(struct arena *a, const char *list, struct mail *out)
{
	size_t n = 0, len;

	for (; n < MAIL_RECIPIENTS_MAX; list += len) {
		list += strspn(list, ", ");
		if ((len = strcspn(list, ", ")) == 0)
			break;
		out->to[n++] = arena_strndup(a, list, len);
	}
	out->to[n] = NULL;
}

static const char *
sender_address(struct arena *a, const struct settings_mail *s)
{
	char host[HOST_MAX];
	const char *from;

	if (s->from != NULL)
		return s->from;
	if (gethostname(host, sizeof(host)) == -1)
		return "slipway@localhost";
	host[sizeof(host) - 1] = '\0';
	from = arena_printf(a, "slipway@%s", host);
	return str_matches(from, ADDRESS_MAIL_ERE) ? from : "slipway@localhost";
}

static enum mail_security
security_of(const struct settings_mail *s)
{
	const char *name = settings_mail_security(s);

	if (str_eq(name, SETTINGS_MAIL_TLS))
		return MAIL_TLS;
	return str_eq(name, SETTINGS_MAIL_STARTTLS) ? MAIL_STARTTLS :
						      MAIL_PLAIN;
}

static const struct err *
send_mail(struct courier *x)
{
	const struct settings_mail *s = &x->d->settings.mail;
	const struct notice *n = &x->notice;
	const char *to = n->notifier_id == 0 ? n->email : n->target;
	struct mail mail = { .deadline_ms = SENDER_SEND_MS };
	struct mail_server server;

	if (s->server == NULL)
		return err_public(ERR_CONFIG,
		    "No mail server is configured: set server in [mail].");
	server = (struct mail_server){ .address = s->server,
		.security = security_of(s),
		.user = s->user,
		.password = s->password,
		.tls_ca = s->tls_ca };
	recipients_split(x->a, to, &mail);
	mail.from = sender_address(x->a, s);
	mail.text = message_mail(x->a, n, mail.from, to);
	return mail_send(&server, &mail);
}

static const struct err *
notice_send(struct courier *x)
{
	const char *kind = x->notice.kind;

	x->is_gone = false;
	if (x->notice.deployment_id.set)
		x->notice.url = link_deployment(&x->d->settings, x->a,
		    x->notice.deployment_id.n);
	if (str_eq(kind, NOTIFIER_MAIL))
		return send_mail(x);
	return str_eq(kind, NOTIFIER_TEXT) ? send_chat(x) : send_webhook(x);
}

/* Whether the message has a receiver: the notifier may have been deleted or
 * deactivated, and the user may have no address any more. */
static bool
has_receiver(const struct notice *n)
{
	if (n->notifier_id != 0)
		return n->kind != NULL;
	return n->email != NULL && str_matches(n->email, ADDRESS_MAIL_ERE);
}

static const struct err *
failure_store(struct courier *x, const struct err *why, const char *fault)
{
	struct db *db = x->access.db;
	const struct notice *n = &x->notice;
	const int64_t seconds = sender_delay(FIRST_SECONDS, n->attempts,
	    why->code == ERR_RATE ? why->sys : 0);

	if (x->is_gone)
		return notice_disable(db, n, x->d->name, fault);
	if (n->age > AGE_MAX)
		return notice_drop(db, n, fault);
	return str_eq(n->kind, NOTIFIER_MAIL) && why->sys >= 500 ?
	    notice_later(db, n, seconds, fault) :
	    notice_postpone(db, n, seconds, fault);
}

/* Logs a failure when it is new, and when the message is given up. */
static enum sent
failed(struct courier *x, const struct err *e)
{
	const struct notice *n = &x->notice;
	struct err room;
	const struct err *stored, *why = err_keep(&room, e);
	const char *fault = text_clean(x->a, err_words(why),
	    NOTIFIER_ERROR_MAX);

	if (x->is_gone)
		log_warn("notifier %lld is deactivated: %s",
		    (long long)n->notifier_id, fault);
	else if (n->age > AGE_MAX)
		log_error("notifier %lld: message %s is given up: %s",
		    (long long)n->notifier_id, n->message_id, why->msg);
	else if (!str_eq(fault, n->last_error))
		log_warn("notifier %lld: message %s cannot be sent: %s",
		    (long long)n->notifier_id, n->message_id, why->msg);
	if ((stored = failure_store(x, why, fault)) == NULL)
		return SENT;
	log_err(stored, "notifiers");
	return SENT_AWAY;
}

static enum sent
notice_handle(struct courier *x)
{
	const struct err *e;

	if (!has_receiver(&x->notice)) {
		e = notice_drop(x->access.db, &x->notice, NULL);
	} else {
		if ((e = notice_send(x)) != NULL)
			return failed(x, e);
		e = notice_sent(x->access.db, &x->notice);
	}
	if (e == NULL)
		return SENT;
	log_err(e, "notifiers");
	return SENT_AWAY;
}

static enum sent
notices_deliver(struct courier *x)
{
	const int64_t end = time_mono_ms() + SENDER_TURN_MS;
	const struct err *e;

	while (time_mono_ms() < end) {
		arena_clear(x->a);
		e = notice_claim(x->access.db, x->a, SENDER_HOLD, &x->notice);
		if (e != NULL && e->code == ERR_NOTFOUND)
			return SENT;
		if (e != NULL) {
			log_err(e, "notifiers");
			return SENT_AWAY;
		}
		if (notice_handle(x) == SENT_AWAY)
			return SENT_AWAY;
	}
	return SENT;
}

static enum sent
notices_send(struct dispatch *d)
{
	const struct settings_notify *s = &d->settings.notify;
	const struct http_options options = { .tls_ca = s->tls_ca,
		.agent = "slipway/" SLIPWAY_VERSION,
		.direct = true,
		.networks = s->private_networks != NULL ? s->private_networks :
							  "" };
	struct courier x = { .d = d, .a = d->a };
	const struct err *e;

	if ((e = child_open(d, &x.access)) == NULL &&
	    (e = http_open(&options, &x.http)) == NULL)
		return notices_deliver(&x);
	log_err(e, "notifiers");
	return SENT_AWAY;
}

static bool
notices_is_enabled(const struct dispatch *d)
{
	(void)d;
	return true;
}

static const struct sender_kind notices = {
	.what = "notifiers",
	.children = SENDER_CHILDREN,
	.is_enabled = notices_is_enabled,
	.due = notice_due,
	.send = notices_send,
};

SENDER_FUNCTIONS(notices, notices)

const struct part notices_part = { SENDER_MEMBERS(notices) };
