/* SPDX-License-Identifier: ISC */
#include "dispatch/courier.h"

#include "core/address.h"
#include "core/log.h"
#include "core/str.h"
#include "dispatch/context.h"
#include "dispatch/text.h"
#include "store/notifier.h"

#define FIRST_SECONDS 5 /* the first delay */
#define AGE_MAX 259200  /* three days: given up */

bool
courier_has_receiver(const struct courier *x)
{
	const struct notice *n = &x->notice;

	if (n->notifier_id != 0)
		return n->kind != NULL;
	return n->email != NULL && str_matches(n->email, ADDRESS_MAIL_ERE);
}

static enum sent
courier_stored(const struct err *e)
{
	if (e == NULL)
		return SENT;
	log_err(e, "notifiers");
	return SENT_AWAY;
}

static const struct err *
courier_failure_store(struct courier *x, const struct err *why,
    const char *fault)
{
	struct db *db = x->access->db;
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
courier_failed(struct courier *x, const struct err *e)
{
	const struct notice *n = &x->notice;
	struct err room;
	const struct err *why = err_keep(&room, e);
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
	return courier_stored(courier_failure_store(x, why, fault));
}

enum sent
courier_drop(struct courier *x)
{
	return courier_stored(notice_drop(x->access->db, &x->notice, NULL));
}

enum sent
courier_done(struct courier *x, const struct err *e)
{
	return e != NULL ?
	    courier_failed(x, e) :
	    courier_stored(notice_sent(x->access->db, &x->notice));
}
