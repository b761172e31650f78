#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Requests that exceed request_timeout, and input that kills workers.

use strict;
use warnings;
use Slipway::API;
use Slipway::DB;
use Slipway::FastCGI qw(ask begin record request);
use Slipway::Test;
use Test::More;
use Time::HiRes qw(sleep);

my $db = Slipway::DB->start;
my $conf = "[api]\nworkers = 2\nslow_workers = 1\n";
my $api = Slipway::API->start(db => $db, conf => $conf);
my $project = $api->post('/api/projects',
    { name => 'p', repository => 'https://git.example.org/o/p.git' })->{json}{id};
ok($project, 'a project is created');

sub name { return $db->sql("SELECT name FROM project WHERE id = $project") }

# --- a handler that waits longer than request_timeout
ok($api->reload("${conf}request_timeout = 2\n"), 'a reload sets request_timeout to 2');
my @before = $api->workers;
my $held = $db->hold("UPDATE project SET description = 'held' WHERE id = $project");
my $got = $api->put("/api/projects/$project", { name => 'late' });
is($got->{status}, 504, 'a request that exceeds request_timeout returns 504');
is($got->{headers}{'content-type'}, 'application/problem+json',
    'a request that exceeds request_timeout returns a problem');
is($got->{json}{code}, 'upstream_timeout',
    'a request that exceeds request_timeout has the code "upstream_timeout"');
like($got->{json}{detail}, qr/took longer than 2 seconds/,
    'a request that exceeds request_timeout names the limit');
my $id = $got->{headers}{'x-request-id'};
is($got->{json}{requestId}, $id, 'a request that exceeds request_timeout has its request id');
my $put = "PUT /api/projects/$project";
my $ended = qr{worker \d+: ended at the deadline of its request, serving \Q$id\E $put$}m;
ok(poll(60, sub { $api->log =~ $ended }), 'the log names the request that exceeded request_timeout');
ok(poll(60, sub { my @now = $api->workers; @now == @before && "@{[sort @now]}" ne "@{[sort @before]}" }),
    'the worker of a request that exceeded request_timeout is replaced');
is(ask($api->socket)->{status}, 200, 'requests are served after the worker is replaced');
$db->let_go($held);
ok(poll(60, sub { $db->waiting == 0 }), 'no statement of the ended request waits in the database');
is(name(), 'p', 'the transaction of the ended request is rolled back');
is($api->put("/api/projects/$project", { name => 'q' })->{status}, 200,
    'the ended request succeeds when sent again');

# --- a worker that hangs: it is stopped, so no signal reaches it
ok($api->reload("${conf}request_timeout = 4\n"), 'a reload sets request_timeout to 4');
my $look = $db->session;
$held = $db->hold("UPDATE project SET description = 'held' WHERE id = $project");
my $c = Slipway::FastCGI->connect($api->socket);
$c->send(request(REQUEST_METHOD => 'PUT', REQUEST_URI => "/api/projects/$project",
	BODY => '{"name":"lost"}', CONTENT_TYPE => 'application/json',
	HTTP_AUTHORIZATION => 'Bearer ' . $api->token, REQUEST_ID => 'lost-one'));
ok(poll(60, sub { $look->("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'") =~ /\s[1-9]/ }),
    'a worker handles the request');
@before = $api->workers;
kill 'STOP', @before;
ok(poll(60, sub { $api->log =~ /worker (\d+): it hung past the deadline/ }),
    'the master logs a worker that hung');
my $killed = qr{worker \d+: killed by signal 9, serving lost-one $put$}m;
ok(poll(60, sub { $api->log =~ $killed }), 'a worker that hangs is killed, and its request is logged');
kill 'CONT', @before;
is($c->answer, undef, 'the connection of a killed worker closes');
is(() = $api->log =~ /: it hung /g, 1, 'idle workers are left alone');
$db->let_go($held);
ok(poll(60, sub { $db->waiting == 0 && $api->workers == 3 }), 'killed workers are replaced');
is(name(), 'q', 'the request of a killed worker changed nothing');
ok($api->reload($conf), 'a reload restores the default request_timeout');

# --- input that kills workers: libfcgi aborts if it cannot allocate memory, here
# for a parameter of nearly two gibibytes
$api->write_conf("[api]\nworkers = 1\nslow_workers = 0\n");
$api->restart_api;
my $died = 0;
ok(poll(60, sub {
	my ($worker) = $api->workers;
	return if !$worker || !ask($api->socket);
	my $poison = Slipway::FastCGI->connect($api->socket) or return;
	$poison->send(begin() . record(4, pack('CN', 1, 0x80000000 | 0x7fffff00) . 'A'));
	poll(60, sub { my ($now) = $api->workers; ($now || 0) != $worker }) or return;
	return ++$died >= 16;
}), 'workers that die sixteen times in a row are replaced without delay') or diag("$died died");
like($api->log, qr/worker \d+: killed by signal 6$/m, 'the log reports workers that abort');
is(ask($api->socket)->{status}, 200, 'requests are served after sixteen deaths of workers');

done_testing;
