#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The queue without jobs: claims, leases, fencing, ends; many at once.

use strict;
use warnings;
use Slipway::DB;
use Slipway::Probe;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start(args => ['--max-connections=60']);
$db->migrate;
my $conf = $db->conf_file;

my $probe = Slipway::Probe->start($conf, 'queue_probe');
sub ask { return $probe->ask("@_") }

sub project {
	my ($id) = @_;
	$db->sql("INSERT INTO project (id, name, repository, project_dir) VALUES"
	    . " ($id, 'p$id', 'https://git.example/o/p$id', 'dir$id');"
	    . "INSERT INTO pipeline (id, project_id, name) VALUES ($id, $id, 'pipe$id')");
}
my $next = 100;
sub deployment {
	my ($project, $steps) = @_;
	my $id = ++$next;
	my $sql = "INSERT INTO deployment (id, project_id, pipeline_id, `trigger`)"
	    . " VALUES ($id, $project, $project, 'manual');";
	$sql .= "INSERT INTO deployment_step (deployment_id, position, name, script, run_when)"
	    . " VALUES ($id, $_, 's$_', 'true', 'success');" for 0 .. $steps - 1;
	$db->sql($sql);
	return $id;
}
sub row { my ($id, $columns) = @_; return $db->sql("SELECT $columns FROM deployment WHERE id = $id") }
sub steps { my ($id) = @_; return join ' ', split /\n/, $db->sql("SELECT status FROM deployment_step WHERE deployment_id = $id ORDER BY position") }
my ($me, $you) = ('a' x 32, 'b' x 32);

is(ask('check'), 'ok', 'every statement fits its tables');
like(ask("claim $me one 30"), qr/^error not_found/, 'nothing to claim');

# --- one claim
project($_) for 1 .. 3;
my $first = deployment(1, 3);
my $second = deployment(1, 1);
is(ask("claim $me one 30"), "$first 1 1 dir1 pipe1 {} 0 s0 s1 s2", 'the oldest, with its steps');
is(row($first, "CONCAT_WS(' ', status, epoch, owner, runner, started_at IS NOT NULL,"
    . " lease_until BETWEEN NOW(3) + INTERVAL 25 SECOND AND NOW(3) + INTERVAL 31 SECOND)"),
    "running 1 $me one 1 1", 'the row says who holds it and until when');
like(ask("claim $you two 30"), qr/^error not_found/, 'its project is busy now');
my ($status, undef, $said) = $db->client("UPDATE deployment SET status = 'running' WHERE id = $second");
ok($status != 0 && $said =~ /1062/, 'the database itself refuses a second one');
my $other = deployment(2, 0);
is(ask("claim $you two 30"), "$other 1 2 dir2 pipe2 {} 0", 'another project is not held up');
is(ask("held $me"), "$first.1.0", 'what one owner holds');
is(ask("runner two"), "$other.1.0", 'what a runner of that name holds');
is(ask('held nobody'), '', 'a stranger holds nothing');

# --- writes under the epoch
is(ask("renew $first 1 $me 100"), 'ok', 'a lease is renewed');
is(row($first, 'lease_until > NOW(3) + INTERVAL 90 SECOND'), 1, 'to the time asked for');
is(ask("renew $first 1 $you 30"), 'ok', 'the right epoch takes a lease over');
is(row($first, 'owner'), $you, 'under a new owner');
is(ask("commit $first 1 main abc123 hello"), 'ok', 'the commit is told');
is(row($first, "CONCAT_WS(' ', branch, commit_hash, commit_message)"), 'main abc123 hello', 'and kept');
is(ask("step $first 1 0 success"), 'ok', 'a step is told');
is(ask("step $first 1 0 success"), 'ok', 'twice is no harm');
is(ask("step $first 1 1 running"), 'ok', 'the next one');
is(steps($first), 'success running pending', 'steps are kept');
for my $bad ("renew $first 0 $me 30", "renew $first 2 $me 30", "renew $second 0 $me 30",
    "commit $first 0 main abc x", "step $first 2 0 failed", "step $first 1 9 failed",
    "end $first 0 success -", "end $first 2 success -", "end $second 0 success -",
    "release $first 0", "release $second 0", 'renew 9999 1 x 30') {
	like(ask($bad), qr/^error precondition_failed/, "fenced: $bad");
}
is(row($first, "CONCAT_WS(' ', status, commit_hash)"), 'running abc123', 'none of them changed anything');
is(steps($first), 'success running pending', 'nor the steps');

# --- ends
is(ask("end $first 1 failed step_failed"), 'ok', 'the end');
is(row($first, "CONCAT_WS(' ', status, reason, detail, log_size, finished_at >= started_at, lease_until IS NULL)"),
    'failed step_failed Said by a test. 7 1 1', 'is kept');
is(steps($first), 'success interrupted skipped', 'and settles the steps');
is(ask("end $first 1 failed step_failed"), 'ok', 'said again after a lost answer');
like(ask("end $first 1 success -"), qr/^error precondition_failed/, 'another end is refused');
like(ask("renew $first 1 $me 30"), qr/^error precondition_failed/, 'nothing is renewed after it');
is(ask("claim $me one 30"), "$second 1 1 dir1 pipe1 {} 0 s0", 'the next of the project comes');
is(ask("release $second 1"), 'ok', 'it is put back');
is(row($second, "CONCAT_WS(' ', status, epoch, owner IS NULL, started_at IS NULL)"), 'pending 2 1 1', 'as it was, with a new epoch');
like(ask("renew $second 1 $me 30"), qr/^error precondition_failed/, 'the old epoch is fenced');
$db->sql("UPDATE deployment SET cancel_at = NOW(3) WHERE id = $second");
is(ask("claim $me one 30"), "$second 3 1 dir1 pipe1 {} 1 s0", 'a cancel that was asked for meanwhile is told');
is(ask("held $me"), "$second.3.1", 'also of what is held');
is(ask("end $second 3 canceled canceled_by_user"), 'ok', 'canceled');
is(steps($second), 'skipped', 'its step never ran');

# --- put back, while something else happens to it
my $asked = deployment(1, 2);
is(ask("claim $me one 30"), "$asked 1 1 dir1 pipe1 {} 0 s0 s1", 'one is claimed');
$db->sql("UPDATE deployment SET cancel_at = NOW(3) WHERE id = $asked");
is(ask("release $asked 1"), 'ok', 'and put back after somebody canceled it');
is(row($asked, "CONCAT_WS(' ', status, reason, finished_at IS NOT NULL)"), 'canceled canceled_by_user 1', 'is canceled');
is(steps($asked), 'skipped skipped', 'with its steps');
like(ask("release $asked 1"), qr/^error precondition_failed/, 'not twice');
project(3000);
my $doomed = deployment(3000, 1);
is(ask("claim $me one 30"), "$doomed 1 3000 dir3000 pipe3000 {} 0 s0", 'one is claimed');
my $deleter = $db->session;
$deleter->("START TRANSACTION; SELECT id FROM project WHERE id = 3000 FOR UPDATE;"
    . " UPDATE deployment SET status = 'canceled' WHERE project_id = 3000 AND status = 'pending';"
    . ' UPDATE project SET valid = 0 WHERE id = 3000');
$probe->send("release $doomed 1");
ok(poll(60, sub { $db->waiting == 1 || row($doomed, 'status') ne 'running' }), 'and put back while its project is being deleted');
is(row($doomed, 'status'), 'running', 'that waits');
$deleter->('COMMIT');
like($probe->receive, qr/^ok$/, 'it is put back then');
is(row($doomed, "CONCAT_WS(' ', status, reason)"), 'canceled project_deleted', 'and is canceled like all that were pending');
like(ask("claim $me one 30"), qr/^error not_found/, 'so nobody runs it');

# --- leases that run out
is(ask('expire'), 0, 'no lease has run out');
my $lost = deployment(3, 2);
my ($epoch) = ask("claim $me one 30") =~ /^$lost (\d+)/;
ask("step $lost $epoch 0 running");
$db->sql("INSERT INTO log_chunk (deployment_id, start, length, data) VALUES ($lost, 0, 5, 'hello');"
    . "UPDATE deployment SET lease_until = NOW(3) - INTERVAL 1 SECOND WHERE id = $lost");
is(ask('expire'), 1, 'one is given up');
is(row($lost, "CONCAT_WS(' ', status, reason, log_size, finished_at IS NOT NULL)"), 'interrupted runner_lost 5 1', 'as interrupted');
is(steps($lost), 'interrupted skipped', 'with its steps');
like(ask("renew $lost $epoch $me 30"), qr/^error precondition_failed/, 'its holder is fenced');
like(ask("end $lost $epoch success -"), qr/^error precondition_failed/, 'and cannot end it');
like(ask("end $lost $epoch interrupted runner_lost"), qr/^error precondition_failed/, 'in no way');
is(ask('expire'), 0, 'that was all');
is(row($other, 'status'), 'running', 'who renews stays');

# --- rows past their time
$db->sql("INSERT INTO commit_token VALUES ('old', NOW(3) - INTERVAL 2 DAY), ('new', NOW(3));"
    . "INSERT INTO idempotency VALUES (1, 'old', REPEAT('0', 64), 1, '', NOW(3) - INTERVAL 2 DAY),"
    . " (1, 'new', REPEAT('0', 64), 1, '', NOW(3))");
is(ask('tidy'), 'ok', 'tidies');
is($db->sql("SELECT COUNT(*) FROM commit_token WHERE token = 'old'"), 0, 'an old token goes');
is($db->sql("SELECT COUNT(*) FROM commit_token WHERE token = 'new'"), 1, 'a new one stays');
is($db->sql('SELECT idempotency_key FROM idempotency'), 'new', 'so do answers');
$db->sql("INSERT INTO commit_token SELECT CONCAT('old', seq), NOW(3) - INTERVAL 2 DAY FROM seq_1_to_6000");
is(ask('tidy'), 'ok', 'tidies what a busy day has left');
is($db->sql("SELECT COUNT(*) FROM commit_token WHERE token LIKE 'old%'"), 1000, 'in few turns');
is(ask('tidy'), 'ok', 'the next');
sub writes { return $db->sql("SELECT SUM(VARIABLE_VALUE) FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME IN ('COM_INSERT', 'COM_UPDATE', 'COM_UPDATE_MULTI', 'COM_DELETE', 'COM_BEGIN', 'COM_COMMIT')") }
my $before = writes();
is(ask('tidy'), 'ok', 'nothing left to tidy');
is(ask('expire'), 0, 'nothing to give up');
like(ask("claim $me one 30"), qr/^error not_found/, 'nothing to claim');
is(writes(), $before, 'and nothing is written for it');

# --- the claim goes from project to project, however long the queue is
$db->sql("INSERT INTO project (id, name, repository, project_dir) SELECT seq, CONCAT('p', seq), 'https://git.example/o/r', CONCAT('dir', seq) FROM seq_4_to_13;"
    . "INSERT INTO pipeline (id, project_id, name) SELECT id, id, 'pipe' FROM project WHERE id BETWEEN 4 AND 13;"
    . "INSERT INTO deployment (project_id, pipeline_id, `trigger`) SELECT 4 + seq % 10, 4 + seq % 10, 'manual' FROM seq_1_to_20000;"
    . "ANALYZE TABLE deployment");
sub rows_read { return $db->sql("SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'ROWS_READ'") }
like($db->sql("EXPLAIN SELECT project_id, MIN(id) AS id FROM deployment WHERE status = 'pending' GROUP BY project_id"),
    qr/Using index for group-by/, 'by a loose scan of the index');
my $read = rows_read();
like(ask("claim $me one 30"), qr/^\d+ 1 \d+ /, 'claims from a queue of 20000');
cmp_ok(rows_read() - $read, '<', 200, 'without reading it all');
$db->sql("DELETE FROM deployment WHERE project_id > 3 AND id > $next + 600; UPDATE deployment SET status = 'canceled' WHERE status = 'running' AND project_id > 3");

# --- many at once
my $waiting = $db->sql("SELECT COUNT(*) FROM deployment WHERE status = 'pending'");
cmp_ok($waiting, '>', 500, "$waiting deployments for 32 claimers");
my @pipes;
for my $n (1 .. 32) {
	my $owner = sprintf '%032d', $n;
	open my $fh, '-|', "echo drain $owner r$n | '" . program('t/unit/queue_probe') . "' '$conf'" or die;
	push @pipes, $fh;
}
my (%seen, @strange);
my $most = 0;
for my $fh (@pipes) {
	while (my $line = <$fh>) {
		if ($line =~ /^(\d+) \d+$/) { $seen{$1}++ }
		elsif ($line ne ".\n") { push @strange, $line }
	}
	close $fh;
}
is(scalar keys %seen, $waiting, 'every one was claimed');
is_deeply([grep { $seen{$_} != 1 } keys %seen], [], 'none twice');
is_deeply(\@strange, [], 'without an error');
is($db->sql("SELECT COUNT(*) FROM deployment WHERE project_id > 3 AND status = 'success' AND epoch = 1"), $waiting, 'all ended');
is($db->sql("SELECT COUNT(*) FROM deployment a JOIN deployment b ON a.project_id = b.project_id AND a.id < b.id"
    . " AND a.started_at > b.started_at WHERE a.status = 'success' AND b.status = 'success' AND a.project_id > 3"), 0, 'in order per project');
is($db->sql("SELECT COUNT(*) FROM deployment a JOIN deployment b ON a.project_id = b.project_id AND a.id < b.id"
    . " AND a.finished_at > b.started_at WHERE a.status = 'success' AND b.status = 'success' AND a.project_id > 3"), 0, 'never two at once');

# --- one that cannot be started now
$next = $db->sql('SELECT MAX(id) FROM deployment');
project($_) for 4001, 4002;
my ($refused, $behind, $beside) = map { deployment($_, 0) } 4001, 4001, 4002;
like(ask("claim_but $me one 30 $refused"), qr/^$beside 1 4002 /, 'one that is to be avoided keeps no other project from being claimed');
like(ask("claim_but $me one 30 $refused"), qr/^error not_found/, 'but its own project');
like(ask("claim $me one 30"), qr/^$refused 1 4001 /, 'it is the next one when it may be');
is(row($behind, 'status'), 'pending', 'before what is behind it');

# --- without a database
$db->stop;
like(ask("claim $me one 30"), qr/^error unavailable/, 'no database: unavailable');
like(ask("renew $other 1 $you 30"), qr/^error unavailable/, 'for every call');
$db->resume;
ok(poll(10, sub { ask("renew $other 1 $you 30") eq 'ok' }), 'it comes back by itself');
$probe->stop;
done_testing;
