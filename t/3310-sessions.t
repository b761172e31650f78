#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Sessions: their rights and their ends. This test inserts them into the database;
# other tests sign in.

use strict;
use warnings;
use Digest::SHA qw(sha256_hex);
use Slipway::API qw(bearer outcome);
use Slipway::DB;
use Slipway::Runner;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db, conf => "[auth]\nsession_idle = 3600\nsession_max = 86400\n");
my $none = $api->as('none');
my $got;

sub session { return $api->new_session(@_) }
sub cookie { return Slipway::API::session_cookie(@_) }
sub status { my ($headers, $path) = @_; return $none->get($path || '/api/auth/info', $headers)->{status} }
sub where { return "WHERE hash = '" . sha256_hex($_[0]) . "'" }
sub user_id { return $db->sql("SELECT id FROM user WHERE live_username = '$_[0]'") }

# --- as a token and as a cookie
my $token = session('ada', 'maintainer');
$got = $none->get('/api/auth/info', bearer($token));
is($got->{status}, 200, 'a session works as a token') or diag $got->{body};
is($got->{json}{username}, 'ada', 'a session authenticates its user');
is($none->get('/api/auth/info', cookie($token))->{json}{username}, 'ada', 'a session works as a cookie');
is(status(cookie($token, Cookie => "a=b; __Host-slipway=$token; c=d")), 200,
    'a session works as one of several cookies');
is(status(bearer($token . 'x')), 401, 'a session with a character too many returns 401');
is(status(bearer(substr $token, 0, -1)), 401, 'a session with a character too few returns 401');
is(status(bearer('sls_')), 401, 'the prefix of a session returns 401');
is(status(bearer(sha256_hex $token)), 401, 'the hash of a session returns 401');
is(status(cookie('sls_' . 'x' x 300)), 401, 'a very long session returns 401');
is(status({ Cookie => "__host-slipway=$token" }), 401, 'the name of the cookie is case-sensitive');
is(status({ Cookie => "x__Host-slipway=$token" }), 401,
    'a cookie whose name ends with the right one returns 401');
my $hash = sha256_hex($token);
unlike($db->sql('SELECT * FROM session'), qr/\Q$token\E/, 'the database does not store a session');
like($db->sql('SELECT hash FROM session'), qr/^$hash$/m, 'the database stores the hash of a session');

# --- the same-origin rule for cookies
my %writes = ('from another site' => [{ 'Sec-Fetch-Site' => 'cross-site' }, 403],
	'from a subdomain' => [{ 'Sec-Fetch-Site' => 'same-site' }, 403],
	'typed by the user' => [{ 'Sec-Fetch-Site' => 'none' }, 403],
	'without an origin' => [{}, 403],
	'from another origin' => [{ Origin => 'https://evil.example' }, 403],
	'from our origin without TLS' => [{ Origin => $api->url =~ s/^https/http/r }, 403],
	'from the origin null' => [{ Origin => 'null' }, 403],
	'from our origin' => [{ Origin => $api->url }, 404],
	'marked as same-origin by the browser' => [{ 'Sec-Fetch-Site' => 'same-origin' }, 404]);
for my $name (sort keys %writes) {
	my ($headers, $status) = @{ $writes{$name} };
	is($none->delete('/api/projects/77', cookie($token, %$headers))->{status}, $status,
	    "a write by cookie $name returns $status");
}
is($none->delete('/api/projects/77', bearer($token))->{status}, 404, 'a write by token needs no origin');
is($none->delete('/api/projects/77', { %{ cookie($token) }, %{ bearer('wrong') } })->{status}, 401,
    'an invalid token beside a valid cookie returns 401');
is($none->get('/api/projects', cookie($token, 'Sec-Fetch-Site' => 'cross-site'))->{status}, 200,
    'a read by cookie from another site succeeds');
is($none->post('/api/user', { username => 'x', role => 'viewer' }, bearer($token))->{status}, 403,
    'a session has the rights of its user');

# --- tokens that are created in a session outlive it
$got = $none->post('/api/auth/tokens', { name => 'ci' }, bearer($token));
is($got->{status}, 201, 'a session creates a token') or diag $got->{body};
is($got->{json}{expiresAt}, undef, 'a token created in a session does not expire with it');
my $lasting = $got->{json}{token};
my $higher = $got->{json}{id};
$db->sql("UPDATE api_token SET role = 'admin' WHERE id = $higher");
is($none->delete("/api/auth/tokens/$higher", bearer($token))->{status}, 204,
    'a session can delete any token of its user');
$db->sql("UPDATE api_token SET valid = 1, role = 'maintainer' WHERE id = $higher");

# --- the time of last use is written rarely
my $last = sub { $db->sql("SELECT last_used_at FROM session " . where($token)) };
my $before = $last->();
status(bearer($token)) for 1 .. 3;
is($last->(), $before, 'a request within five minutes does not store the time of last use');
$db->sql("UPDATE session SET last_used_at = NOW(3) - INTERVAL 6 MINUTE " . where($token));
is(status(bearer($token)), 200, 'a session works after six minutes');
is($db->sql('SELECT last_used_at > NOW(3) - INTERVAL 1 MINUTE FROM session ' . where($token)), 1,
    'a request after six minutes stores the time of last use');

# --- expiry
my %ends = (
	'unused for session_idle' => 'last_used_at = NOW(3) - INTERVAL 3601 SECOND',
	'past its expiry' => 'expires_at = NOW(3)',
	'older than session_max' => 'created_at = NOW(3) - INTERVAL 86401 SECOND',
);
for my $name (sort keys %ends) {
	my $one = session('ada', 'maintainer');
	is(status(bearer($one)), 200, "a session works before it is $name");
	$db->sql("UPDATE session SET $ends{$name} " . where($one));
	is(status(bearer($one)), 401, "a session $name returns 401");
	is(status(cookie($one)), 401, "the cookie of a session $name returns 401");
}
my $near = session('ada', 'maintainer');
$db->sql('UPDATE session SET last_used_at = NOW(3) - INTERVAL 3500 SECOND,'
    . ' created_at = NOW(3) - INTERVAL 86300 SECOND ' . where($near));
is(status(bearer($near)), 200, 'a session works shortly before session_idle and session_max');

# --- signing out
for my $way (['POST', 'bearer', sub { bearer($_[0]) }], ['GET', 'bearer', sub { bearer($_[0]) }],
    ['POST', 'cookie', sub { cookie($_[0], Origin => $api->url) }],
    ['GET', 'cookie', sub { cookie($_[0], 'Sec-Fetch-Site' => 'same-origin') }]) {
	my ($method, $what, $headers) = @$way;
	my $one = session('ada', 'maintainer');
	$got = $none->request($method, '/api/auth/logout', undef, $headers->($one));
	is($got->{status}, 204, "$method /api/auth/logout ends a session given as $what");
	is($got->{headers}{'set-cookie'},
	    '__Host-slipway=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Lax',
	    "$method /api/auth/logout deletes the cookie of a session given as $what");
	is(status(bearer($one)), 401, "$method: a session that signed out ($what) returns 401");
	is($db->sql('SELECT COUNT(*) FROM session ' . where($one)), 0,
	    "$method: the row of a session that signed out ($what) is deleted");
}
for my $headers ({}, { 'Sec-Fetch-Site' => 'cross-site' }, { Origin => 'https://evil.example' }) {
	is($none->get('/api/auth/logout', cookie($token, %$headers))->{status}, 403,
	    'a sign-out by cookie from another site returns 403');
}
is(status(bearer($token)), 200, 'signing out keeps other sessions of the user');

# --- inactive and deleted users
for my $case (['disabled', sub { $api->put("/api/user/$_[0]", { status => 'inactive' }) }],
    ['deleted', sub { $api->delete("/api/user/$_[0]") }]) {
	my ($name, $do) = @$case;
	my @own = map { session("leaver-$name", 'deployer') } 1 .. 2;
	my $id = user_id("leaver-$name");
	$db->sql('INSERT INTO git_token (user_id, server, access)'
	    . " VALUES ($id, 'https://git.example.org', 'x')");
	is(status(bearer($own[0])), 200, "a session works before its user is $name");
	like($do->($id)->{status}, qr/^20[04]$/, "a user is $name");
	is(status(bearer($_)), 401, "a session returns 401 once its user is $name") for @own;
	is($db->sql("SELECT COUNT(*) FROM session WHERE user_id = $id"), 0,
	    "the sessions of a user who is $name are deleted");
	is($db->sql("SELECT COUNT(*) FROM git_token WHERE user_id = $id"), $name eq 'deleted' ? 0 : 1,
	    "the Git tokens of a user who is $name are " . ($name eq 'deleted' ? 'deleted' : 'kept'));
	next if $name eq 'deleted';
	$api->put("/api/user/$id", { status => 'active' });
	is(status(bearer($own[0])), 401, 'a session stays invalid when its user is active again');
}
my $by_hand = session('handy', 'viewer');
$db->sql("UPDATE user SET status = 'inactive' WHERE username = 'handy'");
is(status(bearer($by_hand)), 401, 'a session returns 401 when its user is disabled in the database');
my ($status) = run_cmd(program('slipway-admin'), '-c', $api->conf_file, 'user', 'set', 'ada', '--status',
    'inactive');
is($status, 0, 'slipway-admin disables a user');
is($db->sql('SELECT COUNT(*) FROM session ' . where($token)), 0,
    'slipway-admin user set --status inactive deletes the sessions of the user');
is(status(bearer($lasting)), 401, 'the token of a user disabled by slipway-admin returns 401');

# --- changed roles
my $falling = session('falling', 'admin');
is($none->post('/api/user', { username => 'one', role => 'viewer' }, bearer($falling))->{status}, 201,
    'the session of an admin can create a user');
$api->put('/api/user/' . user_id('falling'), { role => 'viewer' });
is($none->post('/api/user', { username => 'two', role => 'viewer' }, bearer($falling))->{status}, 403,
    'the session of a demoted admin cannot create a user');

# --- sessions that an API token starts
my $admin_id = $db->sql("INSERT INTO user (username, role) VALUES ('tess', 'admin') RETURNING id");
# Stores a token of that user; token and id.
sub api_token { return $api->token_of($admin_id, @_) }
# The session and the Max-Age of a Set-Cookie header.
sub session_set {
	my $line = $_[0]{headers}{'set-cookie'} || '';
	my $rules = 'Secure; HttpOnly; SameSite=Lax';
	return $line =~ m{^__Host-slipway=(sls_[A-Za-z0-9_-]{43}); Path=/; Max-Age=(\d+); $rules$};
}
sub start { my ($secret, $headers) = @_; return $none->post('/api/auth/session', undef,
    { %{ bearer($secret) }, %{ $headers || {} } }) }
my ($secret, $secret_id) = api_token('maintainer');
$got = start($secret);
is($got->{status}, 200, 'an API token starts a session') or diag $got->{body};
my ($started, $age) = session_set($got);
is($got->{json}{token}, $started, 'the response and the cookie contain the session');
is($age, 86400, 'the cookie of a session of a lasting token ends after session_max');
is($got->{json}{user}{username}, 'tess', 'the response contains the user of the token');
like($got->{json}{user}{lastLoginAt}, qr/^\d{4}-/, 'lastLoginAt is the start of the session');
is(status(cookie($started)), 200, 'the cookie of a session that a token started works');
is($none->post('/api/user', { username => 'three', role => 'viewer' }, bearer($started))->{status}, 403,
    'a session has the role of the token that started it, not that of the user');
is($none->delete('/api/projects/77', bearer($started))->{status}, 404,
    'a session of a maintainer\'s token may do what a maintainer may');
my (undef, $other_id) = api_token('admin');
is($none->delete("/api/auth/tokens/$other_id", bearer($started))->{status}, 403,
    'a session that a token started cannot delete a token with a higher role');
is($none->post('/api/auth/tokens', { name => 'x', role => 'admin' }, bearer($started))->{status}, 422,
    'a session that a token started cannot create a token with a higher role');
is(start($started)->{status}, 403, 'a session cannot start a session');
is($none->post('/api/auth/session', undef, cookie($started, Origin => $api->url))->{status}, 403,
    'the cookie of a session cannot start a session');
is($none->post('/api/auth/session')->{status}, 401, 'a session without a credential is not started');
is(start('slw_' . 'x' x 43)->{status}, 401, 'an unknown token starts no session');
for my $headers ({ 'Sec-Fetch-Site' => 'cross-site' }, { Origin => 'https://evil.example' }) {
	$got = start($secret, $headers);
	is($got->{status}, 403, 'a page of another site cannot start a session');
	is($got->{headers}{'set-cookie'}, undef, 'a rejected session sets no cookie');
}
$got = start($secret, { Origin => $api->url, %{ cookie($started) } });
my ($next) = session_set($got);
is(status(bearer($next)), 200, 'a page of this service starts a session');
is(status(bearer($started)), 401, 'a new session replaces the browser\'s previous one');
$db->sql("UPDATE api_token SET valid = 0 WHERE id = $secret_id");
is(status(bearer($next)), 401, 'a session ends when the token that started it is deleted');
my ($short, $short_id) = api_token('viewer', 'NOW(3) + INTERVAL 1 HOUR');
($next, $age) = session_set(start($short));
cmp_ok($age, '<=', 3600, 'the cookie of a session ends with the token that started it');
cmp_ok($age, '>', 0, 'the cookie of a session of a short-lived token is valid');
is($db->sql('SELECT s.expires_at <= t.expires_at FROM session s JOIN api_token t ON t.id = s.token_id '
    . where($next) =~ s/hash/s.hash/r), 1, 'a session expires with the token that started it at the latest');
$db->sql("UPDATE api_token SET expires_at = NOW(3) WHERE id = $short_id");
is(status(bearer($next)), 401, 'a session ends when the token that started it expires');

# --- signing in without a Git server
$got = $none->get('/api/auth/url');
is($got->{status}, 503, 'GET /api/auth/url without a configured Git server returns 503');
like($got->{json}{detail}, qr/GITSERVER_URL, GITSERVER_CLIENT_ID, GITSERVER_REDIRECT_URI/,
    'the error names the missing settings');
is($none->post('/api/auth/login', { code => 'x', state => 'y' })->{status}, 503,
    'POST /api/auth/login without a configured Git server returns 503');
$got = $none->post('/api/auth/login', { code => '', state => 'y', extra => 1 });
is($got->{status}, 422, 'an invalid login returns 422');
is(outcome($got), '422 /code /extra', 'an invalid login lists every error');

# --- the runner deletes expired sessions and sign-ins
my $kept = session('tidy', 'viewer');
my @over = map { session('tidy', 'viewer') } 1 .. 2;
$db->sql('UPDATE session SET expires_at = NOW(3) - INTERVAL 1 SECOND ' . where($over[0]));
$db->sql('UPDATE session SET last_used_at = NOW(3) - INTERVAL 3601 SECOND ' . where($over[1]));
$db->sql('INSERT INTO signin (state_hash, browser_hash, verifier, created_at) VALUES'
    . " ('old', 'x', 'x', NOW(3) - INTERVAL 601 SECOND),"
    . " ('young', 'x', 'x', NOW(3) - INTERVAL 500 SECOND)");
my $runner = Slipway::Runner->start(db => $db, conf => "[auth]\nsession_idle = 3600\n[runner]\nlease = 3\n");
ok(poll(30, sub { $db->sql("SELECT COUNT(*) FROM signin WHERE state_hash = 'old'") == 0
    && $db->sql("SELECT COUNT(*) FROM session " . where($over[0])) == 0
    && $db->sql("SELECT COUNT(*) FROM session "
    . where($over[1])) == 0 }), 'the runner deletes expired sessions and sign-ins');
is($db->sql('SELECT COUNT(*) FROM session ' . where($kept)), 1, 'the runner keeps a valid session');
is($db->sql("SELECT COUNT(*) FROM signin WHERE state_hash = 'young'"), 1,
    'the runner keeps a sign-in that has just begun');
$runner->stop;

done_testing;
