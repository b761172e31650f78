#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# No push is lost because many come at once, or because one tells of many files;
# events that nobody signed, or signed wrong, stay limited.

use strict;
use warnings;
use IO::Socket::SSL ();
use JSON::PP ();
use Test::More;
use Slipway::API;
use Slipway::DB;
use Slipway::Hook;
use Slipway::Test;

use constant MIB => 1 << 20;
my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db);
ok($api->create_keys, 'slipway-admin key creates the keys for secrets');
my $open = $api->as('none');
my $project = $api->post('/api/projects', { name => 'p', repository => 'https://git.example.org/owner/name.git' })->{json}{id};
my $pipeline = $api->post('/api/pipelines', { projectId => $project, name => 'p', steps => [ { name => 's', script => 'true' } ] })->{json}{id};
my $got = $api->put("/api/projects/$project", { triggers => [ { branch => '**', pipelineId => $pipeline, envVars => {} } ] });
is($got->{status}, 200, 'a trigger') or diag($got->{body});
my $hook = "/api/hooks/$project";
my $secret = $api->put("/api/projects/$project/hook-secret")->{json}{secret};
my $commit = 0;
sub fresh { return sprintf '%040x', ++$commit + 0xabcd0000 }
sub made { return $db->sql('SELECT COUNT(*) FROM deployment') }

# --- many at once
sub many {
	my ($n, $secret, %drop) = @_;
	my %count;
	for (my $left = $n; $left > 0; $left -= 50) {
		my @socks = map { IO::Socket::SSL->new(PeerAddr => $api->url =~ s{https://}{}r, SSL_ca_file => $api->cacert, SSL_verifycn_name => 'localhost') or die "connect: $!" } 1 .. 50;
		for my $s (@socks) {
			my ($headers, $body) = push_event(gitea => $secret, commit => fresh());
			delete @$headers{ grep { $drop{$_} } keys %$headers };
			print {$s} "POST $hook HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
			    . join('', map { "$_: $headers->{$_}\r\n" } keys %$headers) . 'Content-Length: ' . length($body) . "\r\n\r\n$body";
		}
		for my $s (@socks) {
			local $/;
			my $answer = <$s>;
			$count{ ($answer // '') =~ m{^HTTP/1\.1 (\d+)} ? $1 : 'none' }++;
		}
	}
	return \%count;
}
my $before = made();
is_deeply(many(500, $secret), { 202 => 500 }, 'five hundred signed pushes from one address are all taken');
is(made(), $before + 500, 'and each makes its deployment');
$before = made();
my %bad;
# As many as it takes: they are counted by time, and the machine may be busy.
ok(poll(120, sub {
	my $more = many(500, 'whsec_' . 'A' x 43 . '=');
	$bad{$_} += $more->{$_} for keys %$more;
	return $bad{429};
}), 'an address that sends many with a wrong signature gets 429 in the end') or diag(explain \%bad);
is_deeply([ sort keys %bad ], [ 401, 429 ], 'after 401 for the first ones');
cmp_ok($bad{401}, '>=', 300, 'of which there are hundreds');
is(many(50, $secret)->{202}, 50, 'signed ones from the same address are taken all the same');
is(made(), $before + 50, 'and no others make a deployment');
ok(poll(120, sub { many(500, $secret, map { $_ => 1 } qw(X-Gitea-Signature X-Hub-Signature-256))->{429} }),
	'unsigned ones are limited before they reach the service');
is(many(50, $secret)->{202}, 50, 'and keep back no signed ones, either');

# --- many files
my $json = JSON::PP->new->utf8->canonical;
sub event {
	my ($kind, $files, %o) = @_;
	my $hash = fresh();
	my $first = $json->encode({ id => $hash, message => 'all of it', added => ['@'], author => { name => 'Ann' } });
	my $names = join ',', map { qq("a/rather/long/folder/file-number-$_") } 1 .. $files;
	$first =~ s/"\@"/$names/;
	my $body = push_body($kind, commit => $hash, message => 'all of it', body => { commits => ['@'] }, %o);
	$body =~ s/"\@"/$first/;
	my $sign = sign_event($kind, $secret, $body);
	return ($sign, $body, $hash);
}
for my $kind (@HOOK_KINDS) {
	my ($headers, $body, $hash) = event($kind, 650_000);
	cmp_ok(length $body, '>', 25 * MIB - 1, sprintf '%s: a push of %d MiB', $kind, length($body) / MIB);
	$got = $open->post($hook, $body, $headers);
	is($got->{status}, 202, 'is taken') or diag($got->{body}, substr $api->log, -2000);
	is($got->{json}{data}[0]{commitHash}, $hash, 'with its commit');
	my $again = $open->post($hook, $body, $headers);
	is($again->{body}, $got->{body}, 'and once');
	next if $kind eq 'gitlab'; # which signs no body
	like($open->post($hook, $body =~ s/owner/0wner/r, $headers)->{status}, qr/^(?:401|429)$/, 'changed in one byte it is not');
}
for my $worker ($api->workers) {
	my ($data) = (slurp("/proc/$worker/status") || '') =~ /VmData:\s+(\d+)/;
	cmp_ok($data, '<', 16 * 1024, 'a worker keeps nothing of it') if defined $data;
}
my ($headers, $body) = push_event(gitea => $secret, commit => fresh(), message => 'm' x (8 * MIB));
$got = $open->post($hook, $body, $headers);
is($got->{status}, 202, 'a message of 8 MiB is left out') or diag($got->{body});
is($got->{json}{data}[0]{commitMessage}, undef, 'as there is no room for it');
($headers, $body) = event(gitlab => 10, body => { commits => [ map { { id => 'x' x 40, message => 'y' x 2000 } } 1 .. 5000 ] });
is($open->post($hook, $body, $headers)->{status}, 202, 'so are more commits than there is room for') or diag($body =~ /^(.{200})/);
$body = push_body('gitea', commit => fresh(), body => { map { ("k$_" => 0) } 1 .. 110_000 });
is($open->post($hook, $body, sign_event(gitea => $secret, $body))->{status}, 400, 'more members at the top than can be compared: 400');
$body = '{"a":"' . 'x' x (32 * MIB) . '"}';
is($open->post($hook, $body, sign_event(gitea => $secret, $body))->{status}, 413, 'more than 32 MiB: 413');
$body = '{"a":"' . 'x' x (2 * MIB) . '"}';
is($open->post($hook, $body, { 'X-Gitea-Event' => 'push' })->{status}, 413, 'unsigned: more than 1 MiB is 413');
like($open->post($hook, 'x' x (MIB + 1), { 'X-Gitea-Event' => 'push' })->{json}{detail}, qr/larger than 1 MiB\. Only a signed push event/, 'the error names the limit of an unsigned event');
is($api->post('/api/projects', $body)->{status}, 413, 'as it is elsewhere');
is(scalar(grep { m{killed by signal|Sanitizer|exit status} } split /\n/, $api->log), 0, 'no worker was lost') or diag($api->log);
done_testing;
