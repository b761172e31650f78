/* SPDX-License-Identifier: ISC */
/* What notifiers send about an event. */
#ifndef SLIPWAY_DISPATCH_MESSAGE_H
#define SLIPWAY_DISPATCH_MESSAGE_H

#include "core/arena.h"
#include "queue/notice.h"

/* The texts live in the arena. */

/* The body of a webhook: a JSON object. */
MUSTCHECK const struct err *message_webhook(struct arena *,
    const struct notice *, const char **out);
/* The body for a chat service: {"text": "..."}. */
MUSTCHECK const struct err *message_chat(struct arena *, const struct notice *,
    const char **out);
/* A mail with its headers (RFC 5322); `to` is the list of its recipients. */
const char *message_mail(struct arena *, const struct notice *,
    const char *from, const char *to);

#endif
