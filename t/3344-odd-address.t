#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# An address on the Git server that is none of a repository there is read by
# git's own protocol, and with the caller's token like any other: a maintainer
# gets nothing with the service's token by spelling an address in another way.

use strict;
use warnings;
use MIME::Base64 qw(decode_base64);
use Slipway::API;
use Slipway::DB;
use Slipway::Forge;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $f = Slipway::Forge->start(type => 'gitea');
$f->user($_) for qw(eve bot);
my $repo = $f->repo('team/secret', private => 1, users => ['bot']);
$repo->commit('main', {}, 'hidden');
my $key = tempdir() . '/secret.key';
my $service = $f->token('bot');
my $conf = $f->conf(token => $service) . "[secrets]\nkey_file = $key\n";
my $file = spew(tempdir() . '/probe.conf', $db->conf . $conf, 0600);
my ($status, $out, $err) = run_cmd(program('slipway-admin'), '-c', $file, 'key');
is($status, 0, 'a key') or diag("$out$err");
chown 0, (getpwnam 'nobody')[3], $key if is_root();
chmod 0640, $key;
my $api = Slipway::API->start(db => $db, conf => $conf);
my %as = map { $_ => $api->new_token('maintainer', $_) } qw(eve max);
my $token = $f->token('eve');
($status, $out, $err) = run_cmd(program('t/unit/access_probe'), $file, 'put',
    $db->sql("SELECT id FROM user WHERE username = 'eve'") + 0, $token, '-', 0);
is($status, 0, 'eve has an account there') or diag("$out$err");

# With which passwords git came.
sub passwords {
	my %seen;
	for ($f->requests) {
		my ($code) = ($_->{headers}{authorization} || '') =~ /^Basic (\S+)/i;
		$seen{ (split /:/, decode_base64($code), 2)[1] }++ if defined $code;
		$seen{$1}++ if ($_->{headers}{authorization} || '') =~ /^(?:Bearer|token) (\S+)/;
	}
	return join ' ', sort keys %seen;
}

my $n = 0;
for my $path ('/team//secret.git', '/team/secret.git//', '//team/secret.git', '/team/secret.git/x') {
	my $got = $api->post('/api/projects', { name => 'p' . ++$n, repository => $f->url . '/team/other.git' });
	is($got->{status}, 201, 'a project') or diag($got->{body});
	my $p = $got->{json}{id};
	# as it may be stored from times when the API took it
	$db->sql("UPDATE project SET repository = '" . $f->url . "$path' WHERE id = $p");
	for my $what (qw(branches commits)) {
		$f->forget_requests;
		$got = $api->get("/api/git/$what?projectId=$p", { Authorization => "Bearer $as{eve}" });
		isnt($got->{status}, 200, "$path: eve reads no $what") or diag($got->{body});
		unlike(passwords(), qr/\Q$service\E/, 'and nothing was asked with the token of the service');
	}
	$f->forget_requests;
	$api->get("/api/git/branches?projectId=$p", { Authorization => "Bearer $as{max}" });
	unlike(passwords(), qr/\Q$token\E/, 'somebody without an account is not served with hers');
	$f->forget_requests;
	$db->sql('DELETE FROM git_token');
	$got = $api->get("/api/git/branches?projectId=$p", { Authorization => "Bearer $as{eve}" });
	is($got->{status}, 502, "$path: without a token eve is told to sign in again") or diag($got->{body});
	is(passwords(), '', 'and nothing is asked with any');
	($status) = run_cmd(program('t/unit/access_probe'), $file, 'put', $db->sql("SELECT id FROM user WHERE username = 'eve'") + 0, $token, '-', 0);
}
is($api->stop, 0, 'ends');
done_testing;
