#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Readers that wait for more of a log keep nobody from reading one.

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
my $project = $api->post('/api/projects', { name => 'p', repository => 'https://git.example.org/o/p.git' })->{json}{id};
$api->post('/api/pipelines', { projectId => $project, name => 'l', steps => [ { name => 's', script => 'true' } ] });
my $run = $api->post('/api/deployments', { projectId => $project })->{json}{id};
ok($run, 'a deployment whose log is empty so far');

sub log_params {
	my ($user, $wait) = @_;
	return (REQUEST_URI => "/api/deployments/$run/log?offset=0&wait=$wait", HTTP_AUTHORIZATION => 'Bearer ' . $api->token($user));
}
sub waits {
	my ($user, $wait) = @_;
	my $c = Slipway::FastCGI->connect($api->socket('log')) or die 'no connection';
	$c->send(request(log_params($user, $wait || 20)));
	return $c;
}
sub refused { my ($user) = @_; return ask($api->socket('log'), log_params($user, 1))->{status} == 429 }

# --- one user
my @held = map { waits('viewer') } 1 .. 2;
ok(poll(15, sub { refused('viewer') }), 'a user who waits twice cannot wait a third time');
my $got = $api->as('viewer')->get("/api/deployments/$run/log?offset=0&wait=20");
is("$got->{status} $got->{json}{code}", '429 rate_limited', 'which is a problem of its own');
like($got->{json}{detail}, qr/You wait for 2 logs already\. .* without "wait"/, 'that says what to do');
ok($got->{headers}{'retry-after'}, 'and when');
is($api->as('viewer')->get("/api/deployments/$run/log")->{status}, 200, 'the log can be read without waiting');

# --- all users
push @held, waits('deployer');
ok(poll(15, sub { refused('maintainer') }), 'one worker is kept for those who do not wait');
like($api->as('maintainer')->get("/api/deployments/$run/log?wait=1")->{json}{detail}, qr/As many readers wait/, 'others see why they cannot wait');
is($api->get("/api/deployments/$run/log")->{status}, 200, 'and can read');

# --- places become free
close $held[0]->handle;
ok(poll(15, sub { !refused('viewer') }), 'the place of a reader who has gone is free again');
my %before = map { $_ => 1 } $api->workers;
kill 'KILL', keys %before;
ok(poll(60, sub { my @now = $api->workers; @now == 6 && !grep { $before{$_} } @now }), 'all workers are killed, and replaced');
# Those that have not begun to serve yet count as missing: some may be refused.
@held = ();
poll(60, sub {
	my $c = waits('viewer');
	push @held, $c if !IO::Select->new($c->handle)->can_read(1);
	return @held == 2;
});
is(scalar @held, 2, 'a user can wait twice again');
ok(poll(60, sub { !refused('deployer') }), 'so can another');

is($_->answer->{status}, 200, 'those who wait get their answer in the end') for @held;

# --- a pool of one worker
my $old = join ' ', $api->workers;
$api->write_conf("[api]\nworkers = 1\nslow_workers = 1\nlog_workers = 1\n");
kill 'HUP', $api->pid;
ok(poll(60, sub { my %o = map { $_ => 1 } split ' ', $old; my @now = $api->workers; @now == 3 && !grep { $o{$_} } @now }), 'one worker for logs');
my $waiter = waits('viewer');
my $plain = ask($api->socket('log'), log_params('viewer', 0));
is($plain && $plain->{status}, 200, 'a plain read is answered while the only worker waits');
is($waiter->answer->{status}, 200, 'the one who waits gives way to it');
my @took = $api->log =~ m{ GET /api/deployments/$run/log 200 (\d+) ms t-viewer}g;
cmp_ok((sort { $a <=> $b } @took[-2, -1])[1], '<', 15_000, 'instead of holding the worker for twenty seconds');

done_testing;
