#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# A user's token of the Git server ends while it is used, and its renewal fails
# in every way it can: the server errs, is slow or dead, refuses, loses its
# answer, MariaDB or the worker dies in the midst of it.  Whoever asks is told
# so in time and in words, the server is asked for one renewal however many
# want it, and nobody is signed out but by the server's plain refusal.

use strict;
use warnings;
use POSIX qw(WNOHANG);
use Slipway::API;
use Slipway::Browser;
use Slipway::DB;
use Slipway::Forge;
use Slipway::Test;
use Test::More;
use Time::HiRes qw(time);

my $db = Slipway::DB->start;
my $f = Slipway::Forge->start(type => 'gitlab');
$f->user('ann', { id => 7 });
my $repo = $f->repo('team/site', private => 1, users => [ 'ann' ]);
$repo->commit('main', {}, 'first');
my $api = Slipway::API->start(db => $db, nginx => \&Slipway::Browser::unlimited, conf => "[api]\nslow_workers = 4\n" . $f->conf);
my ($status, $out, $err) = run_cmd(program('slipway-admin'), '-c', $api->conf_file, 'key');
is($status, 0, 'a key') or diag("$out$err");
chown 0, (getpwnam 'nobody')[3], $api->dir . '/secret.key' if is_root();
sub fresh_workers { $api->stop_api; $api->start_api; return }
fresh_workers();
$db->sql("INSERT INTO user (username, role) VALUES ('ann', 'deployer')");
my $project = $api->post('/api/projects', { name => 'site', repository => $repo->clone_url })->{json}{id};
my $branches = "/api/git/branches?projectId=$project";
my $token = qr{oauth/token$};
my $ann = Slipway::Browser->new($api, $f);
is($ann->enter('ann')->{status}, 200, 'ann signs in');
is($ann->visit('GET', $branches)->{status}, 200, 'and reads by her own token');

# So many requests at once: [status, body, seconds] of each, and how many others
# were served meanwhile.
sub at_once {
	my ($times, $meanwhile) = @_;
	my @runs = map {
		my $file = tempdir() . "/once$_";
		my $pid = fork;
		die "fork: $!" if !defined $pid;
		if (!$pid) {
			delete $api->{http};
			my $began = time;
			my $got = $ann->visit('GET', $branches);
			spew($file, sprintf "%d %.2f %s", $got->{status}, time - $began, $got->{body});
			POSIX::_exit(0);
		}
		[ $pid, $file ];
	} 1 .. $times;
	$meanwhile->() if $meanwhile;
	my $served = 0;
	my %left = map { $_->[0] => 1 } @runs;
	while (%left) {
		waitpid($_, WNOHANG) != 0 && delete $left{$_} for keys %left;
		$served++ if %left && !$meanwhile && $api->get('/api/projects')->{status} == 200;
	}
	return ($served, map { my ($s, $took, $body) = split / /, slurp($_->[1]), 3; { status => $s, took => $took, body => $body } } @runs);
}
sub renewals { return scalar grep { $_->{body} =~ /grant_type=refresh_token/ } $f->requests($token) }
# Both know that the token has ended, or only the server does.
sub ended {
	my ($who) = @_;
	$f->expire_tokens('ann')->forget_requests;
	$db->sql('UPDATE git_token SET expires_at = NOW(3) - INTERVAL 1 SECOND') if $who eq 'both';
	return;
}
sub signed_in {
	my ($name) = @_;
	is(again(sub { $ann->visit('GET', '/api/auth/info') })->{status}, 200, "$name: nobody is signed out");
	return;
}
# A worker that has just missed the database asks it again after a moment.
sub again { my ($code) = @_; my $got; poll(20, sub { ($got = $code->())->{status} != 503 }); return $got }
# The pair is lost: the next that needs it says what to do.
sub is_lost {
	my ($name) = @_;
	$db->sql('UPDATE git_token SET refresh_until = NOW(3) WHERE refresh_until IS NOT NULL'); # time passes
	my $got = again(sub { $ann->visit('GET', $branches) });
	is($got->{status}, 502, "$name: what the server gave is lost") or diag($got->{body});
	like($got->{json}{detail} || '', qr/sign in/, "$name: which says what to do");
	signed_in($name);
	anew($name);
	return;
}
sub anew {
	my ($name) = @_;
	is(again(sub { $ann->enter('ann') })->{status}, 200, "$name: signing in again");
	is(again(sub { $ann->visit('GET', $branches) })->{status}, 200, "$name: mends it");
	return;
}

# --- one renewal for all, by workers of their own, where each is good once
for my $who ('both', 'the server') {
	ended($who);
	$f->fault($token, kind => 'delay', seconds => 1);
	my (undef, @got) = at_once(4);
	$f->clear_faults;
	is(join(' ', map { $_->{status} } @got), '200 200 200 200', "a token that has ended, as $who knows: four at once are served") or diag(explain(\@got));
	is(renewals(), 1, 'after one renewal');
	signed_in('that');
}

# --- the server fails at it: told, not lost, not signed out
my %faults = ('status 500' => [ 502, kind => 'status', status => 500, type => 'text/html', body => 'oops' ],
	'status 503' => [ 502, kind => 'status', status => 503, type => 'text/html', body => 'soon' ],
	'too many requests' => [ 429, kind => 'status', status => 429, type => 'text/plain', body => 'Retry later', headers => { 'Retry-After' => 30 } ],
	'a page in HTML' => [ 502, kind => 'status', status => 200, type => 'text/html', body => '<h1>Maintenance</h1>' ],
	'half of its JSON' => [ 502, kind => 'status', status => 200, body => '{"access_tok' ],
	'no token in it' => [ 502, kind => 'status', status => 200, body => '{"token_type":"bearer"}' ],
	'a redirect to another host' => [ 502, kind => 'status', status => 307, headers => { Location => 'https://127.0.0.1:1/x' } ],
	'a connection closed' => [ 502, kind => 'drop' ],
	'half of its answer' => [ 502, kind => 'cut', body => '{"access_tok' ],
	'silence' => [ 504, kind => 'silent' ]);
for my $name (sort keys %faults) {
	my ($want, %fault) = @{ $faults{$name} };
	my $late;
	my @got;
	fresh_workers(); # which know of no fault before
	my @workers = sort $api->workers;
	for (1 .. 3) { # a busy machine may make it late
		ended($want == 504 ? 'the server' : 'both');
		$f->fault($token, %fault);
		(my $served, @got) = at_once(2);
		$f->clear_faults;
		cmp_ok($served, '>', 10, "$name: $served others were served meanwhile") if $want == 504;
		($late) = sort { $b <=> $a } map { $_->{took} } @got;
		last if $late < 10;
	}
	for my $got (@got) {
		ok($got->{status} == $want || $got->{status} == 504, "a renewal answered by $name: $want") or diag($got->{body});
		like($got->{body}, qr/"detail":"[^"]*\w+ \w+ \w+/, "$name: in words");
	}
	cmp_ok($late, '<', deadline(10), sprintf '%s: within %.1f s', $name, $late);
	is($db->sql('SELECT COUNT(*) FROM git_token'), 1, "$name: it is not lost");
	signed_in($name);
	is(join(' ', sort $api->workers), join(' ', @workers), "$name: no worker was lost");
	ok(poll(20, sub { $ann->visit('GET', $branches)->{status} == 200 }), "$name: afterwards it is renewed");
}

# --- the server refuses it, with 400: once for all
ended('both');
$f->drop_refresh_tokens;
my (undef, @got) = at_once(4);
is(scalar(grep { ($_->{status} == 502 || $_->{status} == 401) && $_->{body} =~ /sign in/ } @got), 4, 'refused: four at once hear that they have to sign in') or diag(explain(\@got));
is(renewals(), 1, 'it was asked once');
is($db->sql('SELECT COUNT(*) FROM git_token'), 0, 'what was refused is forgotten');
is($ann->visit('GET', '/api/auth/info')->{status}, 401, 'and the session with it');
anew('refused');

# --- its answer is lost on the way: the old one is good no more
ended('both');
fresh_workers();
$f->fault($token, kind => 'lost', times => 1);
my $got = $ann->visit('GET', $branches);
is($got->{status}, 502, 'an answer that was lost') or diag($got->{body});
signed_in('an answer that was lost');
is_lost('an answer that was lost');

# --- the worker dies between asking and storing
ended('both');
my $had = join ' ', $f->live_tokens('ann');
$f->fault($token, kind => 'delay', seconds => 1, times => 1);
my @killed;
(undef, $got) = at_once(1, sub {
	poll(10, sub { renewals() }) or die 'no renewal';
	kill 'KILL', @killed = $api->workers;
	poll(20, sub { join(' ', $f->live_tokens('ann')) ne $had }) or die 'no answer';
});
is($got->{status}, 502, 'a worker dies while it renews: whoever waits for it is told');
like($got->{body}, qr/"detail":"[^"]*\w+ \w+ \w+/, 'in words');
ok(poll(20, sub { my %old = map { $_ => 1 } @killed; my @now = $api->workers; @now == @killed && !grep { $old{$_} } @now }), 'others take its place');
ok(poll(20, sub { $ann->visit('GET', '/api/auth/info')->{status} == 200 }), 'nobody is signed out');
is_lost('a worker that died');

# --- MariaDB dies between the answer and its being stored
sub during {
	my ($back) = @_;
	ended('both');
	$had = join ' ', $f->live_tokens('ann');
	$f->fault($token, kind => 'delay', seconds => 1, times => 1);
	my (undef, $got) = at_once(1, sub {
		poll(10, sub { renewals() }) or die 'no renewal';
		$db->kill9;
		poll(10, sub { join(' ', $f->live_tokens('ann')) ne $had }) or die 'no answer';
		$db->resume if $back;
	});
	$db->resume if !$back;
	$f->clear_faults;
	return $got;
}
for (1 .. 3) { # a busy machine may bring it back too late
	$got = during(1);
	last if $got->{status} == 200;
	is($got->{status}, 503, 'MariaDB was back too late: told so') or diag($got->{body});
	anew('too late');
}
is($got->{status}, 200, 'MariaDB dies while the server answers, and is back soon: served') or diag($got->{body});
is(again(sub { $ann->visit('GET', $branches) })->{status}, 200, 'and what the server gave was kept');
is(renewals(), 1, 'by one renewal');
signed_in('back soon');
$got = during(0);
is($got->{status}, 503, 'it stays away: told so') or diag($got->{body});
is_lost('MariaDB stays away');

is_deeply([ $f->complaints ], [], 'nothing was asked that the server would not take');
unlike($api->log, qr/\Q$_\E/, 'no token stands in the log') for $f->live_tokens('ann');
done_testing;
