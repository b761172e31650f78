/* SPDX-License-Identifier: ISC */
/* Tells who started us how it goes (sd_notify(3)), if it wants to know. */
#ifndef SLIPWAY_API_NOTIFY_H
#define SLIPWAY_API_NOTIFY_H

/* "READY=1", … */
void notify_send(const char *state);

#endif
