#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Users and API tokens over REST.

use strict;
use warnings;
use Digest::SHA qw(sha256_hex);
use POSIX ();
use Slipway::API;
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
sub pointers { my ($got) = @_; return join ' ', map { $_->{pointer} } @{ $got->{json}{errors} || [] } }
sub bearer { my ($token) = @_; return { Authorization => "Bearer $token" } }

# --- users
my $me = $api->get('/api/auth/info')->{json};
is_deeply([@$me{qw(username role status)}], ['t-admin', 'admin', 'active'], 'info is the user of the token');
$got = $api->post('/api/user', body(name => 'Ada', email => 'ada@example.org', avatarUrl => 'https://example.org/a.png'));
is($got->{status}, 201, 'a user is made') or diag $got->{body};
my $ada = $got->{json};
is($got->{headers}{location}, "/api/user/detail/$ada->{id}", 'Location');
is($api->get("/api/user/detail/$ada->{id}")->{body}, $got->{body}, 'reading gives the same');
is_deeply([sort keys %$ada], [qw(avatarUrl createdAt email id lastLoginAt name role status username)], 'all members, no more');
is_deeply([@$ada{qw(status lastLoginAt)}], ['active', undef], 'active, never here');
for my $case (
	[{}, '/username /role', 'nothing'], [body(role => 'root'), '/role', 'an unknown role'], [body(role => undef), '/role', 'no role'],
	[body(username => ''), '/username', 'no name'], [body(username => 'a b'), '/username', 'a blank'], [body(username => "a\n"), '/username', 'a line break'],
	[body(username => 'x' x 101), '/username', 'a long name'], [body(email => 'ada'), '/email', 'an address without @'],
	[body(email => 'a b@c'), '/email', 'an address with a blank'], [body(avatarUrl => 'javascript:alert(1)'), '/avatarUrl', 'a script for a picture'],
	[body(status => 'gone'), '/status', 'an unknown status'], [body(id => 1), '/id', 'an id'], [body(lastLoginAt => '2026-01-01T00:00:00Z'), '/lastLoginAt', 'a sign-in'],
	[body(password => 'x'), '/password', 'a password: there are none'], [body(name => 'x' x 201), '/name', 'a long full name'],
) {
	my ($body, $want, $name) = @$case;
	$got = $api->post('/api/user', $body);
	is("$got->{status} " . pointers($got), "422 $want", "$name is refused") or diag $got->{body};
}
$got = $api->post('/api/user', body(username => 'USER1'));
is("$got->{status} " . pointers($got), '409 /username', 'a taken name, whatever its case');
my $path = "/api/user/$ada->{id}";
$got = $api->put($path, { role => 'deployer', email => undef });
is($got->{status}, 200, 'changed');
is_deeply([@{ $got->{json} }{qw(role email name)}], ['deployer', undef, 'Ada'], 'as asked');
$got = $api->put($path, { username => 't-admin' });
is("$got->{status} " . pointers($got), '409 /username', 'a taken name');
is($api->put('/api/user/77777', {})->{status}, 404, 'one that is not there');
is($api->put($path, { role => 'x' }, { 'If-Match' => '"1-0000000000000000"' })->{status}, 412, 'an old version');
is($api->get('/api/user/detail/77777')->{status}, 404, 'nobody');

# --- lists and search
$api->post('/api/user', body(username => "u_$_", role => $_ % 2 ? 'viewer' : 'maintainer', email => "m$_\@x.example")) for 1 .. 5;
$got = $api->get('/api/user/list?limit=3')->{json};
is(scalar @{ $got->{data} }, 3, 'a page of users');
cmp_ok($got->{pagination}{total}, '>=', 7, 'of all');
for my $case (['keyword=u_', 5], ['keyword=U_3', 1], ['keyword=%25', 0], ['keyword=x.example', 5], ['keyword=ada', 1], ['keyword=nobody', 0],
	['role=maintainer', 2], ['role=viewer&keyword=u_', 3], ['status=inactive', 0], ['status=active&role=admin', 1]) {
	is($api->get("/api/user/search?$case->[0]")->{json}{pagination}{total}, $case->[1], "search?$case->[0]: $case->[1]");
}
for my $query ('role=root', 'status=gone', 'keyword=' . 'x' x 101, 'name=x') {
	is($api->get("/api/user/search?$query")->{status}, 400, 'search?' . substr($query, 0, 20) . ' is refused');
}

# --- the last admin
for my $change ({ role => 'maintainer' }, { status => 'inactive' }) {
	$got = $api->put("/api/user/$me->{id}", $change);
	is($got->{status}, 409, 'the last admin stays admin and active');
	like($got->{json}{detail}, qr/last active admin/, 'and why');
}
is($api->delete("/api/user/$me->{id}")->{status}, 409, 'and stays');
is($api->put("/api/user/$me->{id}", { name => 'Root' })->{status}, 200, 'a new name is no harm');
my $second = $api->post('/api/user', body(username => 'second', role => 'admin', status => 'inactive'))->{json};
is($api->put("/api/user/$me->{id}", { role => 'viewer' })->{status}, 409, 'an inactive admin is none');
is($api->put("/api/user/$second->{id}", { status => 'active' })->{status}, 200, 'now there are two');

# Two admins who put each other out at once, each in one way; both have got as
# far as the rows of the admins before one of them may go on.
my %out = (demotes => ['PUT', { role => 'viewer' }], disables => ['PUT', { status => 'inactive' }], deletes => ['DELETE']);
$db->sql("UPDATE user SET status = 'inactive' WHERE role = 'admin'");
for my $case (['demotes', 'demotes'], ['disables', 'disables'], ['deletes', 'deletes'], ['demotes', 'deletes'],
    ['disables', 'demotes'], ['deletes', 'disables']) {
	my @names = map { "admin-$n-$_" } 0, 1;
	my @tokens = map { $api->new_token('admin', $_) } @names;
	my @ids = map { $db->sql("SELECT id FROM user WHERE live_username = '$_'") } @names;
	my $holder = $db->hold("SELECT id FROM user WHERE id IN ($ids[0], $ids[1]) FOR UPDATE");
	my @pids = map {
		my ($method, $sent) = @{ $out{ $case->[$_] } };
		my $pid = fork;
		die "fork: $!" if !defined $pid;
		if (!$pid) {
			my $mine = $api->as('none');
			delete $mine->{parent}{http};
			spew(tempdir() . "/race$_", $mine->request($method, "/api/user/$ids[1 - $_]", $sent, bearer($tokens[$_]))->{status});
			POSIX::_exit(0);
		}
		$pid;
	} 0, 1;
	ok(poll(60, sub { $db->waiting == 2 }), 'both wait');
	$db->let_go($holder);
	waitpid $_, 0 for @pids;
	my @said = map { slurp(tempdir() . "/race$_") } 0, 1;
	is(scalar(grep { /^20[04]$/ } @said), 1, "one $case->[0] the other, who $case->[1] the first: one succeeds") or diag "@said";
	is(scalar(grep { $_ eq '409' } @said), 1, 'the other is told of a conflict') or diag "@said";
	is($db->sql("SELECT COUNT(*) FROM user WHERE valid = 1 AND role = 'admin' AND status = 'active'") + 0, 1, 'one is left');
	$db->sql("UPDATE user SET role = 'viewer' WHERE username LIKE 'admin-$n-%'");
	$n++;
}
$db->sql("UPDATE user SET role = 'admin', status = 'active' WHERE username IN ('t-admin', 'second')");

# --- tokens
$got = $api->post('/api/auth/tokens', { name => 'ci' });
is($got->{status}, 201, 'a token is made') or diag $got->{body};
my $made = $got->{json};
like($made->{token}, qr/^slw_[A-Za-z0-9_-]{43}$/, 'of 256 bits');
is_deeply([@$made{qw(name role expiresAt lastUsedAt)}], ['ci', 'admin', undef, undef], 'with the role of its maker, for ever');
is($none->get('/api/auth/info', bearer($made->{token}))->{json}{username}, 't-admin', 'it works');
unlike($api->get('/api/auth/tokens')->{body}, qr/\Q$made->{token}\E/, 'it is shown once');
unlike($api->get("/api/auth/tokens/$made->{id}")->{body}, qr/\Q$made->{token}\E/, 'only');
my $row = $db->sql("SELECT hash FROM api_token WHERE id = $made->{id}");
like($row, qr/^\Q@{[sha256_hex($made->{token})]}\E/, 'the database has its SHA-256');
unlike($db->sql('SELECT * FROM api_token'), qr/\Q$made->{token}\E/, 'and nothing else of it');
unlike($api->log, qr/\Q$made->{token}\E/, 'nor has the log');
my $reader = $api->post('/api/auth/tokens', { name => 'reader', role => 'viewer' })->{json}{token};
is($none->post('/api/projects', {}, bearer($reader))->{status}, 403, 'a token of a lower role does less');
is($none->post('/api/auth/tokens', { name => 'up', role => 'admin' }, bearer($reader))->{status}, 422, 'and makes none that does more');
is($none->post('/api/auth/tokens', { name => 'same' }, bearer($reader))->{json}{role}, 'viewer', 'but its like');
for my $case (
	[{}, '/name', 'no name'], [{ name => 'x', role => 'root' }, '/role', 'an unknown role'], [{ name => 'x', expiresAt => 'soon' }, '/expiresAt', 'no time'],
	[{ name => 'x', expiresAt => '9999-12-31T23:59:59-01:00' }, '/expiresAt', 'a year of five digits'],
	[{ name => 'x', expiresAt => '2020-01-01T00:00:00Z' }, '/expiresAt', 'the past'], [{ name => 'x', expiresAt => 5 }, '/expiresAt', 'a number for a time'],
	[{ name => 'x', token => 'slw_mine' }, '/token', "a token of one's own"], [{ name => 'x', hash => '0' }, '/hash', 'a hash'],
	[{ name => 'x' x 101 }, '/name', 'a long name'], [{ name => 'x', userId => 1 }, '/userId', 'another user'],
) {
	my ($body, $want, $name) = @$case;
	$got = $api->as('viewer')->post('/api/auth/tokens', $body);
	is("$got->{status} " . pointers($got), "422 $want", "$name is refused") or diag $got->{body};
	sleep 0.3; # the limit on making tokens
}
my $viewers = $api->as('viewer')->get('/api/auth/tokens')->{json};
is_deeply([map { $_->{name} } @{ $viewers->{data} }], ['test'], "one sees one's own tokens only");
is($api->as('viewer')->get("/api/auth/tokens/$made->{id}")->{status}, 404, 'not those of others');
is($api->as('viewer')->delete("/api/auth/tokens/$made->{id}")->{status}, 404, 'nor can one end them');
my ($short, $works);
for my $seconds (3, 10, 30) {
	my $end = time + $seconds;
	$short = $api->post('/api/auth/tokens', { name => 'short', expiresAt => POSIX::strftime('%Y-%m-%dT%H:%M:%SZ', gmtime $end) });
	$works = $short->{status} == 201 && $none->get('/api/auth/info', bearer($short->{json}{token}))->{status};
	last if time < $end;
}
is($short->{status}, 201, 'one that ends soon') or diag $short->{body};
is($works, 200, 'works');
ok(poll(6, sub { $none->get('/api/auth/info', bearer($short->{json}{token}))->{status} == 401 }), 'until it ends');
my $brief = $api->new_token('viewer', 't-viewer');
$db->sql("UPDATE api_token SET expires_at = '2099-01-02 03:04:05' WHERE hash = '" . sha256_hex($brief) . "'");
is($none->post('/api/auth/tokens', { name => 'child' }, bearer($brief))->{json}{expiresAt}, '2099-01-02T03:04:05.000Z', 'a token made by another ends with it');
is(pointers($none->post('/api/auth/tokens', { name => 'child', expiresAt => '2099-01-02T03:04:06Z' }, bearer($brief))), '/expiresAt', 'and not later');
$got = $api->delete("/api/auth/tokens/$made->{id}", { 'If-Match' => '"0-0000000000000000"' });
is($got->{status}, 412, 'a token is not deleted by another tag');
my $tag = $api->get("/api/auth/tokens/$made->{id}")->{headers}{etag};
is($api->delete("/api/auth/tokens/$made->{id}", { 'If-Match' => $tag })->{status}, 204, 'a token is deleted by its own');
is($none->get('/api/auth/info', bearer($made->{token}))->{status}, 401, 'and works no more');
is($api->delete("/api/auth/tokens/$made->{id}")->{status}, 404, 'not twice');
is($none->get('/api/auth/info', bearer($reader))->{status}, 200, 'others do');

# --- every role by every other: what it makes, and what it ends
my @roles = qw(viewer deployer maintainer admin);
my (%bearer, %id);
sub make_all {
	for my $role (@roles) {
		next if defined $id{$role};
		my $new;
		poll(30, sub { $new = $api->post('/api/auth/tokens', { name => "a $role", role => $role }); return $new->{status} != 429 });
		($bearer{$role}, $id{$role}) = @{ $new->{json} }{qw(token id)};
	}
	return;
}
for my $mine (0 .. 3) {
	for my $other (0 .. 3) {
		make_all();
		my ($is, $asks) = @roles[$mine, $other];
		poll(30, sub { $got = $none->post('/api/auth/tokens', { name => "by $is", role => $asks }, bearer($bearer{$is})); return $got->{status} != 429 });
		is($got->{status} . ($got->{json}{role} || ''), $other > $mine ? '422' : "201$asks", "$is: a token for $asks is " . ($other > $mine ? 'refused' : 'made'));
		next if $other == $mine;
		$got = $none->delete("/api/auth/tokens/$id{$asks}", bearer($bearer{$is}));
		is($got->{status}, $other > $mine ? 403 : 204, "  and one for $asks is " . ($other > $mine ? 'left alone' : 'ended'));
		like($got->{json}{detail}, qr/^A token cannot delete a token with a higher role\. .* with the role $asks\.$/, '  in words') if $other > $mine;
		is($none->get('/api/auth/info', bearer($bearer{$asks}))->{status}, $other > $mine ? 200 : 401, '  as it was told');
		delete $id{$asks} if $other < $mine;
	}
}
# the user's own role falls: what the token may do counts
my $user = $db->sql("SELECT user_id FROM api_token WHERE id = $id{admin}");
$db->sql("UPDATE user SET role = 'deployer' WHERE id = $user");
is($none->delete("/api/auth/tokens/$id{admin}", bearer($bearer{viewer}))->{status}, 403, 'of a user who fell to deployer, viewer ends no admin');
is($none->delete("/api/auth/tokens/$id{admin}", bearer($bearer{deployer}))->{status}, 204, 'but deployer, which is no less now');
$db->sql("UPDATE user SET role = 'admin' WHERE id = $user");
is($none->delete("/api/auth/tokens/$id{viewer}", bearer($bearer{viewer}))->{status}, 204, 'every token ends itself');
is($none->get('/api/auth/info', bearer($bearer{viewer}))->{status}, 401, 'and is no more');

# --- last use: written rarely
$db->sql("UPDATE api_token SET last_used_at = NULL");
$api->get('/api/auth/info');
my $used = $db->sql("SELECT last_used_at FROM api_token WHERE hash = '" . sha256_hex($api->token) . "'");
like($used, qr/^\d{4}-/, 'the last use is kept');
$api->get('/api/auth/info') for 1 .. 3;
is($db->sql("SELECT last_used_at FROM api_token WHERE hash = '" . sha256_hex($api->token) . "'"), $used, 'not at each request');
$db->sql("UPDATE api_token SET last_used_at = NOW(3) - INTERVAL 6 MINUTE");
$api->get('/api/auth/info');
isnt($db->sql("SELECT last_used_at < NOW(3) - INTERVAL 5 MINUTE FROM api_token WHERE hash = '" . sha256_hex($api->token) . "'") + 0, 1, 'but after five minutes');

# --- users who may no more
my $token = $api->new_token('deployer', 'leaver');
my ($leaver) = @{ $api->get('/api/user/search?keyword=leaver')->{json}{data} };
is($none->get('/api/auth/info', bearer($token))->{status}, 200, 'a user works');
$api->put("/api/user/$leaver->{id}", { role => 'viewer' });
is($none->post('/api/pipelines', {}, bearer($token))->{status}, 403, 'with less rights at once when the role falls');
$api->put("/api/user/$leaver->{id}", { status => 'inactive' });
is($none->get('/api/auth/info', bearer($token))->{status}, 401, 'not when inactive');
$api->put("/api/user/$leaver->{id}", { status => 'active' });
is($none->get('/api/auth/info', bearer($token))->{status}, 200, 'again when active');
is($api->delete("/api/user/$leaver->{id}")->{status}, 204, 'deleted');
is($none->get('/api/auth/info', bearer($token))->{status}, 401, 'not when deleted');
is($api->get("/api/user/detail/$leaver->{id}")->{status}, 404, 'the user is gone');
is($api->delete("/api/user/$leaver->{id}")->{status}, 404, 'not twice');
my $again = $api->post('/api/user', { username => 'leaver', role => 'admin' });
is($again->{status}, 201, 'the name is free');
is($none->get('/api/auth/info', bearer($token))->{status}, 401, 'the old token is not the new user\'s');

# --- signing out
$got = $api->request('POST', '/api/auth/logout');
is($got->{status}, 204, 'signing out');
like($got->{headers}{'set-cookie'}, qr/^__Host-slipway=; Path=\/; Max-Age=0; Secure; HttpOnly; SameSite=Lax$/, 'takes the cookie back');
is($api->get('/api/auth/logout')->{status}, 204, 'by GET as well');
is($api->get('/api/auth/info')->{status}, 200, 'an API token stays');
is($none->request('POST', '/api/auth/logout')->{status}, 401, 'nobody cannot sign out');

done_testing;
