#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Over TCP the client verifies the server's certificate: right CA, wrong CA, wrong
# name, no TLS; and presents its own.

use strict;
use warnings;
use Test::More;
use Slipway::DB;
use Slipway::Probe;
use Slipway::Test;

my $dir = tempdir();
sub openssl {
	my ($status, $out, $err) = run_cmd('openssl', @_);
	die "openssl: $err" if $status != 0;
	return;
}
for my $ca ('ca', 'other') {
	openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', 2,
	    '-subj', "/CN=$ca", '-keyout', "$dir/$ca.key", '-out', "$dir/$ca.crt");
}
# 127.1 is an address of this machine, but slipway does not take it for one.
my %san = ('127.0.0.1' => 'IP:127.0.0.1,DNS:127.1');
for my $name ('127.0.0.1', 'elsewhere.example', 'client') {
	spew("$dir/$name.ext", 'subjectAltName = ' . ($san{$name} || "DNS:$name") . "\n");
	openssl('req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-subj', "/CN=$name",
	    '-keyout', "$dir/$name.key", '-out', "$dir/$name.csr");
	openssl('x509', '-req', '-days', 2, '-in', "$dir/$name.csr", '-CA', "$dir/ca.crt", '-CAkey',
	    "$dir/ca.key",
	    '-CAcreateserial', '-extfile', "$dir/$name.ext", '-out', "$dir/$name.crt");
}

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
like(ask("tls_ca = $dir/ca.crt\n"), qr/^err internal/,
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
like(ask("host = 127.1\n"), qr/^err (?:unavailable|internal)/,
    'a server without TLS on another host is rejected');
like(ask("host = 127.1\nallow_plain = yes\n"), qr/^ok/, 'allow_plain accepts it');
like(ask("tls_ca = $dir/ca.crt\n"), qr/^err (?:unavailable|internal)/,
    'a server without TLS is rejected if a CA is configured');
done_testing();
