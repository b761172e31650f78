#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Signing in by a third-party authorization server (npm's oidc-provider with
# Gitea's paths) through nginx on both sides, as a public client and as one with a
# secret; an invalid login creates no session. If npm's registry is unreachable,
# the tests' own Git server takes its place.

use strict;
use warnings;
use Digest::SHA qw(sha256_hex);
use Slipway::API qw(bearer);
use Slipway::Visitor;
use Slipway::DB;
use Slipway::Forge;
use Slipway::OIDC;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $to = 'https://slipway.example.org/login';
my %accounts = (ann => { id => 7, full_name => 'Ann Lee', email => 'ann@example.org' },
	eve => { id => 8, full_name => 'Eve', email => 'eve@example.org' });

sub server {
	my (%opt) = @_;
	my $real = Slipway::OIDC->start(redirect_uri => $to, accounts => \%accounts, %opt);
	note($real ? 'signing in by oidc-provider'
	    : "signing in by the stand-in: npm's packages are unavailable");
	return $real if $real;
	my $f = Slipway::Forge->start(redirect_uri => $to, client_secret => $opt{secret});
	$f->user($_ => { id => $accounts{$_}{id}, name => $accounts{$_}{full_name} }) for sort keys %accounts;
	return $f;
}

my $key = "[secrets]\nkey_file = " . tempdir() . "/secret.key\n";
ok(make_keys(spew(tempdir() . '/key.conf', $db->conf . $key, 0600), tempdir() . '/secret.key'),
    'slipway-admin key creates the keys for secrets');

my %common = (db => $db, nginx => \&Slipway::Visitor::unlimited);
my $server = server();
my $api = Slipway::API->start(%common, conf => $key . $server->conf . "[auth]\nadmins = ann\n");
my $none = $api->as('none');

# A request of a browser, which is a hash of its cookies.
sub visit {
	my ($b, $method, $path, $body) = @_;
	my $got = $none->request($method, $path, $body,
	    { Cookie => join '; ', map { "$_=$b->{$_}" } sort keys %$b });
	my $set = $got->{headers}{'set-cookie'};
	for my $line (ref $set ? @$set : defined $set ? $set : ()) {
		my ($name, $value) = $line =~ /^([^=]+)=([^;]*)/;
		if ($line =~ /Max-Age=0/) { delete $b->{$name} } else { $b->{$name} = $value }
	}
	return $got;
}
sub begin {
	my ($b, $login, %opt) = @_;
	my $got = visit($b, 'GET', '/api/auth/url');
	is($got->{status}, 200, 'GET /api/auth/url returns 200') or diag($got->{body});
	my $back = $server->authorize($got->{json}{url}, $login, %opt);
	is($back->{state}, $got->{json}{state}, 'the server redirects back with the state');
	return $back;
}
sub login {
	my ($b, $back, %more) = @_;
	return visit($b, 'POST', '/api/auth/login',
	    { code => $back->{code}, state => $back->{state}, %more });
}
sub sessions { return $db->sql('SELECT COUNT(*) FROM session') }
# Tests that a login is rejected, and leaves nothing.
sub rejected {
	my ($name, $b, $back, %more) = @_;
	my $before = sessions();
	my $got = login($b, $back, %more);
	like($got->{status}, qr/^(?:40[013]|422)$/, "$name is rejected") or diag($got->{body});
	cmp_ok(length($got->{json}{detail} || ''), '>', 10, "$name: the error explains itself");
	is(sessions(), $before, "$name creates no session");
	ok(!exists $b->{'__Host-slipway'}, "$name sets no session cookie");
	return $got;
}

# --- success
my %b;
my $back = begin(\%b, 'ann');
my $got = login(\%b, $back, defined $back->{iss} ? (iss => $back->{iss}) : ());
is($got->{status}, 200, 'a login succeeds') or diag($got->{body});
is($got->{json}{user}{username}, 'ann', 'a user signs in as the account that authorized it');
is($got->{json}{user}{name}, 'Ann Lee', 'the full name comes from the server');
is($got->{json}{user}{role}, 'admin', 'an account of auth.admins becomes an administrator');
is(visit(\%b, 'GET', '/api/auth/info')->{json}{username}, 'ann', 'the cookie of the session works');
is($none->get('/api/projects', bearer($got->{json}{token}))->{status}, 200, 'the session works as a token');
is($db->sql('SELECT COUNT(*) FROM git_token'), 1, 'the token of the server is stored');
is($db->sql("SELECT CONCAT(forge, ' ', forge_id) FROM user WHERE username = 'ann'"), $server->url . ' 7',
    'the user is bound to the server and the id of the account');

# --- repeated, expired and foreign logins
rejected('a repeated login', {}, $back);
my %c;
$back = begin(\%c, 'ann');
rejected('a login by another browser', {}, $back);
my %other;
visit(\%other, 'GET', '/api/auth/url');
rejected('a login by another browser that has begun to sign in', \%other, $back);
is(login(\%c, $back)->{status}, 200, 'rejected logins do not use up the sign-in');
$back = begin(\%c, 'ann');
$db->sql('UPDATE signin SET created_at = created_at - INTERVAL 11 MINUTE');
delete $c{'__Host-slipway'};
rejected('a login after eleven minutes', \%c, $back);
rejected('a login without a state', \%c, { code => $back->{code}, state => '' });
rejected('a login with an unknown state', \%c, { code => $back->{code}, state => 'x' x 43 });

# --- codes that the server rejects
my %d;
$back = begin(\%d, 'ann');
my $again = begin(\%d, 'ann');
is(login(\%d, $back)->{status}, 200, 'a login with a new code succeeds');
%d = ();
$again = begin(\%d, 'ann');
$got = rejected('a used code with a new state', \%d, { %$again, code => $back->{code} });
like($got->{json}{detail}, qr/invalid_grant|unauthorized_client/, 'the server rejects a used code');
is($none->get('/api/auth/info', bearer($b{'__Host-slipway'}))->{status}, 200,
    'a used code does not end other sessions');
%d = ();
my $mine = begin(\%d, 'ann');
my %thief;
my $theirs = begin(\%thief, 'eve');
$got = rejected('a code of another sign-in', \%d, { %$mine, code => $theirs->{code} });
like($got->{json}{detail}, qr/invalid_grant|unauthorized_client/,
    'the server rejects a code of another sign-in for its verifier');
%d = ();
$got = rejected('an unknown code', \%d, { %{ begin(\%d, 'ann') }, code => 'made-up' });
$got = rejected('another issuer', \%d, begin(\%d, 'ann'), iss => 'https://evil.example.org');

# --- unknown accounts, denied access, invalid requests
rejected('an unknown account', \%d, begin(\%d, 'eve'));
$back = begin(\%d, 'ann', deny => 1);
is($back->{error}, 'access_denied', 'a user who denies access returns with access_denied');
ok(!defined $back->{code}, 'a user who denies access returns without a code');
like($back->{location}, qr/^\Q$to\E\?/, 'a user who denies access returns to the client');
my $url = visit(\%d, 'GET', '/api/auth/url')->{json}{url};
for my $case (['another client' => client_id => 'other'],
    ['another redirect URI' => redirect_uri => 'https%3A%2F%2Fevil.example.org%2F']) {
	my ($name, $what, $value) = @$case;
	my $end = $server->authorize($url =~ s/\b$what=[^&]*/$what=$value/r, 'ann');
	is($end->{status}, 400, "the server does not redirect a request of $name");
	ok(!defined $end->{code}, "the server issues no code to $name");
}
$back = $server->authorize($url =~ s/&code_challenge[^&]*//gr, 'ann');
is($back->{error}, 'invalid_request', 'the server rejects a request without PKCE');

# --- a client with a secret
$api->stop;
$server->stop;
my $secret = 'a secret of the client, 0123456789';
$server = server(secret => $secret);
$api = Slipway::API->start(%common, migrated => 1,
    conf => $key . $server->conf . "[auth]\nadmins = bob, ann\nsignup = viewer\n");
$none = $api->as('none');
%b = ();
$back = begin(\%b, 'eve');
$got = login(\%b, $back);
is($got->{status}, 200, 'a login by a client with a secret succeeds') or diag($got->{body});
is($got->{json}{user}{role}, 'viewer', 'a new user gets the role of auth.signup');
unlike($api->log, qr/\Q$secret\E|\Q$back->{code}\E|\Q$got->{json}{token}\E/, 'the log contains no secret');
$api->stop;
my $wrong = $server->conf =~ s/^client_secret.*/client_secret = wrong/mr;
$api = Slipway::API->start(%common, migrated => 1, conf => "$key${wrong}[auth]\nsignup = viewer\n");
$none = $api->as('none');
%b = ();
$got = login(\%b, begin(\%b, 'eve'));
is($got->{status}, 503, 'a login with a wrong client secret returns 503') or diag($got->{body});
like($got->{json}{detail}, qr/invalid_client|invalid client secret/, 'the error names the client secret');
unlike($got->{body}, qr/wrong\b.*secret/, 'the error does not show the secret');

done_testing;
