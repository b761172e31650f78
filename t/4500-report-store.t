#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The outbox of commit statuses: who writes rows, who claims them, and which row
# replaces another; without a Git server no row is written.

use strict;
use warnings;
use Slipway::DB;
use Slipway::Probe;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
$db->migrate;

my $confs = 0;
sub probe {
	my ($gitserver) = @_;
	my $conf = spew(tempdir() . '/probe' . ++$confs . '.conf', $db->conf . "[gitserver]\n$gitserver",
	    0600);
	my $probe = Slipway::Probe->start($conf, 'queue_probe');
	return sub { return $probe->ask("@_") }, $probe;
}
my ($ask) = probe("url = https://Git.example:8443/git\n");
my ($me, $hash, $other) = ('a' x 32, '1' x 40, '2' x 64);

sub project {
	my ($id, $repository) = @_;
	$db->sql("INSERT INTO project (id, name, repository, project_dir) VALUES ($id, 'p$id', "
	    . "'$repository', 'dir$id');"
	    . "INSERT INTO pipeline (id, project_id, name) VALUES ($id, $id, 'pipe$id')");
}
my $next = 100;
sub deployment {
	my ($project, $commit) = @_;
	my $id = ++$next;
	my $text = defined $commit ? "'$commit'" : 'NULL';
	$db->sql("INSERT INTO deployment (id, project_id, pipeline_id, `trigger`, commit_hash) VALUES ($id, "
	    . "$project, $project, 'manual', $text);"
	    . "INSERT INTO deployment_step (deployment_id, position, name, script, run_when) VALUES ($id, 0, "
	        . "'s', 'true', 'success')");
	return $id;
}
sub row { return $db->commit_status(@_) }
sub rows { return $db->sql('SELECT COUNT(*) FROM commit_status') }
sub hurry {
	my ($id) = @_;
	$db->sql("UPDATE commit_status SET next_at = NOW(3), held_until = NULL WHERE deployment_id = $id");
	return;
}

is($ask->('check-reports'), 'ok', 'every statement matches its tables');
like($ask->('report 60'), qr/^error not_found/, 'an empty outbox has nothing due');
is($ask->('due 5000'), 5000, 'an empty outbox will have nothing due');

# --- writes
project(1, 'https://git.example/o/one.git');
my $id = deployment(1);
is($ask->("want $id pending"), 'ok', 'want succeeds for a deployment without a commit');
is(rows(), 0, 'a deployment without a commit has no row');
like($ask->("claim $me one 30"), qr/^$id 1 /, 'the deployment is claimed');
is(rows(), 0, 'a claimed deployment without a commit has no row');
is($ask->("commit $id 1 main $hash a-message"), 'ok', 'the commit becomes known');
is(row($id), 'running - 1', 'a deployment with a commit has a row');
is($ask->("commit $id 9 main $hash a-message") =~ /^(error precondition_failed)/ && $1,
    'error precondition_failed', 'commit with a wrong epoch is rejected');
is($ask->("end $id 1 success -"), 'ok', 'the deployment ends');
is(row($id), 'success - 1', 'the newer state replaces the older one');

for (['success', '-', 'success'], ['failed', 'step_failed', 'failed'],
    ['failed', 'checkout_failed', 'failed'],
    ['failed', 'timeout', 'failed'], ['canceled', 'canceled_by_user', 'canceled'],
    ['failed', 'workspace_error', 'error'],
    ['failed', 'runner_error', 'error'], ['interrupted', 'runner_lost', 'error']) {
	my ($status, $reason, $state) = @$_;
	my $n = deployment(1, $hash);
	$ask->("claim $me one 30");
	is($ask->("end $n 1 $status $reason"), 'ok', "a deployment ends as $status, $reason");
	is(row($n), "$state - 1", "a deployment that ends as $status, $reason is reported as $state");
}
$id = deployment(1, $other);
$ask->("claim $me one 30");
$db->sql("UPDATE deployment SET lease_until = NOW(3) - INTERVAL 1 SECOND WHERE id = $id");
is($ask->('expire'), 1, 'a deployment with an expired lease is interrupted');
is(row($id), 'error - 1', 'an interrupted deployment is reported as an error');
$db->sql('DELETE FROM commit_status');

# --- no writes
my %no = ('no Git server' => '', 'a Git server without an API' => "url = https://git.example\ntype = git\n",
	'report = no' => "url = https://git.example\nreport = no\n");
my ($keeps) = deployment(1, $hash);
$ask->("claim $me one 30");
for my $why (sort keys %no) {
	my ($quiet) = probe($no{$why});
	is($quiet->("want $keeps running"), 'ok', "$why: want succeeds");
	is($quiet->("commit $keeps 1 main $hash a-message"), 'ok', "$why: commit succeeds");
	is(rows(), 0, "$why: no row is written");
}
is($ask->("end $keeps 1 success -"), 'ok', 'the deployment ends');
$db->sql('DELETE FROM commit_status');
my $n = 10;
for (['https://elsewhere.example/o/r', 0], ['git@git.example:o/r.git', 1],
    ['ssh://git@GIT.EXAMPLE:22/o/r', 1], ['/srv/git/r', 0]) {
	my ($repository, $rows) = @$_;
	project(++$n, $repository);
	is($ask->('want ' . deployment($n, $hash) . ' pending'), 'ok', "want succeeds for $repository");
	is(rows(), $rows, $rows ? "$repository may be on the Git server"
	    : "$repository is not on the Git server");
	$db->sql('DELETE FROM commit_status');
}
is($ask->('want ' . deployment(1, '1234567') . ' pending'), 'ok', 'want succeeds for an abbreviated commit');
is(rows(), 0, 'an abbreviated commit has no row');

# --- claims of rows
$id = deployment(1, $hash);
$ask->("want $id pending");
is($ask->('due 5000'), 0, 'a new row is due at once');
is($ask->('report 60'), "$id pending - 1 pipe1 $hash -", 'report claims a row with everything to be sent');
like($ask->('report 60'), qr/^error not_found/, 'a claimed row cannot be claimed again');
cmp_ok($ask->('due 100000'), '>', 55000, 'a claimed row is due when the claim ends');
is($ask->("told $id pending"), 'ok', 'told succeeds');
is(row($id), 'pending pending 0', 'a reported row is closed');
is($ask->('due 5000'), 5000, 'nothing is due after the report');
$ask->("want $id pending");
is(row($id), 'pending pending 0', 'a state that was reported is not due again');
$ask->("want $id running");
is($ask->('report 60'), "$id running pending 1 pipe1 $hash -", 'a new state is due');
is($ask->("later $id running 100 it-is-down"), 'ok', 'later succeeds');
cmp_ok($ask->('due 200000'), '>', 95000, 'a postponed row is due later');
hurry($id);
is($ask->('report 60'), "$id running pending 2 pipe1 $hash it-is-down",
    'a postponed row is claimed with its fault');
is($ask->("want $id success"), 'ok', 'a newer state is wanted during a report');
like($ask->('report 60'), qr/^error not_found/,
    'the newer state waits, so that the server gets the states in order');
is($ask->("told $id running"), 'ok', 'the older state is reported');
is($ask->('report 60'), "$id success running 1 pipe1 $hash -", 'the newer state is due');
is($ask->("want $id error"), 'ok', 'a newer state is wanted during a report');
is($ask->("later $id success 100 it-is-down"), 'ok', 'the older state is postponed');
is($ask->('report 60'), "$id error running 1 pipe1 $hash it-is-down",
    'the newer state does not wait for a postponed one');
is($ask->("want $id success"), 'ok', 'a newer state is wanted during a report');
is($ask->("drop $id error no-such-commit"), 'ok', 'the older state is dropped');
is($ask->('report 60'), "$id success running 1 pipe1 $hash no-such-commit",
    'the newer state is due after a drop');
is($ask->("drop $id success no-such-commit"), 'ok', 'the newer state is dropped');
is(row($id, "CONCAT_WS(' ', COALESCE(open, 0), fault)"), '0 no-such-commit',
    'a dropped row is closed and keeps its fault');
$ask->("want $id failed");
is(row($id, 'open'), 1, 'a newer state opens a dropped row');
hurry($id);
like($ask->('report 0'), qr/^$id failed running 1 /, 'a claim of no duration');
is($ask->('report 60'), "$id failed running 2 pipe1 $hash no-such-commit",
    'a row whose claim ended is claimed again');
is($ask->("told $id failed"), 'ok', 'the state is reported');

# --- of two deployments of one commit the later counts
my @two = map { deployment(1, $hash) } 1, 2;
$ask->("want $_ pending") for @two;
is($ask->('report 60'), "$two[1] pending - 1 pipe1 $hash -", 'the later deployment is due');
like($ask->('report 60'), qr/^error not_found/, 'the older deployment is not due');
is($ask->("told $two[1] pending"), 'ok', 'the later deployment is reported');
is(row($two[0]), 'pending - 0', 'the row of the older deployment is closed');

# --- the older status may still be in flight
$ask->("want $two[1] failed");
is($ask->('report 60'), "$two[1] failed pending 1 pipe1 $hash -", 'an older status is being reported');
my $retry = deployment(1, $hash);
$ask->("want $retry pending");
my ($second) = probe("url = https://git.example\n");
like($second->('report 60'), qr/^error not_found/, 'a later deployment of the same commit waits');
cmp_ok($second->('due 5000'), '>', 0, 'a later deployment of the same commit is due later');
is($ask->("told $two[1] failed"), 'ok', 'the older status is reported');
hurry($retry);
is($second->('report 60'), "$retry pending - 1 pipe1 $hash -", 'the later status is reported last');
is($second->("told $retry pending"), 'ok', 'the later status is reported');
for my $apart (['another commit', 1, $other], ['another pipeline', 11, $hash]) {
	my ($what, $project, $commit) = @$apart;
	$ask->("want $retry running");
	is($ask->('report 60'), "$retry running pending 1 pipe1 $hash -", 'a status is being reported');
	my $n = deployment($project, $commit);
	$db->sql("UPDATE project SET repository = 'https://git.example/o/r' WHERE id = $project");
	$ask->("want $n pending");
	is($second->('report 60'), "$n pending - 1 pipe$project $commit -",
	    "a deployment of $what does not wait");
	$second->("told $n pending");
	$ask->("told $retry running");
	$db->sql("UPDATE commit_status SET told = 'pending', wanted = 'pending'"
	    . " WHERE deployment_id = $retry");
}

# --- a process that hangs for so long that another reports
for my $first ('the hung process', 'the other process') {
	$db->sql('DELETE FROM commit_status');
	$id = deployment(1, $hash);
	$ask->("want $id running");
	is($ask->('report 60'), "$id running - 1 pipe1 $hash -", 'a process claims a row');
	$ask->("want $id success");
	hurry($id);
	is($second->('report 60'), "$id success - 1 pipe1 $hash -",
	    'another process claims the row after the claim ended');
	my @told = (sub { $ask->("told $id running") }, sub { $second->("told $id success") });
		is($_->(), 'ok', 'told succeeds') for $first eq 'the other process' ? reverse @told : @told;
	is(row($id), 'success - 1', "$first first: the last state that the server got is unknown");
	hurry($id);
	is($second->('report 60'), "$id success - 2 pipe1 $hash -",
	    "$first first: the state is reported again");
	like($ask->("later $id running 100 it-is-down"), qr/^ok/,
	    "$first first: later of the hung process is accepted");
	like($ask->("drop $id success it-is-down"), qr/^ok/,
	    "$first first: drop of the hung process is accepted");
	is(row($id, "CONCAT_WS(' ', dropped, fault IS NULL, held_until IS NOT NULL)"),
	    '0 1 1', "$first first: the hung process changes nothing");
	is($second->("told $id success"), 'ok', "$first first: the state is reported");
	is(row($id), 'success success 0', "$first first: the row is closed");
}
$db->sql('DELETE FROM commit_status');

# --- many claimers
my $many = 300;
$db->sql("INSERT INTO deployment (id, project_id, pipeline_id, `trigger`, commit_hash) SELECT 1000 + seq, 1, "
    . "1, 'manual', LPAD(seq, 40, '0') FROM seq_1_to_$many;"
    . "INSERT INTO commit_status (deployment_id, wanted) SELECT 1000 + seq, 'pending' FROM seq_1_to_$many");
my @probes = map { [probe("url = https://git.example\n")] } 1 .. 6;
$_->[1]->send('reports 600') for @probes;
my %taken;
for my $p (@probes) {
	while ((my $line = $p->[1]->receive) !~ /^\.?$/) {
		$taken{$line}++;
	}
}
is(scalar keys %taken, $many, 'all rows are claimed');
is_deeply([grep { $_ != 1 } values %taken], [], 'no row is claimed twice');

# --- a long outbox that is not due costs nothing
$db->sql("UPDATE commit_status SET next_at = NOW(3) + INTERVAL 1 HOUR;ANALYZE TABLE commit_status");
my $plan =
    $db->sql("EXPLAIN SELECT deployment_id AS n FROM commit_status WHERE open = 1 AND next_at <= NOW(3) "
    . "ORDER BY next_at LIMIT 4");
like($plan, qr/commit_status_due/, 'report uses the index');
unlike($plan, qr/filesort/, 'report uses the order of the index');
my $read = sub {
	my $text = $db->sql("SHOW GLOBAL STATUS LIKE 'Handler\\_read%'");
	my $n = 0;
	$n += $1 while $text =~ /^\S+\t(\d+)$/mg;
	return $n;
};
my $before = $read->();
$ask->('report 60'), $ask->('due 5000') for 1 .. 10;
cmp_ok($read->() - $before, '<', 60, 'report reads few rows if nothing is due');
done_testing;
