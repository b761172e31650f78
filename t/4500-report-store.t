#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# What the Git server is to be told: who writes it, who may take it, what
# replaces what; without a Git server nothing is written at all.

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
	my $conf = spew(tempdir() . '/probe' . ++$confs . '.conf', $db->conf . "[gitserver]\n$gitserver", 0600);
	my $probe = Slipway::Probe->start($conf, 'queue_probe');
	return sub { return $probe->ask("@_") }, $probe;
}
my ($ask) = probe("url = https://Git.example:8443/git\n");
my ($me, $hash, $other) = ('a' x 32, '1' x 40, '2' x 64);

sub project {
	my ($id, $repository) = @_;
	$db->sql("INSERT INTO project (id, name, repository, project_dir) VALUES ($id, 'p$id', '$repository', 'dir$id');"
	    . "INSERT INTO pipeline (id, project_id, name) VALUES ($id, $id, 'pipe$id')");
}
my $next = 100;
sub deployment {
	my ($project, $commit) = @_;
	my $id = ++$next;
	my $text = defined $commit ? "'$commit'" : 'NULL';
	$db->sql("INSERT INTO deployment (id, project_id, pipeline_id, `trigger`, commit_hash) VALUES ($id, $project, $project, 'manual', $text);"
	    . "INSERT INTO deployment_step (deployment_id, position, name, script, run_when) VALUES ($id, 0, 's', 'true', 'success')");
	return $id;
}
sub row { my ($id, $what) = @_; return $db->sql('SELECT ' . ($what || "CONCAT_WS(' ', wanted, COALESCE(told, '-'), COALESCE(open, 0))") . " FROM commit_status WHERE deployment_id = $id") }
sub rows { return $db->sql('SELECT COUNT(*) FROM commit_status') }
sub hurry { my ($id) = @_; $db->sql("UPDATE commit_status SET next_at = NOW(3), held_until = NULL WHERE deployment_id = $id"); return }

is($ask->('check-reports'), 'ok', 'every statement fits its tables');
like($ask->('report 60'), qr/^error not_found/, 'nothing is due');
is($ask->('due 5000'), 5000, 'and will not be');

# --- who writes
project(1, 'https://git.example/o/one.git');
my $id = deployment(1);
is($ask->("want $id pending"), 'ok', 'a deployment whose commit is not known');
is(rows(), 0, 'is no work yet');
like($ask->("claim $me one 30"), qr/^$id 1 /, 'it is claimed');
is(rows(), 0, 'still nothing');
is($ask->("commit $id 1 main $hash a-message"), 'ok', 'its commit becomes known');
is(row($id), 'running - 1', 'then that is to be told');
is($ask->("commit $id 9 main $hash a-message") =~ /^(error precondition_failed)/ && $1, 'error precondition_failed', 'not by who has lost it');
is($ask->("end $id 1 success -"), 'ok', 'it ends');
is(row($id), 'success - 1', 'the newer state takes the place of the older');

for (['success', '-', 'success'], ['failed', 'step_failed', 'failed'], ['failed', 'checkout_failed', 'failed'],
    ['failed', 'timeout', 'failed'], ['canceled', 'canceled_by_user', 'canceled'], ['failed', 'workspace_error', 'error'],
    ['failed', 'runner_error', 'error'], ['interrupted', 'runner_lost', 'error']) {
	my ($status, $reason, $told) = @$_;
	my $n = deployment(1, $hash);
	$ask->("claim $me one 30");
	is($ask->("end $n 1 $status $reason"), 'ok', "$status, $reason");
	is(row($n), "$told - 1", "is $told");
}
$id = deployment(1, $other);
$ask->("claim $me one 30");
$db->sql("UPDATE deployment SET lease_until = NOW(3) - INTERVAL 1 SECOND WHERE id = $id");
is($ask->('expire'), 1, 'one is given up');
is(row($id), 'error - 1', 'that is told, too');
$db->sql('DELETE FROM commit_status');

# --- who does not
my %no = ('no Git server' => '', 'one without an interface' => "url = https://git.example\ntype = git\n",
	'one that is not to be told' => "url = https://git.example\nreport = no\n");
my ($keeps) = deployment(1, $hash);
$ask->("claim $me one 30");
for my $why (sort keys %no) {
	my ($quiet) = probe($no{$why});
	is($quiet->("want $keeps running"), 'ok', "$why:");
	is($quiet->("commit $keeps 1 main $hash a-message"), 'ok', 'a commit becomes known');
	is(rows(), 0, 'nothing is written');
}
is($ask->("end $keeps 1 success -"), 'ok', 'ends');
$db->sql('DELETE FROM commit_status');
my $n = 10;
for (['https://elsewhere.example/o/r', 0], ['git@git.example:o/r.git', 1], ['ssh://git@GIT.EXAMPLE:22/o/r', 1], ['/srv/git/r', 0]) {
	my ($repository, $rows) = @$_;
	project(++$n, $repository);
	is($ask->('want ' . deployment($n, $hash) . ' pending'), 'ok', $repository);
	is(rows(), $rows, $rows ? 'may be on the Git server' : 'is not on the Git server');
	$db->sql('DELETE FROM commit_status');
}
is($ask->('want ' . deployment(1, '1234567') . ' pending'), 'ok', 'a commit by its first digits');
is(rows(), 0, 'is not known');

# --- taking
$id = deployment(1, $hash);
$ask->("want $id pending");
is($ask->('due 5000'), 0, 'due at once');
is($ask->('report 60'), "$id pending - 1 pipe1 $hash -", 'it is taken, with all that is to be said');
like($ask->('report 60'), qr/^error not_found/, 'by one only');
cmp_ok($ask->('due 100000'), '>', 55000, 'until then');
is($ask->("told $id pending"), 'ok', 'it was told');
is(row($id), 'pending pending 0', 'and is closed');
is($ask->('due 5000'), 5000, 'nothing is due');
$ask->("want $id pending");
is(row($id), 'pending pending 0', 'wanted again: it was told');
$ask->("want $id running");
is($ask->('report 60'), "$id running pending 1 pipe1 $hash -", 'a new state is due');
is($ask->("later $id running 100 it-is-down"), 'ok', 'it could not be told');
cmp_ok($ask->('due 200000'), '>', 95000, 'it waits');
hurry($id);
is($ask->('report 60'), "$id running pending 2 pipe1 $hash it-is-down", 'again, with what was wrong');
is($ask->("want $id success"), 'ok', 'while it is being told another is wanted:');
like($ask->('report 60'), qr/^error not_found/, 'that one waits, so that the server hears of them in order');
is($ask->("told $id running"), 'ok', 'the older is done');
is($ask->('report 60'), "$id success running 1 pipe1 $hash -", 'now the newer');
is($ask->("want $id error"), 'ok', 'and again,');
is($ask->("later $id success 100 it-is-down"), 'ok', 'the older fails:');
is($ask->('report 60'), "$id error running 1 pipe1 $hash it-is-down", 'the newer does not wait for it');
is($ask->("want $id success"), 'ok', 'and again,');
is($ask->("drop $id error no-such-commit"), 'ok', 'the older is given up:');
is($ask->('report 60'), "$id success running 1 pipe1 $hash no-such-commit", 'the newer is not');
is($ask->("drop $id success no-such-commit"), 'ok', 'given up');
is(row($id, "CONCAT_WS(' ', COALESCE(open, 0), fault)"), '0 no-such-commit', 'closed, with what was wrong');
$ask->("want $id failed");
is(row($id, 'open'), 1, 'something newer opens it');
hurry($id);
like($ask->('report 0'), qr/^$id failed running 1 /, 'one who takes it dies');
is($ask->('report 60'), "$id failed running 2 pipe1 $hash no-such-commit", 'it is found again');
is($ask->("told $id failed"), 'ok', 'told');

# --- of two that tell of one commit the later counts
my @two = map { deployment(1, $hash) } 1, 2;
$ask->("want $_ pending") for @two;
is($ask->('report 60'), "$two[1] pending - 1 pipe1 $hash -", 'the later one is to be told');
like($ask->('report 60'), qr/^error not_found/, 'the older one is not');
is($ask->("told $two[1] pending"), 'ok', 'told');
is(row($two[0]), 'pending - 0', 'nor ever');

# --- the older one's status may be on its way yet
$ask->("want $two[1] failed");
is($ask->('report 60'), "$two[1] failed pending 1 pipe1 $hash -", 'an older status is being told');
my $retry = deployment(1, $hash);
$ask->("want $retry pending");
my ($second) = probe("url = https://git.example\n");
like($second->('report 60'), qr/^error not_found/, 'a later one of the same commit waits');
cmp_ok($second->('due 5000'), '>', 0, 'for a while');
is($ask->("told $two[1] failed"), 'ok', 'until that is done');
hurry($retry);
is($second->('report 60'), "$retry pending - 1 pipe1 $hash -", 'and is the last that the server hears');
is($second->("told $retry pending"), 'ok', 'told');
for my $apart (['another commit', 1, $other], ['another pipeline', 11, $hash]) {
	my ($what, $project, $commit) = @$apart;
	$ask->("want $retry running");
	is($ask->('report 60'), "$retry running pending 1 pipe1 $hash -", 'one is being told');
	my $n = deployment($project, $commit);
	$db->sql("UPDATE project SET repository = 'https://git.example/o/r' WHERE id = $project");
	$ask->("want $n pending");
	is($second->('report 60'), "$n pending - 1 pipe$project $commit -", "one of $what does not wait");
	$second->("told $n pending");
	$ask->("told $retry running");
	$db->sql("UPDATE commit_status SET told = 'pending', wanted = 'pending' WHERE deployment_id = $retry");
}

# --- one who was silent for so long that another told it
for my $first ('the silent one', 'the other') {
	$db->sql('DELETE FROM commit_status');
	$id = deployment(1, $hash);
	$ask->("want $id running");
	is($ask->('report 60'), "$id running - 1 pipe1 $hash -", 'one is to tell it');
	$ask->("want $id success");
	hurry($id);
	is($second->('report 60'), "$id success - 1 pipe1 $hash -", 'and does not for so long that another is');
	my @told = (sub { $ask->("told $id running") }, sub { $second->("told $id success") });
	is($_->(), 'ok', 'told') for $first eq 'the other' ? reverse @told : @told;
	is(row($id), 'success - 1', "$first says so first: which the server heard last is not known");
	hurry($id);
	is($second->('report 60'), "$id success - 2 pipe1 $hash -", 'so it is told again');
	like($ask->("later $id running 100 it-is-down"), qr/^ok/, 'what the silent one says then');
	like($ask->("drop $id success it-is-down"), qr/^ok/, 'in whatever way');
	is(row($id, "CONCAT_WS(' ', dropped, fault IS NULL, held_until IS NOT NULL)"), '0 1 1', 'counts for nothing');
	is($second->("told $id success"), 'ok', 'told');
	is(row($id), 'success success 0', 'that is the end');
}
$db->sql('DELETE FROM commit_status');

# --- many at once, each to one
my $many = 300;
$db->sql("INSERT INTO deployment (id, project_id, pipeline_id, `trigger`, commit_hash) SELECT 1000 + seq, 1, 1, 'manual', LPAD(seq, 40, '0') FROM seq_1_to_$many;"
    . "INSERT INTO commit_status (deployment_id, wanted) SELECT 1000 + seq, 'pending' FROM seq_1_to_$many");
my @probes = map { [probe("url = https://git.example\n")] } 1 .. 6;
$_->[1]->send('reports 600') for @probes;
my %taken;
for my $p (@probes) {
	while ((my $line = $p->[1]->receive) !~ /^\.?$/) {
		$taken{$line}++;
	}
}
is(scalar keys %taken, $many, 'all are taken');
is_deeply([grep { $_ != 1 } values %taken], [], 'none twice');

# --- a long queue that is not due costs nothing
$db->sql("UPDATE commit_status SET next_at = NOW(3) + INTERVAL 1 HOUR;ANALYZE TABLE commit_status");
my $plan = $db->sql("EXPLAIN SELECT deployment_id AS n FROM commit_status WHERE open = 1 AND next_at <= NOW(3) ORDER BY next_at LIMIT 4");
like($plan, qr/commit_status_due/, 'the index is used');
unlike($plan, qr/filesort/, 'and its order');
my $read = sub { my $text = $db->sql("SHOW GLOBAL STATUS LIKE 'Handler\\_read%'"); my $n = 0; $n += $1 while $text =~ /^\S+\t(\d+)$/mg; return $n };
my $before = $read->();
$ask->('report 60'), $ask->('due 5000') for 1 .. 10;
cmp_ok($read->() - $before, '<', 60, 'looking reads next to nothing');
done_testing;
