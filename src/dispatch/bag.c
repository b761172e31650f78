/* SPDX-License-Identifier: ISC */
/*
 * A child sends many at once, one to each receiver, so that none waits for
 * another, however many do not respond.  Receivers that failed last get a part
 * of the places.  A message that fails is sent again with a growing delay; the
 * notifier's other messages wait behind it, in their order.
 */
#include "dispatch/bag.h"

#include <sys/resource.h>

#include <string.h>

#include "core/log.h"
#include "core/str.h"
#include "crypto/webhook.h"
#include "dispatch/context.h"
#include "dispatch/courier.h"
#include "dispatch/link.h"
#include "dispatch/message.h"
#include "http/http.h"
#include "store/notifier.h"

#define RESPONSE_MAX ((size_t)64 << 10)
#define PARCEL_ARENA ((size_t)2 << 20)
#define PLACES 512 /* messages on their way, in one child */
#define FAILING_PLACES 256
#define PROMPT_CLAIMS 12   /* at most every CLAIM_MS, for SENDER_SEND_MS */
#define PROMPT_PLACES 1536 /* more than these */
#define FILES_MIN ((rlim_t)2048) /* descriptors for these and name servers */
#define WAIT_MS 100
#define CLAIM_MS 250 /* between claims that found nothing */
#define BEGUN 16     /* messages, before any is waited for */
#define RESULTS 16   /* stored before more are claimed */

#define STATUS_GONE 410
#define STATUS_LIMITED 429

/* A message on its way. */
struct parcel {
	struct courier x; /* with an arena once it was used */
	struct http_request request;
	bool is_used;
	bool is_failing;
};

/* In the child. */
struct bag {
	struct dispatch *d;
	struct access access;
	struct http_many *http;
	struct parcel parcels[PROMPT_PLACES];
	bool is_prompt;
	bool is_due;    /* something is, for a child that is prompt */
	size_t failing; /* how many of them are */
	int64_t end;    /* claims no more then */
	int64_t claim_at;
};

static const struct err *
body_sign(struct courier *x, struct blob sealed, const struct webhook *w,
    const char **out)
{
	const char *purpose = arena_printf(x->a, NOTIFIER_PURPOSE,
	    (long long)x->notice.notifier_id);
	const struct err *e;
	char *secret;

	*out = NULL;
	if (x->access->keyring == NULL)
		return err_public(ERR_CONFIG,
		    "The runner cannot read the key file, which decrypts the "
		    "secret.");
	e = keyring_unseal(x->access->keyring, x->a, purpose, sealed, &secret);
	if (e == NULL && !webhook_sign(x->a, secret, w, out))
		e = err_new(ERR_INTERNAL, "the secret is malformed");
	return e;
}

/* For a day after a rotation, both secrets sign. */
static const struct err *
signatures_make(struct courier *x, const struct webhook *w, const char **out)
{
	const struct notice *n = &x->notice;
	const struct err *e;
	const char *old;

	e = body_sign(x, n->secret, w, out);
	if (e != NULL || n->old_secret.len == 0)
		return e;
	if ((e = body_sign(x, n->old_secret, w, &old)) == NULL)
		*out = arena_printf(x->a, "%s %s", *out, old);
	return e;
}

/* Any status but 2xx is an error with the status as its number. */
static const struct err *
webhook_make(struct courier *x, struct http_request *out)
{
	struct webhook w = { .id = x->notice.message_id,
		.at = time_now_ms() / 1000 };
	const char *body, *signature;
	const struct err *e;

	if ((e = message_webhook(x->a, &x->notice, &body)) != NULL)
		return e;
	w.body = (struct blob){ .data = body, .len = strlen(body) };
	if ((e = signatures_make(x, &w, &signature)) != NULL)
		return e;
	*out = (struct http_request){ .body = body,
		.len = w.body.len,
		.header = { { "webhook-id", w.id },
		    { "webhook-timestamp",
			arena_printf(x->a, "%lld", (long long)w.at) },
		    { "webhook-signature", signature } } };
	return NULL;
}

static const struct err *
chat_make(struct courier *x, struct http_request *out)
{
	const struct err *e;
	const char *body;

	if ((e = message_chat(x->a, &x->notice, &body)) != NULL)
		return e;
	*out = (struct http_request){ .body = body, .len = strlen(body) };
	return NULL;
}

static const struct err *
request_make(struct courier *x, struct http_request *out)
{
	const struct err *e;

	e = str_eq(x->notice.kind, NOTIFIER_TEXT) ? chat_make(x, out) :
						    webhook_make(x, out);
	if (e != NULL)
		return e;
	out->method = HTTP_POST;
	out->url = x->notice.target;
	out->type = "application/json";
	out->deadline_ms = SENDER_SEND_MS;
	out->max = RESPONSE_MAX;
	return NULL;
}

/* Any status but 2xx is an error with the status as its number. */
static const struct err *
response_judge(struct courier *x, const struct http_response *response)
{
	int64_t wait;

	if (response->status / 100 == 2)
		return NULL;
	x->is_gone = response->status == STATUS_GONE;
	wait = http_retry_after(response);
	return err_public_number(response->status == STATUS_LIMITED ?
		ERR_RATE :
		ERR_UPSTREAM,
	    wait > 0 ? (int)wait : 0, "The receiver returned status %d.",
	    response->status);
}

static struct parcel *
parcel_free(struct bag *b)
{
	size_t i = 0;

	while (i < PROMPT_PLACES && b->parcels[i].is_used)
		i++;
	return i < PROMPT_PLACES ? &b->parcels[i] : NULL;
}

static void
parcel_release(struct bag *b, struct parcel *p)
{
	b->failing -= p->is_failing;
	p->is_used = false;
	arena_clear(p->x.a);
}

/* Sends a message that was claimed. */
static enum sent
parcel_send(struct bag *b, const struct notice *notice)
{
	struct parcel *p = parcel_free(b);
	enum sent sent = SENT;
	const struct err *e;

	if (p == NULL) /* the claim ends by itself */
		return SENT;
	if (p->x.a == NULL)
		p->x.a = arena_open(PARCEL_ARENA);
	p->x.d = b->d;
	p->x.access = &b->access;
	p->x.is_gone = false;
	notice_copy(p->x.a, notice, &p->x.notice);
	p->is_used = true;
	p->is_failing = notice->last_error != NULL;
	b->failing += p->is_failing;
	if (p->x.notice.deployment_id.set)
		p->x.notice.url = link_deployment(&b->d->settings, p->x.a,
		    p->x.notice.deployment_id.n);
	if (!courier_has_receiver(&p->x))
		sent = courier_drop(&p->x);
	else if ((e = request_make(&p->x, &p->request)) != NULL ||
	    (e = http_many_begin(b->http, p->x.a, &p->request, p)) != NULL)
		sent = courier_done(&p->x, e);
	else
		return SENT;
	parcel_release(b, p);
	return sent;
}

static size_t
places_left(const struct bag *b)
{
	const size_t all = b->is_prompt ? PROMPT_PLACES : PLACES;
	const size_t max = b->is_prompt ? PROMPT_CLAIMS : NOTICE_CLAIMS;
	const size_t left = all - http_many_count(b->http);

	return left < max ? left : max;
}

/* `more` says whether there may be others now. */
static const struct err *
bag_claim(struct bag *b, struct notice_claims *claims, int64_t now, bool *more)
{
	const struct err *e;

	if (b->is_prompt) {
		e = notice_claim_spread(b->access.db, b->d->a, claims,
		    &b->is_due);
		/* reading all that are due takes at most half of its time */
		b->claim_at = CLAIM_MS + 2 * time_mono_ms() - now;
		return e;
	}
	e = notice_claim_some(b->access.db, b->d->a, claims);
	*more = claims->n > 0;
	if (!*more)
		b->claim_at = now + CLAIM_MS;
	return e;
}

/* Claims messages and sends them. */
static enum sent
bag_fill(struct bag *b, bool *more)
{
	struct notice_claims claims = { .seconds = SENDER_HOLD,
		.max = places_left(b),
		.failing_max = b->failing < FAILING_PLACES ?
		    FAILING_PLACES - b->failing :
		    0 };
	const int64_t now = time_mono_ms();
	const struct notice *notices;
	const struct err *e;
	struct list list;
	size_t i;

	*more = false;
	b->is_due = b->is_due && now < b->end;
	if (claims.max == 0 || now >= b->end || now < b->claim_at)
		return SENT;
	arena_clear(b->d->a);
	if ((e = bag_claim(b, &claims, now, more)) != NULL ||
	    (e = notice_load(b->access.db, b->d->a, &claims, &list)) != NULL) {
		log_err(e, "notifiers");
		return SENT_AWAY;
	}
	notices = list.items;
	for (i = 0; i < list.n; i++) {
		if (parcel_send(b, &notices[i]) == SENT_AWAY)
			return SENT_AWAY;
		if (i % BEGUN == 0)
			http_many_wait(b->http, 0);
	}
	return SENT;
}

/* Stores some results. */
static enum sent
bag_empty(struct bag *b)
{
	struct http_response response;
	const struct err *e;
	struct parcel *p;
	enum sent sent;
	int n;

	for (n = 0; n < RESULTS; n++) {
		if ((p = http_many_next(b->http, &response, &e)) == NULL)
			break;
		if (e == NULL)
			e = response_judge(&p->x, &response);
		sent = courier_done(&p->x, e);
		parcel_release(b, p);
		if (sent == SENT_AWAY)
			return SENT_AWAY;
	}
	return SENT;
}

static enum sent
bag_deliver(struct bag *b)
{
	bool more = true;

	b->end = time_mono_ms() + SENDER_TURN_MS;
	for (;;) {
		/* messages that can be sent do not wait for results */
		if (bag_fill(b, &more) == SENT_AWAY ||
		    (!more && bag_empty(b) == SENT_AWAY))
			return SENT_AWAY;
		if (!more && !b->is_due && http_many_count(b->http) == 0)
			return SENT;
		http_many_wait(b->http, more ? 0 : WAIT_MS);
	}
}

/* Each message needs a connection, some also a name server. */
static void
files_allow(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) == -1 ||
	    files.rlim_cur >= FILES_MIN)
		return;
	files.rlim_cur = files.rlim_max < FILES_MIN ? files.rlim_max :
						      FILES_MIN;
	(void)setrlimit(RLIMIT_NOFILE, &files);
}

enum sent
bag_send(struct dispatch *d, bool is_prompt)
{
	static struct bag bag;
	const struct settings_notify *s = &d->settings.notify;
	const struct http_options options = { .tls_ca = s->tls_ca,
		.agent = "slipway/" SLIPWAY_VERSION,
		.direct = true,
		.networks = s->private_networks != NULL ? s->private_networks :
							  "" };
	const struct err *e;

	files_allow();
	bag.d = d;
	bag.is_prompt = is_prompt;
	if ((e = child_open(d, &bag.access)) == NULL &&
	    (e = http_many_open(&options, PROMPT_PLACES, &bag.http)) == NULL)
		return bag_deliver(&bag);
	log_err(e, "notifiers");
	return SENT_AWAY;
}
