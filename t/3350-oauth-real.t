#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Signing in by a real authorization server that nobody here wrote: npm's
# oidc-provider, its paths set as Gitea's, through nginx on both sides. As a
# public client and as one with a secret; whatever is wrong makes no session.
# Where npm's registry is not reached the tests' own Git server takes its place.

use strict;
use warnings;
use Digest::SHA qw(sha256_hex);
use Slipway::API;
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
	note($real ? 'signing in by oidc-provider' : 'signing in by the stand-in: npm\'s packages cannot be had');
	return $real if $real;
	my $f = Slipway::Forge->start(redirect_uri => $to, client_secret => $opt{secret});
	$f->user($_ => { id => $accounts{$_}{id}, name => $accounts{$_}{full_name} }) for sort keys %accounts;
	return $f;
}

my $key = "[secrets]\nkey_file = " . tempdir() . "/secret.key\n";
my ($status, $out, $err) = run_cmd(program('slipway-admin'), '-c', spew(tempdir() . '/key.conf', $db->conf . $key, 0600), 'key');
is($status, 0, 'a key for what is sealed') or diag("$out$err");
sub unlimited { my ($name, $text) = @_; return $text =~ s/rate=\d+r\/m/rate=6000r\/m/gr }

my $server = server();
my $api = Slipway::API->start(db => $db, nginx => \&unlimited, conf => $key . $server->conf . "[auth]\nadmins = ann\n");
my $none = $api->as('none');

# A browser: the cookies it keeps.
sub visit {
	my ($b, $method, $path, $body) = @_;
	my $got = $none->request($method, $path, $body, { Cookie => join '; ', map { "$_=$b->{$_}" } sort keys %$b });
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
	is($got->{status}, 200, 'where to sign in') or diag($got->{body});
	my $back = $server->authorize($got->{json}{url}, $login, %opt);
	is($back->{state}, $got->{json}{state}, 'sent back with the state');
	return $back;
}
sub login { my ($b, $back, %more) = @_; return visit($b, 'POST', '/api/auth/login', { code => $back->{code}, state => $back->{state}, %more }) }
sub sessions { return $db->sql('SELECT COUNT(*) FROM session') }
# Refused, with nothing left of it.
sub refused {
	my ($name, $b, $back, %more) = @_;
	my $before = sessions();
	my $got = login($b, $back, %more);
	like($got->{status}, qr/^(?:40[013]|422)$/, "$name: refused") or diag($got->{body});
	cmp_ok(length($got->{json}{detail} || ''), '>', 10, "$name: in words");
	is(sessions(), $before, "$name: no session");
	ok(!exists $b->{'__Host-slipway'}, "$name: no cookie");
	return $got;
}

# --- success
my %b;
my $back = begin(\%b, 'ann');
my $got = login(\%b, $back, defined $back->{iss} ? (iss => $back->{iss}) : ());
is($got->{status}, 200, 'signed in') or diag($got->{body});
is($got->{json}{user}{username}, 'ann', 'as who said yes');
is($got->{json}{user}{name}, 'Ann Lee', 'with the name there');
is($got->{json}{user}{role}, 'admin', 'who is an administrator here');
is(visit(\%b, 'GET', '/api/auth/info')->{json}{username}, 'ann', 'the cookie works');
is($none->get('/api/projects', { Authorization => "Bearer $got->{json}{token}" })->{status}, 200, 'so does the token');
is($db->sql('SELECT COUNT(*) FROM git_token'), 1, 'the token of the server is kept');
is($db->sql("SELECT CONCAT(forge, ' ', forge_id) FROM user WHERE username = 'ann'"), $server->url . ' 7', 'it is known who that is there');

# --- what is done twice, or too late, or elsewhere
refused('the same again', {}, $back);
my %c;
$back = begin(\%c, 'ann');
refused('another browser', {}, $back);
my %other;
visit(\%other, 'GET', '/api/auth/url');
refused('another browser that has begun too', \%other, $back);
is(login(\%c, $back)->{status}, 200, 'the right one still can');
$back = begin(\%c, 'ann');
$db->sql('UPDATE signin SET created_at = created_at - INTERVAL 11 MINUTE');
delete $c{'__Host-slipway'};
refused('eleven minutes later', \%c, $back);
refused('no state', \%c, { code => $back->{code}, state => '' });
refused('a state that was never given', \%c, { code => $back->{code}, state => 'x' x 43 });

# --- codes: each of them stands before the real server
my %d;
$back = begin(\%d, 'ann');
my $again = begin(\%d, 'ann');
is(login(\%d, $back)->{status}, 200, 'a code is used');
%d = ();
$again = begin(\%d, 'ann');
$got = refused('a reused code under a new state', \%d, { %$again, code => $back->{code} });
like($got->{json}{detail}, qr/invalid_grant|unauthorized_client/, 'refused by the server');
is($none->get('/api/auth/info', { Authorization => "Bearer $b{'__Host-slipway'}" })->{status}, 200, 'sessions that are there stay');
%d = ();
my $mine = begin(\%d, 'ann');
my %thief;
my $theirs = begin(\%thief, 'eve');
$got = refused('a code of another sign-in: wrong verifier', \%d, { %$mine, code => $theirs->{code} });
like($got->{json}{detail}, qr/invalid_grant|unauthorized_client/, 'refused by the server');
%d = ();
$got = refused('a made-up code', \%d, { %{ begin(\%d, 'ann') }, code => 'made-up' });
$got = refused('an issuer that is another', \%d, begin(\%d, 'ann'), iss => 'https://evil.example.org');

# --- who may not
refused('somebody whom nobody let in', \%d, begin(\%d, 'eve'));
$back = begin(\%d, 'ann', deny => 1);
is($back->{error}, 'access_denied', 'who says no comes back with an error');
ok(!defined $back->{code}, 'and without a code');
like($back->{location}, qr/^\Q$to\E\?/, 'to this client all the same');
my $url = visit(\%d, 'GET', '/api/auth/url')->{json}{url};
for my $case (['another client' => client_id => 'other'], ['another address to go back to' => redirect_uri => 'https%3A%2F%2Fevil.example.org%2F']) {
	my ($name, $what, $value) = @$case;
	my $end = $server->authorize($url =~ s/\b$what=[^&]*/$what=$value/r, 'ann');
	is($end->{status}, 400, "$name: the server keeps the browser");
	ok(!defined $end->{code}, "$name: no code");
}
$back = $server->authorize($url =~ s/&code_challenge[^&]*//gr, 'ann');
is($back->{error}, 'invalid_request', 'without PKCE the server says no');

# --- a client with a secret
$api->stop;
$server->stop;
my $secret = 'a secret of the client, 0123456789';
$server = server(secret => $secret);
$api = Slipway::API->start(db => $db, migrated => 1, nginx => \&unlimited, conf => $key . $server->conf . "[auth]\nadmins = bob, ann\nsignup = viewer\n");
$none = $api->as('none');
%b = ();
$back = begin(\%b, 'eve');
$got = login(\%b, $back);
is($got->{status}, 200, 'a client with a secret signs in') or diag($got->{body});
is($got->{json}{user}{role}, 'viewer', 'whom signup lets in');
unlike($api->log, qr/\Q$secret\E|\Q$back->{code}\E|\Q$got->{json}{token}\E/, 'the log has no secret');
$api->stop;
$api = Slipway::API->start(db => $db, migrated => 1, nginx => \&unlimited, conf => $key . $server->conf =~ s/^client_secret.*/client_secret = wrong/mr . "[auth]\nsignup = viewer\n");
$none = $api->as('none');
%b = ();
$got = login(\%b, begin(\%b, 'eve'));
is($got->{status}, 503, 'a wrong secret is a fault of the configuration') or diag($got->{body});
like($got->{json}{detail}, qr/invalid_client|invalid client secret/, 'and says which');
unlike($got->{body}, qr/wrong\b.*secret/, 'not the secret');

done_testing;
