#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# An address on the Git server that is not a repository is read by git's own
# protocol, with the caller's token: a maintainer cannot use the service's token by
# writing an address differently.

use strict;
use warnings;
use Slipway::API qw(bearer);
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
ok(make_keys($file, $key), 'slipway-admin key creates the keys for secrets');
chmod 0640, $key;
my $api = Slipway::API->start(db => $db, conf => $conf);
my %as = map { $_ => $api->new_token('maintainer', $_) } qw(eve max);
my $token = $f->token('eve');
my $eve = $db->sql("SELECT id FROM user WHERE username = 'eve'") + 0;
my @put = (program('t/unit/access_probe'), $file, 'put', $eve, $token, '-', 0);
my ($status, $out, $err) = run_cmd(@put);
is($status, 0, 'the token of eve is stored') or diag("$out$err");

my $n = 0;
for my $path ('/team//secret.git', '/team/secret.git//', '//team/secret.git', '/team/secret.git/x') {
	my $got = $api->post('/api/projects',
	    { name => 'p' . ++$n, repository => $f->url . '/team/other.git' });
	is($got->{status}, 201, 'a project is created') or diag($got->{body});
	my $p = $got->{json}{id};
	# An earlier version of the API accepted such addresses.
	$db->sql("UPDATE project SET repository = '" . $f->url . "$path' WHERE id = $p");
	$db->sql("INSERT INTO branch_commits (project_id, branch, commits, checked_at) VALUES ($p, 'main', "
	    . '\'[{"hash":"' . '1' x 40 . "\",\"message\":\"a stored commit\"}]', NOW(3))");
	for my $what (qw(branches commits)) {
		$f->forget_requests;
		$got = $api->get_in_time("/api/git/$what?projectId=$p", bearer($as{eve}));
		isnt($got->{status}, 200, "$path: eve cannot read $what") or diag($got->{body});
		unlike($f->passwords, qr/\Q$service\E/,
		    "$path: no request for $what carries the service's token");
	}
	$f->forget_requests;
	$api->get_in_time("/api/git/branches?projectId=$p", bearer($as{max}));
	unlike($f->passwords, qr/\Q$token\E/, "$path: no request of another user carries eve's token");
	$f->forget_requests;
	$db->sql('DELETE FROM git_token');
	$got = $api->get_in_time("/api/git/branches?projectId=$p", bearer($as{eve}));
	is($got->{status}, 502, "$path: without a token eve has to sign in again") or diag($got->{body});
	is($f->passwords, '', "$path: without a token no request carries any");
	isnt($api->get_in_time("/api/git/commits?projectId=$p&branch=main", bearer($as{eve}))->{status}, 200,
	    "$path: stored commits require the right to read the repository, too");
	($status) = run_cmd(@put);
}
is($api->stop, 0, 'the API ends with status 0');
done_testing;
