# SPDX-License-Identifier: ISC
package Slipway::HTTP;

# HTTP::Tiny for tests.  It sends head and body of a request separately.  Without
# TCP_NODELAY the body waits until the server acknowledges the head, which takes 40 ms.

use strict;
use warnings;
use HTTP::Tiny ();
use Socket qw(IPPROTO_TCP TCP_NODELAY);

my $connect = \&HTTP::Tiny::Handle::connect;
no warnings 'redefine';
*HTTP::Tiny::Handle::connect = sub {
	my $handle = $connect->(@_);
	setsockopt $handle->{fh}, IPPROTO_TCP, TCP_NODELAY, 1 or die "TCP_NODELAY: $!\n";
	return $handle;
};

1;
