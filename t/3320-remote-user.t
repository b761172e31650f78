#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# nginx authenticates users (auth.remote_user): which names are accepted, and when
# none is.

use strict;
use warnings;
use MIME::Base64 qw(encode_base64);
use Slipway::API;
use Slipway::DB;
use Slipway::FastCGI qw(ask);
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $files = tempdir();
my @names = ('ada', 'Ada', 'grace', 'boss', 'gone', 'idle', 'new', 'visitor', 'ädä', 'sp ace');
my $passwords = '';
for my $name (@names) {
	my (undef, $hash) = run_cmd('openssl', 'passwd', '-apr1', '-salt', 'saltsalt', "pass-$name");
	$passwords .= "$name:$hash";
}
spew("$files/htpasswd", $passwords, 0644);

# The shipped site with its three lines for this enabled.
sub signs_in {
	my ($name, $text) = @_;
	return $text if $name ne 'slipway-site.conf';
	is($text =~ s{^\t#(auth_basic|auth_basic_user_file|set)( .*;)$}{\t$1$2}mg, 3,
	    'the shipped site has three lines for auth.remote_user');
	$text =~ s{/etc/nginx/slipway\.htpasswd}{$files/htpasswd};
	return $text;
}
my $api = Slipway::API->start(db => $db, nginx => \&signs_in,
    conf => "[auth]\nremote_user = yes\nadmins = boss, other\n");
my $none = $api->as('none');
$db->sql('INSERT INTO user (username, role, status) VALUES'
    . " ('ada', 'deployer', 'active'), ('idle', 'viewer', 'inactive');"
    . "INSERT INTO user (username, role, valid) VALUES ('gone', 'admin', 0)");
my $got;

# Request headers with a name and a password, by default the right one.
sub basic {
	my ($name, $password) = @_;
	$password = "pass-$name" if !defined $password;
	return { Authorization => 'Basic ' . encode_base64("$name:$password", '') };
}
sub info { return $none->get('/api/auth/info', @_) }

# --- accepted names
$got = info(basic('ada'));
is($got->{status}, 200, 'a user with the right password is accepted') or diag $got->{body};
is($got->{json}{username}, 'ada', 'a password authenticates the user of that name');
for my $case (['no password', undef], ['a wrong password', basic('ada', 'wrong')],
    ['an unknown name', basic('eve')],
    ['an empty name', basic('', '')]) {
	$got = info($case->[1]);
	is($got->{status}, 401, "nginx rejects $case->[0]");
	is($got->{json}{code}, 'unauthenticated', "nginx rejects $case->[0] with a problem");
	like($got->{headers}{'www-authenticate'} || '', qr/^Basic realm="slipway"/,
	    "nginx asks for a password after $case->[0]");
}
my %rejected = (Ada => 'a name in another case', grace => 'an unknown user', idle => 'an inactive user',
	gone => 'a deleted user', 'ädä' => 'a name that the database considers equal',
	'sp ace' => 'an invalid name');
for my $name (sort keys %rejected) {
	$got = info(basic($name));
	is($got->{status}, 403, "$rejected{$name} with the right password returns 403") or diag $got->{body};
	is($got->{json}{code}, 'forbidden', "$rejected{$name} gets the code \"forbidden\"")
	    and cmp_ok(length $got->{json}{detail}, '>', 20,
	    "$rejected{$name} gets a reason: $got->{json}{detail}");
}
is($db->sql("SELECT COUNT(*) FROM user WHERE valid = 1"), 2, 'rejected names create no user');
$got = info(basic('boss'));
is($got->{status}, 200, 'a name of auth.admins is accepted') or diag $got->{body};
is($got->{json}{role}, 'admin', 'a name of auth.admins becomes an administrator');
is(info(basic('boss'))->{json}{id}, $got->{json}{id}, 'a name of auth.admins is created once');
is($db->sql('SELECT action, via, username, object_type, object_id FROM audit'),
    "admitUser\tsession\tboss\tuser\t$got->{json}{id}", 'the audit log says that the user was created');

# --- writes: a browser sends the password with the requests of any page
my %own = ('Sec-Fetch-Site' => 'same-origin');
for my $case ([{}, 403], [{ Origin => 'https://evil.example' }, 403],
    [{ 'Sec-Fetch-Site' => 'cross-site' }, 403],
    [{ Origin => $api->url }, 201], [{ %own }, 409]) {
	my ($headers, $status) = @$case;
	$got = $none->post('/api/user', { username => 'made', role => 'viewer' },
	    { %{ basic('boss') }, %$headers });
	is($got->{status}, $status,
	    'a write by password with ' . (join(' ', %$headers) || 'no origin')
	    . " returns $status") or diag $got->{body};
}
is($none->post('/api/user', { username => 'more', role => 'viewer' }, { %{ basic('ada') }, %own })->{status},
    403, 'a user with a password has the rights of the role');
is($none->get('/api/auth/logout', { %{ basic('ada') }, 'Sec-Fetch-Site' => 'cross-site' })->{status}, 403,
    'a sign-out by password from another site returns 403');
is($none->get('/api/auth/logout', { %{ basic('ada') }, %own })->{status}, 204,
    'a sign-out by password from our origin succeeds');

# --- tokens
is($api->get('/api/auth/info')->{json}{username}, 't-admin', 'a token works without a password');
is($api->post('/api/user', { username => 'bytoken', role => 'viewer' })->{status}, 201,
    'a write by token needs no origin');
is(info({ Authorization => 'Bearer wrong' })->{status}, 401, 'an invalid token returns 401');
is(info({ Authorization => 'bearer ' . $api->token })->{status}, 200, 'the case of "Bearer" does not matter');
is(info({ Authorization => 'Bearer' })->{status}, 401, '"Bearer" without a token returns 401');
my $raw = sub {
	my (@headers) = @_;
	my (undef, $out) = run_cmd('curl', '-s', '--cacert', $api->cacert, '-o', '/dev/null', '-w',
	    '%{http_code}',
	    (map { ('-H', $_) } @headers), $api->url . '/api/auth/info');
	return $out;
};
my ($word) = basic('boss', 'wrong')->{Authorization};
is($raw->('Authorization: Bearer x', "Authorization: $word"), 400, 'a token and a password return 400');
is($raw->("Authorization: $word", 'Authorization: Bearer x'), 400, 'a password and a token return 400');

# --- names that the client sends
for my $name ('Remote-User', 'REMOTE_USER', 'X-Remote-User', 'X-Forwarded-User') {
	is(info({ $name => 'boss' })->{status}, 401, "the header $name does not authenticate");
	is($none->get('/api/auth/info', { %{ basic('ada') }, $name => 'boss' })->{json}{username}, 'ada',
	    "the header $name does not replace the user of a password");
}
is(info({ Cookie => 'REMOTE_USER=boss; __Host-slipway=boss' })->{status}, 401,
    'a name in a cookie does not authenticate');

# --- public routes
is($none->get($_)->{status}, 200, "$_ is public") for qw(/health /api/health /api/openapi.json);
is($none->get('/api/health', basic('boss', 'wrong'))->{status}, 200,
    'a public route ignores a wrong password');
is($none->get('/api/projects')->{status}, 401, 'other routes require authentication');
is($none->get("/api/projects?/api/hooks/1")->{status}, 401,
    'a public path in the query does not make a route public');
is($none->get("/api/hooks/../auth/info", basic('boss', 'wrong'))->{status}, 401,
    'a path that leaves a public one requires authentication');
isnt($none->get("/api/hooks/%2e%2e/auth/info", basic('boss', 'wrong'))->{status}, 200,
    'an escaped path that leaves a public one requires authentication');

# --- auth.remote_user is off by default
my $off = Slipway::API->start(db => $db, migrated => 1, nginx => \&signs_in);
is($off->as('none')->get('/api/auth/info', basic('boss'))->{status}, 401,
    'without auth.remote_user a password of nginx returns 401');
is($off->get('/api/auth/info')->{status}, 200, 'without auth.remote_user tokens work');
sub forged {
	my ($service, $name) = @_;
	return ask($service->socket("slow"), REQUEST_URI => '/api/auth/info', REMOTE_USER => $name)->{status};
}
is(forged($off, 'boss'), 401, 'without auth.remote_user REMOTE_USER on the socket returns 401');
is(forged($api, 'boss'), 200, 'with auth.remote_user REMOTE_USER on the socket authenticates');
is(forged($api, ''), 401, 'an empty REMOTE_USER returns 401');

# --- auth.remote_user with the shipped site, whose lines for it are disabled
my $plain = Slipway::API->start(db => $db, migrated => 1,
    conf => "[auth]\nremote_user = yes\nsignup = viewer\n");
my $anyone = $plain->as('none');
is($anyone->get('/api/auth/info', basic('boss'))->{status}, 401,
    'a password that nginx does not check returns 401');
is($anyone->get('/api/auth/info', { 'Remote-User' => 'boss' })->{status}, 401,
    'a name in a header returns 401');
is($anyone->get('/api/auth/info')->{status}, 401, 'a request without credentials returns 401');

# --- with auth.signup, unknown names become users
ok($api->reload("[auth]\nremote_user = yes\nsignup = deployer\n"), 'the new settings are in use');
is(info(basic('new'))->{status}, 200, 'with auth.signup an unknown name with a password is accepted');
is(info(basic('new'))->{json}{role}, 'deployer', 'with auth.signup a new user gets the configured role');
is(info(basic('gone'))->{status}, 403, 'with auth.signup a deleted user returns 403');
is(info(basic('idle'))->{status}, 403, 'with auth.signup an inactive user returns 403');
is(info(basic('Ada'))->{status}, 403, 'with auth.signup a name in use in another case returns 403');
is($db->sql("SELECT COUNT(*) FROM user WHERE username = 'new'"), 1,
    'with auth.signup a new user is created once');
ok($api->reload("[auth]\nremote_user = yes\nsignup = guest\n"), 'the settings after those are in use');
is(info(basic('visitor'))->{json}{role}, 'guest', 'with auth.signup = guest a new user is a guest');

done_testing;
