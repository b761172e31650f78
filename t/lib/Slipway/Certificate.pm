# SPDX-License-Identifier: ISC
package Slipway::Certificate;

# Certificates for a test, each in two files: NAME.crt and NAME.key in a directory, or
# the files that the caller names.  This process makes them, because one run of
# openssl(1) takes ten times as long.
#
#   make_ca($dir, 'ca');
#   make_certificate($dir, 'ca', 'client', 'DNS:client');
#   make_front($dir);   # ca.pem and ca.key, cert.pem and cert.key for localhost
#   make_wrong($dir, 'expired', 'DNS:localhost', -1);   # from that CA, ended yesterday
#   make_self_signed("$dir/cert.pem", "$dir/cert.key");   # for localhost

use strict;
use warnings;
use Exporter 'import';
use IO::Socket::SSL::Utils qw(CERT_create KEY_create_ec PEM_cert2file PEM_file2cert PEM_file2key
    PEM_key2file);

our @EXPORT = qw(make_ca make_certificate make_front make_self_signed make_wrong);

my $life = 2 * 24 * 3600; # seconds

sub _make {
	my ($certificate, $key, $name, %more) = @_;
	my $private = KEY_create_ec('prime256v1');
	my ($made) = CERT_create(key => $private, subject => { commonName => $name },
	    not_after => time + $life, %more);
	PEM_cert2file($made, $certificate);
	PEM_key2file($private, $key);
	chmod 0600, $key or die "$key: $!";
	return;
}

# Options for a server that has these names: "DNS:a, IP:127.0.0.1".
sub _named { return (subjectAltNames => [map { [split /:/, $_, 2] } split /,\s*/, $_[0]]) }
sub _signed { return (issuer => [PEM_file2cert($_[0]), PEM_file2key($_[1])]) }

sub make_ca {
	my ($dir, $name) = @_;
	_make("$dir/$name.crt", "$dir/$name.key", $name, CA => 1);
	return;
}

sub make_certificate {
	my ($dir, $ca, $name, $alternatives) = @_;
	_make("$dir/$name.crt", "$dir/$name.key", $name, _named($alternatives),
	    _signed("$dir/$ca.crt", "$dir/$ca.key"));
	return;
}

sub make_front {
	my ($dir) = @_;
	_make("$dir/ca.pem", "$dir/ca.key", 'A test', CA => 1);
	_make("$dir/cert.pem", "$dir/cert.key", 'localhost', _named('DNS:localhost, IP:127.0.0.1'),
	    _signed("$dir/ca.pem", "$dir/ca.key"));
	return;
}

# NAME.pem and NAME.key with these names, from the CA of make_front(); it ends in that
# many days.
sub make_wrong {
	my ($dir, $name, $alternatives, $days) = @_;
	_make("$dir/$name.pem", "$dir/$name.key", 'localhost', _named($alternatives),
	    _signed("$dir/ca.pem", "$dir/ca.key"), not_before => time - $life,
	    not_after => time + 24 * 3600 * $days);
	return;
}

sub make_self_signed {
	my ($certificate, $key) = @_;
	_make($certificate, $key, 'localhost', _named('DNS:localhost'), purpose => 'sslCA,server');
	return;
}

1;
