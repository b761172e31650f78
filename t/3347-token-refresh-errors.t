#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# A user's token of the Git server expires in use, and its refresh fails in every
# way it can: the server errs, is slow or down, rejects it, its response is lost,
# MariaDB or the worker dies. Each request gets an error in time, simultaneous
# requests cause one refresh, and only a rejection by the server ends the session.

use strict;
use warnings;
use Slipway::API;
use Slipway::Background;
use Slipway::Visitor;
use Slipway::DB;
use Slipway::Forge;
use Slipway::Test;
use Test::More;
use Time::HiRes qw(sleep time);

my $db = Slipway::DB->start;
my $f = Slipway::Forge->start(type => 'gitlab');
$f->user('ann', { id => 7 });
my $repo = $f->repo('team/site', private => 1, users => [ 'ann' ]);
$repo->commit('main', {}, 'first');
my $api = Slipway::API->start(db => $db, keys => 1, nginx => \&Slipway::Visitor::unlimited,
    conf => "[api]\nslow_workers = 4\n" . $f->conf);
$db->sql("INSERT INTO user (username, role) VALUES ('ann', 'deployer')");
my $project = $api->post('/api/projects', { name => 'site', repository => $repo->clone_url })->{json}{id};
my $branches = "/api/git/branches?projectId=$project";
my $token = qr{oauth/token$};
my $ann = Slipway::Visitor->new($api, $f);
is($ann->enter('ann')->{status}, 200, 'ann signs in');
is($ann->visit('GET', $branches)->{status}, 200, 'ann reads branches by her own token');

# Simultaneous reads: how many other requests were served meanwhile, and the
# { status, took, body } of each.
sub at_once {
	my ($times, $meanwhile) = @_;
	stopwatch(); # for the children
	my @runs = map {
		background(sub {
			delete $api->{http};
			my $watch = stopwatch();
			my $got = $ann->visit('GET', $branches);
			return sprintf '%d %.2f %s', $got->{status}, $watch->(), $got->{body};
		});
	} 1 .. $times;
	$meanwhile->() if $meanwhile;
	my $served = 0;
	while (!$meanwhile && grep { !$_->ended } @runs) {
		$served++ if $api->get('/api/projects')->{status} == 200;
		sleep 0.03;
	}
	my @got;
	for my $run (@runs) {
		my %got;
		@got{qw(status took body)} = split / /, $run->result, 3;
		push @got, \%got;
	}
	return ($served, @got);
}
sub refreshes { return scalar grep { $_->{body} =~ /grant_type=refresh_token/ } $f->requests($token) }
# Expires the token; the service knows that too ("both"), or only the server.
sub expire {
	my ($who) = @_;
	$f->expire_tokens('ann')->forget_requests;
	$db->sql('UPDATE git_token SET expires_at = NOW(3) - INTERVAL 1 SECOND') if $who eq 'both';
	return;
}
sub signed_in {
	my ($name) = @_;
	is(again(sub { $ann->visit('GET', '/api/auth/info') })->{status}, 200, "$name: the session goes on");
	return;
}
# Repeats a request while its worker backs off from the database, or the server is late.
sub again {
	my ($code) = @_;
	my $got;
	poll(20, sub { ($got = $code->())->{status} !~ /^50[34]$/ });
	return $got;
}
# Tests that the pair is lost, that the next request says so, and that signing in
# again restores it.
sub is_lost {
	my ($name) = @_;
	$db->sql('UPDATE git_token SET refresh_until = NOW(3) WHERE refresh_until IS NOT NULL'); # time passes
	my $got = again(sub { $ann->visit('GET', $branches) });
	is($got->{status}, 502, "$name: a read returns 502 once the pair is lost") or diag($got->{body});
	like($got->{json}{detail} || '', qr/sign in/i, "$name: the error says to sign in again");
	signed_in($name);
	sign_in_again($name);
	return;
}
sub sign_in_again {
	my ($name) = @_;
	is(again(sub { $ann->enter('ann') })->{status}, 200, "$name: the user can sign in again");
	is(again(sub { $ann->visit('GET', $branches) })->{status}, 200,
	    "$name: signing in again restores access");
	return;
}

# --- simultaneous requests, on a server that accepts each refresh token once
for my $who ('both', 'the server') {
	my $tries = 0;
	within(3, sub {
		$ann->enter('ann') if $tries++;
		expire($who);
		$f->fault($token, kind => 'delay', seconds => 1);
		my (undef, @got) = at_once(4);
		$f->clear_faults;
		my $name = "a token that expired, known to $who";
		is(join(' ', map { $_->{status} } @got), '200 200 200 200',
		    "$name: four simultaneous requests succeed")
		    or diag(explain(\@got));
		is(refreshes(), 1, "$name: four simultaneous requests cause one refresh");
		signed_in($name);
	});
}

# --- errors of the server: reported, the pair is kept, the session goes on
my @html = (kind => 'status', type => 'text/html');
my %faults = ('status 500' => [ 502, @html, status => 500, body => 'oops' ],
	'status 503' => [ 502, @html, status => 503, body => 'soon' ],
	'status 429' => [ 429, kind => 'status', status => 429, type => 'text/plain', body => 'Retry later',
	    headers => { 'Retry-After' => 30 } ],
	'HTML' => [ 502, @html, status => 200, body => '<h1>Maintenance</h1>' ],
	'truncated JSON' => [ 502, kind => 'status', status => 200, body => '{"access_tok' ],
	'JSON without a token' => [ 502, kind => 'status', status => 200, body => '{"token_type":"bearer"}' ],
	'a redirect to another host' => [ 502, kind => 'status', status => 307,
	    headers => { Location => 'https://127.0.0.1:1/x' } ],
	'a closed connection' => [ 502, kind => 'drop' ],
	'a truncated response' => [ 502, kind => 'cut', body => '{"access_tok' ],
	'silence' => [ 504, kind => 'silent' ]);
for my $name (sort keys %faults) {
	my ($want, %fault) = @{ $faults{$name} };
	my ($late, $served, @got);
	$api->restart_api; # new workers remember no error
	my @workers = sort $api->workers;
	my $end = time + 600;
	while (1) { # a busy machine may make it late
		expire($want == 504 ? 'the server' : 'both');
		$f->fault($token, %fault);
		($served, @got) = at_once(2);
		$f->clear_faults;
		($late) = sort { $b <=> $a } map { $_->{took} } @got;
		last if time > $end
		    || $late < Slipway::Forge::answer_within() && ($want != 504 || $served > 10);
	}
	cmp_ok($served, '>', 10,
	    "a refresh answered by $name: other requests are served meanwhile ($served)") if $want == 504;
	for my $got (@got) {
		ok($got->{status} == $want || $got->{status} == 504,
		    "a refresh answered by $name returns $want") or diag($got->{body});
		like($got->{body}, qr/"detail":"[^"]*\w+ \w+ \w+/,
		    "a refresh answered by $name explains the error");
	}
	cmp_ok($late, '<', Slipway::Forge::answer_within(),
	    sprintf 'a refresh answered by %s fails in time (%.1f s)', $name, $late);
	is($db->sql('SELECT COUNT(*) FROM git_token'), 1, "a refresh answered by $name keeps the pair");
	signed_in("a refresh answered by $name");
	is(join(' ', sort $api->workers), join(' ', @workers), "a refresh answered by $name: no worker died");
	ok(poll(20, sub { $ann->visit('GET', $branches)->{status} == 200 }),
	    "a refresh answered by $name: the next refresh succeeds");
}

# --- the server rejects the refresh token with 400
expire('both');
$f->drop_refresh_tokens;
my (undef, @got) = at_once(4);
my @rejected = grep { ($_->{status} == 502 || $_->{status} == 401) && $_->{body} =~ /sign in/i } @got;
is(scalar @rejected, 4, 'four simultaneous requests with a rejected refresh token say to sign in')
    or diag(explain(\@got));
is(refreshes(), 1, 'four simultaneous requests send a rejected refresh token once');
is($db->sql('SELECT COUNT(*) FROM git_token'), 0, 'a pair with a rejected refresh token is deleted');
is($ann->visit('GET', '/api/auth/info')->{status}, 401, 'a rejected refresh token ends the session');
sign_in_again('a rejected refresh token');

# --- the response is lost, and the old refresh token no longer works
expire('both');
$api->restart_api;
$f->fault($token, kind => 'lost', times => 1);
my $got = $ann->visit('GET', $branches);
is($got->{status}, 502, 'a refresh whose response is lost returns 502') or diag($got->{body});
signed_in('a lost response');
is_lost('a lost response');

# --- the worker dies between request and store
expire('both');
my $had = join ' ', $f->live_tokens('ann');
$f->fault($token, kind => 'delay', seconds => 1, times => 1);
my @killed;
(undef, $got) = at_once(1, sub {
	poll(10, sub { refreshes() }) or die 'no refresh';
	kill 'KILL', @killed = $api->workers;
	poll(20, sub { join(' ', $f->live_tokens('ann')) ne $had }) or die 'no response';
});
is($got->{status}, 502, 'a request whose worker dies during a refresh returns 502');
like($got->{body}, qr/"detail":"[^"]*\w+ \w+ \w+/,
    'a request whose worker dies during a refresh explains the error');
my %old = map { $_ => 1 } @killed;
ok(poll(20, sub { my @now = $api->workers; @now == @killed && !grep { $old{$_} } @now }),
    'workers that died during a refresh are replaced');
ok(poll(20, sub { $ann->visit('GET', '/api/auth/info')->{status} == 200 }),
    'the session goes on after workers died during a refresh');
is_lost('a worker that died');

# --- MariaDB fails between response and store
# A read during whose refresh MariaDB is killed, and restarted in time or after it.
sub during {
	my ($back) = @_;
	expire('both');
	$had = join ' ', $f->live_tokens('ann');
	$f->fault($token, kind => 'delay', seconds => 1, times => 1);
	my (undef, $got) = at_once(1, sub {
		poll(10, sub { refreshes() }) or die 'no refresh';
		$db->kill9;
		poll(10, sub { join(' ', $f->live_tokens('ann')) ne $had }) or die 'no response';
		$db->resume if $back;
	});
	$db->resume if !$back;
	$f->clear_faults;
	return $got;
}
for (1 .. 20) { # a busy machine may bring it back too late
	$got = during(1);
	last if $got->{status} == 200;
	is($got->{status}, 503, 'a refresh during which MariaDB restarts too late returns 503')
	    or diag($got->{body});
	sign_in_again('MariaDB restarts too late');
}
is($got->{status}, 200, 'a refresh during which MariaDB restarts succeeds') or diag($got->{body});
is(again(sub { $ann->visit('GET', $branches) })->{status}, 200,
    'a pair that was refreshed while MariaDB restarted is stored');
is(refreshes(), 1, 'a refresh during which MariaDB restarts sends one request');
signed_in('MariaDB restarts');
$got = during(0);
is($got->{status}, 503, 'a refresh during which MariaDB fails returns 503') or diag($got->{body});
is_lost('MariaDB fails');

is_deeply([ $f->complaints ], [], 'every request to the Git server was well-formed');
unlike($api->log, qr/\Q$_\E/, 'the log contains no token') for $f->live_tokens('ann');
done_testing;
