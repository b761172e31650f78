#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Reading and following logs through nginx: ranges, offsets, waiting, packed and
# plain chunks, pruned logs.

use strict;
use warnings;
use Slipway::API;
use Slipway::Background;
use Slipway::DB;
use Slipway::Probe;
use Slipway::Test;
use Test::More;
use Time::HiRes qw(sleep time);

my $db = Slipway::DB->start;
$db->migrate;
my $api = Slipway::API->start(db => $db);
$api->start_live;
my $probe = Slipway::Probe->start($db->conf_file, 'deployment_probe');
sub ask { return $probe->ask("@_") }

$db->sql("INSERT INTO project (id, name, repository, project_dir) VALUES"
    . " (1, 'p', 'https://git.example/o/p', 'd');"
    . "INSERT INTO pipeline (id, project_id, name) VALUES (1, 1, 'l')");
my $last = 0;
sub deployment {
	my ($status) = @_;
	my $id = ++$last;
	$db->sql("INSERT INTO deployment (id, project_id, pipeline_id, `trigger`, status, epoch)"
	    . " VALUES ($id, 1, 1, 'manual', '" . ($status || 'running') . "', 1)");
	return $id;
}
sub add {
	my ($id, $start, $text) = @_;
	my ($length, $hex) = (length $text, unpack 'H*', $text);
	$db->sql('INSERT INTO log_chunk (deployment_id, start, length, data)'
	    . " VALUES ($id, $start, $length, X'$hex')");
}
sub finish {
	my ($id, $size) = @_;
	$db->sql("UPDATE deployment SET status = 'success', log_size = $size, finished_at = NOW(3)"
	    . " WHERE id = $id");
}
sub log_of {
	my ($id, $query, $head) = @_;
	return $api->get("/api/deployments/$id/log" . ($query || ''), $head);
}
# Status, size, completeness and range of a response.
sub told {
	my ($got) = @_;
	my @headers = @{ $got->{headers} }{qw(x-log-size x-log-complete content-range)};
	return join ' ', $got->{status}, map { defined $_ ? $_ : '-' } @headers;
}

# --- states
my $pending = deployment('pending');
my $got = log_of($pending);
is(told($got), '200 0 false -', 'the log of a pending deployment has size 0');
is($got->{body}, '', 'the log of a pending deployment is empty');
my $id = deployment();
my $text = "one\ntwo \xff\x00 \xe2\x82\nthree\n";
add($id, 0, $text);
$got = log_of($id);
is(told($got), '200 ' . length($text) . ' false -', 'the log of a running deployment has its present size');
is($got->{body}, $text, 'a log is returned byte for byte');
is($got->{headers}{'content-type'}, 'text/plain; charset=utf-8', 'a log has the type text/plain');
is($got->{headers}{'x-content-type-options'}, 'nosniff', 'browsers do not guess the type of a log');
is($got->{headers}{'accept-ranges'}, 'bytes', 'a log accepts ranges');
$got = $api->head("/api/deployments/$id/log");
is(told($got), '200 ' . length($text) . ' false -', 'HEAD of a log returns the headers of GET');
is("$got->{headers}{'content-length'} $got->{body}", length($text) . ' ', 'HEAD of a log returns no bytes');
is($api->get("/api/deployments/$id")->{json}{logSize}, length $text,
    'a deployment shows the size of its log');
is($api->get('/api/deployments')->{json}{data}[0]{logSize}, length $text,
    'a list shows the size of the log of a running deployment');

# --- offsets and ranges
my $size = length $text;
for my $try ([ '?offset=0', $text ], [ '?offset=4', substr $text, 4 ], [ "?offset=$size", '' ],
    [ '?offset=' . ($size - 1), "\n" ]) {
	$got = log_of($id, $try->[0]);
	is(told($got), "200 $size false -", "a log with $try->[0] returns 200");
	is($got->{body}, $try->[1], "a log with $try->[0] returns the bytes from there on");
}
for my $try ([ 'bytes=0-2', 0, 2 ], [ 'bytes=4-', 4, $size - 1 ], [ 'bytes=-5', $size - 5, $size - 1 ],
    [ 'bytes=0-999', 0, $size - 1 ], [ 'bytes=-999', 0, $size - 1 ], [ 'bytes=3-3', 3, 3 ],
    [ 'BYTES=0-0', 0, 0 ]) {
	$got = log_of($id, '', { Range => $try->[0] });
	is(told($got), "206 $size false bytes $try->[1]-$try->[2]/*",
	    "a log with Range: $try->[0] returns 206");
	is($got->{body}, substr($text, $try->[1], $try->[2] - $try->[1] + 1),
	    "a log with Range: $try->[0] returns those bytes");
	is($got->{headers}{'content-length'}, $try->[2] - $try->[1] + 1,
	    "a log with Range: $try->[0] has the length of the range");
}
for my $range ('bytes=5-2', 'bytes=a-b', 'bytes=', 'bytes=-', 'bytes=-0', 'lines=0-1', 'bytes=0-1,3-4',
    'bytes=0 - 1', 'bytes=1') {
	$got = log_of($id, '', { Range => $range });
	is("$got->{status} " . length $got->{body}, "200 $size",
	    "an invalid or unsupported Range: $range is ignored");
}
for my $range ("bytes=$size-", "bytes=999-1000", 'bytes=9007199254740991-') {
	$got = log_of($id, '', { Range => $range });
	is("$got->{status} $got->{headers}{'content-range'}", "416 bytes */$size",
	    "a log with Range: $range returns 416");
	is($got->{headers}{'content-type'}, 'application/problem+json',
	    "a log with Range: $range returns a problem");
}
for my $if ('"1-0123456789abcdef"', 'Sat, 21 Nov 2026 01:02:03 GMT') {
	is(told(log_of($id, '', { Range => 'bytes=0-2', 'If-Range' => $if })), "200 $size false -",
	    "a log with If-Range: $if is returned whole");
}
for my $range ('bytes=0-2', "bytes=$size-") {
	$got = $api->head("/api/deployments/$id/log", { Range => $range });
	is(told($got), "200 $size false -", "HEAD of a log ignores Range: $range");
	is($got->{headers}{'content-length'}, $size,
	    "HEAD of a log with Range: $range returns the whole size");
}
$got = log_of($id, '?offset=999');
is("$got->{status} $got->{headers}{'content-range'}", "416 bytes */$size",
    'an offset past the end returns 416');
is(log_of($id, '?offset=0', { Range => 'bytes=0-1' })->{status}, 400, 'offset and Range together return 400');
for my $bad ('offset=-1', 'offset=x', 'wait=21', 'wait=-1', 'wait=x', 'follow=1', 'offset=1&offset=2') {
	is(log_of($id, "?$bad")->{status}, 400, "a log with $bad returns 400");
}
is(log_of(999)->{status}, 404, 'the log of an unknown deployment returns 404');
is($api->as('none')->get("/api/deployments/$id/log")->{status}, 401, 'a log without a token returns 401');
is($api->as('viewer')->get("/api/deployments/$id/log")->{status}, 200, 'a viewer can read a log');
is($api->post("/api/deployments/$id/log")->{status}, 405, 'POST of a log returns 405');

# --- complete, packed and large logs
finish($id, $size);
is(told(log_of($id)), "200 $size true -", 'the log of a deployment that ended is complete');
is(told(log_of($id, '', { Range => 'bytes=0-0' })), "206 $size true bytes 0-0/$size",
    'Content-Range of a complete log has the size');
is(ask("pack $id"), 'ok', 'a log is packed');
is(log_of($id)->{body}, $text, 'a packed log is returned byte for byte');
is(log_of($id, '?offset=4')->{body}, substr($text, 4), 'a packed log is returned from an offset');
is(log_of($id, '', { Range => 'bytes=-5' })->{body}, substr($text, -5),
    'a packed log is returned by a range at its end');

my $large = deployment();
my $all = join '', map { "line $_ of a long log, with something to say\n" } 1 .. 70_000;
my $at = 0;
while ($at < length $all) {
	my $sql = '';
	for (1 .. 10) {
		my $part = substr $all, $at, 60_000;
		last if $part eq '';
		my ($length, $hex) = (length $part, unpack 'H*', $part);
		$sql .= 'INSERT INTO log_chunk (deployment_id, start, length, data)'
		    . " VALUES ($large, $at, $length, X'$hex');";
		$at += length $part;
	}
	$db->sql($sql);
}
ok(log_of($large)->{body} eq $all, 'a log of three megabytes is returned');
finish($large, length $all);
is(ask("pack $large"), 'ok', 'a log of three megabytes is packed');
cmp_ok($db->sql("SELECT SUM(LENGTH(data)) FROM log_chunk WHERE deployment_id = $large"), '<',
    length($all) / 3, 'a packed log takes less space');
ok(log_of($large)->{body} eq $all, 'a packed log of three megabytes is returned byte for byte');
for my $from (0, 262_143, 262_144, 1_000_000, length($all) - 10) {
	ok(log_of($large, "?offset=$from")->{body} eq substr($all, $from),
	    "a packed log of three megabytes is returned from offset $from");
	ok(log_of($large, '', { Range => "bytes=$from-" . ($from + 99_999) })->{body} eq substr($all, $from,
	    100_000), "a packed log of three megabytes is returned by a range from $from");
}
for my $pid ($api->workers) {
	my $peak = peak_memory($pid);
	cmp_ok($peak, '<', 16_384, "a worker takes less than 16 MiB of memory ($peak KiB)") if !sanitized();
}

# --- waiting
my $run = deployment();
add($run, 0, 'begin ');
sub took { my ($code) = @_; my $began = time; $code->(); return time - $began }
my $took = best_of(1, sub { took(sub { $got = log_of($run, '?offset=0&wait=20') }) });
is($got->{body}, 'begin ', 'a reader with wait gets present bytes');
cmp_ok($took, '<', deadline(1), 'a reader with wait gets present bytes at once');
$took = best_of(2, sub { took(sub { $got = log_of($run, '?offset=6&wait=1') }) });
is("$got->{status} $got->{body} $got->{headers}{'x-log-complete'}", '200  false',
    'a reader with wait gets nothing if nothing is written');
cmp_ok($took, '>=', 0.95, 'a reader waits as long as requested');
cmp_ok($took, '<', deadline(2), 'a reader waits no longer than requested');

# The response that a waiting reader gets after a write, and after how many seconds;
# each call writes at another moment of the wait.
my $calls = 0;
sub wait_for {
	my ($query, $write, $head) = @_;
	my $reader = background(sub {
		delete $api->{http};
		my $seen = log_of($run, $query, $head);
		return sprintf '%.6f %s|%s|%s', time, $seen->{status},
		    $seen->{headers}{'x-log-complete'} || '',
		    $seen->{body};
	});
	sleep 0.3 + 0.13 * $calls++;
	my $wrote = $write->();
	my ($when, $said) = split / /, $reader->result, 2;
	return ($said, $when - $wrote);
}
log_of($run, '?offset=0');
my ($end, $said) = (6);
sub fast {
	my ($query, $add, $head) = @_;
	return best_of(0.25, sub {
		($said, my $took) = wait_for($query->(), sub { $add->(); return time }, $head && $head->());
		return $took;
	});
}
sub grow { my ($text) = @_; add($run, $end, $text); $end += length $text; return }
$took = fast(sub { "?offset=$end&wait=20" }, sub { grow('middle ') });
is($said, '200|false|middle ', 'a waiting reader gets new bytes');
cmp_ok($took, '<', deadline(0.25), sprintf 'a waiting reader gets new bytes within 250 ms (%.0f ms)',
    $took * 1000);
$took = fast(sub { '?wait=20' }, sub { grow('more ') }, sub { return { Range => "bytes=$end-" } });
is($said, '206|false|more ', 'a waiting reader with a range gets new bytes');
cmp_ok($took, '<', deadline(0.25),
    sprintf 'a waiting reader with a range gets new bytes within 250 ms (%.0f ms)', $took * 1000);
my $next_run = sub {
	finish($run, $end);
	$run = deployment();
	$end = 0;
	grow('all');
	return "?offset=$end&wait=20";
};
$took = fast($next_run, sub { finish($run, $end) });
is($said, '200|true|', 'a waiting reader gets the end of a log');
cmp_ok($took, '<', deadline(0.25),
    sprintf 'a waiting reader gets the end of a log within 250 ms (%.0f ms)', $took * 1000);
$took = best_of(1, sub { took(sub { $got = log_of($run, "?offset=$end&wait=20") }) });
is($got->{headers}{'x-log-complete'}, 'true', 'a reader with wait gets a complete log');
cmp_ok($took, '<', deadline(1), 'a reader does not wait for a complete log');

# Waiting readers do not delay other requests.
my $slow = deployment();
my @waiting = map {
	background(sub { delete $api->{http}; return log_of($slow, '?offset=0&wait=20')->{status} });
} 1 .. 4;
sleep 0.5;
$took = best_of(1, sub { took(sub { $got = $api->get("/api/deployments/$slow") }) });
is($got->{status}, 200, 'a request is served while readers wait');
cmp_ok($took, '<', deadline(1), 'a request is served at once while readers wait');
finish($slow, 0);
$_->result for @waiting;

# --- pruned logs
$db->sql("UPDATE deployment SET finished_at = NOW(3) - INTERVAL 9 DAY WHERE id = $id");
is(ask('prune 8 0'), '1', 'a log older than the limit is pruned');
$got = log_of($id);
is($got->{status}, 404, 'a pruned log returns 404');
like($got->{json}{detail}, qr/was deleted/, 'the error says that the log was deleted');
is($api->get("/api/deployments/$id")->{status}, 200, 'the deployment of a pruned log is returned');

$probe->stop;
done_testing;
