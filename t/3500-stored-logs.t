#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Stored logs: repeated and overlapping chunks, epochs, packing, pruning.

use strict;
use warnings;
use Slipway::DB;
use Slipway::Probe;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
$db->migrate;
my $probe = Slipway::Probe->start($db->conf_file, 'deployment_probe');
sub ask { return $probe->ask("@_") }

$db->sql("INSERT INTO project (id, name, repository, project_dir) VALUES"
    . " (1, 'p', 'https://git.example/o/p', 'd');"
    . "INSERT INTO pipeline (id, project_id, name) VALUES (1, 1, 'l')");
my $next = 0;
sub deployment {
	my $id = ++$next;
	$db->sql("INSERT INTO deployment (id, project_id, pipeline_id, `trigger`, status, epoch)"
	    . " VALUES ($id, 1, 1, 'manual', 'running', 3)");
	return $id;
}
sub finish {
	my ($id, $size, $when) = @_;
	$when ||= 'NOW(3)';
	$db->sql("UPDATE deployment SET status = 'success', log_size = $size, finished_at = $when"
	    . " WHERE id = $id");
}
sub chunks { my ($id) = @_; return $db->sql("SELECT COUNT(*) FROM log_chunk WHERE deployment_id = $id") }

# --- appending
my $id = deployment();
is(ask("state $id"), '0', 'the log of a new deployment is empty');
is(ask("read $id 0 100"), '0 good', 'a read of an empty log returns nothing');
is(ask("append $id 3 0 10"), 'ok', 'the first bytes are appended');
is(ask("append $id 3 10 5"), 'ok', 'more bytes are appended');
is(ask("state $id"), '15', 'the size of a running log is known');
is(ask("append $id 3 10 5"), 'ok', 'repeated bytes are accepted');
is(chunks($id), 2, 'repeated bytes are stored once');
is(ask("append $id 3 10 50"), 'ok', 'repeated bytes with more after them are accepted');
is(ask("append $id 3 10 20"), 'ok', 'repeated bytes with fewer after them are accepted');
is(ask("read $id 0 100"), '60 good', 'a log of repeated chunks is read whole');
is(chunks($id), 2, 'a longer repeated chunk replaces the shorter');
is(ask("append $id 3 40 60"), 'ok', 'an overlapping chunk is accepted');
is(ask("read $id 0 1000"), '100 good', 'overlapping bytes are read once');
is(ask("read $id $_ 7"), '7 good', "a log is read from offset $_") for 0, 5, 9, 10, 11, 39, 40, 59, 60, 93;
is(ask("read $id 95 7"), '5 good', 'a read near the end returns fewer bytes');
is(ask("read $id 100 7"), '0 good', 'a read at the end returns no bytes');
is(ask("read $id 999 7"), '0 good', 'a read past the end returns no bytes');
like(ask("append $id 2 100 5"), qr/^error precondition_failed/, 'bytes of an old epoch are rejected');
like(ask("append $id 4 100 5"), qr/^error precondition_failed/, 'bytes of a future epoch are rejected');
like(ask("append 999 0 0 5"), qr/^error precondition_failed/, 'bytes of an unknown deployment are rejected');
like(ask('state 999'), qr/^error not_found/, 'the log of an unknown deployment is not found');
is(ask("append $id 3 120 5"), 'ok', 'bytes after a gap are accepted');
is(ask("read $id 0 1000"), '125 bad', 'a read goes on behind a gap');
is(ask("read $id 0 100"), '100 good', 'the bytes before a gap are those stored');
is(pack('H*', ask("bytes $id 100 20")), sprintf("\n%-18s\n", '20?'), 'a line stands for the gap');
is(pack('H*', ask("bytes $id 110 5")), ' ' x 5, 'a part of that line is read');
is(ask("read $id 120 1000"), '5 good', 'the bytes behind a gap are those stored');
is(ask("read $id 125 7"), '0 good', 'a read behind the bytes after a gap returns nothing');
$db->sql("DELETE FROM log_chunk WHERE start = 120");
like(ask("pack $id"), qr/^error conflict/, 'a running log is not packed');
finish($id, 100);
like(ask("append $id 3 100 5"), qr/^error precondition_failed/,
    'bytes of a deployment that ended are rejected');
is(ask("state $id"), '100 complete', 'the log of a deployment that ended is complete');

# --- packing
is(ask("pack $id"), 'ok', 'overlapping chunks are packed');
is(ask("read $id 0 1000"), '100 good', 'a packed log is read as before');
is(chunks($id), 1, 'overlapping chunks are packed into one');
my $long = deployment();
my $at = 0;
while ($at < 900_000) {
	my $n = 1 + ($at * 7919) % 60_000;
	ask("append $long 3 $at $n");
	$at += $n;
}
is(ask("state $long"), $at, 'a log of many chunks has their size');
is(ask("read $long 0 2000000"), "$at good", 'a log of many chunks is read at once');
finish($long, $at);
my $before = chunks($long);
is(ask("pack $long"), 'ok', 'a log of many chunks is packed');
cmp_ok(chunks($long), '<', $before, 'packing reduces the number of chunks');
cmp_ok(chunks($long), '>=', 4, 'packing limits the size of chunks');
is($db->sql("SELECT COUNT(*) FROM log_chunk WHERE deployment_id = $long AND length > 262144"), 0,
    'no packed chunk exceeds the limit');
is($db->sql("SELECT SUM(length) FROM log_chunk WHERE deployment_id = $long"), $at,
    'packed chunks have the size of the log');
is(ask("read $long 0 2000000"), "$at good", 'a packed log of many chunks is read as before');
is(ask("read $long $_ 1000"), '1000 good', "a packed log is read from offset $_")
    for 1, 261_000, 262_143, 524_288, 700_001;
is(ask("pack $long"), 'ok', 'a packed log can be packed again');
is(ask("read $long 0 2000000"), "$at good", 'packing a packed log changes nothing');

# Packing fails between two chunks.
my $half = deployment();
ask("append $half 3 " . $_ * 65_536 . ' 65536') for 0 .. 9;
finish($half, 655_360);
$db->sql('ALTER TABLE log_chunk ADD CONSTRAINT stop'
    . " CHECK (packed = 0 OR deployment_id <> $half OR start < 300000)");
like(ask("pack $half"), qr/^error/, 'packing that fails halfway is an error');
is(ask("read $half 0 2000000"), '655360 good', 'packing that fails halfway loses nothing');
$db->sql('ALTER TABLE log_chunk DROP CONSTRAINT stop');
is(ask("pack $half"), 'ok', 'packing that failed can be repeated');
is(ask("read $half 0 2000000"), '655360 good', 'a log whose packing was repeated is read as before');
is($db->sql("SELECT COUNT(*) FROM log_chunk WHERE deployment_id = $half AND packed = 0"), 0,
    'repeated packing packs every chunk');
$db->sql("UPDATE log_chunk SET data = 'junk' WHERE deployment_id = $half AND start = 0");
like(ask("read $half 0 10"), qr/^error internal/, 'a damaged chunk is an error, not wrong bytes');

# --- pruning
is(ask('prune 0 0'), '0', 'without limits no log is pruned');
my @old = map { deployment_old($_) } 1 .. 4;
sub deployment_old {
	my ($n) = @_;
	my $one = deployment();
	ask("append $one 3 0 1000");
	finish($one, 1000, 'NOW(3) - INTERVAL ' . ((20 - $n) * 24 - 12) . ' HOUR');
	return $one;
}
my $running = deployment();
ask("append $running 3 0 1000");
$db->sql("UPDATE deployment SET created_at = NOW(3) - INTERVAL 99 DAY, started_at = created_at"
    . " WHERE id = $running");
is(ask('prune 18 0'), '1', 'a log older than the limit is pruned');
is(ask("state $old[0]"), '1000 complete pruned', 'the state of a pruned log says so');
is(ask("read $old[0] 0 10"), '0 good', 'a read of a pruned log returns nothing');
is(ask("state $old[1]"), '1000 complete', 'a log younger than the limit is kept');
is(ask('prune 18 0'), '0', 'a pruned log is not pruned again');
my $sum = $db->sql('SELECT SUM(log_size) FROM deployment WHERE log_pruned = 0');
is(ask("prune 0 $sum"), '0', 'logs of exactly the size limit are kept');
is(ask('prune 0 ' . ($sum - 1)), '1', 'logs one byte over the size limit lose one');
is(ask("state $old[1]"), '1000 complete pruned', 'the size limit prunes the oldest log');
is(ask('prune 0 ' . ($sum - 2500)), '2', 'the size limit prunes as many logs as necessary');
is(ask('prune 0 1'), '3', 'a size limit of one byte prunes every complete log');
is(ask("read $running 0 2000"), '1000 good', 'a running log is never pruned');
is(ask("state $running"), '1000', 'an old running log keeps its state');

# --- a log that is pruned while it is packed
finish($running, 1000);
my $gone = deployment();
ask("append $gone 3 0 1000");
finish($gone, 1000);
$db->add_gate('commit_token');
my $gate = $db->session;
$gate->('START TRANSACTION; SELECT id FROM gate FOR UPDATE');
$probe->send("pack $gone");
ok(poll(60, sub { $db->waiting == 1 }), 'packing a log waits');
$db->sql("UPDATE deployment SET log_pruned = 1 WHERE id = $gone; DELETE FROM log_chunk"
    . " WHERE deployment_id = $gone");
$gate->('COMMIT');
is($probe->receive, 'ok', 'packing a log that is pruned meanwhile succeeds');
is(chunks($gone), 0, 'packing a log that is pruned meanwhile does not restore it');

is($probe->stop, 0, 'the probe ends with status 0');
done_testing;
