/* SPDX-License-Identifier: ISC */
#include "core/network.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/num.h"

#define SEPARATORS ", \t"
#define ADDRESS_BITS 128
#define V4_BITS 32
#define TEXT_MAX 64 /* of one entry */

#define V4 "::ffff:0.0.0.0/96"
#define V4_SPECIAL                                                             \
	"0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 "       \
	"172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 "              \
	"192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 "         \
	"224.0.0.0/4 240.0.0.0/4"
#define V6_PUBLIC "2000::/3"
#define V6_SPECIAL "2001::/23 2001:db8::/32 2002::/16 3fff::/20"

struct network {
	struct in6_addr address;
	int64_t bits;
};

static struct in6_addr
mapped(struct in_addr v4)
{
	struct in6_addr out = { .s6_addr = { [10] = 0xff, [11] = 0xff } };

	(void)memcpy(out.s6_addr + 12, &v4, sizeof(v4));
	return out;
}

static bool
entry_read(const char *text, size_t len, struct network *out)
{
	int64_t bits = ADDRESS_BITS, max = ADDRESS_BITS;
	char copy[TEXT_MAX], *slash;
	struct in_addr v4;

	if (len >= sizeof(copy))
		return false;
	(void)memcpy(copy, text, len);
	copy[len] = '\0';
	if ((slash = strchr(copy, '/')) != NULL)
		*slash = '\0';
	if (inet_pton(AF_INET, copy, &v4) == 1) {
		out->address = mapped(v4);
		bits = max = V4_BITS;
	} else if (inet_pton(AF_INET6, copy, &out->address) != 1) {
		return false;
	}
	if (slash != NULL && !num_parse(slash + 1, 0, max, &bits))
		return false;
	out->bits = bits + ADDRESS_BITS - max;
	return true;
}

/* Finds the next entry of the list, and advances the list beyond it; its
 * length, 0 at the end. */
static size_t
entry_next(const char **list, const char **out)
{
	size_t len;

	*out = *list + strspn(*list, SEPARATORS);
	len = strcspn(*out, SEPARATORS);
	*list = *out + len;
	return len;
}

static bool
lies_in(const struct network *network, const struct in6_addr *address)
{
	const size_t whole = (size_t)network->bits / 8;
	const unsigned mask = 0xff00U >> (network->bits % 8) & 0xff;

	return memcmp(network->address.s6_addr, address->s6_addr, whole) == 0 &&
	    (mask == 0 ||
		((network->address.s6_addr[whole] ^ address->s6_addr[whole]) &
		    mask) == 0);
}

static bool
address_of(const struct sockaddr *sa, struct in6_addr *out)
{
	struct sockaddr_in6 v6;
	struct sockaddr_in v4;

	if (sa->sa_family == AF_INET) {
		(void)memcpy(&v4, sa, sizeof(v4));
		*out = mapped(v4.sin_addr);
		return true;
	}
	if (sa->sa_family != AF_INET6)
		return false;
	(void)memcpy(&v6, sa, sizeof(v6));
	*out = v6.sin6_addr;
	return true;
}

bool
network_has(const char *list, const struct sockaddr *sa)
{
	struct in6_addr address;
	struct network network;
	const char *entry;
	size_t len;

	if (!address_of(sa, &address))
		return false;
	while ((len = entry_next(&list, &entry)) > 0)
		if (entry_read(entry, len, &network) &&
		    lies_in(&network, &address))
			return true;
	return false;
}

bool
network_is_public(const struct sockaddr *sa)
{
	if (network_has(V4, sa))
		return !network_has(V4_SPECIAL, sa);
	return network_has(V6_PUBLIC, sa) && !network_has(V6_SPECIAL, sa);
}

const char *
network_fault(const char *list)
{
	struct network network;
	const char *entry;
	size_t len;

	while ((len = entry_next(&list, &entry)) > 0)
		if (!entry_read(entry, len, &network))
			return "must be addresses or networks like 10.0.0.0/8";
	return NULL;
}
