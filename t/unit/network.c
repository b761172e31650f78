/* SPDX-License-Identifier: ISC */
/* Networks of addresses: which are public, which are listed, malformed lists. */
#include "core/network.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "tap.h"

static const struct sockaddr *
parse(const char *text)
{
	static struct sockaddr_in v4;
	static struct sockaddr_in6 v6;

	v4 = (struct sockaddr_in){ .sin_family = AF_INET };
	v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6 };
	if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
		return (const struct sockaddr *)&v4;
	if (inet_pton(AF_INET6, text, &v6.sin6_addr) == 1)
		return (const struct sockaddr *)&v6;
	return NULL;
}

int
main(void)
{
	static const char *const public[] = { "1.1.1.1", "9.255.255.255",
		"11.0.0.0", "172.15.255.255", "172.32.0.0", "223.255.255.255",
		"2a00::1", "2606:4700::1111", "::ffff:1.1.1.1" };
	static const char *const private[] = { "0.0.0.0", "10.0.0.0",
		"10.255.255.255", "100.64.0.1", "127.0.0.1", "127.255.255.254",
		"169.254.169.254", "172.16.0.1", "172.31.255.255",
		"192.168.1.1", "224.0.0.1", "255.255.255.255", "::", "::1",
		"::ffff:10.0.0.1", "::10.0.0.1", "64:ff9b::a00:1",
		"2002:a00:1::", "2001::1", "2001:db8::1", "fc00::1", "fe80::1",
		"fec0::1", "ff02::1", "3fff::1" };
	static const struct {
		const char *list, *address;
		bool has;
	} listed[] = {
		{ "10.0.0.0/8", "10.1.2.3", true },
		{ "10.0.0.0/8", "11.1.2.3", false },
		{ "127.0.0.1", "127.0.0.1", true },
		{ "127.0.0.1", "127.0.0.2", false },
		{ "127.0.0.1", "::ffff:127.0.0.1", true },
		{ "::ffff:10.0.0.0/104", "10.1.2.3", true },
		{ "192.168.1.128/25, fd00::/8", "192.168.1.127", false },
		{ "192.168.1.128/25, fd00::/8", "192.168.1.128", true },
		{ "192.168.1.128/25, fd00::/8", "fd12::1", true },
		{ "0.0.0.0/0", "10.1.2.3", true },
		{ "0.0.0.0/0", "fd12::1", false },
		{ "::/0", "fd12::1", true },
		{ "", "10.1.2.3", false },
	};
	static const char *const valid[] = { "", "10.0.0.0/8",
		"10.1.2.3,\tfd00::/8  ::1" };
	static const char *const invalid[] = { "10.0.0.0/33", "10.0.0.0/-1",
		"10.0.0.0/", "10.0.0/8", "fd00::/129", "localhost",
		"10.0.0.0/8 x" };
	size_t i;

	for (i = 0; i < sizeof(public) / sizeof(public[0]); i++)
		ok(network_is_public(parse(public[i])), "%s is public",
		    public[i]);
	for (i = 0; i < sizeof(private) / sizeof(private[0]); i++)
		ok(!network_is_public(parse(private[i])), "%s is not public",
		    private[i]);
	for (i = 0; i < sizeof(listed) / sizeof(listed[0]); i++)
		ok(network_has(listed[i].list, parse(listed[i].address)) ==
			listed[i].has,
		    "\"%s\" %s %s", listed[i].list,
		    listed[i].has ? "contains" : "does not contain",
		    listed[i].address);
	for (i = 0; i < sizeof(valid) / sizeof(valid[0]); i++)
		ok(network_fault(valid[i]) == NULL, "\"%s\" is valid",
		    valid[i]);
	for (i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++)
		ok(network_fault(invalid[i]) != NULL, "\"%s\" is invalid",
		    invalid[i]);

	return tap_done();
}
