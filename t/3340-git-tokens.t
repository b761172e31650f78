#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The token for requests to the Git server: refreshed once for simultaneous
# requests, not lost by errors of the network or of MariaDB, and deleted if the
# server rejects it.

use strict;
use warnings;
use Slipway::Background;
use Slipway::DB;
use Slipway::Forge;
use Slipway::Test;
use Test::More;
use Time::HiRes qw(time);

my $db = Slipway::DB->start;
$db->migrate;
$db->sql("INSERT INTO user (id, username, role) VALUES (1, 'ann', 'viewer'), (2, 'eve', 'viewer')");
my $key = tempdir() . '/secret.key';
my %forge = map { $_ => Slipway::Forge->start(type => $_) } qw(gitea gitlab);
$_->user('ann', { id => 7 }) for values %forge;
$_->user('robot', { id => 8 }) for values %forge;

sub conf_of {
	my ($type, %more) = @_;
	my $name = tempdir() . "/$type" . join('-', map { /^\w+$/ ? $_ : '' } %more) . '.conf';
	return spew($name,
	    $db->conf(timeout => 2) . $forge{$type}->conf(%more) . "[secrets]\nkey_file = $key\n", 0600);
}
my %conf = map { $_ => conf_of($_) } keys %forge;
ok(make_keys($conf{gitea}, $key), 'slipway-admin key creates the keys for secrets');

# The output of a command of t/unit/access_probe.
sub probe {
	my ($conf, @words) = @_;
	my (undef, $out, $error) = run_cmd(program('t/unit/access_probe'), $conf{$conf} || $conf, @words);
	chomp $out;
	diag $error if $error =~ /Sanitizer|usage|no such/;
	return $out;
}
# Stores a pair of tokens of ann for user 1.
sub give {
	my ($type, $seconds, %opt) = @_;
	my ($access, $refresh) = $forge{$type}->token('ann', expires => $opt{expires} || 3600, refresh => 1);
	is(probe($type, 'put', 1, $access, $opt{no_refresh} ? '-' : $refresh, $seconds), 'put',
	    "a pair of tokens of $type for $seconds s is stored");
	return ($access, $refresh);
}
sub refreshes {
	my ($type) = @_;
	return scalar grep { $_->{body} =~ /refresh_token/ } $forge{$type}->requests(qr/token$/);
}
# The outputs of commands that run simultaneously.
sub at_once {
	my (@commands) = @_;
	my @runs = map { my $words = $_; background(sub { return probe(@$words) }) } @commands;
	return map { $_->result } @runs;
}

# --- the token of a user
like(probe('gitea', 'of', 0), qr/^not_found/, 'no user has no token');
like(probe('gitea', 'of', 1), qr/^not_found/, 'a user who never signed in has no token');
is(probe('gitea', 'for', 1), '(none)', 'a request for a user without a token carries none');
my $service = $forge{gitea}->token('robot');
my $with = conf_of('gitea', token => $service);
is(probe($with, 'for', 1), $service, "a request for a user without a token carries the service's");
is(probe($with, 'for', 0), $service, "a request for no user carries the service's token");
my ($access, $refresh) = give('gitea', 3600);
is(probe($with, 'for', 1), $access, "a request for a user carries the user's own token");
is(probe($with, 'for', 2), $service, "a request for another user carries the service's token");
like(probe('gitlab', 'of', 1), qr/^not_found/, 'a token is used only for its own server');
is(probe('gitea', 'call', 1), 'ann', 'the Git server accepts the token');
$db->sql("UPDATE user SET status = 'inactive' WHERE id = 1");
like(probe('gitea', 'of', 1), qr/^not_found/, 'the token of an inactive user is not used');
like(probe($with, 'for', 1), qr/^upstream_failed: .*sign in again/i,
    "the service's token is not used for an inactive user with an account");
$db->sql("UPDATE user SET status = 'active' WHERE id = 1");
is(probe('gitea', 'of', 1), $access, 'the token of a user who is active again is used');
is(refreshes('gitea'), 0, 'a valid token is not refreshed');
my $plain = join '|', map { unpack 'H*', $_ } $access, $refresh;
unlike($db->sql('SELECT HEX(access), HEX(refresh) FROM git_token'), qr/$plain/i,
    'tokens are stored encrypted');
$db->sql('UPDATE git_token SET user_id = 2');
like(probe('gitea', 'of', 2), qr/^not_found/, 'a token that is moved to another user cannot be decrypted');
$db->sql('DELETE FROM git_token');
my $keyless = spew(tempdir() . '/keyless.conf', slurp($conf{gitea}) . "[secrets]\nkey_file = /nonexistent\n",
    0600);
like(probe($keyless, 'put', 1, 'a', '-', 60), qr/^config: .*slipway-admin key/,
    'without a key no token is stored');

# --- a token that is about to expire, on servers with and without rotation
for my $type (qw(gitea gitlab)) {
	my $f = $forge{$type};
	$f->forget_requests;
	give($type, 30);
	my @got = at_once(map { [$type, 'of', 1] } 1 .. 6);
	is(refreshes($type), 1,
	    "$type: six simultaneous requests refresh a token that is about to expire once");
	is(scalar(grep { length > 20 && !/:/ } @got), 6, "$type: six simultaneous requests all get a token")
	    or diag explain \@got;
	my ($new) = probe($type, 'of', 1);
	is(probe($type, 'call', 1), 'ann', "$type: a refreshed token works");
	is(refreshes($type), 1, "$type: a refreshed token is stored");

	# --- an expired token
	give($type, -10, expires => -10);
	$f->forget_requests;
	$f->fault(qr{token$}, kind => 'delay', seconds => 1, times => 1);
	@got = at_once(map { [$type, 'of', 1] } 1 .. 6);
	is(refreshes($type), 1, "$type: six simultaneous requests refresh an expired token once");
	my %different = map { $_ => 1 } @got;
	is(scalar keys %different, 1, "$type: six simultaneous requests get the same new token")
	    or diag explain \@got;
	$f->clear_faults;

	# --- a token that the server rejects before it expires
	($access) = give($type, 3600);
	$f->expire_tokens('ann', $access);
	$f->forget_requests;
	@got = at_once(map { [$type, 'call', 1] } 1 .. 6);
	is(join(' ', @got), 'ann ann ann ann ann ann',
	    "$type: six simultaneous requests with a rejected token succeed");
	is(refreshes($type), 1, "$type: six simultaneous requests refresh a rejected token once");
	is(probe($type, 'renew', 1, $access), probe($type, 'of', 1),
	    "$type: a later refresh of the old token returns the stored one");
	is(refreshes($type), 1, "$type: a later refresh of the old token sends no request");
	is(join(' ', $f->complaints), '', "$type: every request to the Git server was well-formed");
}

# --- the epoch decides: a sign-in during a refresh wins
my $gitlab = $forge{gitlab};
# Runs code while a refresh waits for the server: the output of the refresh, and
# what the code returned.
sub during {
	my ($do, @words) = @_;
	$gitlab->forget_requests;
	$gitlab->fault(qr{token$}, kind => 'delay', seconds => 2, times => 1);
	my $run = background(sub { return probe(@words) });
	poll(10, sub { $gitlab->requests(qr/token$/) }) or die 'no refresh';
	my @got = $do->();
	my $said = $run->result;
	$gitlab->clear_faults;
	return ($said, @got);
}
give('gitlab', -10, expires => -10);
my $late;
my ($got) = during(sub { ($late) = give('gitlab', 3600) }, 'gitlab', 'of', 1);
is($got, $late, 'a refresh returns the token of a sign-in that ended meanwhile');
is(probe('gitlab', 'of', 1), $late, 'the token of a sign-in during a refresh is kept');
is(probe('gitlab', 'call', 1), 'ann', 'the token of a sign-in during a refresh works');

# --- errors of the server sign no user out
my %faults = (
	'502' => [kind => 'status', status => 502, type => 'text/html', body => 'bad gateway'],
	'429' => [kind => 'status', status => 429, type => 'text/plain', body => 'Retry later'],
	'HTML' => [kind => 'status', status => 200, type => 'text/html', body => '<h1>Maintenance</h1>'],
	'a closed connection' => [kind => 'drop'],
	'invalid_client' => [kind => 'status', status => 401, type => 'application/json',
	    body => '{"error":"invalid_client","error_description":"no"}'],
);
for my $name (sort keys %faults) {
	my ($soon) = give('gitlab', 30);
	$gitlab->fault(qr{token$}, @{ $faults{$name} });
	is(probe('gitlab', 'of', 1), $soon, "$name at a refresh: a token that is still valid is used");
	($soon) = give('gitlab', -10, expires => -10);
	like(probe('gitlab', 'of', 1), qr/^(?:upstream_failed|rate_limited|config): /,
	    "$name at a refresh: an expired token is an error");
	is($db->sql('SELECT COUNT(*) FROM git_token'), 1, "$name at a refresh: the token is kept");
	is($db->sql('SELECT COUNT(*) FROM git_token WHERE refresh_until IS NOT NULL'), 0,
	    "$name at a refresh: the right to refresh is released");
	$gitlab->clear_faults;
	is(probe('gitlab', 'call', 1), 'ann', "$name at a refresh: the next refresh succeeds");
}

# --- tokens that the server rejects for good
($access, $refresh) = give('gitlab', -10, expires => -10);
$gitlab->drop_refresh_tokens;
like(probe('gitlab', 'of', 1), qr/^not_found/, 'a user whose refresh token is rejected has no token');
is($db->sql('SELECT COUNT(*) FROM git_token'), 0, 'a pair whose refresh token is rejected is deleted');
give('gitlab', -10, expires => -10);
$gitlab->drop_refresh_tokens;
like(probe('gitlab', 'call', 1), qr/^upstream_failed: .*(?:sign in|token)/i,
    'a request with a rejected refresh token says to sign in again');
my $robot = conf_of('gitlab', token => scalar $gitlab->token('robot'));
give('gitlab', -10, expires => -10);
$gitlab->drop_refresh_tokens;
like(probe($robot, 'call', 1), qr/^upstream_failed: .*sign in again/i,
    "a request with a rejected refresh token says to sign in again although the service has a token");
like(probe($robot, 'call', 1), qr/^upstream_failed: .*sign in again/i,
    'the next request says to sign in again');
is(probe($robot, 'call', 2), 'robot', "the service's token serves a user without an account");
($access) = give('gitlab', 3600, no_refresh => 1);
$gitlab->expire_tokens('ann', $access);
like(probe($robot, 'call', 1), qr/^upstream_failed: .*sign in again/i,
    'a request with an expired token that cannot be refreshed says to sign in again');
like(probe('gitlab', 'call', 1), qr/^upstream_failed: .*sign in/i,
    'without a token of the service the next request says to sign in again');

# --- a process that died while it held the right to refresh
give('gitlab', -10, expires => -10);
$db->sql("UPDATE git_token SET refresh_by = 'dead', refresh_until = NOW(3) + INTERVAL 60 SECOND");
my $began = stopwatch();
like(probe('gitlab', 'of', 1), qr/^upstream_timeout: /,
    'a request waits for the process that holds the right to refresh');
cmp_ok($began->(), '<', deadline(40), 'a request waits for the right to refresh for a limited time');
$db->sql("UPDATE git_token SET refresh_until = NOW(3) - INTERVAL 1 SECOND");
is(probe('gitlab', 'call', 1), 'ann', 'an expired right to refresh is taken over');

# --- MariaDB fails between the response of the server and the store; the probe waits
# four seconds for it
within(3, sub {
	give('gitlab', -10, expires => -10);
	($got) = during(sub {
		my $had = join ' ', $gitlab->live_tokens('ann');
		$db->kill9;
		poll(10, sub { join(' ', $gitlab->live_tokens('ann')) ne $had }) or die 'no answer';
		$db->resume;
	}, 'gitlab', 'of', 1);
	unlike($got, qr/:/, 'a refresh during which MariaDB restarts succeeds') or diag $got;
	is(probe('gitlab', 'of', 1), $got, 'a pair that was refreshed while MariaDB restarted is stored');
	is(probe('gitlab', 'call', 1), 'ann', 'a token that was refreshed while MariaDB restarted works');
});
give('gitlab', -10, expires => -10);
($got) = during(sub { $db->kill9 }, 'gitlab', 'of', 1);
like($got, qr/^unavailable: .*sign in again/i, 'a refresh during which MariaDB fails says to sign in again');
$db->resume;
is($db->sql('SELECT COUNT(*) FROM git_token'), 1, 'a refresh during which MariaDB fails keeps the row');

# --- rotated keys
give('gitlab', 3600);
my $old = probe('gitlab', 'of', 1);
ok(make_keys($conf{gitea}, $key), 'slipway-admin key rotates the keys');
is(probe('gitlab', 'of', 1), $old, 'a token that was encrypted with the old key can be decrypted');
my $keys = slurp($key);
spew($key, (split /\n/, $keys)[0] . "\n", 0640);
like(probe('gitlab', 'of', 1), qr/^not_found/, 'without the old key the token cannot be decrypted');
is($db->sql('SELECT COUNT(*) FROM git_token'), 1, 'a token that cannot be decrypted is kept');
spew($key, $keys, 0640);
is(probe('gitlab', 'of', 1), $old, 'a token can be decrypted once its key is restored');

$_->stop for values %forge;
done_testing;
