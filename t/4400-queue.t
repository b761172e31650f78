#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The queue without jobs: claims, leases, fencing and ends, also with many claimers.

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
sub steps {
	my ($id) = @_;
	return join ' ', split /\n/,
	    $db->sql("SELECT status FROM deployment_step WHERE deployment_id = $id ORDER BY position");
}
my ($me, $you) = ('a' x 32, 'b' x 32);

is(ask('check'), 'ok', 'every statement matches its tables');
like(ask("claim $me one 30"), qr/^error not_found/, 'an empty queue has nothing to claim');

# --- one claim
project($_) for 1 .. 3;
my $first = deployment(1, 3);
my $second = deployment(1, 1);
is(ask("claim $me one 30"), "$first 1 1 dir1 pipe1 {} 0 s0 s1 s2",
    'claim returns the oldest deployment with its steps');
is(row($first, "CONCAT_WS(' ', status, epoch, owner, runner, started_at IS NOT NULL,"
    . " lease_until BETWEEN NOW(3) + INTERVAL 25 SECOND AND NOW(3) + INTERVAL 31 SECOND)"),
    "running 1 $me one 1 1", 'the claimed row has its owner and lease');
like(ask("claim $you two 30"), qr/^error not_found/,
    'a project with a running deployment has nothing to claim');
my ($status, undef, $said) = $db->client("UPDATE deployment SET status = 'running' WHERE id = $second");
ok($status != 0 && $said =~ /1062/, 'a unique key prevents a second running deployment');
my $other = deployment(2, 0);
is(ask("claim $you two 30"), "$other 1 2 dir2 pipe2 {} 0", 'another project is claimed at the same time');
is(ask("held $me"), "$first.1.0", 'held returns the deployments of an owner');
is(ask("runner two"), "$other.1.0", "runner returns the deployments of a runner's name");
is(ask('held nobody'), '', 'an unknown owner holds nothing');

# --- writes under the epoch
is(ask("renew $first 1 $me 100"), 'ok', 'renew succeeds');
is(row($first, 'lease_until > NOW(3) + INTERVAL 90 SECOND'), 1, 'renew sets the requested time');
is(ask("renew $first 1 $you 30"), 'ok', 'renew with the right epoch takes over a lease');
is(row($first, 'owner'), $you, 'a lease that was taken over has the new owner');
is(ask("commit $first 1 main abc123 hello"), 'ok', 'commit succeeds');
is(row($first, "CONCAT_WS(' ', branch, commit_hash, commit_message)"), 'main abc123 hello',
    'commit stores branch, hash and message');
is(ask("step $first 1 0 success"), 'ok', 'step succeeds');
is(ask("step $first 1 0 success"), 'ok', 'the same step again succeeds');
is(ask("step $first 1 1 running"), 'ok', 'the next step succeeds');
is(steps($first), 'success running pending', 'step stores the status of each step');
for my $bad ("renew $first 0 $me 30", "renew $first 2 $me 30", "renew $second 0 $me 30",
    "commit $first 0 main abc x", "step $first 2 0 failed", "step $first 1 9 failed",
    "end $first 0 success -", "end $first 2 success -", "end $second 0 success -",
    "release $first 0", "release $second 0", 'renew 9999 1 x 30') {
	like(ask($bad), qr/^error precondition_failed/, "a write with a wrong epoch is rejected: $bad");
}
is(row($first, "CONCAT_WS(' ', status, commit_hash)"), 'running abc123',
    'rejected writes do not change the deployment');
is(steps($first), 'success running pending', 'rejected writes do not change the steps');

# --- ends
is(ask("end $first 1 failed step_failed"), 'ok', 'end succeeds');
is(row($first,
    "CONCAT_WS(' ', status, reason, detail, log_size, finished_at >= started_at, lease_until IS NULL)"),
    'failed step_failed Said by a test. 7 1 1', 'end stores status, reason and log size');
is(steps($first), 'success interrupted skipped', 'end settles the other steps');
is(ask("end $first 1 failed step_failed"), 'ok', 'the same end again succeeds');
like(ask("end $first 1 success -"), qr/^error precondition_failed/, 'another end is rejected');
like(ask("renew $first 1 $me 30"), qr/^error precondition_failed/, 'renew after the end is rejected');
is(ask("claim $me one 30"), "$second 1 1 dir1 pipe1 {} 0 s0",
    'the next deployment of the project is claimed');
is(ask("release $second 1"), 'ok', 'release succeeds');
is(row($second, "CONCAT_WS(' ', status, epoch, owner IS NULL, started_at IS NULL)"), 'pending 2 1 1',
    'release returns the deployment to the queue with a new epoch');
like(ask("renew $second 1 $me 30"), qr/^error precondition_failed/,
    'renew with the epoch before the release is rejected');
$db->sql("UPDATE deployment SET cancel_at = NOW(3) WHERE id = $second");
is(ask("claim $me one 30"), "$second 3 1 dir1 pipe1 {} 1 s0",
    'claim returns a requested cancel');
is(ask("held $me"), "$second.3.1", 'held returns a requested cancel');
is(ask("end $second 3 canceled canceled_by_user"), 'ok', 'end as canceled succeeds');
is(steps($second), 'skipped', 'a step of a canceled deployment is skipped');

# --- release at the same time as a cancel or a deletion
my $asked = deployment(1, 2);
is(ask("claim $me one 30"), "$asked 1 1 dir1 pipe1 {} 0 s0 s1", 'a deployment is claimed');
$db->sql("UPDATE deployment SET cancel_at = NOW(3) WHERE id = $asked");
is(ask("release $asked 1"), 'ok', 'release after a cancel succeeds');
is(row($asked, "CONCAT_WS(' ', status, reason, finished_at IS NOT NULL)"), 'canceled canceled_by_user 1',
    'release after a cancel cancels the deployment');
is(steps($asked), 'skipped skipped', 'release after a cancel skips the steps');
like(ask("release $asked 1"), qr/^error precondition_failed/, 'a second release is rejected');
project(3000);
my $doomed = deployment(3000, 1);
is(ask("claim $me one 30"), "$doomed 1 3000 dir3000 pipe3000 {} 0 s0", 'a deployment is claimed');
my $deleter = $db->session;
$deleter->("START TRANSACTION; SELECT id FROM project WHERE id = 3000 FOR UPDATE;"
    . " UPDATE deployment SET status = 'canceled' WHERE project_id = 3000 AND status = 'pending';"
    . ' UPDATE project SET valid = 0 WHERE id = 3000');
$probe->send("release $doomed 1");
ok(poll(60, sub { $db->waiting == 1 || row($doomed, 'status') ne 'running' }),
    'release starts while the project is being deleted');
is(row($doomed, 'status'), 'running', 'release waits for the deletion');
$deleter->('COMMIT');
like($probe->receive, qr/^ok$/, 'release succeeds after the deletion');
is(row($doomed, "CONCAT_WS(' ', status, reason)"), 'canceled project_deleted',
    'release cancels a deployment of a deleted project');
like(ask("claim $me one 30"), qr/^error not_found/, 'a deployment of a deleted project cannot be claimed');
project(3001);
my $homeless = deployment(3001, 1);
$db->sql("INSERT INTO environment (id, project_id, name, position) VALUES (1, 3001, 'live', 0);"
    . " UPDATE deployment SET environment_id = 1 WHERE id = $homeless");
is(ask("claim $me one 30"), "$homeless 1 3001 dir3001 pipe3001 {} 0 s0", 'a deployment is claimed');
$db->sql('UPDATE environment SET valid = 0');
is(ask("release $homeless 1"), 'ok', 'release after the deletion of the environment succeeds');
is(row($homeless, "CONCAT_WS(' ', status, reason)"), 'canceled environment_deleted',
    'release cancels a deployment to a deleted environment');

# --- expired leases
is(ask('expire'), 0, 'no lease has expired');
my $lost = deployment(3, 2);
my ($epoch) = ask("claim $me one 30") =~ /^$lost (\d+)/;
ask("step $lost $epoch 0 running");
$db->sql("INSERT INTO log_chunk (deployment_id, start, length, data) VALUES ($lost, 0, 5, 'hello');"
    . "UPDATE deployment SET lease_until = NOW(3) - INTERVAL 1 SECOND WHERE id = $lost");
is(ask('expire'), 1, 'one lease has expired');
is(row($lost, "CONCAT_WS(' ', status, reason, log_size, finished_at IS NOT NULL)"),
    'interrupted runner_lost 5 1', 'a deployment with an expired lease is interrupted');
is(steps($lost), 'interrupted skipped', 'the steps of a deployment with an expired lease are settled');
like(ask("renew $lost $epoch $me 30"), qr/^error precondition_failed/,
    'renew of an expired lease is rejected');
like(ask("end $lost $epoch success -"), qr/^error precondition_failed/,
    'end with an expired lease is rejected');
like(ask("end $lost $epoch interrupted runner_lost"), qr/^error precondition_failed/,
    'end as interrupted with an expired lease is rejected');
is(ask('expire'), 0, 'no other lease has expired');
is(row($other, 'status'), 'running', 'a deployment with a valid lease keeps running');

# --- expired rows
$db->sql("INSERT INTO commit_token VALUES ('old', NOW(3) - INTERVAL 2 DAY), ('new', NOW(3));"
    . "INSERT INTO idempotency VALUES (1, 'old', REPEAT('0', 64), 1, '', NOW(3) - INTERVAL 2 DAY),"
    . " (1, 'new', REPEAT('0', 64), 1, '', NOW(3))");
is(ask('tidy'), 'ok', 'tidy succeeds');
is($db->sql("SELECT COUNT(*) FROM commit_token WHERE token = 'old'"), 0, 'tidy deletes an old token');
is($db->sql("SELECT COUNT(*) FROM commit_token WHERE token = 'new'"), 1, 'tidy keeps a new token');
is($db->sql('SELECT idempotency_key FROM idempotency'), 'new', 'tidy deletes old idempotency keys alone');
$db->sql("INSERT INTO commit_token SELECT CONCAT('old', seq), NOW(3) - INTERVAL 2 DAY FROM seq_1_to_6000");
is(ask('tidy'), 'ok', 'tidy succeeds with 6,000 old rows');
is($db->sql("SELECT COUNT(*) FROM commit_token WHERE token LIKE 'old%'"), 1000,
    'tidy deletes 5,000 rows at a time');
is(ask('tidy'), 'ok', 'tidy succeeds with the rest');
sub writes {
	return $db->sql("SELECT SUM(VARIABLE_VALUE) FROM information_schema.GLOBAL_STATUS WHERE "
	    . "VARIABLE_NAME IN ('COM_INSERT', 'COM_UPDATE', 'COM_UPDATE_MULTI', 'COM_DELETE', 'COM_BEGIN', "
	    . "'COM_COMMIT')");
}
my $before = writes();
is(ask('tidy'), 'ok', 'tidy succeeds with nothing to delete');
is(ask('expire'), 0, 'expire finds nothing');
like(ask("claim $me one 30"), qr/^error not_found/, 'claim finds nothing');
is(writes(), $before, 'an idle queue causes no write');

# --- claim goes from project to project, however long the queue is
$db->sql("INSERT INTO project (id, name, repository, project_dir) SELECT seq, CONCAT('p', seq), "
    . "'https://git.example/o/r', CONCAT('dir', seq) FROM seq_4_to_13;"
    . "INSERT INTO pipeline (id, project_id, name) SELECT id, id, 'pipe' FROM project WHERE id BETWEEN 4 AND "
        . "13;"
    . "INSERT INTO deployment (project_id, pipeline_id, `trigger`) SELECT 4 + seq % 10, 4 + seq % 10, "
        . "'manual' FROM seq_1_to_20000;"
    . "ANALYZE TABLE deployment");
sub rows_read {
	return $db->sql("SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = "
	    . "'ROWS_READ'");
}
like($db->sql("EXPLAIN SELECT project_id, MIN(id) AS id FROM deployment WHERE status = 'pending' "
    . 'AND turn < 2 GROUP BY status, turn, project_id'),
    qr/Using index for group-by/, 'claim uses a loose index scan');
my $read = rows_read();
like(ask("claim $me one 30"), qr/^\d+ 1 \d+ /, 'claim succeeds in a queue of 20,000');
cmp_ok(rows_read() - $read, '<', 200, 'claim reads few rows of a queue of 20,000');
$db->sql("UPDATE deployment SET turn = 2 WHERE project_id > 3 AND status = 'pending' AND id < "
    . '(SELECT MAX(id) FROM (SELECT id FROM deployment) d) - 100');
$read = rows_read();
like(ask("claim $me one 30"), qr/^\d+ 1 \d+ /, 'claim succeeds if almost all wait for approval');
cmp_ok(rows_read() - $read, '<', 200, 'claim reads few rows behind 19,900 that wait for approval');
$db->sql("UPDATE deployment SET turn = 1");
$db->sql("DELETE FROM deployment WHERE project_id > 3 AND id > $next + 200; UPDATE deployment SET status = "
    . "'canceled' WHERE status = 'running' AND project_id > 3");

# --- many claimers
my $waiting = $db->sql("SELECT COUNT(*) FROM deployment WHERE status = 'pending'");
cmp_ok($waiting, '>', 150, "16 claimers compete for @{[$waiting]} deployments");
my @pipes;
for my $n (1 .. 16) {
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
is(scalar keys %seen, $waiting, 'every deployment is claimed');
is_deeply([grep { $seen{$_} != 1 } keys %seen], [], 'no deployment is claimed twice');
is_deeply(\@strange, [], 'no claimer gets an error');
is($db->sql("SELECT COUNT(*) FROM deployment WHERE project_id > 3 AND status = 'success' AND epoch = 1"),
    $waiting, 'all deployments succeed in their first epoch');
is($db->sql("SELECT COUNT(*) FROM deployment a JOIN deployment b ON a.project_id = b.project_id AND a.id < "
    . "b.id"
    . " AND a.started_at > b.started_at WHERE a.status = 'success' AND b.status = 'success' AND a.project_id "
        . "> 3"), 0, 'deployments of a project start in order');
is($db->sql("SELECT COUNT(*) FROM deployment a JOIN deployment b ON a.project_id = b.project_id AND a.id < "
    . "b.id"
    . " AND a.finished_at > b.started_at WHERE a.status = 'success' AND b.status = 'success' AND "
        . "a.project_id > 3"), 0, 'deployments of a project never overlap');

# --- a deployment that cannot start now
$next = $db->sql('SELECT MAX(id) FROM deployment');
project($_) for 4001, 4002;
my ($postponed, $behind, $beside) = map { deployment($_, 0) } 4001, 4001, 4002;
like(ask("claim_but $me one 30 $postponed"), qr/^$beside 1 4002 /,
    'claim_but skips a deployment in favor of another project');
like(ask("claim_but $me one 30 $postponed"), qr/^error not_found/,
    'claim_but does not claim the next deployment of the same project');
like(ask("claim $me one 30"), qr/^$postponed 1 4001 /, 'claim takes the skipped deployment');
is(row($behind, 'status'), 'pending', 'the skipped deployment is claimed before the next of its project');

# --- without a database
$db->stop;
like(ask("claim $me one 30"), qr/^error unavailable/, 'claim without a database returns unavailable');
like(ask("renew $other 1 $you 30"), qr/^error unavailable/, 'renew without a database returns unavailable');
$db->resume;
ok(poll(10, sub { ask("renew $other 1 $you 30") eq 'ok' }), 'the connection is restored by itself');
$probe->stop;
done_testing;
