/* SPDX-License-Identifier: ISC */
/*
 * Sends the mails of notifiers, and those to users who have none.
 *
 * All go to one server, each child sends one after the other.  Other messages do
 * not wait for that server: see notices.c.
 */
#include <string.h>
#include <unistd.h>

#include "core/address.h"
#include "core/log.h"
#include "core/str.h"
#include "dispatch/context.h"
#include "dispatch/courier.h"
#include "dispatch/link.h"
#include "dispatch/message.h"
#include "http/mail.h"

#define HOST_MAX 256

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
mail_deliver(struct courier *x)
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

/* In a child: whether another mail may follow. */
static enum sent
mail_send_one(struct courier *x)
{
	if (!courier_has_receiver(x))
		return courier_drop(x);
	x->is_gone = false;
	if (x->notice.deployment_id.set)
		x->notice.url = link_deployment(&x->d->settings, x->a,
		    x->notice.deployment_id.n);
	return courier_done(x, mail_deliver(x));
}

static enum sent
mails_send(struct dispatch *d)
{
	const int64_t end = time_mono_ms() + SENDER_TURN_MS;
	struct access access;
	struct courier x = { .d = d, .access = &access, .a = d->a };
	const struct err *e;

	e = child_open(d, &access);
	while (e == NULL && time_mono_ms() < end) {
		arena_clear(x.a);
		e = notice_claim_mail(access.db, x.a, SENDER_HOLD, &x.notice);
		if (e != NULL && e->code == ERR_NOTFOUND)
			return SENT;
		if (e == NULL && mail_send_one(&x) == SENT_AWAY)
			return SENT_AWAY;
	}
	if (e == NULL)
		return SENT;
	log_err(e, "mails");
	return SENT_AWAY;
}

static bool
mails_is_enabled(const struct dispatch *d)
{
	(void)d;
	return true;
}

static const struct sender_kind mails = {
	.what = "mails",
	.children = SENDER_CHILDREN,
	.is_enabled = mails_is_enabled,
	.due = notice_due_mail,
	.send = mails_send,
};

SENDER_FUNCTIONS(mails, mails)

const struct part mails_part = { SENDER_MEMBERS(mails) };
