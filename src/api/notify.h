/* SPDX-License-Identifier: ISC */
/* Notifies the service manager (sd_notify(3)), if it requested that. */
#ifndef SLIPWAY_API_NOTIFY_H
#define SLIPWAY_API_NOTIFY_H

/* "READY=1", … */
void notify_send(const char *state);

#endif
