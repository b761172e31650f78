#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Sessions: what they are let do, and when they end.  They are put into the
# database here; signing in is another test's.

use strict;
use warnings;
use Digest::SHA qw(sha256_hex);
use Slipway::API;
use Slipway::DB;
use Slipway::Runner;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db, conf => "[auth]\nsession_idle = 3600\nsession_max = 86400\n");
my $none = $api->as('none');
my $n = 0;
my $got;

# A session of a user, new unless it is there: its token.
sub session {
	my ($user, $role) = @_;
	my $token = 'sls_' . substr(sha256_hex('session' . ++$n), 0, 43);
	my $hash = sha256_hex($token);
	$db->sql("INSERT IGNORE INTO user (username, role) VALUES ('$user', '$role');"
	    . "INSERT INTO session (user_id, hash, expires_at) SELECT id, '$hash', NOW(3) + INTERVAL 1 DAY"
	    . " FROM user WHERE live_username = '$user'");
	return $token;
}
sub bearer { return { Authorization => "Bearer $_[0]" } }
sub cookie { my ($token, %more) = @_; return { Cookie => "__Host-slipway=$token", %more } }
sub status { my ($headers, $path) = @_; return $none->get($path || '/api/auth/info', $headers)->{status} }
sub where { return "WHERE hash = '" . sha256_hex($_[0]) . "'" }
sub user_id { return $db->sql("SELECT id FROM user WHERE live_username = '$_[0]'") }

# --- both ways in
my $token = session('ada', 'maintainer');
$got = $none->get('/api/auth/info', bearer($token));
is($got->{status}, 200, 'a session as a token') or diag $got->{body};
is($got->{json}{username}, 'ada', 'is its user');
is($none->get('/api/auth/info', cookie($token))->{json}{username}, 'ada', 'as a cookie too');
is(status(cookie($token, Cookie => "a=b; __Host-slipway=$token; c=d")), 200, 'among others');
is(status(bearer($token . 'x')), 401, 'a longer one is none');
is(status(bearer(substr $token, 0, -1)), 401, 'a shorter one is none');
is(status(bearer('sls_')), 401, 'its beginning is none');
is(status(bearer(sha256_hex $token)), 401, 'nor what the database has');
is(status(cookie('sls_' . 'x' x 300)), 401, 'nor a very long one');
is(status({ Cookie => "__host-slipway=$token" }), 401, 'the name of the cookie is exact');
is(status({ Cookie => "x__Host-slipway=$token" }), 401, 'all of it');
my $hash = sha256_hex($token);
unlike($db->sql('SELECT * FROM session'), qr/\Q$token\E/, 'the database does not know the token');
like($db->sql('SELECT hash FROM session'), qr/^$hash$/m, 'but its hash');

# --- the same-origin rule, with the cookie alone
my %writes = (cross => [{ 'Sec-Fetch-Site' => 'cross-site' }, 403], neighbour => [{ 'Sec-Fetch-Site' => 'same-site' }, 403],
	typed => [{ 'Sec-Fetch-Site' => 'none' }, 403], silent => [{}, 403], elsewhere => [{ Origin => 'https://evil.example' }, 403],
	'plain http' => [{ Origin => $api->url =~ s/^https/http/r }, 403], null => [{ Origin => 'null' }, 403],
	own => [{ Origin => $api->url }, 404], 'own by the browser' => [{ 'Sec-Fetch-Site' => 'same-origin' }, 404]);
for my $name (sort keys %writes) {
	my ($headers, $status) = @{ $writes{$name} };
	is($none->delete('/api/projects/77', cookie($token, %$headers))->{status}, $status, "a write by cookie: $name");
}
is($none->delete('/api/projects/77', bearer($token))->{status}, 404, 'a write by token: from anywhere');
is($none->delete('/api/projects/77', { %{ cookie($token) }, %{ bearer('wrong') } })->{status}, 401, 'a wrong token is not helped by the cookie');
is($none->get('/api/projects', cookie($token, 'Sec-Fetch-Site' => 'cross-site'))->{status}, 200, 'reading by link from elsewhere');
is($none->post('/api/user', { username => 'x', role => 'viewer' }, bearer($token))->{status}, 403, 'its role holds');

# --- tokens made in a session outlive it
$got = $none->post('/api/auth/tokens', { name => 'ci' }, bearer($token));
is($got->{status}, 201, 'a session makes a token') or diag $got->{body};
is($got->{json}{expiresAt}, undef, 'that does not end with it');
my $lasting = $got->{json}{token};
my $higher = $got->{json}{id};
$db->sql("UPDATE api_token SET role = 'admin' WHERE id = $higher");
is($none->delete("/api/auth/tokens/$higher", bearer($token))->{status}, 204, 'a session ends any of its user');
$db->sql("UPDATE api_token SET valid = 1, role = 'maintainer' WHERE id = $higher");

# --- last use is written rarely
my $last = sub { $db->sql("SELECT last_used_at FROM session " . where($token)) };
my $before = $last->();
status(bearer($token)) for 1 .. 3;
is($last->(), $before, 'the last use is not written each time');
$db->sql("UPDATE session SET last_used_at = NOW(3) - INTERVAL 6 MINUTE " . where($token));
is(status(bearer($token)), 200, 'after six minutes it works');
is($db->sql('SELECT last_used_at > NOW(3) - INTERVAL 1 MINUTE FROM session ' . where($token)), 1, 'and that is written');

# --- how they end
my %ends = (
	'unused for the idle time' => 'last_used_at = NOW(3) - INTERVAL 3601 SECOND',
	'at its end' => 'expires_at = NOW(3)',
	'older than sessions may get by now' => 'created_at = NOW(3) - INTERVAL 86401 SECOND',
);
for my $name (sort keys %ends) {
	my $one = session('ada', 'maintainer');
	is(status(bearer($one)), 200, 'a session works');
	$db->sql("UPDATE session SET $ends{$name} " . where($one));
	is(status(bearer($one)), 401, "not $name");
	is(status(cookie($one)), 401, 'as a cookie neither');
}
my $near = session('ada', 'maintainer');
$db->sql('UPDATE session SET last_used_at = NOW(3) - INTERVAL 3500 SECOND, created_at = NOW(3) - INTERVAL 86300 SECOND ' . where($near));
is(status(bearer($near)), 200, 'shortly before all that it works');

# --- signing out
for my $way (['POST', 'bearer', sub { bearer($_[0]) }], ['GET', 'bearer', sub { bearer($_[0]) }],
    ['POST', 'cookie', sub { cookie($_[0], Origin => $api->url) }],
    ['GET', 'cookie', sub { cookie($_[0], 'Sec-Fetch-Site' => 'same-origin') }]) {
	my ($method, $what, $headers) = @$way;
	my $one = session('ada', 'maintainer');
	$got = $none->request($method, '/api/auth/logout', undef, $headers->($one));
	is($got->{status}, 204, "$method signs out by $what");
	is($got->{headers}{'set-cookie'}, '__Host-slipway=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Lax', 'takes the cookie back');
	is(status(bearer($one)), 401, 'the session is no more');
	is($db->sql('SELECT COUNT(*) FROM session ' . where($one)), 0, 'nor its row');
}
for my $headers ({}, { 'Sec-Fetch-Site' => 'cross-site' }, { Origin => 'https://evil.example' }) {
	is($none->get('/api/auth/logout', cookie($token, %$headers))->{status}, 403, 'a link from elsewhere signs nobody out');
}
is(status(bearer($token)), 200, 'other sessions of the user stay');

# --- with the user
for my $case (['disabled', sub { $api->put("/api/user/$_[0]", { status => 'inactive' }) }],
    ['deleted', sub { $api->delete("/api/user/$_[0]") }]) {
	my ($name, $do) = @$case;
	my @own = map { session("leaver-$name", 'deployer') } 1 .. 2;
	my $id = user_id("leaver-$name");
	$db->sql("INSERT INTO git_token (user_id, server, access) VALUES ($id, 'https://git.example.org', 'x')");
	is(status(bearer($own[0])), 200, 'a session works');
	like($do->($id)->{status}, qr/^20[04]$/, "its user is $name");
	is(status(bearer($_)), 401, 'it works no more') for @own;
	is($db->sql("SELECT COUNT(*) FROM session WHERE user_id = $id"), 0, 'its rows are gone');
	is($db->sql("SELECT COUNT(*) FROM git_token WHERE user_id = $id"), $name eq 'deleted' ? 0 : 1, 'Git tokens go with deletion');
	next if $name eq 'deleted';
	$api->put("/api/user/$id", { status => 'active' });
	is(status(bearer($own[0])), 401, 'and does not come back');
}
my $by_hand = session('handy', 'viewer');
$db->sql("UPDATE user SET status = 'inactive' WHERE username = 'handy'");
is(status(bearer($by_hand)), 401, 'whoever disables a user, however');
my ($status) = run_cmd(program('slipway-admin'), '-c', $api->conf_file, 'user', 'set', 'ada', '--status', 'inactive');
is($status, 0, 'slipway-admin disables a user');
is($db->sql('SELECT COUNT(*) FROM session ' . where($token)), 0, 'that ends sessions too');
is(status(bearer($lasting)), 401, 'and tokens');

# --- roles follow at once
my $falling = session('falling', 'admin');
is($none->post('/api/user', { username => 'one', role => 'viewer' }, bearer($falling))->{status}, 201, 'an admin by session');
$api->put('/api/user/' . user_id('falling'), { role => 'viewer' });
is($none->post('/api/user', { username => 'two', role => 'viewer' }, bearer($falling))->{status}, 403, 'demoted');

# --- signing in without a Git server says what is missing
$got = $none->get('/api/auth/url');
is($got->{status}, 503, 'no Git server is set');
like($got->{json}{detail}, qr/GITSERVER_URL, GITSERVER_CLIENT_ID, GITSERVER_REDIRECT_URI/, 'what is to be set is told');
is($none->post('/api/auth/login', { code => 'x', state => 'y' })->{status}, 503, 'at the end too');
$got = $none->post('/api/auth/login', { code => '', state => 'y', extra => 1 });
is($got->{status}, 422, 'a faulty body');
is(join(' ', sort map { $_->{pointer} } @{ $got->{json}{errors} }), '/code /extra', 'each fault of it');

# --- what is over is tidied away by the runner
my $kept = session('tidy', 'viewer');
my @over = map { session('tidy', 'viewer') } 1 .. 2;
$db->sql('UPDATE session SET expires_at = NOW(3) - INTERVAL 1 SECOND ' . where($over[0]));
$db->sql('UPDATE session SET last_used_at = NOW(3) - INTERVAL 3601 SECOND ' . where($over[1]));
$db->sql("INSERT INTO signin (state_hash, browser_hash, verifier, created_at) VALUES ('old', 'x', 'x', NOW(3) - INTERVAL 601 SECOND),"
    . " ('young', 'x', 'x', NOW(3) - INTERVAL 500 SECOND)");
my $runner = Slipway::Runner->start(db => $db, conf => "[auth]\nsession_idle = 3600\n[runner]\nlease = 3\n");
ok(poll(30, sub { $db->sql("SELECT COUNT(*) FROM signin WHERE state_hash = 'old'") == 0
    && $db->sql("SELECT COUNT(*) FROM session " . where($over[0])) == 0
    && $db->sql("SELECT COUNT(*) FROM session " . where($over[1])) == 0 }), 'what is over goes');
is($db->sql('SELECT COUNT(*) FROM session ' . where($kept)), 1, 'a session that works stays');
is($db->sql("SELECT COUNT(*) FROM signin WHERE state_hash = 'young'"), 1, 'as does a sign-in that was just begun');
$runner->stop;

done_testing;
