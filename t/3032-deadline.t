#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Requests that never end, and workers that die of what they are sent.

use strict;
use warnings;
use Slipway::API;
use Slipway::DB;
use Slipway::FastCGI qw(ask begin record request);
use Slipway::Test;
use Test::More;
use Time::HiRes qw(sleep);

my $db = Slipway::DB->start;
my $conf = "[api]\nworkers = 2\nslow_workers = 1\nlog_workers = 1\n";
my $api = Slipway::API->start(db => $db, conf => $conf);
my $project = $api->post('/api/projects', { name => 'p', repository => 'https://git.example.org/o/p.git' })->{json}{id};
ok($project, 'a project');

# The workers take the configuration up.
sub reload {
	my ($text) = @_;
	my %old = map { $_ => 1 } $api->workers;
	$api->write_conf($text);
	kill 'HUP', $api->pid;
	return poll(60, sub { my @now = $api->workers; @now == keys %old && !grep { $old{$_} } @now });
}
sub name { return $db->sql("SELECT name FROM project WHERE id = $project") }

# --- a handler that waits for longer than a request may take
ok(reload("${conf}request_timeout = 2\n"), 'requests may take two seconds');
my @before = $api->workers;
my $held = $db->hold("UPDATE project SET description = 'held' WHERE id = $project");
my $got = $api->put("/api/projects/$project", { name => 'late' });
is($got->{status}, 504, 'a request that takes longer is ended');
is($got->{headers}{'content-type'}, 'application/problem+json', 'with a problem');
is($got->{json}{code}, 'upstream_timeout', 'that has a code');
like($got->{json}{detail}, qr/took longer than 2 seconds/, 'and says why');
my $id = $got->{headers}{'x-request-id'};
is($got->{json}{requestId}, $id, "and has the request's id");
ok(poll(60, sub { $api->log =~ m{worker \d+: ended at the deadline of its request, serving \Q$id\E PUT /api/projects/$project$}m }),
    'the log names the request');
ok(poll(60, sub { my @now = $api->workers; @now == @before && "@{[sort @now]}" ne "@{[sort @before]}" }), 'its worker is replaced');
is(ask($api->socket)->{status}, 200, 'which serves');
$db->let_go($held);
ok(poll(60, sub { $db->waiting == 0 }), 'nothing waits in the database');
is(name(), 'p', 'what was not committed is undone');
is($api->put("/api/projects/$project", { name => 'q' })->{status}, 200, 'sent again it succeeds');

# --- a worker that has lost control: it is stopped, so no signal reaches it
ok(reload("${conf}request_timeout = 4\n"), 'requests may take four');
my $look = $db->session;
$held = $db->hold("UPDATE project SET description = 'held' WHERE id = $project");
my $c = Slipway::FastCGI->connect($api->socket);
$c->send(request(REQUEST_METHOD => 'PUT', REQUEST_URI => "/api/projects/$project", BODY => '{"name":"lost"}', CONTENT_TYPE => 'application/json',
	HTTP_AUTHORIZATION => 'Bearer ' . $api->token, REQUEST_ID => 'lost-one'));
ok(poll(60, sub { $look->("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'") =~ /\s[1-9]/ }), 'a request is in the hands of a worker');
@before = $api->workers;
kill 'STOP', @before;
ok(poll(60, sub { $api->log =~ /worker (\d+): hangs \d+ ms past the deadline/ }), 'the master notices that it hangs');
ok(poll(60, sub { $api->log =~ m{worker \d+: killed by signal 9, serving lost-one PUT /api/projects/$project$}m }), 'and ends it, naming the request');
kill 'CONT', @before;
is($c->answer, undef, 'the connection ends');
is(() = $api->log =~ /: hangs /g, 1, 'workers without a request are left alone');
$db->let_go($held);
ok(poll(60, sub { $db->waiting == 0 && $api->workers == 4 }), 'all are there again');
is(name(), 'q', 'nothing was changed');
ok(reload($conf), 'back to what is the default');

# --- input that ends workers: libfcgi asserts that it gets the memory it asks
# for, here for a parameter of nearly two gibibytes
$api->stop_api;
$api->write_conf("[api]\nworkers = 1\nslow_workers = 0\nlog_workers = 0\n");
$api->start_api;
my $died = 0;
ok(poll(60, sub {
	my ($worker) = $api->workers;
	return if !$worker || !ask($api->socket);
	my $poison = Slipway::FastCGI->connect($api->socket) or return;
	$poison->send(begin() . record(4, pack('CN', 1, 0x80000000 | 0x7fffff00) . 'A'));
	poll(60, sub { my ($now) = $api->workers; ($now || 0) != $worker }) or return;
	return ++$died >= 16;
}), 'sixteen deaths in a row delay no worker by seconds') or diag("$died died");
like($api->log, qr/worker \d+: killed by signal 6$/m, 'of an assertion');
is(ask($api->socket)->{status}, 200, 'it serves on');

done_testing;
