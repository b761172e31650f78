#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# With which token the Git server is asked: refreshed once however many want
# it, never lost for a fault of the network or of MariaDB, and forgotten where
# the server has ended it.

use strict;
use warnings;
use POSIX ();
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
	return spew($name, $db->conf(timeout => 2) . $forge{$type}->conf(%more) . "[secrets]\nkey_file = $key\n", 0600);
}
my %conf = map { $_ => conf_of($_) } keys %forge;
my ($status, $said, $err) = run_cmd(program('slipway-admin'), '-c', $conf{gitea}, 'key');
is($status, 0, 'a key') or diag "$said$err";

sub probe {
	my ($conf, @words) = @_;
	my (undef, $out, $error) = run_cmd(program('t/unit/access_probe'), $conf{$conf} || $conf, @words);
	chomp $out;
	diag $error if $error =~ /Sanitizer|usage|no such/;
	return $out;
}
# A pair of the server's for ann, stored for user 1.
sub give {
	my ($type, $seconds, %opt) = @_;
	my ($access, $refresh) = $forge{$type}->token('ann', expires => $opt{expires} || 3600, refresh => 1);
	is(probe($type, 'put', 1, $access, $opt{no_refresh} ? '-' : $refresh, $seconds), 'put', "a pair of $type, for $seconds s");
	return ($access, $refresh);
}
sub refreshes { my ($type) = @_; return scalar grep { $_->{body} =~ /refresh_token/ } $forge{$type}->requests(qr/token$/) }
sub at_once {
	my (@commands) = @_;
	my $n = 0;
	my @runs = map {
		my ($words, $file) = ($_, tempdir() . '/once' . $n++);
		my $pid = fork;
		die "fork: $!" if !defined $pid;
		if (!$pid) { spew($file, probe(@$words)); POSIX::_exit(0) }
		[$pid, $file];
	} @commands;
	waitpid $_->[0], 0 for @runs;
	return map { slurp($_->[1]) } @runs;
}

# --- whose token
is(probe('gitea', 'of', 0) =~ /^not_found/ ? 1 : 0, 1, 'nobody has none');
is(probe('gitea', 'of', 1) =~ /^not_found/ ? 1 : 0, 1, 'nor who never signed in');
is(probe('gitea', 'for', 1), '(none)', 'then it is asked as anybody');
my $service = $forge{gitea}->token('robot');
my $with = conf_of('gitea', token => $service);
is(probe($with, 'for', 1), $service, 'or as the service');
is(probe($with, 'for', 0), $service, 'for nobody too');
my ($access, $refresh) = give('gitea', 3600);
is(probe($with, 'for', 1), $access, 'the user\'s own comes first');
is(probe($with, 'for', 2), $service, 'and is no other\'s');
is(probe('gitlab', 'of', 1) =~ /^not_found/ ? 1 : 0, 1, 'it is for its own server alone');
is(probe('gitea', 'call', 1), 'ann', 'the server knows it');
$db->sql("UPDATE user SET status = 'inactive' WHERE id = 1");
like(probe('gitea', 'of', 1), qr/^not_found/, 'that of a disabled user is not used');
like(probe($with, 'for', 1), qr/^upstream_failed: .*sign in again/, 'nor is the service\'s in its place');
$db->sql("UPDATE user SET status = 'active' WHERE id = 1");
is(probe('gitea', 'of', 1), $access, 'until that one may come in again');
is(refreshes('gitea'), 0, 'nothing was refreshed');
unlike($db->sql('SELECT HEX(access), HEX(refresh) FROM git_token'), qr/\U@{[unpack 'H*', $access]}|@{[unpack 'H*', $refresh]}/, 'it is sealed');
$db->sql('UPDATE git_token SET user_id = 2');
is(probe('gitea', 'of', 2) =~ /^not_found/ ? 1 : 0, 1, 'for one user: it does not open as another\'s');
$db->sql('DELETE FROM git_token');
my $keyless = spew(tempdir() . '/keyless.conf', slurp($conf{gitea}) . "[secrets]\nkey_file = /nonexistent\n", 0600);
is(probe($keyless, 'put', 1, 'a', '-', 60) =~ /^unavailable: .*slipway-admin key/ ? 1 : 0, 1, 'without a key nothing is kept');

# --- about to expire: one refresh, whoever asks, with and without rotation
for my $type (qw(gitea gitlab)) {
	my $f = $forge{$type};
	$f->forget_requests;
	give($type, 30);
	my @got = at_once(map { [$type, 'of', 1] } 1 .. 6);
	is(refreshes($type), 1, "$type: six at once refresh once");
	is(scalar(grep { length > 20 && !/:/ } @got), 6, 'all get a token') or diag explain \@got;
	my ($new) = probe($type, 'of', 1);
	is(probe($type, 'call', 1), 'ann', 'the new one works');
	is(refreshes($type), 1, 'it is kept');

	# --- expired: all wait for the one
	give($type, -10, expires => -10);
	$f->forget_requests;
	$f->fault(qr{token$}, kind => 'delay', seconds => 1, times => 1);
	@got = at_once(map { [$type, 'of', 1] } 1 .. 6);
	is(refreshes($type), 1, "$type: expired, six at once refresh once");
	my %different = map { $_ => 1 } @got;
	is(scalar keys %different, 1, 'all get the same') or diag explain \@got;
	$f->clear_faults;

	# --- refused before its time
	($access) = give($type, 3600);
	$f->expire_tokens('ann', $access);
	$f->forget_requests;
	@got = at_once(map { [$type, 'call', 1] } 1 .. 6);
	is(join(' ', @got), 'ann ann ann ann ann ann', "$type: refused, six at once are served");
	is(refreshes($type), 1, 'after one refresh');
	is(probe($type, 'renew', 1, $access), probe($type, 'of', 1), 'who comes late with the old one gets the new');
	is(refreshes($type), 1, 'without another refresh');
	is(join(' ', $f->complaints), '', 'the server had nothing to complain of');
}

# --- the epoch decides, not who holds it: a sign-in meanwhile wins
my $gitlab = $forge{gitlab};
sub during { # runs something while a refresh waits for the server
	my ($do, @words) = @_;
	$gitlab->forget_requests;
	$gitlab->fault(qr{token$}, kind => 'delay', seconds => 2, times => 1);
	my $pid = fork;
	if (!$pid) { spew(tempdir() . '/during', probe(@words)); POSIX::_exit(0) }
	poll(10, sub { $gitlab->requests(qr/token$/) }) or die 'no refresh';
	my @got = $do->();
	waitpid $pid, 0;
	$gitlab->clear_faults;
	return (slurp(tempdir() . '/during'), @got);
}
give('gitlab', -10, expires => -10);
my $late;
my ($got) = during(sub { ($late) = give('gitlab', 3600) }, 'gitlab', 'of', 1);
is($got, $late, 'who refreshed gets what a sign-in has put meanwhile');
is(probe('gitlab', 'of', 1), $late, 'that stays');
is(probe('gitlab', 'call', 1), 'ann', 'and works');

# --- faults of the server: no logout storm
my %faults = (
	'502' => [kind => 'status', status => 502, type => 'text/html', body => 'bad gateway'],
	'429' => [kind => 'status', status => 429, type => 'text/plain', body => 'Retry later'],
	'HTML' => [kind => 'status', status => 200, type => 'text/html', body => '<h1>Maintenance</h1>'],
	'no answer at all' => [kind => 'drop'],
	'another client' => [kind => 'status', status => 401, type => 'application/json', body => '{"error":"invalid_client","error_description":"no"}'],
);
for my $name (sort keys %faults) {
	my ($soon) = give('gitlab', 30);
	$gitlab->fault(qr{token$}, @{ $faults{$name} });
	is(probe('gitlab', 'of', 1), $soon, "$name: a token that still works is used");
	($soon) = give('gitlab', -10, expires => -10);
	like(probe('gitlab', 'of', 1), qr/^(?:upstream_failed|rate_limited|internal): /, 'one that does not is an error');
	is($db->sql('SELECT COUNT(*) FROM git_token'), 1, 'and is not lost');
	is($db->sql('SELECT COUNT(*) FROM git_token WHERE refresh_until IS NOT NULL'), 0, 'nobody holds it');
	$gitlab->clear_faults;
	is(probe('gitlab', 'call', 1), 'ann', 'afterwards it is refreshed');
}

# --- what the server has ended
($access, $refresh) = give('gitlab', -10, expires => -10);
$gitlab->drop_refresh_tokens;
like(probe('gitlab', 'of', 1), qr/^not_found/, 'a refused refresh: the user has none');
is($db->sql('SELECT COUNT(*) FROM git_token'), 0, 'it is forgotten');
give('gitlab', -10, expires => -10);
$gitlab->drop_refresh_tokens;
is(probe('gitlab', 'call', 1) =~ /^upstream_failed: .*(?:sign in|token)/ ? 1 : 0, 1, 'a call says to sign in');
my $robot = conf_of('gitlab', token => scalar $gitlab->token('robot'));
give('gitlab', -10, expires => -10);
$gitlab->drop_refresh_tokens;
like(probe($robot, 'call', 1), qr/^upstream_failed: .*sign in again/, 'also where the service has a token');
like(probe($robot, 'call', 1), qr/^upstream_failed: .*sign in again/, 'and the next time');
is(probe($robot, 'call', 2), 'robot', 'which serves those who have no account there');
($access) = give('gitlab', 3600, no_refresh => 1);
$gitlab->expire_tokens('ann', $access);
like(probe($robot, 'call', 1), qr/^upstream_failed: .*sign in again/, 'the same for a token that cannot be refreshed');
is(probe('gitlab', 'call', 1) =~ /^upstream_failed: .*sign in/ ? 1 : 0, 1, 'without the service it says so');

# --- a process that died with the right to refresh
give('gitlab', -10, expires => -10);
$db->sql("UPDATE git_token SET refresh_by = 'dead', refresh_until = NOW(3) + INTERVAL 60 SECOND");
my $began = time;
like(probe('gitlab', 'of', 1), qr/^upstream_timeout: /, 'a right that is held is waited for');
cmp_ok(time - $began, '<', deadline(40), 'not for ever');
$db->sql("UPDATE git_token SET refresh_until = NOW(3) - INTERVAL 1 SECOND");
is(probe('gitlab', 'call', 1), 'ann', 'when its time is over another takes it');

# --- MariaDB dies between the server's answer and the store
# How soon it is back is the machine's matter; the probe waits for four seconds.
for (1 .. 5) {
	my $away;
	give('gitlab', -10, expires => -10);
	($got) = during(sub {
		my $had = join ' ', $gitlab->live_tokens('ann');
		$db->kill9;
		poll(10, sub { join(' ', $gitlab->live_tokens('ann')) ne $had }) or die 'no answer';
		my $began = time;
		$db->resume;
		$away = time - $began;
	}, 'gitlab', 'of', 1);
	last if $got !~ /:/ || $away < 3;
	note(sprintf 'MariaDB needed %.1f s to come back: again', $away);
}
unlike($got, qr/:/, 'MariaDB dies while the server answers, and is back soon: nothing is lost') or diag $got;
is(probe('gitlab', 'of', 1), $got, 'the new pair was stored');
is(probe('gitlab', 'call', 1), 'ann', 'and works');
give('gitlab', -10, expires => -10);
($got) = during(sub { $db->kill9 }, 'gitlab', 'of', 1);
like($got, qr/^unavailable: .*sign in again/, 'it stays away: words');
$db->resume;
is($db->sql('SELECT COUNT(*) FROM git_token'), 1, 'the row is there');

# --- a new key
give('gitlab', 3600);
my $old = probe('gitlab', 'of', 1);
($status) = run_cmd(program('slipway-admin'), '-c', $conf{gitea}, 'key');
is($status, 0, 'the key is rotated');
is(probe('gitlab', 'of', 1), $old, 'what the old one sealed opens');
my $keys = slurp($key);
spew($key, (split /\n/, $keys)[0] . "\n", 0640);
like(probe('gitlab', 'of', 1), qr/^not_found/, 'without the old one it is none');
is($db->sql('SELECT COUNT(*) FROM git_token'), 1, 'but is not deleted');
spew($key, $keys, 0640);
is(probe('gitlab', 'of', 1), $old, 'when the key is back, so is it');

$_->stop for values %forge;
done_testing;
