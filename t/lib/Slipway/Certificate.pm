# SPDX-License-Identifier: ISC
package Slipway::Certificate;

# Certificates for a test, as NAME.crt and NAME.key in a directory.
#
#   make_ca($dir, 'ca');
#   make_certificate($dir, 'ca', 'client', 'DNS:client');

use strict;
use warnings;
use Exporter 'import';
use Slipway::Test;

our @EXPORT = qw(make_ca make_certificate);

my @key = ('-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes');

sub _openssl {
	my ($status, undef, $err) = run_cmd('openssl', @_);
	die "openssl: $err" if $status != 0;
	return;
}

sub make_ca {
	my ($dir, $name) = @_;
	_openssl('req', '-x509', @key, '-days', 2, '-subj', "/CN=$name", '-keyout', "$dir/$name.key",
	    '-out', "$dir/$name.crt");
	return;
}

sub make_certificate {
	my ($dir, $ca, $name, $alternatives) = @_;
	my $extensions = spew("$dir/$name.ext", "subjectAltName = $alternatives\n");
	_openssl('req', @key, '-subj', "/CN=$name", '-keyout', "$dir/$name.key", '-out', "$dir/$name.csr");
	_openssl('x509', '-req', '-days', 2, '-in', "$dir/$name.csr", '-CA', "$dir/$ca.crt", '-CAkey',
	    "$dir/$ca.key", '-CAcreateserial', '-extfile', $extensions, '-out', "$dir/$name.crt");
	return;
}

1;
