#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# No push is lost because many arrive at once or because one lists many files;
# events without a valid signature are rate limited.

use strict;
use warnings;
use IO::Socket::SSL ();
use Cpanel::JSON::XS ();
use Test::More;
use Slipway::API;
use Slipway::DB;
use Slipway::Hook;
use Slipway::Test;
use Slipway::Visitor;

use constant MIB => 1 << 20;
my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db, keys => 1);
my $open = $api->as('none');
my $project = $api->post('/api/projects',
    { name => 'p', repository => 'https://git.example.org/owner/name.git' })->{json}{id};
my $pipeline = $api->post('/api/pipelines',
    { projectId => $project, name => 'p', steps => [ { name => 's', script => 'true' } ] })->{json}{id};
my $got = $api->put("/api/projects/$project",
    { triggers => [ { branch => '**', pipelineId => $pipeline, envVars => {} } ] });
is($got->{status}, 200, 'a trigger is stored') or diag($got->{body});
my $hook = "/api/hooks/$project";
my $secret = $api->put("/api/projects/$project/hook-secret")->{json}{secret};
my $commit = 0;
sub fresh { return sprintf '%040x', ++$commit + 0xabcd0000 }
sub made { return $db->sql('SELECT COUNT(*) FROM deployment') }

# --- many at once, over 50 connections
sub many {
	my ($n, $secret, %drop) = @_;
	my %count;
	my @socks = map { IO::Socket::SSL->new(PeerAddr => $api->url =~ s{https://}{}r,
	    SSL_ca_file => $api->cacert, SSL_verifycn_name => 'localhost')
	    or die "connect: $!" } 1 .. 50;
	for (my $left = $n; $left > 0; $left -= 50) {
		for my $s (@socks) {
			my ($headers, $body) = push_event(gitea => $secret, commit => fresh());
			delete @$headers{ grep { $drop{$_} } keys %$headers };
			print {$s} "POST $hook HTTP/1.1\r\nHost: localhost\r\n"
			    . "Content-Type: application/json\r\n"
			    . join('', map { "$_: $headers->{$_}\r\n" } keys %$headers) . 'Content-Length: '
			    . length($body) . "\r\n\r\n$body";
		}
		$count{ status_from($_) }++ for @socks;
	}
	return \%count;
}
# Reads a whole response; its status, or 'none'.
sub status_from {
	my ($s) = @_;
	local $/ = "\r\n\r\n";
	my $head = <$s> // '';
	my ($length) = $head =~ /^Content-Length: *(\d+)/mi or return 'none';
	return read($s, my $body, $length) == $length && $head =~ m{^HTTP/1\.1 (\d+)} ? $1 : 'none';
}
my $before = made();
is_deeply(many(500, $secret), { 202 => 500 }, '500 signed pushes from one address are all accepted');
is(made(), $before + 500, 'each of 500 pushes creates a deployment');
$before = made();
my %bad;
# As many as needed: the rate limit counts by time, and the machine may be busy.
ok(poll(120, sub {
	my $more = many(500, 'whsec_' . 'A' x 43 . '=');
	$bad{$_} += $more->{$_} for keys %$more;
	return $bad{429};
}), 'an address that sends many wrong signatures gets 429 in the end') or diag(explain \%bad);
is_deeply([ sort keys %bad ], [ 401, 429 ], 'events with a wrong signature return 401, then 429');
cmp_ok($bad{401}, '>=', 300, 'hundreds of events return 401 before the rate limit');
is(many(50, $secret)->{202}, 50, 'signed pushes from a rate-limited address are accepted');
is(made(), $before + 50, 'events with a wrong signature create no deployment');
ok(poll(120, sub { many(500, $secret, map { $_ => 1 } qw(X-Gitea-Signature X-Hub-Signature-256))->{429} }),
	'nginx limits unsigned events');
is(many(50, $secret)->{202}, 50, 'signed pushes are accepted while unsigned ones are limited');

# --- addresses of IPv6, of which one host has a network
my $wide = Slipway::API->start(db => $db, nginx => sub {
	my ($name, $text) = @_;
	return Slipway::Visitor::addressed($name, $text =~ s{rate=20r/s}{rate=1r/m}r);
});
my $stranger = $wide->as('none');
sub limited { # how many of 300 unsigned events from these addresses
	my ($make) = @_;
	return scalar grep {
		$stranger->post($hook, '{}', { 'X-Address' => $make->($_) })->{status} == 429;
	} 1 .. 300;
}
cmp_ok(limited(sub { sprintf '2001:db8::7:%x:%x', $_[0], $_[0] }), '>', 50,
    'unsigned events from the addresses of one network are limited together');
is(limited(sub { sprintf '2001:db8:0:%x::7', 256 + $_[0] }), 0,
    'unsigned events from different networks are not limited together');
$wide->stop;

# --- many files
my $json = Cpanel::JSON::XS->new->utf8->canonical;
my %names;
sub event {
	my ($kind, $files, %o) = @_;
	my $hash = fresh();
	my $first = $json->encode({ id => $hash, message => 'all of it', added => ['@'],
	    author => { name => 'Ann' } });
	my $names = $names{$files} ||= join ',',
	    map { qq("a/rather/long/folder/file-number-$_") } 1 .. $files;
	$first =~ s/"\@"/$names/;
	my $body = push_body($kind, commit => $hash, message => 'all of it', body => { commits => ['@'] },
	    %o);
	$body =~ s/"\@"/$first/;
	my $sign = sign_event($kind, $secret, $body);
	return ($sign, $body, $hash);
}
for my $kind (@HOOK_KINDS) {
	my ($headers, $body, $hash) = event($kind, 650_000);
	cmp_ok(length $body, '>', 25 * MIB - 1, sprintf '%s: a push has %d MiB', $kind, length($body) / MIB);
	$got = $open->post($hook, $body, $headers);
	is($got->{status}, 202, "$kind: a push of 25 MiB is accepted")
	    or diag($got->{body}, substr $api->log, -2000);
	is($got->{json}{data}[0]{commitHash}, $hash, "$kind: a push of 25 MiB deploys its commit");
	my $again = $open->post($hook, $body, $headers);
	is($again->{body}, $got->{body}, "$kind: a redelivery of a push of 25 MiB returns the same response");
		next if $kind eq 'gitlab'; # which signs no body
	like($open->post($hook, $body =~ s/owner/0wner/r, $headers)->{status}, qr/^(?:401|429)$/,
	    "$kind: a push of 25 MiB with one changed byte is rejected");
}
for my $worker ($api->workers) {
	my ($data) = (slurp("/proc/$worker/status") || '') =~ /VmData:\s+(\d+)/;
	cmp_ok($data, '<', 16 * 1024, 'a worker frees the memory of large pushes') if defined $data;
}
my ($headers, $body) = push_event(gitea => $secret, commit => fresh(), message => 'm' x (8 * MIB));
$got = $open->post($hook, $body, $headers);
is($got->{status}, 202, 'a push with a commit message of 8 MiB is accepted') or diag($got->{body});
is($got->{json}{data}[0]{commitMessage}, undef, 'a commit message of 8 MiB is left out');
($headers, $body) = event(gitlab => 10,
    body => { commits => [ map { { id => 'x' x 40, message => 'y' x 2000 } } 1 .. 5000 ] });
is($open->post($hook, $body, $headers)->{status}, 202, 'a push with 5,000 long commits is accepted')
    or diag($body =~ /^(.{200})/);
$body = push_body('gitea', commit => fresh(), body => { map { ("k$_" => 0) } 1 .. 110_000 });
is($open->post($hook, $body, sign_event(gitea => $secret, $body))->{status}, 400,
    'an event with 110,000 members returns 400');
$body = '{"a":"' . 'x' x (32 * MIB) . '"}';
is($open->post($hook, $body, sign_event(gitea => $secret, $body))->{status}, 413,
    'an event above 32 MiB returns 413');
$body = '{"a":"' . 'x' x (2 * MIB) . '"}';
is($open->post($hook, $body, { 'X-Gitea-Event' => 'push' })->{status}, 413,
    'an unsigned event above 1 MiB returns 413');
like($open->post($hook, 'x' x (MIB + 1), { 'X-Gitea-Event' => 'push' })->{json}{detail},
    qr/larger than 1 MiB\. Only a signed push event/, 'the error names the limit of an unsigned event');
is($api->post('/api/projects', $body)->{status}, 413, 'another request above 1 MiB returns 413');
is(scalar(grep { m{killed by signal|Sanitizer|exit status} } split /\n/, $api->log), 0, 'no worker died')
    or diag($api->log);
done_testing;
