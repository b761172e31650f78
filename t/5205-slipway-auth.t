#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# slipway auth login with a browser, in a pseudo-terminal: the code, approval, denial,
# expiry, Ctrl-C, a service that is away, and the help of a group of commands.

use strict;
use warnings;
use Slipway::API qw(bearer);
use Slipway::Client;
use Slipway::DB;
use Slipway::Test;
use Slipway::Visitor;
use Test::More;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db, nginx => \&Slipway::Visitor::unlimited);
my @alone = (SLIPWAY_URL => undef, SLIPWAY_TOKEN => undef, SLIPWAY_CACERT => undef);
my $slipway = Slipway::Client->new($api, env => {@alone});
my $who = bearer($api->new_session('dora', 'deployer'));
my ($on, $got);

# Starts to sign in; returns the code that the terminal shows.
sub login {
	my ($opt, @more) = ref $_[0] ? @_ : ({}, @_);
	$on = $slipway->terminal($opt, 'auth', 'login', '--cacert', $api->cacert, @more, $api->url);
	ok($on->saw(qr{  page  \Q@{[$api->url]}\E/slipway/device\s+code  \w{4}-\w{4}\s}),
	    'the terminal shows the page and a code') or diag($on->screen);
	my ($code) = $on->screen =~ /code  (\w{4}-\w{4})/;
	return $code;
}
sub decide {
	my ($what, $code) = @_;
	return $api->as('none')->post("/api/auth/device/$what", { userCode => $code }, $who)->{status};
}
sub where { return "WHERE user_code = '" . ($_[0] =~ s/-//r) . "'" }
sub polls { my ($code) = @_; return $db->sql('SELECT polled_at FROM device ' . where($code)) }
sub polled {
	my ($code) = @_;
	return poll(120, sub { polls($code) ne 'NULL' });
}
sub configured { return -e $slipway->config ? slurp($slipway->config) : '' }

# --- denied, interrupted, expired: each has a message and a status, and stores nothing
my $code = login();
ok($on->saw(qr/waiting for approval/), 'the terminal says what slipway waits for');
is(decide('deny', $code), 204, 'a user denies the code');
is($on->end, 77, 'slipway exits with EX_NOPERM');
like($on->screen, qr/A user has denied this request/, 'the terminal says why');

$code = login();
$on->type("\cC");
is($on->end, 130, 'Ctrl-C ends slipway by SIGINT');
like($on->screen, qr/Not signed in; the code has no effect/, 'the terminal says what that means');

$code = login();
ok(polled($code), 'slipway polls');
$db->sql('UPDATE device SET expires_at = NOW(3) ' . where($code));
is($on->end, 75, 'slipway exits with EX_TEMPFAIL when the code expires');
like($on->screen, qr/the code has expired: sign in again, .* within 15 minutes/,
    'the terminal says what to do');
is(configured(), '', 'nothing was stored');

# --- approved
$code = login();
is(decide('approve', $code), 204, 'a user approves the code');
is($on->end, 0, 'slipway signs in');
like($on->screen, qr{signed in to \Q@{[$api->url]}\E as dora \(deployer\)}, 'the terminal shows the user');
unlike($on->screen, qr/slw_/, 'the terminal does not show the token');
like(configured(), qr{^\[\Q@{[$api->url]}\E\]\ntoken = slw_\S+\ncacert = /}, 'the token is stored');
is(sprintf('%04o', (stat $slipway->config)[2] & 07777), '0600',
    'only its owner can read the file with the token');
my ($status, $out) = $slipway->run('auth', 'status');
is($out, join("\t", $api->url, 'dora', 'deployer') . "\n", 'the next command uses the stored token');
my ($host) = (run_cmd('uname', '-n'))[1] =~ /(\S+)/;
my ($token) = @{ $api->as('none')->get('/api/auth/tokens', $who)->{json}{data} };
is($token->{name}, "slipway on $host", 'the token has the name of the machine');

# --- a poll that came too early, and a browser
my $opened = tempdir() . '/opened';
my $browser = spew(tempdir() . '/browser', "#!/bin/sh\necho \"\$1\" >'$opened'\n", 0755);
$code = login({ env => { BROWSER => $browser } }, '--browser');
ok(poll(60, sub { -s $opened }), '--browser opens the page');
is(slurp($opened), $api->url . "/slipway/device#$code\n",
    'the page that --browser opens has the code filled in');
$db->sql("UPDATE device SET polled_at = NOW(3) + INTERVAL 1 MINUTE " . where($code));
ok(poll(120, sub { $db->sql('SELECT poll_seconds FROM device ' . where($code)) == 10 }),
    'the service tells slipway to slow down');
my $told = polls($code);
ok(poll(120, sub { polls($code) ne $told }), 'slipway polls again');
is($db->sql("SELECT polled_at >= '$told' + INTERVAL 10 SECOND FROM device " . where($code)), 1,
    'five seconds later than before');
is(decide('approve', $code), 204, 'a user approves the code that --browser has opened');
is($on->end, 0, 'slipway signs in after slowing down');
$code = login({ env => { BROWSER => '/nonexistent' } }, '--browser');
ok($on->saw(qr/did not open the page .*: open it yourself, or set BROWSER/s),
    'without a browser, the terminal says so');
is(decide('approve', $code), 204, 'the code can be used all the same');
is($on->end, 0, 'slipway waits for the approval');

# --- the service is away
$code = login();
$api->stop_api;
ok($on->saw(qr/does not respond: trying again/), 'the terminal says that the service does not respond');
$api->start_api;
is(decide('approve', $code), 204, 'a user approves the code when the service is back');
is($on->end, 0, 'slipway signs in when the service is back');
$code = login();
$api->stop_api;
$on->saw(qr/does not respond: trying again/);
$db->sql('DELETE FROM device ' . where($code));
$api->start_api;
is($on->end, 75, 'slipway exits with EX_TEMPFAIL if the code was used meanwhile');
like($on->screen, qr/connection .* was lost.*new token "slipway on .*", delete it/s,
    'the terminal says that there may be a token');

# --- without a terminal, and other ways
sub rejected {
	my ($exit, $re, @args) = @_;
	my ($is, $said, $why) = $slipway->run(@args);
	@args = grep { !ref } @args;
	is($is, $exit, "slipway @args exits with $exit");
	like($why, $re, 'the error gives the reason');
	return;
}
my @url = ('--cacert', $api->cacert, $api->url);
my $one = qr/only one of --with-token, --token-command and --browser/;
rejected(64, qr/no terminal to show a code; give --with-token/, 'auth', 'login', @url);
rejected(64, $one, 'auth', 'login', '--browser', '--with-token', @url);
rejected(64, $one, 'auth', 'login', '--browser', '--token-command', 'x', @url);
rejected(64, $one, 'auth', 'login', '--with-token', '--token-command', 'x', @url);
rejected(69, qr/cannot be reached/, 'auth', 'login', '--browser', 'http://localhost:' . free_port());
rejected(69, qr/certificate/, { env => { XDG_CONFIG_HOME => tempdir() . '/other' } }, 'auth', 'login',
    '--browser', $api->url);
rejected(78, qr/not the URL of a service|without TLS/, 'auth', 'login', '--browser', 'http://192.0.2.1');
my $old = Slipway::API->start(db => $db, nginx => sub {
	my ($name, $text) = @_;
	my $none = q(default_type application/problem+json;
	    return 404 '{"code":"not_found","detail":"No resource has this path."}';);
	return $text =~ s{(location \^~ /api/auth/device \{\n)}{$1$none\n}r;
});
rejected(66, qr/cannot sign in a command line with a browser: .*--with-token/, 'auth', 'login', '--browser',
    '--cacert', $old->cacert, $old->url);
$old->stop;

# --- the help of a group
for my $args ([qw(help auth)], [qw(auth --help)], [qw(auth -h)]) {
	($status, $out) = $slipway->run(@$args);
	is($status, 0, "slipway @$args succeeds");
	like($out, qr/\A  slipway auth login https:/, "slipway @$args begins with examples");
	is(join(' ', $out =~ /^  (auth \w+)/mg), 'auth login auth status auth logout',
	    "slipway @$args lists the commands of the group");
}
rejected(64, qr/unknown command aut; did you mean auth/, 'help', 'aut');
rejected(64, qr/auth requires a subcommand/, 'auth');
rejected(64, qr/unknown command auth x/, 'auth', 'x');
rejected(64, qr/unknown command auth/, 'help', 'auth', 'x');
($status, $out) = run_cmd(program('slipway-admin'), 'help', 'user');
is($status, 0, 'slipway-admin has the help of a group, too');
like($out, qr/^  user add USER /m, 'the help of a group lists its commands');

done_testing;
