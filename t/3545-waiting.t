#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Requests that wait: for more of a log, for a change of a deployment or of the list.
# slipway-live waits for them, so that they occupy no worker.

use strict;
use warnings;
use IO::Socket::UNIX ();
use Socket qw(SOCK_DGRAM pack_sockaddr_un);
use Slipway::API qw(bearer);
use Slipway::DB;
use Slipway::Stream;
use Slipway::Test;
use Test::More;
use Time::HiRes qw(time);

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db, conf => "[api]\nworkers = 1\nslow_workers = 1\n"
    . "live_user_clients = 25\n");
my $live = $api->start_live;
$db->add_project(1, 'a');
$db->add_project(2, 'b');
my $last = 0;
sub deployment { return $db->add_deployment(++$last, @_) }
sub set { my ($id, $what) = @_; return $db->sql("UPDATE deployment SET $what WHERE id = $id") }
sub finish {
	my ($id, $size) = @_;
	return set($id, "status = 'success', finished_at = NOW(3), log_size = $size");
}
my %size;
sub add {
	my ($id, $text) = @_;
	my $at = $size{$id} || 0;
	$db->sql("INSERT INTO log_chunk (deployment_id, start, length, data)"
	    . " VALUES ($id, $at, @{[length $text]}, '$text')");
	return $size{$id} = $at + length $text;
}
sub ask { my ($path, %headers) = @_; return Slipway::Stream->open($api, "/api/deployments$path", %headers) }
# Whether slipway-live holds that many requests: it has three more sockets, one that
# listens, one for announcements and the connection to MariaDB.
sub held {
	my ($n) = @_;
	return poll(60, sub {
		return $n + 3 == grep { (readlink($_) // '') =~ /^socket:/ } glob "/proc/$live/fd/*";
	});
}

# --- logs
my $run = deployment(1, 'running');
my $at = add($run, 'begin ');
# a request waits for at most 20 s
is(ask("/$run/log?wait=20")->answer->{body}, 'begin ', 'a reader gets present bytes without waiting');
my @readers;
within(15, sub {
	@readers = map { ask("/$run/log?offset=$at&wait=20") } 1 .. 20;
	push @readers, ask("/$run/log?wait=20", Range => "bytes=$at-");
	ok(held(21), 'slipway-live holds requests that wait for a log');
	ok(!(grep { !$_->is_open } @readers), 'a request that waits has no response yet');
	is($api->get("/api/deployments/$run")->{status}, 200,
	    'the only worker serves other requests meanwhile');
	is($api->get("/api/deployments/$run/log/matches?q=BEGIN")->{json}{data}[0]{length}, 5,
	    'a log is searched while many readers wait');
	$at = add($run, 'more ');
	is(join('|', map { my $a = $_->answer; "$a->{status} $a->{body}" } @readers),
	    join('|', ('200 more ') x 20, '206 more '), 'all readers get new bytes');
});
my $answer = $readers[0]->answer;
is("@{$answer->{headers}}{qw(x-log-size x-log-complete content-type)}", "$at false text/plain; charset=utf-8",
    'the response after a wait has the headers of a log');
is($answer->{headers}{'x-accel-redirect'}, undef, 'the response after a wait names no internal address');
is(() = $readers[0]->text =~ /^(?:cache-control|x-request-id|content-type):/gmi, 3,
    'a header is sent once after a wait');
my $reader;
within(15, sub {
	set($run, "status = 'running', finished_at = NULL");
	$reader = ask("/$run/log?offset=$at&wait=20");
	ok(held(1), 'a reader waits again');
	finish($run, $at);
	$answer = $reader->answer;
	is("$answer->{status} $answer->{body} $answer->{headers}{'x-log-complete'}", '200  true',
	    'a reader gets the end of a log');
});
is(ask("/$run/log?offset=$at&wait=20")->answer->{headers}{'x-log-complete'}, 'true',
    'a reader does not wait for a complete log');
my $silent = deployment(1, 'running');
my $began = time;
$answer = ask("/$silent/log?wait=1")->answer;
is("$answer->{status} $answer->{body} $answer->{headers}{'x-log-complete'}", '200  false',
    'a reader of a silent log gets an empty response after its time');
cmp_ok(time - $began, '>=', 0.95, 'a reader waits as long as it asked for');
is(ask("/$silent/log?wait=1", Range => 'bytes=0-')->answer->{status}, 416,
    'a reader of a silent log with a range gets 416 after its time');

# --- one deployment
sub tag_of { my ($path) = @_; return $api->get("/api/deployments$path")->{headers}{etag} }
sub waits_for { my ($path) = @_; return ask($path, 'If-None-Match' => tag_of($path =~ s/[?&]wait=\d+//r)) }
is(ask("/$silent?wait=20")->answer->{status}, 200, 'a deployment is returned at once without If-None-Match');
is(ask("/$silent?wait=20", 'If-None-Match' => '"1-x"')->answer->{status}, 200,
    'a deployment that has changed is returned at once');
is(waits_for("/$silent?wait=1")->answer->{status}, 304, 'an unchanged deployment returns 304 after its time');
my ($one, $behind, @place, $place);
within(15, sub {
	$one = waits_for("/$silent?wait=20");
	$behind = deployment(1, 'pending');
	$behind = deployment(1, 'pending');
	@place = ("/$behind?wait=20", 'If-None-Match' => tag_of("/$behind"));
	$place = ask(@place);
	ok(held(2), 'slipway-live holds requests that wait for a deployment');
	add($silent, 'x');
	$answer = $one->answer;
	is($answer->{status}, 200, 'a request for a deployment returns when its log grows');
	like($answer->{body}, qr/"logSize":1,/,
	    'the response after a wait for a deployment has the new state');
	$one = waits_for("/$silent?wait=20");
	set($silent, "started_at = NOW(3)");
	is($one->answer->{status}, 200, 'a request for a deployment returns when it changes');
});
set($behind - 1, "status = 'canceled', finished_at = NOW(3)");
$answer = $place->answer;
# after several other changes, or 20 s on a slow machine, 304 tells a client to ask again
$answer = ask(@place)->answer if $answer->{status} == 304;
is($answer->{status}, 200, 'a pending deployment returns when it moves in the queue');
like($answer->{body}, qr/"queuePosition":0,/, 'the response after a move in the queue has the new position');

# --- the list
my $got = $api->get('/api/deployments');
like($got->{headers}{etag}, qr/^"/, 'the list has an ETag');
is($api->get('/api/deployments', { 'If-None-Match' => $got->{headers}{etag} })->{status}, 304,
    'an unchanged list returns 304');
is($api->get("/api/deployments?$_")->{status}, 400, "the list with $_ returns 400") for 'wait=21', 'wait=-1';
is(waits_for('?wait=1')->answer->{status}, 304, 'an unchanged list returns 304 after its time');
within(15, sub {
	set($silent, "status = 'running', finished_at = NULL");
	my %list = map { $_ => waits_for("?$_&wait=20") } 'limit=5', 'projectId=2', 'projectId=1';
	ok(held(3), 'slipway-live holds requests that wait for the list');
	my $new = deployment(2, 'pending');
	for my $query ('limit=5', 'projectId=2') {
		$answer = $list{$query}->answer;
		is($answer->{status}, 200, "a list with $query returns when there is a new deployment");
		like($answer->{body}, qr/\A\{"data":\[\{"id":$new,/,
		    "a list with $query has the new deployment");
	}
	ok($list{'projectId=1'}->is_open, 'the list of another project continues to wait');
	my $other = waits_for('?status=running&wait=20');
	ok(held(2), 'a list with a filter waits');
	set($new, "status = 'canceled', finished_at = NOW(3)");
	ok($other->is_open, 'a change that a list does not show does not end its wait');
	finish($silent, 1);
	is($_->answer->{status}, 200, 'a list returns when a deployment ends') for $list{'projectId=1'},
	    $other;
});

# --- roles that may wait
my $next = deployment(1, 'running');
for my $path ("/$next/log", "/$next", '') {
	my $none = ask("$path?wait=20", Authorization => 'Bearer slw_wrong', 'If-None-Match' => '*');
	is($none->answer->{status}, 401, "/api/deployments$path does not wait without a credential");
}
is(ask("/99/log?wait=20")->answer->{status}, 404, 'a request for an unknown deployment does not wait');
my $session = $api->new_session('sam', 'viewer');
my $sam = ask("/$next/log?wait=20", %{ bearer($session) });
ok(held(1), 'a user waits');
$db->sql("UPDATE user SET status = 'inactive' WHERE username = 'sam'");
add($next, 'secret');
$answer = $sam->answer;
is($answer->{status}, 401, 'a user who was disabled gets no new bytes');
unlike($answer->{body}, qr/secret/, 'the response to that user has none either');

# --- no user takes all places
within(15, sub {
	my @many = map { ask("/$next/log?offset=6&wait=20") } 1 .. 25;
	ok(held(25), 'a user has as many requests that wait as the limit permits');
	for my $path ("/api/deployments/$next/log?offset=6&wait=20", '/api/events') {
		my $more = Slipway::Stream->open($api, $path)->answer;
		is($more->{status}, 429, "one more is rejected: $path");
		is($more->{headers}{'retry-after'}, 10, 'the error says when to try again');
		like($more->{body}, qr/of your user are open.*"code":"rate_limited"/, 'the error says why');
	}
	is($api->get("/api/deployments/$next/log")->{status}, 200, 'requests that do not wait succeed');
	my $tim = $api->new_session('tim', 'viewer');
	my $place_of_tim = ask("/$next/log?offset=6&wait=20", %{ bearer($tim) });
	ok(held(26), 'another user has places of their own');
	$_->close for @many, $place_of_tim;
	ok(held(0), 'the places are free again');
});

# --- from outside
for my $path ('/.slipway/wait', '/.slipway/wait?project=0&deployment=1&from=0&since=0&ms=1000&again=0',
	'/.slipway/now', '/.slipway/now?left=0&again=0', '/.slipway/waiting', '/.slipway/live/', '/.slipway/',
	'/.slipway/x', '/.slipway', '/%2eslipway/now', '/.slipway%2fnow', '/.%73lipway/wait',
	'//.slipway/now',
	'/api/../.slipway/now', '/api/%2e%2e/.slipway/wait', '/./.slipway/now', '/.slipway/./now',
	'/.slipway//now',
	'/.SLIPWAY/now', '/.slipway/now;x', '/.slipway/now/', '/@slipway_now') {
	is($api->get($path)->{status}, 404, "$path returns 404 from outside");
}
my $marked = ask("/$next/log?offset=6&wait=20", 'Wait-Left' => 0, 'Wait_Left' => 0,
	'X-Accel-Redirect' => '/x');
ok(held(1), 'a client cannot pretend that it has waited');
$marked->close;
ok(held(0), 'slipway-live drops a request whose client has disconnected');

# --- whether it runs
sub live_health { return $api->get('/api/health')->{json} }
sub doctor { return (run_cmd(program('slipway-admin'), '-c', $api->conf_file, 'doctor'))[1] }
is_deeply((grep { $_->{name} eq 'live' } @{ live_health()->{components} })[0],
    { name => 'live', status => 'ok', detail => undef }, 'the health of the service includes slipway-live');
like(doctor(), qr/^ok     slipway-live: it listens/m, 'slipway-admin doctor shows that slipway-live listens');

# --- outages
my @held;
within(15, sub {
	$db->sql("DELETE FROM log_chunk WHERE deployment_id = $next AND start >= 6");
	@held = (ask("/$next/log?offset=6&wait=20"), waits_for("/$next?wait=20"));
	ok(held(2), 'requests wait before MariaDB stops');
	$db->stop;
	ok(!(grep { !$_->is_open } @held), 'requests continue to wait while MariaDB is down');
	$db->resume;
	$size{$next} = 6;
	add($next, 'again');
	$answer = $held[0]->answer;
	is("$answer->{status} $answer->{body}", '200 again',
	    'a reader gets what was written after an outage');
	is($held[1]->answer->{status}, 200,
	    'a request for a deployment returns what changed after an outage');
});
@held = (ask("/$next/log?offset=11&wait=20"), waits_for("/$next?wait=20"));
ok(held(2), 'requests wait before slipway-live is killed');
stop_process($live, 'KILL');
is($_->answer->{status}, 503, 'a request that waits ends if slipway-live is killed') for @held;
$got = $api->get("/api/deployments/$next/log?offset=11&wait=20");
is("$got->{status} $got->{json}{code}", '503 unavailable', 'without slipway-live a reader cannot wait');
like($got->{json}{detail}, qr/slipway-live is not running .* without "wait"/, 'the error says what to do');
is($got->{headers}{'retry-after'}, 5, 'the error says when to try again');
is($got->{json}{requestId}, $got->{headers}{'x-request-id'}, 'the error has the id of the request');
is_deeply((grep { $_->{name} eq 'live' } @{ live_health()->{components} })[0],
    { name => 'live', status => 'down',
	detail => 'Requests cannot wait for changes. Start slipway-live.' },
    'the health says what does not run');
is(live_health()->{status}, 'degraded', 'the service is degraded');
like(doctor(), qr/^FAULT  slipway-live: it has stopped/m,
    'slipway-admin doctor says what to do');
is($api->get("/api/deployments/$next/log?offset=6&wait=20")->{body}, 'again',
    'without slipway-live a reader gets present bytes');
is($api->get("/api/deployments/$next?wait=20")->{status}, 200,
    'without slipway-live a deployment is returned');
$live = $api->start_live;
$reader = ask("/$next/log?offset=11&wait=20");
ok(held(1), 'a reader waits in a slipway-live that has just started');
add($next, 'end');
is($reader->answer->{body}, 'end', 'a reader continues where it was when slipway-live runs again');

# --- announcements
my $path = $api->dir . '/live-wake.sock';
my $sender = IO::Socket::UNIX->new(Type => SOCK_DGRAM) or die "socket: $!";
$sender->blocking(0);
sub announce { return defined send $sender, '', 0, pack_sockaddr_un($path) }
sub wake_ups { return slurp("/proc/$live/status") =~ /^voluntary_ctxt_switches:\s+(\d+)/m ? $1 : die }
ok(held(0), 'no request waits');
my $woken = -1;
poll(60, sub { my $was = $woken; select undef, undef, undef, 0.2; return ($woken = wake_ups()) == $was });
announce() for 1 .. 1000;
is(wake_ups(), $woken, 'announcements do not wake slipway-live while it has no client');
$reader = ask("/$next/log?offset=14&wait=20");
ok(held(1), 'a reader waits');
ok(poll(60, \&announce), 'slipway-live hears announcements while it has a client');
$reader->close;
stop_process($live);
unlink $path;
my $ear = IO::Socket::UNIX->new(Type => SOCK_DGRAM, Local => $path) or die "$path: $!";
chmod 0666, $path or die "$path: $!";
$ear->blocking(0);
sub heard { return defined recv $ear, my $nothing, 10, 0 }
is($api->get('/api/deployments')->{status}, 200, 'the list is read');
ok(!heard(), 'a request that changes nothing is not announced');
is($api->post("/api/deployments/$next/cancel")->{status}, 200, 'a deployment is canceled');
ok(poll(60, \&heard), 'a request that changes something is announced');

done_testing;
