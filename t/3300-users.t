#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Users and API tokens over REST.

use strict;
use warnings;
use Digest::SHA qw(sha256_hex);
use POSIX ();
use Slipway::API qw(bearer outcome pointers);
use Slipway::Background;
use Slipway::DB;
use Slipway::Test;
use Test::More;
use Time::HiRes qw(sleep);

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db);
my $none = $api->as('none');
my $n = 0;
my $got;

sub body { my (%more) = @_; $n++; return { username => "user$n", role => 'viewer', %more } }
sub info { my ($token) = @_; return $none->get('/api/auth/info', bearer($token)) }

# --- users
my $me = $api->get('/api/auth/info')->{json};
is_deeply([@$me{qw(username role status)}], ['t-admin', 'admin', 'active'],
    'GET /api/auth/info returns the user of the token');
$got = $api->post('/api/user',
    body(name => 'Ada', email => 'ada@example.org', avatarUrl => 'https://example.org/a.png'));
is($got->{status}, 201, 'POST /api/user creates a user') or diag $got->{body};
my $ada = $got->{json};
is($got->{headers}{location}, "/api/user/detail/$ada->{id}", 'Location is the path of the new user');
is($api->get("/api/user/detail/$ada->{id}")->{body}, $got->{body}, 'GET returns what POST returned');
is_deeply([sort keys %$ada], [qw(avatarUrl createdAt email id lastLoginAt name role status username)],
    'a user has exactly the documented members');
is_deeply([@$ada{qw(status lastLoginAt)}], ['active', undef], 'a new user is active and has never signed in');
for my $case (
	[{}, '/username /role', 'an empty body'],
	[body(role => 'root'), '/role', 'an unknown role'],
	[body(role => undef), '/role', 'a null role'],
	[body(username => ''), '/username', 'an empty username'],
	[body(username => 'a b'), '/username', 'a username with a blank'],
	[body(username => "a\n"), '/username', 'a username with a line break'],
	[body(username => 'x' x 101), '/username', 'a long username'],
	[body(email => 'ada'), '/email', 'an email address without @'],
	[body(email => 'a b@c'), '/email', 'an email address with a blank'],
	[body(avatarUrl => 'javascript:alert(1)'), '/avatarUrl', 'a script as avatarUrl'],
	[body(status => 'gone'), '/status', 'an unknown status'],
	[body(id => 1), '/id', 'an id'],
	[body(lastLoginAt => '2026-01-01T00:00:00Z'), '/lastLoginAt', 'a lastLoginAt'],
	[body(password => 'x'), '/password', 'a password'],
	[body(name => 'x' x 201), '/name', 'a long full name'],
) {
	my ($body, $want, $name) = @$case;
	$got = $api->post('/api/user', $body);
	is("$got->{status} " . pointers($got), "422 $want", "$name is rejected") or diag $got->{body};
}
$got = $api->post('/api/user', body(username => 'USER1'));
is(outcome($got), '409 /username', 'a username in use in another case is a conflict');
my $path = "/api/user/$ada->{id}";
$got = $api->put($path, { role => 'deployer', email => undef });
is($got->{status}, 200, 'PUT changes a user');
is_deeply([@{ $got->{json} }{qw(role email name)}], ['deployer', undef, 'Ada'],
    'PUT changes only the members of the request');
$got = $api->put($path, { username => 't-admin' });
is(outcome($got), '409 /username', 'a change to a username in use is a conflict');
is($api->put('/api/user/77777', {})->{status}, 404, 'a change of an unknown user returns 404');
is($api->put($path, { role => 'x' }, { 'If-Match' => '"1-0000000000000000"' })->{status}, 412,
    'a change with an outdated tag returns 412');
is($api->get('/api/user/detail/77777')->{status}, 404, 'an unknown user returns 404');

# --- lists and search
$api->post('/api/user', body(username => "u_$_", role => $_ % 2 ? 'viewer' : 'maintainer',
	email => "m$_\@x.example")) for 1 .. 5;
$got = $api->get('/api/user/list?limit=3')->{json};
is(scalar @{ $got->{data} }, 3, 'a list of users has pages');
cmp_ok($got->{pagination}{total}, '>=', 7, 'a list of users counts them all');
for my $case (['keyword=u_', 5], ['keyword=U_3', 1], ['keyword=%25', 0], ['keyword=x.example', 5],
	['keyword=ada', 1], ['keyword=nobody', 0], ['role=maintainer', 2], ['role=viewer&keyword=u_', 3],
	['status=inactive', 0], ['status=active&role=admin', 1]) {
	my ($query, $found) = @$case;
	is($api->get("/api/user/search?$query")->{json}{pagination}{total}, $found,
	    "a search for $query finds $found users");
}
for my $query ('role=root', 'status=gone', 'keyword=' . 'x' x 101, 'name=x') {
	is($api->get("/api/user/search?$query")->{status}, 400,
	    'a search for ' . substr($query, 0, 20) . ' is rejected');
}

# --- the last admin
for my $change ({ role => 'maintainer' }, { status => 'inactive' }) {
	$got = $api->put("/api/user/$me->{id}", $change);
	my ($member) = keys %$change;
	is($got->{status}, 409, "the $member of the last active admin cannot be changed");
	like($got->{json}{detail}, qr/last active admin/,
	    "the conflict about $member says that this is the last active admin");
}
is($api->delete("/api/user/$me->{id}")->{status}, 409, 'the last active admin cannot be deleted');
is($api->put("/api/user/$me->{id}", { name => 'Root' })->{status}, 200,
    'the name of the last active admin can be changed');
my $second = $api->post('/api/user',
    body(username => 'second', role => 'admin', status => 'inactive'))->{json};
is($api->put("/api/user/$me->{id}", { role => 'viewer' })->{status}, 409,
    'an inactive admin does not count as the last admin');
is($api->put("/api/user/$second->{id}", { status => 'active' })->{status}, 200,
    'an inactive admin can be activated');

# Two admins remove each other at once; both requests wait for the rows of the
# admins before one of them goes on.
my %out = (demotes => ['PUT', { role => 'viewer' }], disables => ['PUT', { status => 'inactive' }],
	deletes => ['DELETE']);
$db->sql("UPDATE user SET status = 'inactive' WHERE role = 'admin'");
for my $case (['demotes', 'demotes'], ['disables', 'disables'], ['deletes', 'deletes'],
    ['demotes', 'deletes'],
    ['disables', 'demotes'], ['deletes', 'disables']) {
	my @names = map { "admin-$n-$_" } 0, 1;
	my @tokens = map { $api->new_token('admin', $_) } @names;
	my @ids = map { $db->sql("SELECT id FROM user WHERE live_username = '$_'") } @names;
	my $holder = $db->hold("SELECT id FROM user WHERE id IN ($ids[0], $ids[1]) FOR UPDATE");
	my $race = "one admin $case->[0] another, who $case->[1] the first";
	my @runs = map {
		my ($method, $body) = @{ $out{ $case->[$_] } };
		my ($path, $headers) = ("/api/user/$ids[1 - $_]", bearer($tokens[$_]));
		background(sub { delete $api->{http};
			return $none->request($method, $path, $body, $headers)->{status} });
	} 0, 1;
	ok(poll(60, sub { $db->waiting == 2 }), "$race: both requests wait");
	$db->let_go($holder);
	my @said = map { $_->result } @runs;
	is(scalar(grep { /^20[04]$/ } @said), 1, "$race: one request succeeds") or diag "@said";
	is(scalar(grep { $_ eq '409' } @said), 1, "$race: the other is a conflict") or diag "@said";
	is($db->sql("SELECT COUNT(*) FROM user WHERE valid = 1 AND role = 'admin' AND status = 'active'") + 0,
	    1,
	    "$race: one active admin remains");
	$db->sql("UPDATE user SET role = 'viewer' WHERE username LIKE 'admin-$n-%'");
	$n++;
}
$db->sql("UPDATE user SET role = 'admin', status = 'active' WHERE username IN ('t-admin', 'second')");

# --- tokens
$got = $api->post('/api/auth/tokens', { name => 'ci' });
is($got->{status}, 201, 'POST /api/auth/tokens creates a token') or diag $got->{body};
my $made = $got->{json};
like($made->{token}, qr/^slw_[A-Za-z0-9_-]{43}$/, 'a token has 256 bits');
is_deeply([@$made{qw(name role expiresAt lastUsedAt)}], ['ci', 'admin', undef, undef],
    'a token has the role of its creator and no end by default');
is(info($made->{token})->{json}{username}, 't-admin', 'a token authenticates its user');
unlike($api->get('/api/auth/tokens')->{body}, qr/\Q$made->{token}\E/,
    'the list of tokens does not show a token');
unlike($api->get("/api/auth/tokens/$made->{id}")->{body}, qr/\Q$made->{token}\E/,
    'GET of a token does not show it');
my $row = $db->sql("SELECT hash FROM api_token WHERE id = $made->{id}");
like($row, qr/^\Q@{[sha256_hex($made->{token})]}\E/, 'the database stores the SHA-256 of a token');
unlike($db->sql('SELECT * FROM api_token'), qr/\Q$made->{token}\E/, 'the database does not store the token');
unlike($api->log, qr/\Q$made->{token}\E/, 'the log does not contain the token');
my $reader = $api->post('/api/auth/tokens', { name => 'reader', role => 'viewer' })->{json}{token};
is($none->post('/api/projects', {}, bearer($reader))->{status}, 403,
    'a token with a lower role has its rights');
is($none->post('/api/auth/tokens', { name => 'up', role => 'admin' }, bearer($reader))->{status}, 422,
    'a token cannot create one with a higher role');
is($none->post('/api/auth/tokens', { name => 'same' }, bearer($reader))->{json}{role}, 'viewer',
    'a token creates one with its own role by default');
for my $case (
	[{}, '/name', 'a token without a name'],
	[{ name => 'x', role => 'root' }, '/role', 'an unknown role'],
	[{ name => 'x', expiresAt => 'soon' }, '/expiresAt', 'an invalid time'],
	[{ name => 'x', expiresAt => '9999-12-31T23:59:59-01:00' }, '/expiresAt', 'a year of five digits'],
	[{ name => 'x', expiresAt => '2020-01-01T00:00:00Z' }, '/expiresAt', 'a time in the past'],
	[{ name => 'x', expiresAt => 5 }, '/expiresAt', 'a number for a time'],
	[{ name => 'x', token => 'slw_mine' }, '/token', 'a token chosen by the client'],
	[{ name => 'x', hash => '0' }, '/hash', 'a hash'],
	[{ name => 'x' x 101 }, '/name', 'a long name of a token'],
	[{ name => 'x', userId => 1 }, '/userId', 'another user'],
) {
	my ($body, $want, $name) = @$case;
	$got = $api->as('viewer')->post('/api/auth/tokens', $body);
	is("$got->{status} " . pointers($got), "422 $want", "$name is rejected") or diag $got->{body};
	sleep 0.3; # the rate limit on creating tokens
}
my $viewers = $api->as('viewer')->get('/api/auth/tokens')->{json};
is_deeply([map { $_->{name} } @{ $viewers->{data} }], ['test'],
    'a list of tokens contains only those of the user');
is($api->as('viewer')->get("/api/auth/tokens/$made->{id}")->{status}, 404,
    "another user's token returns 404");
is($api->as('viewer')->delete("/api/auth/tokens/$made->{id}")->{status}, 404,
    "another user's token cannot be deleted");
my ($short, $works);
for my $seconds (3, 10, 30) {
	my $end = time + $seconds;
	my $at = POSIX::strftime('%Y-%m-%dT%H:%M:%SZ', gmtime $end);
	$short = $api->post('/api/auth/tokens', { name => 'short', expiresAt => $at });
	$works = $short->{status} == 201 && info($short->{json}{token})->{status};
	last if time < $end;
}
is($short->{status}, 201, 'a token that expires soon is created') or diag $short->{body};
is($works, 200, 'a token works before it expires');
ok(poll(6, sub { info($short->{json}{token})->{status} == 401 }), 'an expired token returns 401');
my $brief = $api->new_token('viewer', 't-viewer');
$db->sql("UPDATE api_token SET expires_at = '2099-01-02 03:04:05' WHERE hash = '" . sha256_hex($brief) . "'");
is($none->post('/api/auth/tokens', { name => 'child' }, bearer($brief))->{json}{expiresAt},
    '2099-01-02T03:04:05.000Z', 'a token created by another expires with it');
my %later = (name => 'child', expiresAt => '2099-01-02T03:04:06Z');
is(pointers($none->post('/api/auth/tokens', \%later, bearer($brief))), '/expiresAt',
    'a token created by another cannot expire later');
$got = $api->delete("/api/auth/tokens/$made->{id}", { 'If-Match' => '"0-0000000000000000"' });
is($got->{status}, 412, 'a deletion of a token with another tag returns 412');
my $tag = $api->get("/api/auth/tokens/$made->{id}")->{headers}{etag};
is($api->delete("/api/auth/tokens/$made->{id}", { 'If-Match' => $tag })->{status}, 204,
    'a deletion of a token with its tag succeeds');
is(info($made->{token})->{status}, 401, 'a deleted token returns 401');
is($api->delete("/api/auth/tokens/$made->{id}")->{status}, 404, 'a second deletion of a token returns 404');
is(info($reader)->{status}, 200, 'other tokens of the user keep working');

# --- every role creates and deletes tokens of every other
sub new_token { my ($client, @more) = @_; return $client->within_rate('POST', '/api/auth/tokens', @more) }
my @roles = qw(viewer deployer maintainer admin);
my (%bearer, %id);
sub make_all {
	for my $role (@roles) {
		next if defined $id{$role};
		my $new = new_token($api, { name => "a $role", role => $role });
		($bearer{$role}, $id{$role}) = @{ $new->{json} }{qw(token id)};
	}
	return;
}
for my $mine (0 .. 3) {
	for my $other (0 .. 3) {
		make_all();
		my ($is, $asks) = @roles[$mine, $other];
		my $can = "a token of a $is " . ($other > $mine ? 'cannot' : 'can');
		$got = new_token($none, { name => "by $is", role => $asks }, bearer($bearer{$is}));
		is($got->{status} . ($got->{json}{role} || ''), $other > $mine ? '422' : "201$asks",
		    "$can create one of a $asks");
		next if $other == $mine;
		$got = $none->delete("/api/auth/tokens/$id{$asks}", bearer($bearer{$is}));
		is($got->{status}, $other > $mine ? 403 : 204, "$can delete one of a $asks");
		like($got->{json}{detail},
		    qr/^A token cannot delete a token with a higher role\. .* with the role $asks\.$/,
		    "a token of a $is that deletes one of a $asks gets the reason") if $other > $mine;
		is(info($bearer{$asks})->{status}, $other > $mine ? 200 : 401,
		    "the token of a $asks " . ($other > $mine ? 'works' : 'returns 401')
		    . " after a $is deletes it");
		delete $id{$asks} if $other < $mine;
	}
}
# The user's own role is lowered: the lower one of user and token counts.
my $user = $db->sql("SELECT user_id FROM api_token WHERE id = $id{admin}");
$db->sql("UPDATE user SET role = 'deployer' WHERE id = $user");
is($none->delete("/api/auth/tokens/$id{admin}", bearer($bearer{viewer}))->{status}, 403,
    "a viewer's token cannot delete an admin's token of a user who is a deployer now");
is($none->delete("/api/auth/tokens/$id{admin}", bearer($bearer{deployer}))->{status}, 204,
    "a deployer's token can delete an admin's token of a user who is a deployer now");
$db->sql("UPDATE user SET role = 'admin' WHERE id = $user");
is($none->delete("/api/auth/tokens/$id{viewer}", bearer($bearer{viewer}))->{status}, 204,
    'a token can delete itself');
is(info($bearer{viewer})->{status}, 401, 'a token that deleted itself returns 401');

# --- the time of last use is written rarely
my $mine = "hash = '" . sha256_hex($api->token) . "'";
$db->sql("UPDATE api_token SET last_used_at = NULL");
$api->get('/api/auth/info');
my $used = $db->sql("SELECT last_used_at FROM api_token WHERE $mine");
like($used, qr/^\d{4}-/, 'a request stores the time of last use');
$api->get('/api/auth/info') for 1 .. 3;
is($db->sql("SELECT last_used_at FROM api_token WHERE $mine"), $used,
    'a request within five minutes does not store the time again');
$db->sql("UPDATE api_token SET last_used_at = NOW(3) - INTERVAL 6 MINUTE");
$api->get('/api/auth/info');
isnt($db->sql("SELECT last_used_at < NOW(3) - INTERVAL 5 MINUTE FROM api_token WHERE $mine") + 0, 1,
    'a request after five minutes stores the time again');

# --- changed, inactive and deleted users
my $token = $api->new_token('deployer', 'leaver');
my ($leaver) = @{ $api->get('/api/user/search?keyword=leaver')->{json}{data} };
is(info($token)->{status}, 200, 'the token of an active user works');
$api->put("/api/user/$leaver->{id}", { role => 'viewer' });
is($none->post('/api/pipelines', {}, bearer($token))->{status}, 403,
    'a token loses rights at once when the role of its user is lowered');
$api->put("/api/user/$leaver->{id}", { status => 'inactive' });
is(info($token)->{status}, 401, 'the token of an inactive user returns 401');
$api->put("/api/user/$leaver->{id}", { status => 'active' });
is(info($token)->{status}, 200, 'the token of a user who is active again works');
is($api->delete("/api/user/$leaver->{id}")->{status}, 204, 'DELETE deletes a user');
is(info($token)->{status}, 401, 'the token of a deleted user returns 401');
is($api->get("/api/user/detail/$leaver->{id}")->{status}, 404, 'a deleted user returns 404');
is($api->delete("/api/user/$leaver->{id}")->{status}, 404, 'a second deletion of a user returns 404');
my $again = $api->post('/api/user', { username => 'leaver', role => 'admin' });
is($again->{status}, 201, 'the username of a deleted user is free');
is(info($token)->{status}, 401, "a deleted user's token is not valid for a new user of the same name");

# --- signing out
$got = $api->request('POST', '/api/auth/logout');
is($got->{status}, 204, 'POST /api/auth/logout with a token returns 204');
like($got->{headers}{'set-cookie'}, qr/^__Host-slipway=; Path=\/; Max-Age=0; Secure; HttpOnly; SameSite=Lax$/,
    'signing out deletes the cookie');
is($api->get('/api/auth/logout')->{status}, 204, 'GET /api/auth/logout with a token returns 204');
is($api->get('/api/auth/info')->{status}, 200, 'signing out does not delete the API token');
is($none->request('POST', '/api/auth/logout')->{status}, 401, 'signing out without a token returns 401');

done_testing;
