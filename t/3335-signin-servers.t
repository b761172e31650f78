#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Signing in by each kind of Git server, as each of them does it.

use strict;
use warnings;
use POSIX ();
use Slipway::API;
use Slipway::Browser;
use Slipway::DB;
use Slipway::Forge;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $n = 0;

# So many requests at once: their status.
sub at_once {
	my ($b, $api, $path, $times) = @_;
	my @runs = map {
		my $file = tempdir() . "/once$_";
		my $pid = fork;
		if (!$pid) {
			my (undef, $out) = run_cmd('curl', '-s', '--cacert', $api->cacert, '-o', '/dev/null', '-w', '%{http_code}',
			    '-H', 'Cookie: ' . $b->cookies, $api->url . $path);
			spew($file, $out);
			POSIX::_exit(0);
		}
		[$pid, $file];
	} 1 .. $times;
	waitpid $_->[0], 0 for @runs;
	return map { slurp($_->[1]) } @runs;
}

for my $case (['gitea', 'public'], ['gitea', 'secret'], ['gitea', 'prefix'], ['forgejo', 'public'], ['gitlab', 'public'],
    ['gitlab', 'secret'], ['github', 'secret']) {
	my ($type, $how) = @$case;
	my $name = "$type, $how";
	my $forge = Slipway::Forge->start(type => $type, $how eq 'secret' ? (client_secret => 'a secret & more=') : (),
		$how eq 'prefix' ? (prefix => '/git') : ());
	$forge->user('ann', { id => 7, name => 'Ann Lee' });
	$forge->user('eve');
	my $api = Slipway::API->start(db => $db, migrated => $n++, nginx => \&Slipway::Browser::unlimited, 
	    conf => "[api]\nslow_workers = 4\n" . $forge->conf);
	my ($status, $out, $err) = run_cmd(program('slipway-admin'), '-c', $api->conf_file, 'key');
	is($status, 0, "$name: a key") or diag "$out$err";
	chown 0, (getpwnam 'nobody')[3], $api->dir . '/secret.key' if is_root();
	$api->stop_api;
	$api->start_api;
	$db->sql("UPDATE user SET valid = 0; DELETE FROM session; DELETE FROM git_token;"
	    . " INSERT INTO user (username, role) VALUES ('ann', 'deployer')");

	my $b = Slipway::Browser->new($api, $forge);
	my $got = $b->enter('ann');
	is($got->{status}, 200, "$name: signing in") or diag $got->{body};
	is($got->{json}{user}{name}, 'Ann Lee', 'as who it is there');
	is($db->sql("SELECT CONCAT(forge, ' ', forge_id) FROM user WHERE username = 'ann' AND valid = 1"), $forge->url . ' 7',
	    'known by server and number');
	is($b->visit('GET', '/api/auth/info')->{json}{username}, 'ann', 'the session works');
	is($db->sql('SELECT IF(expires_at IS NULL, \'for ever\', IF(refresh IS NULL, \'ends\', \'renewable\')) FROM git_token'),
	    $type eq 'github' ? 'for ever' : 'renewable', 'the token is kept as it lives');

	is(Slipway::Browser->new($api, $forge)->enter('eve')->{status}, 403, "$name: a stranger");
	is(scalar(() = $forge->live_tokens('eve')), $type eq 'gitlab' ? 0 : 1, 'whose token is given back where that can be done');
	# tokens that end, through the API: refreshed once, and nobody is signed out
	my $repo = $forge->repo('team/site', private => 1, users => ['ann']);
	$repo->commit('main', { file => "text\n" }, 'first');
	$got = $api->post('/api/projects', { name => "p$n", repository => $forge->url . '/team/site.git' });
	is($got->{status}, 201, "$name: a project") or diag $got->{body};
	my $branches = "/api/git/branches?projectId=$got->{json}{id}";
	is($b->visit('GET', $branches)->{json}{data}[0]{name}, 'main', 'its branches by the own token');
	if ($type ne 'github') {
		$forge->expire_tokens('ann')->forget_requests;
		is(join(' ', at_once($b, $api, $branches, 4)), '200 200 200 200', 'expired: four at once are served');
		is(scalar(grep { $_->{body} =~ /grant_type=refresh_token/ } $forge->requests(qr/token$/)), 1, 'after one refresh');
		$forge->expire_tokens('ann')->drop_refresh_tokens;
		$got = $b->visit('GET', $branches);
		is($got->{status}, 502, 'the server ended it all') or diag $got->{body};
		like($got->{json}{detail}, qr/sign in again/, 'words');
		is($b->visit('GET', '/api/auth/info')->{status}, 401, 'and the session with it');
		is($b->enter('ann')->{status}, 200, 'signing in again');
		is($b->visit('GET', $branches)->{status}, 200, 'mends it');
	}

	my $back = $b->go('ann');
	$got = $b->login({ %$back, code => 'x' x 40 });
	is($got->{status}, 400, "$name: a code that is none") or diag $got->{body};
	like($got->{json}{detail}, qr/rejected the request: \w+/, 'in the server\'s words');
	is(join(' ', $forge->complaints), '', 'the server had nothing to complain of');

	# the application there was changed
	$forge->store->change(sub { $_->{secret} = 'another' for values %{ $_[0]{clients} } });
	$got = $b->login($b->go('ann'));
	is($got->{status}, 503, "$name: the client's secret is wrong") or diag $got->{body};
	like($got->{json}{detail}, qr/client/, 'which is the configuration\'s fault');
	unlike($got->{body}, qr/a secret/, 'the secret is not told');
	unlike($api->log, qr/a secret|another/, 'nor logged');
	$api->stop;
	$forge->stop;
}

# --- settings that do not do: what is wrong is said, the rest is served
my %wrong = (
	'no client' => ["url = https://git.example.org\n", qr/GITSERVER_CLIENT_ID.*GITSERVER_REDIRECT_URI/],
	'GitHub without a secret' => ["url = https://github.com\ntype = github\nclient_id = x\nredirect_uri = https://example.org/\n", qr/GITSERVER_CLIENT_SECRET/],
	'a server without sign-in' => ["url = https://git.example.org\ntype = git\nclient_id = x\nredirect_uri = https://example.org/\n", qr/GITSERVER_TYPE/],
	'no address' => ["url = git.example.org\nclient_id = x\nredirect_uri = https://example.org/\n", qr/GITSERVER_URL/],
	'without TLS' => ["url = http://git.example.org\nclient_id = x\nredirect_uri = https://example.org/\n", qr/GITSERVER_URL.*https:/],
);
for my $name (sort keys %wrong) {
	my ($text, $says) = @{ $wrong{$name} };
	my $api = Slipway::API->start(db => $db, migrated => 1, conf => "[gitserver]\n$text");
	spew($api->dir . '/secret.key', '1 ' . 'A' x 43 . "=\n", 0640);
	chown 0, (getpwnam 'nobody')[3], $api->dir . '/secret.key' if is_root();
	$api->stop_api;
	$api->start_api;
	my $got = $api->as('none')->get('/api/auth/url');
	is($got->{status}, 503, "$name: nobody can sign in");
	like($got->{json}{detail}, $says, 'and what is wrong is told') or diag $got->{body};
	is($api->get('/api/projects')->{status}, 200, 'the rest is served');
	$api->stop;
}

done_testing;
