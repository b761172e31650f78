#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Over TCP the client verifies the server's certificate: right CA, wrong CA, wrong
# name, no TLS; and presents its own.

use strict;
use warnings;
use Test::More;
use Slipway::Certificate;
use Slipway::DB;
use Slipway::Probe;
use Slipway::Test;

my $dir = tempdir();
make_ca($dir, $_) for 'ca', 'other';
# 127.1 is an address of this machine, but slipway does not take it for one.
make_certificate($dir, 'ca', '127.0.0.1', 'IP:127.0.0.1,DNS:127.1');
make_certificate($dir, 'ca', $_, "DNS:$_") for 'elsewhere.example', 'client';

my $db = Slipway::DB->start(port => 1,
    args => ["--ssl-cert=$dir/127.0.0.1.crt", "--ssl-key=$dir/127.0.0.1.key",
	"--ssl-ca=$dir/ca.crt"]);
$db->migrate;
my $n = 0;
# The answer of a client with these settings to one command.
sub ask {
	my ($more, $what) = @_;
	my $conf = spew("$dir/tls" . ++$n . '.conf', $db->conf(tcp => 1) . $more, 0600);
	my $probe = Slipway::Probe->start($conf);
	my $answer = $probe->ask($what || 'ping');
	$probe->stop;
	return $answer;
}
like(ask("tls_ca = $dir/ca.crt\n"), qr/^ok/, 'a server with a certificate of the configured CA is accepted');
is(ask("tls_ca = $dir/ca.crt\n", 'fork'), 'ok same', 'the connection survives a child that opens its own');
like(ask("tls_ca = $dir/other.crt\n"), qr/^err unavailable 2026/, 'a certificate of another CA is rejected');
like(ask("tls_ca = $dir/nowhere.crt\n"), qr/^err unavailable/,
    'a missing CA file makes the database unavailable');
like(ask(''), qr/^ok/, 'TLS is optional on this host if no CA is configured');
like(ask("host = 127.1\n"), qr/^err unavailable 2026/,
    'another host needs a certificate of a CA of the system');
{
	local $ENV{SSL_CERT_FILE} = "$dir/ca.crt";
	like(ask("host = 127.1\n"), qr/^ok/,
	    'another host with a certificate of a CA of the system is accepted');
}
$db->sql("ALTER USER slipway\@127.0.0.1 REQUIRE SSL", 'mysql');
like(ask("tls_ca = $dir/ca.crt\n"), qr/^ok/, 'an account that requires TLS is accepted');
$db->sql("ALTER USER slipway\@127.0.0.1 REQUIRE X509", 'mysql');
like(ask("tls_ca = $dir/ca.crt\n"), qr/^err config/,
    'an account that requires a certificate rejects a client without one');
like(ask("tls_ca = $dir/ca.crt\ntls_cert = $dir/client.crt\ntls_key = $dir/client.key\n"), qr/^ok/,
    'a client with a certificate is accepted');
like(ask("tls_ca = $dir/ca.crt\ntls_cert = $dir/client.crt\ntls_key = $dir/other.key\n"),
    qr/^err unavailable 2026/, 'a certificate with the key of another is rejected');

$db->{args} = ["--ssl-cert=$dir/elsewhere.example.crt", "--ssl-key=$dir/elsewhere.example.key"];
$db->restart;
like(ask("tls_ca = $dir/ca.crt\n"), qr/^err unavailable 2026/, 'a certificate of another host is rejected');

$db->sql("ALTER USER slipway\@127.0.0.1 REQUIRE NONE", 'mysql');
$db->{args} = [];
$db->restart;
like(ask(''), qr/^ok/, 'a server without TLS on this host is accepted if no CA is configured');
like(ask("host = 127.1\n"), qr/^err (?:unavailable|config)/,
    'a server without TLS on another host is rejected');
like(ask("host = 127.1\nallow_plain = yes\n"), qr/^ok/, 'allow_plain accepts it');
like(ask("tls_ca = $dir/ca.crt\n"), qr/^err (?:unavailable|config)/,
    'a server without TLS is rejected if a CA is configured');
done_testing();
