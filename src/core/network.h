/* SPDX-License-Identifier: ISC */
/* Networks of IP addresses, as lists of "10.0.0.0/8" or single addresses,
 * separated by blanks or commas. */
#ifndef SLIPWAY_CORE_NETWORK_H
#define SLIPWAY_CORE_NETWORK_H

#include <sys/socket.h>

#include <stdbool.h>

/* Whether the address lies in one of the networks.  An IPv4 address and its
 * form in IPv6 (::ffff:10.0.0.1) are the same. */
bool network_has(const char *list, const struct sockaddr *);
/* Whether the address is reachable across the Internet, by the IANA registries
 * of special-purpose addresses.  Forms that embed an IPv4 address (6to4, NAT64,
 * Teredo) are not. */
bool network_is_public(const struct sockaddr *);
/* NULL, or what is wrong with the list. */
const char *network_fault(const char *list);

#endif
