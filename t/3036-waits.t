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
sub refused {
	my ($user) = @_;
	my $got = ask($api->socket('log'), log_params($user, 1));
	return $got->{status} == 429 ? $got : undef;
}
# Readers of these users who wait, until another one is refused for it: what
# that one is answered, and the readers.  Workers that do not serve yet count
# as missing, so some may be refused at first; they are replaced, as are those
# whose time is over.
sub hold {
	my ($refused, @users) = @_;
	my (@held, $got);
	poll(60, sub {
		for my $i (0 .. $#users) {
			next if $held[$i] && !IO::Select->new($held[$i]->handle)->can_read(0);
			$held[$i] = waits($users[$i]);
		}
		return $got = refused($refused);
	});
	return ($got, @held);
}

# --- one user
my ($got, @held) = hold('viewer', ('viewer') x 2);
ok($got, 'a user who waits twice cannot wait a third time');
like($got->{body}, qr/"code":"rate_limited"/, 'which is a problem of its own');
like($got->{body}, qr/You are waiting for 2 logs already\. .* without \\"wait\\"/, 'that says what to do');
ok($got->{headers}{'retry-after'}, 'and when');
is($api->as('viewer')->get("/api/deployments/$run/log")->{status}, 200, 'the log can be read without waiting');

# --- all users
close $_->handle for @held;
($got, @held) = hold('maintainer', qw(viewer viewer deployer));
ok($got, 'one worker is kept for those who do not wait');
like($got->{body}, qr/Too many readers are waiting/, 'others see why they cannot wait');
is($api->get("/api/deployments/$run/log")->{status}, 200, 'and can read');

# --- places become free
close $held[0]->handle;
ok(poll(15, sub { !refused('viewer') }), 'the place of a reader who has gone is free again');
my %before = map { $_ => 1 } $api->workers;
kill 'KILL', keys %before;
ok(poll(60, sub { my @now = $api->workers; @now == 6 && !grep { $before{$_} } @now }), 'all workers are killed, and replaced');
($got, @held) = hold('viewer', ('viewer') x 2);
like($got->{body}, qr/You are waiting for 2 logs already/, 'a user can wait twice again');
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
