#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Signing in a device (RFC 8628): codes, polls, decisions, what an approval hands
# out, and limits. Every step has as many rejections as successes.

use strict;
use warnings;
use Digest::SHA qw(sha256_hex);
use JSON::PP ();
use POSIX ();
use Slipway::API qw(bearer outcome session_cookie);
use Slipway::DB;
use Slipway::Runner;
use Slipway::Test;
use Slipway::Visitor;
use Test::More;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db, nginx => \&Slipway::Visitor::unlimited);
my $none = $api->as('none');
my $at = '/api/auth/device';
my $got;

sub begin { my ($body, $headers) = @_; return $none->post($at, $body, $headers) }
sub started { return begin(@_)->{json} }
sub taken { my ($device) = @_; return $none->post("$at/token", { deviceCode => $device->{deviceCode} }) }
# Status and `error` of a poll.
sub polled { my $got = taken(@_); return join ' ', $got->{status}, $got->{json}{error} // 'none' }
sub approve {
	my ($device, $who, %more) = @_;
	return $none->post("$at/approve", { userCode => $device->{userCode}, %more }, $who);
}
sub deny {
	my ($device, $who) = @_;
	return $none->post("$at/deny", { userCode => $device->{userCode} }, $who);
}
sub request { my ($code, $who) = @_; return $none->get("$at/request?userCode=$code", $who) }
sub where { return "WHERE hash = '" . sha256_hex($_[0]{deviceCode}) . "'" }
sub row { my ($device, $what) = @_; return $db->sql("SELECT $what FROM device " . where($device)) }
sub set { my ($device, $what) = @_; $db->sql("UPDATE device SET $what " . where($device)); return }
sub rest { set($_[0], 'polled_at = NOW(3) - INTERVAL 1 HOUR'); return $_[0] }
sub audit { my ($action) = @_; return $db->sql("SELECT username, via, object_type, changes FROM audit"
    . " WHERE action = '$action' ORDER BY id DESC LIMIT 1") }
sub audits { return $db->sql('SELECT COUNT(*) FROM audit') }
my ($admin, $deployer, $viewer, $guest) = map { bearer($api->new_session("s-$_", $_)) }
    qw(admin deployer viewer guest);

# --- the codes
$got = begin({ name => "slipway on dora's laptop" });
is($got->{status}, 200, 'a device gets codes without authentication') or diag($got->{body});
my $device = $got->{json};
like($device->{deviceCode}, qr/^[A-Za-z0-9_-]{43}$/, 'the device code has 256 bits');
like($device->{userCode}, qr/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/,
    'the user code has eight letters without vowels');
is($device->{verificationUri}, $api->url . '/slipway/device', 'the page is one of the console');
is($device->{verificationUriComplete}, "$device->{verificationUri}#$device->{userCode}",
    'the complete address has the code');
is($device->{interval}, 5, 'the interval is five seconds');
cmp_ok($device->{expiresIn}, '>=', 600, 'the codes are valid for ten minutes at least');
cmp_ok($device->{expiresIn}, '<=', 900, 'the codes are valid for 15 minutes at most');
like($got->{headers}{'cache-control'}, qr/no-store/, 'the codes are not cached');
is($got->{headers}{'set-cookie'}, undef, 'no cookie is set');
unlike($db->sql('SELECT * FROM device'), qr/\Q$device->{deviceCode}\E/,
    'the database does not store the device code');
is(row($device, 'COUNT(*)'), 1, 'the database stores the hash of the device code');
is(row($device, "CHAR_LENGTH(user_code)"), 8, 'the database stores the user code without its hyphen');
is(audits(), 0, 'a request of an unknown device adds no entry to the audit log');
is(started()->{interval}, 5, 'a device needs no name');
for my $case ([ { name => '' }, '422 /name' ], [ { name => 'x' x 101 }, '422 /name' ],
    [ { name => "a\nb" }, '422 /name' ], [ { name => 7 }, '422 /name' ],
    [ { role => 'admin' }, '422 /role' ], [ '[]', '422 ' ], [ '{', '400' ]) {
	$got = begin($case->[0]);
	my $sent = ref $case->[0] ? join ' ', %{ $case->[0] } : $case->[0];
	is(outcome($got), $case->[1], 'a device is rejected: ' . substr $sent =~ s/\n/ /r, 0, 20);
}
is($none->get($at)->{status}, 405, 'codes are requested by POST');
my %codes = map { started()->{userCode} => 1 } 1 .. 20;
is(scalar keys %codes, 20, 'all codes differ');

# --- polls before a decision
is(polled($device), '400 authorization_pending', 'a poll before the decision returns authorization_pending');
is(row($device, 'polled_at > NOW(3) - INTERVAL 5 MINUTE'), 1, 'the time of the poll is stored');
set($device, 'polled_at = NOW(3) + INTERVAL 1 MINUTE');
is(polled($device), '400 slow_down', 'a poll within the interval is answered with slow_down');
is(row($device, 'poll_seconds'), 10, 'the interval is five seconds longer then');
set($device, 'poll_seconds = 3000, polled_at = NOW(3) - INTERVAL 2000 SECOND');
is(polled($device), '400 slow_down', 'a poll within the longer interval is answered with slow_down');
set($device, 'polled_at = NOW(3) - INTERVAL 3006 SECOND');
is(polled($device), '400 authorization_pending', 'a poll after the longer interval is not');
$got = taken(rest($device));
is($got->{json}{code}, 'bad_request', 'the error is a problem');
like($got->{json}{detail}, qr/decided yet/, 'the error has a sentence');
for my $code ('', 'x', 'x' x 43, 'x' x 101, sha256_hex($device->{deviceCode}), $device->{userCode},
    "$device->{deviceCode}x") {
	like($none->post("$at/token", { deviceCode => $code })->{body},
	    qr/"expired_token"|validation_failed/, 'an unknown device code gets no token');
}
is(outcome($none->post("$at/token", {})), '422 /deviceCode', 'a poll needs the device code');
is(outcome($none->post("$at/token", { deviceCode => 'x', more => 1 })), '422 /more',
    'a poll has no other member');
is($none->get("$at/token")->{status}, 405, 'a token is requested by POST');

# --- roles that may read a request, and its members
is(request($device->{userCode}, {})->{status}, 401, 'looking at a device requires authentication');
$got = request($device->{userCode}, $viewer);
is($got->{status}, 200, 'a user sees the device that has a code') or diag($got->{body});
is($got->{json}{name}, "slipway on dora's laptop", 'the user sees its name');
like($got->{json}{address}, qr/^(?:127\.0\.0\.1|::1)$/, 'the user sees its address');
like($got->{json}{createdAt}, qr/^\d{4}-.*Z$/, 'the user sees the time of the request');
is_deeply([ sort keys %{ $got->{json} } ], [qw(address createdAt expiresAt name userCode)],
    'the user sees nothing else');
unlike($got->{body}, qr/\Q$device->{deviceCode}\E/, 'the user does not see the device code');
my $plain = $device->{userCode} =~ s/-//r;
for my $way (lc $plain, ucfirst lc $plain, join('-', split //, $plain), "%20$plain%20") {
	is(request($way, $viewer)->{json}{userCode}, $device->{userCode}, "the code can be written as $way");
}
for my $wrong (substr($plain, 1), $plain . 'B', 'AEIOU-123', '%25%25%25%25%25%25%25%25', 'x' x 50) {
	is(request($wrong, $viewer)->{status}, 404, "the code $wrong is unknown");
}
is(request('', $viewer)->{status}, 400, 'an empty code is rejected');
is(request('x' x 51, $viewer)->{status}, 400, 'a code that is too long is rejected');
is($none->get("$at/request", $viewer)->{status}, 400, 'a missing code is rejected');

# --- roles that may decide
for my $what (qw(approve deny)) {
	my %body = (userCode => $device->{userCode});
	is($none->post("$at/$what", \%body)->{status}, 401, "$what requires authentication");
	is($none->post("$at/$what", \%body, bearer('slw_' . 'x' x 43))->{status}, 401,
	    "$what requires a valid credential");
	my $session = $api->new_session('s-admin', 'admin');
	for my $from ({}, { 'Sec-Fetch-Site' => 'cross-site' }, { Origin => 'https://evil.example' }) {
		is($none->post("$at/$what", \%body, session_cookie($session, %$from))->{status}, 403,
		    "$what by the cookie of a page of another site is rejected");
	}
	is(outcome($none->post("$at/$what", {}, $admin)), '422 /userCode', "$what needs the code");
	is($none->post("$at/$what", { userCode => 'BBBB-BBBB' }, $admin)->{status}, 404,
	    "$what does not accept an unknown code");
	is($none->get("$at/$what", $admin)->{status}, 405, "$what is a POST");
}
is(outcome($none->post("$at/deny", { userCode => $device->{userCode}, role => 'viewer' }, $admin)),
    '422 /role', 'deny has no role');
is(polled(rest($device)), '400 authorization_pending',
    'looking at a request and invalid decisions do not decide');
is(audits(), 0, 'looking at a request and invalid decisions add no entry to the audit log');

# --- approved
$got = approve($device, $deployer);
is($got->{status}, 204, 'a user approves') or diag($got->{body});
is(audit('approveDevice'), "s-deployer\tsession\tdevice\t[{\"name\":\"userCode\",\"from\":null,\"to\":null}]",
    'the approval is in the audit log, without the code');
is($_->{status}, 404, 'a decision on an approved request is rejected')
    for approve($device, $admin), deny($device, $admin);
is(request($device->{userCode}, $deployer)->{status}, 404, 'the code works only once');
$got = taken($device);
is($got->{status}, 201, 'the device gets its token, even by an early poll') or diag($got->{body});
my $token = $got->{json}{token};
like($token, qr/^slw_[A-Za-z0-9_-]{43}$/, 'the token of a device is an API token');
is($got->{headers}{location}, "/api/auth/tokens/$got->{json}{id}", 'the response says where it is');
is("@{ $got->{json} }{qw(name role)}", "slipway on dora's laptop deployer",
    'the token has the name of the device and the role of the user');
is($got->{json}{expiresAt}, undef, 'the token of a device does not expire by itself');
$got = $none->get('/api/auth/info', bearer($token));
is($got->{json}{username}, 's-deployer', 'the token works');
is($none->get('/api/auth/tokens', $deployer)->{json}{data}[0]{name}, "slipway on dora's laptop",
    'the user sees it in the list of tokens');
is($none->post('/api/projects', {}, bearer($token))->{status}, 403,
    'the token has no higher role than the user');
like(audit('takeDeviceToken'), qr/^s-deployer\tsession\ttoken\t.*"name":"role",.*"to":"deployer"/,
    'the token is in the audit log');
unlike($db->sql('SELECT changes FROM audit'), qr/\Q$token\E|\Q$device->{deviceCode}\E|deviceCode/,
    'the audit log has neither token nor device code');
is(polled($device), '400 expired_token', 'the device code works only once');
is(row($device, 'COUNT(*)'), 0, 'the row is deleted');
my ($id) = map { $_->{id} } $none->get('/api/auth/tokens', $deployer)->{json}{data}[0];
is($none->delete("/api/auth/tokens/$id", $deployer)->{status}, 204, 'the user deletes the token');
is($none->get('/api/auth/info', bearer($token))->{status}, 401,
    'a device whose token was deleted is signed out');

# --- concurrent polls
$device = started();
approve($device, $viewer);
my $before = $db->sql('SELECT COUNT(*) FROM api_token');
my $file = tempdir() . '/polls';
my @curl = ('curl', '-s', '--cacert', $api->cacert, '-o', '/dev/null', '-w', "%{http_code}\n", '-H',
    'Content-Type: application/json', '-d',
    JSON::PP::encode_json({ deviceCode => $device->{deviceCode} }), $api->url . "$at/token");
my @pids = map {
	my $pid = fork // die "fork: $!";
	if ($pid == 0) { open STDOUT, '>>', $file or POSIX::_exit(1); exec @curl or POSIX::_exit(1) }
	$pid;
} 1 .. 8;
waitpid $_, 0 for @pids;
my %statuses;
$statuses{$_}++ for split /\n/, slurp($file);
is_deeply(\%statuses, { 201 => 1, 400 => 7 }, 'one of eight concurrent polls gets a token');
is($db->sql('SELECT COUNT(*) FROM api_token') - $before, 1, 'one token is created');

# --- denied
$device = started();
is(deny($device, $viewer)->{status}, 204, 'a user denies');
is(polled($device), '400 access_denied', 'a device that a user denied gets access_denied');
is(polled($device), '400 access_denied', 'a second poll gets the same response');
is($_->{status}, 404, 'a decision on a denied request is rejected')
    for approve($device, $viewer), deny($device, $viewer), request($device->{userCode}, $viewer);
is(audit('denyDevice'), "s-viewer\tsession\tdevice\t[{\"name\":\"userCode\",\"from\":null,\"to\":null}]",
    'the denial is in the audit log');

# --- expired
$device = started();
set($device, 'expires_at = NOW(3)');
is($_->{status}, 404, 'an expired code cannot be used')
    for approve($device, $viewer), deny($device, $viewer), request($device->{userCode}, $viewer);
is(polled($device), '400 expired_token', 'the device learns that its code has expired');
$device = started();
approve($device, $viewer);
set($device, 'expires_at = NOW(3)');
is(polled($device), '400 expired_token', 'an approval that was not used expires as well');

# --- the highest role and lifetime that a user may grant
for my $case ([ $guest, {}, 'viewer' ], [ $viewer, {}, 'viewer' ], [ $admin, {}, 'admin' ],
    [ $admin, { role => 'deployer' }, 'deployer' ], [ $viewer, { role => 'deployer' }, '422 /role' ],
    [ $guest, { role => 'deployer' }, '422 /role' ], [ $deployer, { role => 'admin' }, '422 /role' ],
    [ $admin, { role => 'guest' }, '422 /role' ], [ $admin, { role => undef }, '422 /role' ],
    [ $admin, { expiresAt => '2020-01-01T00:00:00Z' }, '422 /expiresAt' ],
    [ $admin, { expiresAt => 'soon' }, '422 /expiresAt' ],
    [ $viewer, { role => 'admin', expiresAt => '2020-01-01T00:00:00Z', x => 1 }, '422 /expiresAt /role /x' ],
    [ $admin, { expiresAt => '2099-01-01T00:00:00.000Z' }, 'admin' ]) {
	my ($who, $more, $want) = @$case;
	$device = started();
	$got = approve($device, $who, %$more);
	my ($name) = $none->get('/api/auth/info', $who)->{json}{username};
	my $words = join ' ', $name, map { "$_=" . ($more->{$_} // 'null') } sort keys %$more;
	if ($want =~ /^422/) {
		is(outcome($got), $want, "an approval is rejected: $words");
		is(polled($device), '400 authorization_pending', 'an invalid approval decides nothing');
		next;
	}
	$got = taken($device);
	is($got->{json}{role}, $want, "an approval succeeds: $words") or diag($got->{body});
	is($got->{json}{expiresAt}, $more->{expiresAt}, "the token has this expiry: $words");
	cmp_ok($none->get('/api/auth/info', bearer($got->{json}{token}))->{status}, '==', 200,
	    'the token of the approval works');
}

# --- tokens, and sessions that a token has started
my $user = $db->sql("INSERT INTO user (username, role) VALUES ('tess', 'admin') RETURNING id");
sub api_token { return $api->token_of($user, @_) }
for my $way ('the token', 'a session of the token') {
	my ($secret, $token_id) = api_token('deployer', "'2090-01-01'");
	my $who = bearer($way eq 'the token' ? $secret
	    : $none->post('/api/auth/session', undef, bearer($secret))->{json}{token});
	for my $case ([ { role => 'maintainer' }, '422 /role' ],
	    [ { expiresAt => '2090-01-02T00:00:00Z' }, '422 /expiresAt' ]) {
		is(outcome(approve(started(), $who, %{ $case->[0] })), $case->[1],
		    "$way hands out no more than it has: @{[ %{ $case->[0] } ]}");
	}
	$device = started();
	is(approve($device, $who, expiresAt => undef)->{status}, 204, "$way approves");
	$got = taken($device);
	is($got->{json}{role}, 'deployer', "$way hands out its own role");
	is($got->{json}{expiresAt}, '2090-01-01T00:00:00.000Z', "$way hands out its own expiry");
	for my $end ("valid = 0", 'expires_at = NOW(3)') {
		$db->sql("UPDATE api_token SET valid = 1, expires_at = '2090-01-01' WHERE id = $token_id");
		$device = started();
		is(approve($device, $who)->{status}, 204, "$way approves once more");
		$db->sql("UPDATE api_token SET $end WHERE id = $token_id");
		is(polled($device), '400 access_denied', "the device gets nothing after $way ended ($end)");
		is(approve(started(), $who)->{status}, 401, "$way approves nothing then");
	}
}

# --- changes of the user between the approval and the poll
for my $case ([ 'disabled', "status = 'inactive'", '400 access_denied' ],
    [ 'deleted', 'valid = 0', '400 access_denied' ],
    [ 'blocked at the Git server', 'git_refused_at = NOW(3)', '400 access_denied' ],
    [ 'renamed', "username = 'renamed'", '201 none' ]) {
	my ($name, $change, $want) = @$case;
	my $leaver = bearer($api->new_session("leaver-$name", 'admin'));
	$device = started();
	is(approve($device, $leaver)->{status}, 204, "a user approves who is $name then");
	$db->sql("UPDATE user SET $change WHERE username = 'leaver-$name'");
	is(polled($device), $want, "the device gets $want when the user is $name");
}
my $falling = bearer($api->new_session('falling', 'admin'));
$device = started();
approve($device, $falling);
$api->put('/api/user/' . $db->sql("SELECT id FROM user WHERE username = 'falling'"), { role => 'viewer' });
$token = taken($device)->{json}{token};
is($none->post('/api/user', { username => 'x', role => 'viewer' }, bearer($token))->{status}, 403,
    'the token of a user who was demoted has the lower role');

# --- limits
$db->sql('DELETE FROM device');
my $outstanding = 'INSERT INTO device (hash, user_code, name, address, expires_at, poll_seconds)'
    . " SELECT SHA2(%s, 256), LPAD(%s, 8, '0'), 'x', '%s', NOW(3) + INTERVAL %d SECOND, 5"
    . ' FROM seq_1_to_%d';
$db->sql(sprintf $outstanding, 'seq', 'seq', '127.0.0.1', 600, 49);
is(begin()->{status}, 200, 'fifty devices at one address may wait');
$got = begin();
is("$got->{status} $got->{json}{code}", '429 rate_limited',
    'a device over the limit of an address is rejected');
is($got->{headers}{'retry-after'}, 60, 'the response says when to try again');
like($got->{json}{detail}, qr/at your address.*15 minutes/, 'the error says why');
$db->sql("UPDATE device SET expires_at = NOW(3) WHERE user_code = LPAD(7, 8, '0')");
is(begin()->{status}, 200, 'when one has expired, the next one may wait');
$db->sql('DELETE FROM device');
$db->sql(sprintf $outstanding, 'seq', 'seq', '192.0.2.7', 600, 2000);
$got = begin();
is($got->{status}, 429, 'two thousand devices may wait in all');
unlike($got->{json}{detail}, qr/your address/, 'the error does not blame the address');

# --- the runner deletes expired requests
$db->sql('DELETE FROM device');
$db->sql(sprintf $outstanding, 'seq', 'seq', '192.0.2.7', -1, 30);
my $kept = started();
my $runner = Slipway::Runner->start(db => $db, conf => "[runner]\nlease = 3\n");
ok(poll(60, sub { $db->sql('SELECT COUNT(*) FROM device') == 1 }), 'the runner deletes expired requests');
is(polled($kept), '400 authorization_pending', 'the runner keeps the requests that are pending');
$runner->stop;

# --- the public address, and nginx that authenticates users
my $named = Slipway::API->start(db => $db, nginx => \&Slipway::Visitor::unlimited,
    conf => "[api]\nurl = https://deploy.example.org/\n");
is($named->as('none')->post($at)->{json}{verificationUri}, 'https://deploy.example.org/slipway/device',
    'api.url is the address of the page');
$named->stop;
my $remote = Slipway::API->start(db => $db, conf => "[auth]\nremote_user = yes\n",
    nginx => sub {
	my ($name, $text) = @_;
	$text =~ s{^\t#(auth_basic|auth_basic_user_file|set)( .*;)$}{\t$1$2}mg
	    if $name eq 'slipway-site.conf';
	return $text =~ s{/etc/nginx/slipway\.htpasswd}{tempdir() . '/none'}er;
    });
$none = $remote->as('none');
$device = started();
like($device->{userCode}, qr/-/, 'nginx asks a device for no password');
is(polled($device), '400 authorization_pending', 'nginx asks a device that polls for no password');
is($none->post("$at/$_", { userCode => $device->{userCode} })->{status}, 401,
    "nginx asks a user for a password to $_") for qw(approve deny);
is(request($device->{userCode}, {})->{status}, 401, 'signing in is required to read a request');
is(approve($device, bearer($remote->token('viewer')))->{status}, 204, 'a token approves there');
$db->sql("UPDATE user SET git_refused_at = NOW(3) WHERE username = 't-viewer'");
is(polled($device), '201 none',
    'a refused account at the Git server does not matter where nginx authenticates users');
$remote->stop;
$api->stop;

# --- addresses of IPv6, of which one host has a network
$db->sql('DELETE FROM device');
my $wide = Slipway::API->start(db => $db, nginx => sub {
	my ($name, $text) = @_;
	return Slipway::Visitor::addressed($name, Slipway::Visitor::unlimited($name, $text));
});
$none = $wide->as('none');
sub begun { # statuses of a request from each of these addresses
	my %seen;
	$seen{ begin({}, { 'X-Address' => $_ })->{status} }++ for @_;
	return \%seen;
}
is_deeply(begun(map { sprintf '2001:db8::7:%x:%x', $_, $_ } 1 .. 60), { 200 => 50, 429 => 10 },
    'fifty devices at a network of IPv6 may wait');
is_deeply(begun('2001:db8:0:1::7', '2001:db8:1::7', '192.0.2.1', '::ffff:192.0.2.2'), { 200 => 4 },
    'devices at other networks of IPv6 may wait, too');
is_deeply(begun(map { "::ffff:192.0.2.$_" } 1 .. 60), { 200 => 60 },
    'addresses of IPv4 in another form are no network');
is($db->sql("SELECT COUNT(DISTINCT address) FROM device"), 113, 'the whole address is stored');
$wide->stop;
my $slow = Slipway::API->start(db => $db, nginx => sub {
	my ($name, $text) = @_;
	return Slipway::Visitor::addressed($name, $text =~ s/rate=60r\/m/rate=6r\/m/gr);
});
$none = $slow->as('none');
$viewer = bearer($slow->new_session('s-viewer', 'viewer'));
sub guessed { # how many of 100 guesses from these addresses are answered
	my ($make) = @_;
	return scalar grep {
		my $from = { %$viewer, 'X-Address' => $make->($_) };
		$none->get("$at/request?userCode=BBBBBBBB", $from)->{status} == 404;
	} 1 .. 100;
}
cmp_ok(guessed(sub { sprintf '2001:db8:2:3:4:5:6:%x', @_ }), '<', 100,
    'guesses from the addresses of one network are limited together');
cmp_ok(guessed(sub { sprintf '2001:db8:3::%x', @_ }), '<', 100,
    'guesses from a network are limited together if its address omits zeros');
is(guessed(sub { sprintf '2001:db8:4:%x:4:5:6:7', @_ }), 100,
    'guesses from different networks are not limited together');
is(guessed(sub { "192.0.2.$_[0]" }), 100, 'guesses from different IPv4 addresses are not limited together');
$slow->stop;

# --- nginx limits both guesses and polls
my $limited = Slipway::API->start(db => $db);
$none = $limited->as('none');
$viewer = bearer($limited->new_session('s-viewer', 'viewer'));
my $guesses = 0;
$guesses++ while $guesses < 2000 && request('BBBBBBBB', $viewer)->{status} == 404;
cmp_ok($guesses, '>=', 60, 'a user may mistype a code');
cmp_ok($guesses, '<', 2000, 'a series of guesses is limited');
ok(poll(60, sub { approve({ userCode => 'BBBBBBBB' }, $viewer)->{status} == 429 }),
    'approvals share the limit');
my %polls;
$polls{ polled({ deviceCode => 'x' }) }++ for 1 .. 60;
is_deeply(\%polls, { '400 expired_token' => 60 }, 'several devices may poll from one address');
$limited->stop;

done_testing;
