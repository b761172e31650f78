#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Signing in by each type of Git server.

use strict;
use warnings;
use Slipway::API;
use Slipway::Background;
use Slipway::Visitor;
use Slipway::DB;
use Slipway::Forge;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $n = 0;

# The statuses of simultaneous GETs of a browser.
sub at_once {
	my ($b, $api, $path, $times) = @_;
	my @runs = map {
		background(sub { delete $api->{http}; return $b->visit('GET', $path)->{status} });
	} 1 .. $times;
	return map { $_->result } @runs;
}

for my $case (['gitea', 'public'], ['gitea', 'secret'], ['gitea', 'prefix'], ['forgejo', 'public'],
    ['gitlab', 'public'],
    ['gitlab', 'secret'], ['github', 'secret']) {
	my ($type, $how) = @$case;
	my $name = "$type, $how";
	my $forge = Slipway::Forge->start(type => $type,
	    $how eq 'secret' ? (client_secret => 'a secret & more=') : (),
		$how eq 'prefix' ? (prefix => '/git') : ());
	$forge->user('ann', { id => 7, name => 'Ann Lee' });
	$forge->user('eve');
	my $api = Slipway::API->start(db => $db, keys => 1, migrated => $n++,
	    nginx => \&Slipway::Visitor::unlimited, conf => "[api]\nslow_workers = 4\n" . $forge->conf);
	$db->sql("UPDATE user SET valid = 0; DELETE FROM session; DELETE FROM git_token;"
	    . " INSERT INTO user (username, role) VALUES ('ann', 'deployer')");

	my $b = Slipway::Visitor->new($api, $forge);
	my $got = $b->enter('ann');
	is($got->{status}, 200, "$name: a user signs in") or diag $got->{body};
	is($got->{json}{user}{name}, 'Ann Lee', "$name: the full name comes from the Git server");
	is($db->sql("SELECT CONCAT(forge, ' ', forge_id) FROM user WHERE username = 'ann' AND valid = 1"),
	    $forge->url . ' 7',
	    "$name: a user is bound to the server and the id of the account");
	is($b->visit('GET', '/api/auth/info')->{json}{username}, 'ann', "$name: the session works");
	my $kind = "IF(expires_at IS NULL, 'permanent', IF(refresh IS NULL, 'expires', 'refreshable'))";
	is($db->sql("SELECT $kind"
	    . ' FROM git_token'), $type eq 'github' ? 'permanent' : 'refreshable',
	    "$name: the token is stored with its expiry and refresh token");

	is(Slipway::Visitor->new($api, $forge)->enter('eve')->{status}, 403,
	    "$name: an unknown account cannot sign in");
	is(scalar(() = $forge->live_tokens('eve')), $type eq 'gitlab' ? 0 : 1,
	    "$name: the token of an unknown account is revoked if the server can do that");

	# --- expired tokens are refreshed once, and the session goes on
	my $repo = $forge->repo('team/site', private => 1, users => ['ann']);
	$repo->commit('main', { file => "text\n" }, 'first');
	$got = $api->post('/api/projects', { name => "p$n", repository => $forge->url . '/team/site.git' });
	is($got->{status}, 201, "$name: a project is created") or diag $got->{body};
	my $branches = "/api/git/branches?projectId=$got->{json}{id}";
	is($b->visit('GET', $branches)->{json}{data}[0]{name}, 'main',
	    "$name: the user's own token reads branches");
	if ($type ne 'github') {
		$forge->expire_tokens('ann')->forget_requests;
		is(join(' ', at_once($b, $api, $branches, 4)), '200 200 200 200',
		    "$name: four simultaneous requests with an expired token succeed");
		is(scalar(grep { $_->{body} =~ /grant_type=refresh_token/ } $forge->requests(qr/token$/)), 1,
		    "$name: four simultaneous requests refresh an expired token once");
		$forge->expire_tokens('ann')->drop_refresh_tokens;
		$got = $b->visit('GET', $branches);
		is($got->{status}, 502, "$name: a request with a rejected refresh token returns 502")
		    or diag $got->{body};
		like($got->{json}{detail}, qr/sign in again/i,
		    "$name: the error for a rejected refresh token says to sign in again");
		is($b->visit('GET', '/api/auth/info')->{status}, 401,
		    "$name: a rejected refresh token ends the session");
		is($b->enter('ann')->{status}, 200, "$name: the user can sign in again");
		is($b->visit('GET', $branches)->{status}, 200, "$name: signing in again restores access");
	}

	my $back = $b->go('ann');
	$got = $b->login({ %$back, code => 'x' x 40 });
	is($got->{status}, 400, "$name: an unknown code returns 400") or diag $got->{body};
	like($got->{json}{detail}, qr/rejected the request: \w+/,
	    "$name: the error for an unknown code quotes the server");
	is(join(' ', $forge->complaints), '', "$name: every request to the Git server was well-formed");

	# --- a changed client secret
	$forge->store->change(sub { $_->{secret} = 'changed-secret' for values %{ $_[0]{clients} } });
	$got = $b->login($b->go('ann'));
	is($got->{status}, 503, "$name: a login with a wrong client secret returns 503") or diag $got->{body};
	like($got->{json}{detail}, qr/client/, "$name: the error names the client as the cause");
	unlike($got->{body}, qr/a secret/, "$name: the error does not show the secret");
	unlike($api->log, qr/a secret|changed-secret/, "$name: the log does not show the secret");
	$api->stop;
	$forge->stop;
}

# --- incomplete and invalid settings
my $client = "client_id = x\nredirect_uri = https://example.org/\n";
my %wrong = (
	'without a client' => ["url = https://git.example.org\n",
		qr/GITSERVER_CLIENT_ID.*GITSERVER_REDIRECT_URI/],
	'of GitHub without a secret' => ["url = https://github.com\ntype = github\n$client",
		qr/GITSERVER_CLIENT_SECRET/],
	'of a server without sign-in' => ["url = https://git.example.org\ntype = git\n$client",
		qr/GITSERVER_TYPE/],
	'with an invalid URL' => ["url = git.example.org\n$client", qr/GITSERVER_URL/],
	'without TLS' => ["url = http://git.example.org\n$client", qr/GITSERVER_URL.*https:/],
);
for my $name (sort keys %wrong) {
	my ($text, $says) = @{ $wrong{$name} };
	my $api = Slipway::API->start(db => $db, migrated => 1, conf => "[gitserver]\n$text");
	spew($api->dir . '/secret.key', '1 ' . 'A' x 43 . "=\n", 0640);
	chown 0, (getpwnam 'nobody')[3], $api->dir . '/secret.key' if is_root();
	$api->restart_api;
	my $got = $api->as('none')->get('/api/auth/url');
	is($got->{status}, 503, "with settings $name GET /api/auth/url returns 503");
	like($got->{json}{detail}, $says, "with settings $name the error names the setting")
	    or diag $got->{body};
	is($api->get('/api/projects')->{status}, 200, "with settings $name other routes are served");
	$api->stop;
}

done_testing;
