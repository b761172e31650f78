#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Logs as they are kept: stored twice, overlapping, under an epoch, packed,
# pruned.

use strict;
use warnings;
use IPC::Open2;
use Slipway::DB;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
$db->migrate;
my ($in, $out);
my $probe = open2($out, $in, program('t/unit/deployment_probe'), $db->conf_file);
$in->autoflush(1);
sub ask { print {$in} "@_\n"; my $got = <$out>; chomp $got if defined $got; return $got }

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
	$db->sql("UPDATE deployment SET status = 'success', log_size = $size, finished_at = $when WHERE id = $id");
}
sub chunks { my ($id) = @_; return $db->sql("SELECT COUNT(*) FROM log_chunk WHERE deployment_id = $id") }

# --- appending
my $id = deployment();
is(ask("state $id"), '0', 'no log yet');
is(ask("read $id 0 100"), '0 good', 'nothing to read');
is(ask("append $id 3 0 10"), 'ok', 'the first bytes');
is(ask("append $id 3 10 5"), 'ok', 'more of them');
is(ask("state $id"), '15', 'the size is known while it runs');
is(ask("append $id 3 10 5"), 'ok', 'the same again');
is(chunks($id), 2, 'writes nothing twice');
is(ask("append $id 3 10 50"), 'ok', 'the same with more behind it');
is(ask("append $id 3 10 20"), 'ok', 'and with less');
is(ask("read $id 0 100"), '60 good', 'all of it is there');
is(chunks($id), 2, 'in the same chunk');
is(ask("append $id 3 40 60"), 'ok', 'an overlapping chunk');
is(ask("read $id 0 1000"), '100 good', 'is read once');
is(ask("read $id $_ 7"), '7 good', "from $_ on") for 0, 5, 9, 10, 11, 39, 40, 59, 60, 93;
is(ask("read $id 95 7"), '5 good', 'fewer at the end');
is(ask("read $id 100 7"), '0 good', 'none after it');
is(ask("read $id 999 7"), '0 good', 'none far after it');
like(ask("append $id 2 100 5"), qr/^error precondition_failed/, 'an old epoch is fenced');
like(ask("append $id 4 100 5"), qr/^error precondition_failed/, 'a future one too');
like(ask("append 999 0 0 5"), qr/^error precondition_failed/, 'and one of nothing');
like(ask('state 999'), qr/^error not_found/, 'no such log');
is(ask("append $id 3 120 5"), 'ok', 'bytes after a gap');
is(ask("read $id 0 1000"), '100 good', 'a gap ends what is read');
$db->sql("DELETE FROM log_chunk WHERE start = 120");
like(ask("pack $id"), qr/^error conflict/, 'a running log is not packed');
finish($id, 100);
like(ask("append $id 3 100 5"), qr/^error precondition_failed/, 'what has ended grows no more');
is(ask("state $id"), '100 complete', 'it says so');

# --- packing
is(ask("pack $id"), 'ok', 'overlapping chunks are packed');
is(ask("read $id 0 1000"), '100 good', 'and read as before');
is(chunks($id), 1, 'from one chunk');
my $long = deployment();
my $at = 0;
while ($at < 900_000) {
	my $n = 1 + ($at * 7919) % 60_000;
	ask("append $long 3 $at $n");
	$at += $n;
}
is(ask("state $long"), $at, 'a log of many chunks');
is(ask("read $long 0 2000000"), "$at good", 'is read at once');
finish($long, $at);
my $before = chunks($long);
is(ask("pack $long"), 'ok', 'is packed');
cmp_ok(chunks($long), '<', $before, 'into fewer chunks');
cmp_ok(chunks($long), '>=', 4, 'of a bounded size');
is($db->sql("SELECT COUNT(*) FROM log_chunk WHERE deployment_id = $long AND length > 262144"), 0, 'none is larger');
is($db->sql("SELECT SUM(length) FROM log_chunk WHERE deployment_id = $long"), $at, 'together as long as before');
is(ask("read $long 0 2000000"), "$at good", 'and read as before');
is(ask("read $long $_ 1000"), '1000 good', "from $_ on") for 1, 261_000, 262_143, 524_288, 700_001;
is(ask("pack $long"), 'ok', 'packing again');
is(ask("read $long 0 2000000"), "$at good", 'changes nothing');

# broken off between two chunks
my $half = deployment();
ask("append $half 3 " . $_ * 65_536 . ' 65536') for 0 .. 9;
finish($half, 655_360);
$db->sql("ALTER TABLE log_chunk ADD CONSTRAINT stop CHECK (packed = 0 OR deployment_id <> $half OR start < 300000)");
like(ask("pack $half"), qr/^error/, 'packing that fails half-way');
is(ask("read $half 0 2000000"), '655360 good', 'loses nothing');
$db->sql('ALTER TABLE log_chunk DROP CONSTRAINT stop');
is(ask("pack $half"), 'ok', 'it is taken up again');
is(ask("read $half 0 2000000"), '655360 good', 'to the end');
is($db->sql("SELECT COUNT(*) FROM log_chunk WHERE deployment_id = $half AND packed = 0"), 0, 'everything is packed');
$db->sql("UPDATE log_chunk SET data = 'junk' WHERE deployment_id = $half AND start = 0");
like(ask("read $half 0 10"), qr/^error internal/, 'a damaged chunk is an error, not wrong bytes');

# --- pruning
is(ask('prune 0 0'), '0', 'never by default');
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
$db->sql("UPDATE deployment SET created_at = NOW(3) - INTERVAL 99 DAY, started_at = created_at WHERE id = $running");
is(ask('prune 18 0'), '1', 'one is older than eighteen days');
is(ask("state $old[0]"), '1000 complete pruned', 'it says that it is gone');
is(ask("read $old[0] 0 10"), '0 good', 'and it is');
is(ask("state $old[1]"), '1000 complete', 'the next is there');
is(ask('prune 18 0'), '0', 'once is enough');
my $sum = $db->sql('SELECT SUM(log_size) FROM deployment WHERE log_pruned = 0');
is(ask("prune 0 $sum"), '0', 'all together are just small enough');
is(ask('prune 0 ' . ($sum - 1)), '1', 'a byte less: the oldest goes');
is(ask("state $old[1]"), '1000 complete pruned', 'which is this');
is(ask('prune 0 ' . ($sum - 2500)), '2', 'as many as it takes');
is(ask('prune 0 1'), '3', 'down to one byte');
is(ask("read $running 0 2000"), '1000 good', 'what runs stays');
is(ask("state $running"), '1000', 'whatever its age');

# --- pruned between the look at the chunks and their packing
finish($running, 1000);
my $gone = deployment();
ask("append $gone 3 0 1000");
finish($gone, 1000);
$db->sql("CREATE TABLE gate (id INT PRIMARY KEY) ENGINE = InnoDB; INSERT INTO gate VALUES (1);\n"
    . "CREATE TRIGGER wait_at_gate BEFORE INSERT ON commit_token FOR EACH ROW\n"
    . "BEGIN DECLARE n INT; SELECT id INTO n FROM gate FOR UPDATE; END");
my $gate = $db->session;
$gate->('START TRANSACTION; SELECT id FROM gate FOR UPDATE');
print {$in} "pack $gone\n";
ok(poll(60, sub { $db->waiting == 1 }), 'a log is about to be packed');
$db->sql("UPDATE deployment SET log_pruned = 1 WHERE id = $gone; DELETE FROM log_chunk WHERE deployment_id = $gone");
$gate->('COMMIT');
is(scalar <$out>, "ok\n", 'and is pruned before: that is no fault');
is(chunks($gone), 0, 'and nothing comes back');

close $in;
waitpid $probe, 0;
is($?, 0, 'the probe ended well');
done_testing;
