#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Readers that wait for more of a log do not keep others from reading logs.

use strict;
use warnings;
use IO::Select ();
use Slipway::API;
use Slipway::DB;
use Slipway::FastCGI qw(ask request);
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db, conf => "[api]\nworkers = 1\nslow_workers = 1\nlog_workers = 4\n");
my $project = $api->post('/api/projects',
    { name => 'p', repository => 'https://git.example.org/o/p.git' })->{json}{id};
$api->post('/api/pipelines',
    { projectId => $project, name => 'l', steps => [ { name => 's', script => 'true' } ] });
my $run = $api->post('/api/deployments', { projectId => $project })->{json}{id};
ok($run, 'a deployment with an empty log is created');

sub log_params {
	my ($user, $wait) = @_;
	return (REQUEST_URI => "/api/deployments/$run/log?offset=0&wait=$wait",
		HTTP_AUTHORIZATION => 'Bearer ' . $api->token($user));
}
# The connection of a reader that waits.
sub waits {
	my ($user, $wait) = @_;
	my $c = Slipway::FastCGI->connect($api->socket('log')) or die 'no connection';
	$c->send(request(log_params($user, $wait || 20)));
	return $c;
}
# The response to a reader that may not wait; undef if it may.
sub rejected {
	my ($user) = @_;
	my $got = ask($api->socket('log'), log_params($user, 1));
	return $got->{status} == 429 ? $got : undef;
}
# Readers of these users wait until a reader of $next may not: the response to
# that one, and the connections of the others. A worker that does not serve yet
# counts as busy, so a reader may be rejected at first; it is replaced, as is one
# whose time is over.
sub hold {
	my ($next, @users) = @_;
	my (@held, $got);
	poll(60, sub {
		for my $i (0 .. $#users) {
			next if $held[$i] && !IO::Select->new($held[$i]->handle)->can_read(0);
			$held[$i] = waits($users[$i]);
		}
		return $got = rejected($next);
	});
	return ($got, @held);
}

# --- one user
my ($got, @held) = hold('viewer', ('viewer') x 2);
ok($got, 'a user with two waiting readers cannot wait a third time');
like($got->{body}, qr/"code":"rate_limited"/, 'a reader that may not wait gets the code "rate_limited"');
like($got->{body}, qr/You are waiting for 2 logs already\. .* without \\"wait\\"/,
    'a reader that may not wait gets advice');
ok($got->{headers}{'retry-after'}, 'a reader that may not wait gets Retry-After');
is($api->as('viewer')->get("/api/deployments/$run/log")->{status}, 200,
    'a user with two waiting readers can read without waiting');

# --- all users
close $_->handle for @held;
($got, @held) = hold('maintainer', qw(viewer viewer deployer));
ok($got, 'the last worker is reserved for readers that do not wait');
like($got->{body}, qr/Too many readers are waiting/, 'a reader that may not wait gets the reason');
is($api->get("/api/deployments/$run/log")->{status}, 200, 'the last worker serves readers that do not wait');

# --- waiting readers that end
close $held[0]->handle;
ok(poll(15, sub { !rejected('viewer') }), 'a user can wait again once a waiting reader disconnects');
my %before = map { $_ => 1 } $api->workers;
kill 'KILL', keys %before;
ok(poll(60, sub { my @now = $api->workers; @now == 6 && !grep { $before{$_} } @now }),
    'killed workers are replaced');
($got, @held) = hold('viewer', ('viewer') x 2);
like($got->{body}, qr/You are waiting for 2 logs already/,
    'a user can have two waiting readers after the workers were killed');
ok(poll(60, sub { !rejected('deployer') }), 'another user can wait after the workers were killed');

is($_->answer->{status}, 200, 'a waiting reader gets its response in the end') for @held;

# --- a pool of one worker
my %old = map { $_ => 1 } $api->workers;
$api->write_conf("[api]\nworkers = 1\nslow_workers = 1\nlog_workers = 1\n");
kill 'HUP', $api->pid;
ok(poll(60, sub { my @now = $api->workers; @now == 3 && !grep { $old{$_} } @now }),
    'a reload leaves one worker for logs');
my $waiter = waits('viewer');
my $plain = ask($api->socket('log'), log_params('viewer', 0));
is($plain && $plain->{status}, 200, 'a reader that does not wait is served while the only worker waits');
is($waiter->answer->{status}, 200, 'the waiting reader gets its response early');
my @took = $api->log =~ m{ GET /api/deployments/$run/log 200 (\d+) ms t-viewer}g;
cmp_ok((sort { $a <=> $b } @took[-2, -1])[1], '<', 15_000,
    'the waiting reader gives way before its twenty seconds are over');

done_testing;
