#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Reading and following logs through nginx: ranges, offsets, waiting, packed
# and plain chunks, what is gone.

use strict;
use warnings;
use IPC::Open2;
use Slipway::API;
use Slipway::DB;
use Slipway::Test;
use Test::More;
use Time::HiRes qw(sleep time);

my $db = Slipway::DB->start;
$db->migrate;
my $api = Slipway::API->start(db => $db);
my ($in, $out);
my $probe = open2($out, $in, program('t/unit/deployment_probe'), $db->conf_file);
$in->autoflush(1);
sub ask { print {$in} "@_\n"; my $got = <$out>; chomp $got if defined $got; return $got }

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
	my $hex = unpack 'H*', $text;
	$db->sql("INSERT INTO log_chunk (deployment_id, start, length, data) VALUES ($id, $start, " . length($text) . ", X'$hex')");
}
sub finish { my ($id, $size) = @_; $db->sql("UPDATE deployment SET status = 'success', log_size = $size, finished_at = NOW(3) WHERE id = $id") }
sub log_of { my ($id, $query, $head) = @_; return $api->get("/api/deployments/$id/log" . ($query || ''), $head) }
sub told { my ($got) = @_; return join ' ', $got->{status}, map { defined $_ ? $_ : '-' } @{ $got->{headers} }{qw(x-log-size x-log-complete content-range)} }

# --- states
my $pending = deployment('pending');
my $got = log_of($pending);
is(told($got), '200 0 false -', 'one that waits has an empty log');
is($got->{body}, '', 'of no bytes');
my $id = deployment();
my $text = "one\ntwo \xff\x00 \xe2\x82\nthree\n";
add($id, 0, $text);
$got = log_of($id);
is(told($got), '200 ' . length($text) . ' false -', 'one that runs has what there is');
is($got->{body}, $text, 'byte for byte');
is($got->{headers}{'content-type'}, 'text/plain; charset=utf-8', 'as text');
is($got->{headers}{'x-content-type-options'}, 'nosniff', 'and nothing else');
is($got->{headers}{'accept-ranges'}, 'bytes', 'in ranges too');
$got = $api->head("/api/deployments/$id/log");
is(told($got), '200 ' . length($text) . ' false -', 'HEAD says the same');
is("$got->{headers}{'content-length'} $got->{body}", length($text) . ' ', 'without the bytes');
is($api->get("/api/deployments/$id")->{json}{logSize}, length $text, 'the deployment knows the size');

# --- offsets and ranges
my $size = length $text;
for my $try ([ '?offset=0', $text ], [ '?offset=4', substr $text, 4 ], [ "?offset=$size", '' ],
    [ '?offset=' . ($size - 1), "\n" ]) {
	$got = log_of($id, $try->[0]);
	is(told($got), "200 $size false -", "$try->[0]: 200");
	is($got->{body}, $try->[1], "$try->[0]: the bytes from there on");
}
for my $try ([ 'bytes=0-2', 0, 2 ], [ 'bytes=4-', 4, $size - 1 ], [ 'bytes=-5', $size - 5, $size - 1 ],
    [ 'bytes=0-999', 0, $size - 1 ], [ 'bytes=-999', 0, $size - 1 ], [ 'bytes=3-3', 3, 3 ], [ 'BYTES=0-0', 0, 0 ]) {
	$got = log_of($id, '', { Range => $try->[0] });
	is(told($got), "206 $size false bytes $try->[1]-$try->[2]/*", "$try->[0]: 206");
	is($got->{body}, substr($text, $try->[1], $try->[2] - $try->[1] + 1), "$try->[0]: its bytes");
	is($got->{headers}{'content-length'}, $try->[2] - $try->[1] + 1, "$try->[0]: its length");
}
for my $range ('bytes=5-2', 'bytes=a-b', 'bytes=', 'bytes=-', 'bytes=-0', 'lines=0-1', 'bytes=0-1,3-4', 'bytes=0 - 1', 'bytes=1') {
	$got = log_of($id, '', { Range => $range });
	is("$got->{status} " . length $got->{body}, "200 $size", "$range: as if it were not there");
}
for my $range ("bytes=$size-", "bytes=999-1000", 'bytes=9007199254740991-') {
	$got = log_of($id, '', { Range => $range });
	is("$got->{status} $got->{headers}{'content-range'}", "416 bytes */$size", "$range: 416");
	is($got->{headers}{'content-type'}, 'application/problem+json', "$range: with a reason");
}
for my $if ('"1-0123456789abcdef"', 'Sat, 21 Nov 2026 01:02:03 GMT') {
	is(told(log_of($id, '', { Range => 'bytes=0-2', 'If-Range' => $if })), "200 $size false -", "all of it if not $if");
}
for my $range ('bytes=0-2', "bytes=$size-") {
	$got = $api->head("/api/deployments/$id/log", { Range => $range });
	is(told($got), "200 $size false -", "HEAD knows no ranges: $range");
	is($got->{headers}{'content-length'}, $size, '  but the size');
}
$got = log_of($id, '?offset=999');
is("$got->{status} $got->{headers}{'content-range'}", "416 bytes */$size", 'an offset behind the end: 416');
is(log_of($id, '?offset=0', { Range => 'bytes=0-1' })->{status}, 400, 'offset and Range: 400');
for my $bad ('offset=-1', 'offset=x', 'wait=21', 'wait=-1', 'wait=x', 'follow=1', 'offset=1&offset=2') {
	is(log_of($id, "?$bad")->{status}, 400, "$bad: 400");
}
is(log_of(999)->{status}, 404, 'no such deployment');
is($api->as('none')->get("/api/deployments/$id/log")->{status}, 401, 'nobody: 401');
is($api->as('viewer')->get("/api/deployments/$id/log")->{status}, 200, 'a viewer: 200');
is($api->post("/api/deployments/$id/log")->{status}, 405, 'POST: 405');

# --- finished, packed, large
finish($id, $size);
is(told(log_of($id)), "200 $size true -", 'complete');
is(told(log_of($id, '', { Range => 'bytes=0-0' })), "206 $size true bytes 0-0/$size", 'with the size in the range');
is(ask("pack $id"), 'ok', 'packed');
is(log_of($id)->{body}, $text, 'the same bytes');
is(log_of($id, '?offset=4')->{body}, substr($text, 4), 'from there on');
is(log_of($id, '', { Range => 'bytes=-5' })->{body}, substr($text, -5), 'and at the end');

my $large = deployment();
my $all = join '', map { "line $_ of a long log, with something to say\n" } 1 .. 70_000;
my $at = 0;
while ($at < length $all) {
	my $sql = '';
	for (1 .. 10) {
		my $part = substr $all, $at, 60_000;
		last if $part eq '';
		$sql .= "INSERT INTO log_chunk (deployment_id, start, length, data) VALUES ($large, $at, " . length($part)
		    . ", X'" . unpack('H*', $part) . "');";
		$at += length $part;
	}
	$db->sql($sql);
}
ok(log_of($large)->{body} eq $all, 'three megabytes, plain');
finish($large, length $all);
is(ask("pack $large"), 'ok', 'packed');
cmp_ok($db->sql("SELECT SUM(LENGTH(data)) FROM log_chunk WHERE deployment_id = $large"), '<', length($all) / 3, 'they take less room');
ok(log_of($large)->{body} eq $all, 'the same bytes');
for my $from (0, 262_143, 262_144, 1_000_000, length($all) - 10) {
	ok(log_of($large, "?offset=$from")->{body} eq substr($all, $from), "from $from on");
	ok(log_of($large, '', { Range => "bytes=$from-" . ($from + 99_999) })->{body} eq substr($all, $from, 100_000), "a range from $from on");
}
for my $pid ($api->workers) {
	my ($rss) = (slurp("/proc/$pid/status") || '') =~ /VmHWM:\s+(\d+)/;
	cmp_ok($rss || 0, '<', 16_384, "a worker needed less than 16 MB ($rss kB)") if !$ENV{SLIPWAY_SANITIZED};
}

# --- waiting
my $run = deployment();
add($run, 0, 'begin ');
sub took { my ($code) = @_; my $began = time; $code->(); return time - $began }
my $took = best_of(1, sub { took(sub { $got = log_of($run, '?offset=0&wait=20') }) });
is($got->{body}, 'begin ', 'no waiting for what is there');
cmp_ok($took, '<', deadline(1), 'at once');
$took = best_of(2, sub { took(sub { $got = log_of($run, '?offset=6&wait=1') }) });
is("$got->{status} $got->{body} $got->{headers}{'x-log-complete'}", '200  false', 'nothing came');
cmp_ok($took, '>=', 0.95, 'in a second');
cmp_ok($took, '<', deadline(2), 'not more');

# What a reader that waits sees of a write, and after how long; at another
# moment of its waiting each time.
my $calls = 0;
sub wait_for {
	my ($query, $write, $head) = @_;
	pipe my $from, my $to or die "pipe: $!";
	my $pid = fork;
	die "fork: $!" if !defined $pid;
	if ($pid == 0) {
		delete $api->{http};
		my $seen = log_of($run, $query, $head);
		printf {$to} "%.6f %s|%s|%s", time, $seen->{status}, $seen->{headers}{'x-log-complete'} || '', $seen->{body};
		close $to;
		POSIX::_exit(0);
	}
	close $to;
	sleep 0.3 + 0.13 * $calls++;
	my $wrote = $write->();
	local $/;
	my ($when, $said) = split / /, scalar <$from>, 2;
	waitpid $pid, 0;
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
is($said, '200|false|middle ', 'a reader that waits gets what comes');
cmp_ok($took, '<', deadline(0.25), sprintf 'within 250 ms (%.0f ms)', $took * 1000);
$took = fast(sub { '?wait=20' }, sub { grow('more ') }, sub { return { Range => "bytes=$end-" } });
is($said, '206|false|more ', 'so does one with a range');
cmp_ok($took, '<', deadline(0.25), sprintf 'as fast (%.0f ms)', $took * 1000);
$took = fast(sub { finish($run, $end); $run = deployment(); $end = 0; grow('all'); "?offset=$end&wait=20" }, sub { finish($run, $end) });
is($said, '200|true|', 'the end wakes too');
cmp_ok($took, '<', deadline(0.25), sprintf 'as fast (%.0f ms)', $took * 1000);
$took = best_of(1, sub { took(sub { $got = log_of($run, "?offset=$end&wait=20") }) });
is($got->{headers}{'x-log-complete'}, 'true', 'what is complete is not waited for');
cmp_ok($took, '<', deadline(1), 'at all');

# Readers that wait hold up nobody else.
my $slow = deployment();
my @waiting = map {
	my $pid = fork;
	die "fork: $!" if !defined $pid;
	if ($pid == 0) { delete $api->{http}; log_of($slow, '?offset=0&wait=20'); POSIX::_exit(0) }
	$pid;
} 1 .. 4;
sleep 0.5;
$took = best_of(1, sub { took(sub { $got = $api->get("/api/deployments/$slow") }) });
is($got->{status}, 200, 'others are served while readers wait');
cmp_ok($took, '<', deadline(1), 'at once');
finish($slow, 0);
waitpid $_, 0 for @waiting;

# --- gone
$db->sql("UPDATE deployment SET finished_at = NOW(3) - INTERVAL 9 DAY WHERE id = $id");
is(ask('prune 8 0'), '1', 'a log is pruned');
$got = log_of($id);
is($got->{status}, 404, 'it is gone');
like($got->{json}{detail}, qr/removed/, 'and the answer says why');
is($api->get("/api/deployments/$id")->{status}, 200, 'the deployment is there');

close $in;
waitpid $probe, 0;
done_testing;
