#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Where nginx signs people in (auth.remote_user): whose name counts, and when
# none does.

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
my @names = ('ada', 'Ada', 'grace', 'boss', 'gone', 'idle', 'new', 'ädä', 'sp ace');
my $passwords = '';
for my $name (@names) {
	my (undef, $hash) = run_cmd('openssl', 'passwd', '-apr1', '-salt', 'saltsalt', "pass-$name");
	$passwords .= "$name:$hash";
}
spew("$files/htpasswd", $passwords, 0644);

# The site as it is shipped, its three lines for this in force.
sub signs_in {
	my ($name, $text) = @_;
	return $text if $name ne 'slipway-site.conf';
	is($text =~ s{^\t#(auth_basic|auth_basic_user_file|set)( .*;)$}{\t$1$2}mg, 3, 'the site has the three lines');
	$text =~ s{/etc/nginx/slipway\.htpasswd}{$files/htpasswd};
	return $text;
}
my $api = Slipway::API->start(db => $db, nginx => \&signs_in, conf => "[auth]\nremote_user = yes\nadmins = boss, other\n");
my $none = $api->as('none');
$db->sql("INSERT INTO user (username, role, status) VALUES ('ada', 'deployer', 'active'), ('idle', 'viewer', 'inactive');"
    . "INSERT INTO user (username, role, valid) VALUES ('gone', 'admin', 0)");
my $got;

sub basic { my ($name, $word) = @_; $word = "pass-$name" if !defined $word; return { Authorization => 'Basic ' . encode_base64("$name:$word", '') } }
sub info { return $none->get('/api/auth/info', @_) }

# --- who comes in
$got = info(basic('ada'));
is($got->{status}, 200, 'whom nginx lets in') or diag $got->{body};
is($got->{json}{username}, 'ada', 'is the user of that name');
for my $case (['nobody', undef], ['a wrong password', basic('ada', 'wrong')], ['an unknown name', basic('eve')],
    ['an empty name', basic('', '')]) {
	$got = info($case->[1]);
	is($got->{status}, 401, "$case->[0]: nginx refuses");
	is($got->{json}{code}, 'unauthenticated', 'as a problem');
	like($got->{headers}{'www-authenticate'} || '', qr/^Basic realm="slipway"/, 'and asks for a password');
}
my %refused = (Ada => 'a name in another case', grace => 'somebody unknown here', idle => 'an inactive user',
	gone => 'a deleted user', 'ädä' => 'a name that the table holds to be the same', 'sp ace' => 'no name for a user');
for my $name (sort keys %refused) {
	$got = info(basic($name));
	is($got->{status}, 403, $refused{$name}) or diag $got->{body};
	is($got->{json}{code}, 'forbidden', 'with words') and cmp_ok(length $got->{json}{detail}, '>', 20, $got->{json}{detail});
}
is($db->sql("SELECT COUNT(*) FROM user WHERE valid = 1"), 2, 'none of them was made');
$got = info(basic('boss'));
is($got->{status}, 200, 'a name of auth.admins') or diag $got->{body};
is($got->{json}{role}, 'admin', 'is made an administrator');
is(info(basic('boss'))->{json}{id}, $got->{json}{id}, 'once');

# --- writes: a browser sends the password along for any page
my %own = ('Sec-Fetch-Site' => 'same-origin');
for my $case ([{}, 403], [{ Origin => 'https://evil.example' }, 403], [{ 'Sec-Fetch-Site' => 'cross-site' }, 403],
    [{ Origin => $api->url }, 201], [{ %own }, 409]) {
	my ($headers, $status) = @$case;
	$got = $none->post('/api/user', { username => 'made', role => 'viewer' }, { %{ basic('boss') }, %$headers });
	is($got->{status}, $status, 'a write with ' . (join(' ', %$headers) || 'no origin')) or diag $got->{body};
}
is($none->post('/api/user', { username => 'more', role => 'viewer' }, { %{ basic('ada') }, %own })->{status}, 403, 'the role holds');
is($none->get('/api/auth/logout', { %{ basic('ada') }, 'Sec-Fetch-Site' => 'cross-site' })->{status}, 403, 'a link signs nobody out');
is($none->get('/api/auth/logout', { %{ basic('ada') }, %own })->{status}, 204, 'signing out by hand does');

# --- tokens beside it
is($api->get('/api/auth/info')->{json}{username}, 't-admin', 'a token needs no password');
is($api->post('/api/user', { username => 'bytoken', role => 'viewer' })->{status}, 201, 'and no origin');
is(info({ Authorization => 'Bearer wrong' })->{status}, 401, 'a wrong one is refused');
is(info({ Authorization => 'bearer ' . $api->token })->{status}, 200, 'in any case');
is(info({ Authorization => 'Bearer' })->{status}, 401, 'the word alone is none');
my $raw = sub {
	my (@headers) = @_;
	my (undef, $out) = run_cmd('curl', '-s', '--cacert', $api->cacert, '-o', '/dev/null', '-w', '%{http_code}',
	    (map { ('-H', $_) } @headers), $api->url . '/api/auth/info');
	return $out;
};
my ($word) = basic('boss', 'wrong')->{Authorization};
is($raw->('Authorization: Bearer x', "Authorization: $word"), 400, 'two headers are refused');
is($raw->("Authorization: $word", 'Authorization: Bearer x'), 400, 'the other way round too');

# --- what a client says of itself
for my $name ('Remote-User', 'REMOTE_USER', 'X-Remote-User', 'X-Forwarded-User') {
	is(info({ $name => 'boss' })->{status}, 401, "$name is nothing");
	is($none->get('/api/auth/info', { %{ basic('ada') }, $name => 'boss' })->{json}{username}, 'ada', 'beside a password too');
}
is(info({ Cookie => 'REMOTE_USER=boss; __Host-slipway=boss' })->{status}, 401, 'nor is a cookie');

# --- where all may go, nobody's word is believed
is($none->get($_)->{status}, 200, "$_ is open") for qw(/health /api/health /api/openapi.json);
is($none->get('/api/health', basic('boss', 'wrong'))->{status}, 200, 'a wrong password does no harm there');
is($none->get('/api/projects')->{status}, 401, 'the rest is not');
is($none->get("/api/projects?/api/hooks/1")->{status}, 401, 'whatever the query says');
is($none->get("/api/hooks/../auth/info", basic('boss', 'wrong'))->{status}, 401, 'or a crooked path');
isnt($none->get("/api/hooks/%2e%2e/auth/info", basic('boss', 'wrong'))->{status}, 200, 'or one in disguise');

# --- the last word is the service's: off by default
my $off = Slipway::API->start(db => $db, migrated => 1, nginx => \&signs_in);
is($off->as('none')->get('/api/auth/info', basic('boss'))->{status}, 401, 'without the setting nginx is not believed');
is($off->get('/api/auth/info')->{status}, 200, 'tokens work');
sub forged {
	my ($service, $name) = @_;
	return ask($service->socket("slow"), REQUEST_URI => '/api/auth/info', REMOTE_USER => $name)->{status};
}
is(forged($off, 'boss'), 401, 'not over its socket either');
is(forged($api, 'boss'), 200, 'with it, what nginx tells counts');
is(forged($api, ''), 401, 'an empty name is nobody');

# --- the setting on, the site as it is shipped: nobody comes in by a name
my $plain = Slipway::API->start(db => $db, migrated => 1, conf => "[auth]\nremote_user = yes\nsignup = viewer\n");
my $anyone = $plain->as('none');
is($anyone->get('/api/auth/info', basic('boss'))->{status}, 401, 'a password that nobody checked');
is($anyone->get('/api/auth/info', { 'Remote-User' => 'boss' })->{status}, 401, 'a name in a header');
is($anyone->get('/api/auth/info')->{status}, 401, 'nothing at all');

# --- with signup, names that nginx lets in become users
$api->write_conf("[auth]\nremote_user = yes\nsignup = deployer\n");
kill 'HUP', $api->pid;
ok(poll(15, sub { info(basic('new'))->{status} == 200 }), 'somebody new comes in where signup is open');
is(info(basic('new'))->{json}{role}, 'deployer', 'with its role');
is(info(basic('gone'))->{status}, 403, 'a deleted user does not');
is(info(basic('idle'))->{status}, 403, 'nor does an inactive one');
is(info(basic('Ada'))->{status}, 403, 'nor a name that is another\'s but for its case');
is($db->sql("SELECT COUNT(*) FROM user WHERE username = 'new'"), 1, 'once');

done_testing;
