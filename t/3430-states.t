#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# States: every pair of them, for deployments and for steps; what a move writes,
# and that it writes all of it or nothing.

use strict;
use warnings;
use IPC::Open2;
use Slipway::DB;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
$db->migrate;
my $conf = spew(tempdir() . '/states.conf', $db->conf . "[gitserver]\nurl = https://git.example\n", 0600);
my $pid = open2(my $out, my $in, program('t/unit/queue_probe'), $conf);
$in->autoflush(1);
sub ask { print {$in} "@_\n"; my $got = <$out>; chomp $got if defined $got; return $got }

$db->sql("INSERT INTO project (id, name, repository, project_dir) SELECT seq, CONCAT('p', seq), 'https://git.example/o/r', CONCAT('dir', seq) FROM seq_1_to_9;"
    . "INSERT INTO pipeline (id, project_id, name) SELECT id, id, 'pipe' FROM project");
my $next = 100;
# A deployment in a state, with a step that has ended, one that runs and one
# that waits, and a log of five bytes.
sub deployment {
	my ($project, $state) = @_;
	my $id = ++$next;
	my $ended = $state eq 'pending' ? 'pending' : 'success';
	my $running = $state eq 'pending' ? 'pending' : 'running';
	my $held = $state eq 'pending' ? 'NULL, NULL, NULL, NULL' : "REPEAT('a', 32), 'one', NOW(3) + INTERVAL 1 HOUR, NOW(3)";
	$db->sql("INSERT INTO deployment (id, project_id, pipeline_id, `trigger`, status, epoch, commit_hash, owner, runner, lease_until, started_at)"
	    . " VALUES ($id, $project, $project, 'manual', '$state', 4, REPEAT('1', 40), $held);"
	    . "INSERT INTO deployment_step (deployment_id, position, name, script, run_when, status) VALUES ($id, 0, 'a', 'true', 'success', '$ended'),"
	    . " ($id, 1, 'b', 'true', 'success', '$running'), ($id, 2, 'c', 'true', 'success', 'pending');"
	    . "INSERT INTO log_chunk (deployment_id, start, length, data) VALUES ($id, 0, 5, 'hello')");
	return $id;
}
sub row { my ($id, $what) = @_; return $db->sql("SELECT $what FROM deployment WHERE id = $id") }
sub steps { my ($id) = @_; return join ' ', split /\n/, $db->sql("SELECT status FROM deployment_step WHERE deployment_id = $id ORDER BY position") }
sub wanted { my ($id) = @_; return $db->sql("SELECT wanted FROM commit_status WHERE deployment_id = $id") }
# All that a move may write.
sub all {
	my ($id) = @_;
	return join "\n", map { $db->sql($_) } "SELECT * FROM deployment WHERE id = $id",
	    "SELECT * FROM deployment_step WHERE deployment_id = $id ORDER BY position", "SELECT * FROM commit_status WHERE deployment_id = $id";
}
sub gone { my ($id) = @_; $db->sql("DELETE FROM commit_status; DELETE FROM log_chunk; DELETE FROM deployment_step; DELETE FROM deployment"); return }

is(ask('check'), 'ok', 'every statement fits its tables');

# --- every pair of states of a deployment
my @states = qw(pending running success failed canceled interrupted);
my %reason = (success => '-', failed => 'step_failed', canceled => 'canceled_by_user', interrupted => 'runner_lost',
	pending => '-', running => '-');
my %legal = (pending => { map { $_ => 1 } qw(running canceled) },
	running => { map { $_ => 1 } qw(pending success failed canceled interrupted) });
for my $from (@states) {
	for my $to (@states) {
		my $id = deployment(1, $from);
		my $before = all($id);
		my $got = ask("move $id 4 $from $to $reason{$to}");
		if ($legal{$from}{$to}) {
			is($got, 1, "a deployment may move from $from to $to");
			is(row($id, 'status'), $to, '... and does');
		} else {
			like($got, qr/^error conflict a deployment cannot move from $from to $to/, "a deployment may not move from $from to $to");
			is(all($id), $before, '... and stays as it was');
		}
		gone();
	}
}

# --- a move is conditional: the row is in another state, or has another epoch
for my $from (@states) {
	for my $to (sort keys %{ $legal{$from} }) {
		for my $is (grep { $_ ne $from } @states) {
			my $id = deployment(1, $is);
			my $before = all($id);
			is(ask("move $id 4 $from $to $reason{$to}"), 0, "a move from $from to $to leaves a deployment alone that is $is");
			is(all($id), $before, '... and writes nothing');
			gone();
		}
		next if $from eq 'pending' && $to eq 'canceled';
		my $id = deployment(1, $from);
		my $before = all($id);
		is(ask("move $id 3 $from $to $reason{$to}"), 0, "a move from $from to $to under another epoch changes nothing");
		is(all($id), $before, '... at all');
		gone();
	}
}

# --- the reason says the same as the state
my %ends = (canceled_by_user => 'canceled', checkout_failed => 'failed', log_lost => 'failed', project_deleted => 'canceled', runner_error => 'failed',
	runner_lost => 'interrupted', step_failed => 'failed', superseded => 'canceled', timeout => 'failed', workspace_error => 'failed', '-' => 'success');
my %commit = (runner_error => 'error', runner_lost => 'error', workspace_error => 'error');
for my $reason (sort keys %ends) {
	for my $to (qw(success failed canceled interrupted)) {
		my $id = deployment(1, 'running');
		my $got = ask("move $id 4 running $to $reason");
		if ($to eq $ends{$reason}) {
			is($got, 1, "the reason $reason ends in $to");
			is(wanted($id), $commit{$reason} || $to, '... and the commit gets the status');
		} else {
			like($got, qr/^error conflict/, "the reason $reason does not end in $to");
		}
		gone();
	}
}
my $id = deployment(1, 'pending');
like(ask("move $id 4 pending running timeout"), qr/^error conflict/, 'a deployment that starts has no reason');
gone();

# --- what a move writes
$id = deployment(1, 'pending');
is(ask("move $id 4 pending running -"), 1, 'a runner takes a deployment');
is(row($id, "CONCAT_WS(' ', status, epoch, LEFT(owner, 3), runner, started_at IS NOT NULL, lease_until > NOW(3) + INTERVAL 25 SECOND)"),
    'running 5 ccc three 1 1', 'the row says who has it');
is(steps($id), 'pending pending pending', 'its steps wait');
is(ask("move $id 5 running pending -"), 1, 'the runner puts it back');
is(row($id, "CONCAT_WS(' ', status, epoch, owner IS NULL, runner IS NULL, started_at IS NULL, lease_until IS NULL)"), 'pending 6 1 1 1 1',
    'the row is as before, with another epoch');
is(ask("move $id 6 pending canceled canceled_by_user"), 1, 'it is canceled');
is(row($id, "CONCAT_WS(' ', status, reason, detail, finished_at IS NOT NULL)"), 'canceled canceled_by_user Said by a test. 1', 'the row says why');
is(steps($id), 'skipped skipped skipped', 'its steps are skipped');
is(wanted($id), 'canceled', 'its commit gets the status');
gone();
for (['success', 'interrupted'], ['failed', 'interrupted'], ['canceled', 'canceled'], ['interrupted', 'interrupted']) {
	my ($to, $step) = @$_;
	$id = deployment(1, 'running');
	is(ask("move $id 4 running $to $reason{$to}"), 1, "a deployment ends: $to");
	is(row($id, "CONCAT_WS(' ', epoch, log_size, owner IS NOT NULL, lease_until IS NULL, finished_at >= started_at)"), '4 5 1 1 1', '... with the size of its log');
	is(steps($id), "success $step skipped", '... and its steps');
	gone();
}

# --- all or nothing: each table in turn refuses its write
my %refuse = (deployment_step => 'BEFORE UPDATE', commit_status => 'BEFORE INSERT');
for my $table (sort keys %refuse) {
	for my $case (['pending', 'canceled'], map { ['running', $_] } qw(success failed canceled interrupted)) {
		my ($from, $to) = @$case;
		$id = deployment(1, $from);
		my $before = all($id);
		$db->sql("CREATE TRIGGER refuse $refuse{$table} ON $table FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'refused'");
		like(ask("move $id 4 $from $to $reason{$to}"), qr/^error /, "from $from to $to, while $table cannot be written, is an error");
		is(all($id), $before, '... and nothing of the move is written');
		$db->sql('DROP TRIGGER refuse');
		is(ask("move $id 4 $from $to $reason{$to}"), 1, '... all of it once it can');
		isnt(wanted($id), '', '... with the status of the commit');
		gone();
	}
}

# The calls of the runner open their own transaction.
for my $call ('end ID 4 failed step_failed', 'end ID 4 success -', 'release ID 4', 'expire') {
	$id = deployment(1, 'running');
	$db->sql("UPDATE deployment SET lease_until = NOW(3) - INTERVAL 1 SECOND WHERE id = $id") if $call eq 'expire';
	$db->sql("UPDATE deployment SET cancel_at = NOW(3) WHERE id = $id") if $call =~ /release/;
	my $before = all($id);
	$db->sql("CREATE TRIGGER refuse BEFORE INSERT ON commit_status FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'refused'");
	like(ask($call =~ s/ID/$id/r), qr/^error /, "the call \"$call\", while commit_status cannot be written, is an error");
	is(all($id), $before, '... and writes nothing');
	$db->sql('DROP TRIGGER refuse');
	like(ask($call =~ s/ID/$id/r), qr/^(?:ok|1)$/, '... and succeeds once it can');
	isnt(wanted($id), '', '... with the status of the commit');
	gone();
}

# --- all of a project at once
my %few = map { $_ => deployment(2, $_) } @states;
my $other = deployment(3, 'pending');
my $before = all($few{running});
is(ask('move_all 2 pending canceled project_deleted'), 1, 'what waits in a project is canceled');
is(row($few{pending}, "CONCAT_WS(' ', status, reason, detail, finished_at IS NOT NULL)"), 'canceled project_deleted Said by a test. 1', '... with the reason');
is(steps($few{pending}), 'skipped skipped skipped', '... and its steps');
is(wanted($few{pending}), 'canceled', '... and its commit gets the status');
is(all($few{running}), $before, 'what runs there goes on');
is(row($other, 'status'), 'pending', 'another project is left alone');
is($db->sql('SELECT COUNT(*) FROM commit_status'), 1, '... so are the statuses of others');
for my $from (@states) {
	for my $to (@states) {
		next if $from eq 'pending' && $to eq 'canceled';
		like(ask("move_all 2 $from $to $reason{$to}"), qr/^error conflict/, "a whole project may not move from $from to $to");
	}
}
gone();
sub written { return $db->sql("SELECT SUM(VARIABLE_VALUE) FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME IN ('COM_INSERT_SELECT', 'COM_INSERT', 'COM_UPDATE', 'COM_UPDATE_MULTI', 'COM_STMT_EXECUTE')") }
my %cost;
for my $n (2, 400) {
	$db->sql("INSERT INTO deployment (project_id, pipeline_id, `trigger`, commit_hash) SELECT 2, 2, 'manual', REPEAT('1', 40) FROM seq_1_to_$n;"
	    . "INSERT INTO deployment_step (deployment_id, position, name, script, run_when) SELECT id, 0, 'a', 'true', 'success' FROM deployment WHERE status = 'pending'");
	my $start = written();
	is(ask('move_all 2 pending canceled project_deleted'), $n, "$n of a project are canceled at once");
	$cost{$n} = written() - $start;
	is($db->sql("SELECT COUNT(*) FROM deployment_step WHERE status = 'pending'"), 0, '... with their steps');
	is($db->sql("SELECT COUNT(*) FROM commit_status WHERE wanted = 'canceled'"), $n, '... and their statuses');
	gone();
}
is($cost{400}, $cost{2}, 'many take as many statements as few');

# --- every pair of states of a step
my @step = qw(pending running success failed skipped canceled interrupted);
my %step = (pending => { map { $_ => 1 } qw(running success failed skipped canceled interrupted) },
	running => { map { $_ => 1 } qw(success failed canceled interrupted) });
$id = deployment(1, 'running');
sub step { return $db->sql("SELECT * FROM deployment_step WHERE deployment_id = $id AND position = 1") }
for my $from (@step) {
	for my $to (@step) {
		$db->sql("UPDATE deployment_step SET status = '$from', started_at = NULL WHERE deployment_id = $id AND position = 1");
		my $before = step();
		my $got = ask("step $id 4 1 $to");
		if ($step{$from}{$to}) {
			is($got, 'ok', "a step may move from $from to $to");
			is((split ' ', steps($id))[1], $to, '... and does');
		} elsif ($to ne 'pending' && ($from eq $to || $step{$to}{$from})) {
			is($got, 'ok', "a step that is $from has been $to");
			is(step(), $before, '... and stays as it is');
		} else {
			like($got, qr/^error conflict step 1 of deployment $id cannot move from $from to $to/, "a step may not move from $from to $to");
			is(step(), $before, '... and stays as it is');
		}
	}
}
like(ask("step $id 3 1 running"), qr/^error precondition_failed/, 'a step of a deployment that another has does not move');
like(ask("step $id 4 7 running"), qr/^error precondition_failed/, 'nor does one that the deployment lacks');
$db->sql("UPDATE deployment SET status = 'success' WHERE id = $id");
like(ask("step $id 4 2 running"), qr/^error precondition_failed/, 'nor does one of a deployment that has ended');
close $in;
waitpid $pid, 0;

# --- final is what nothing moves from; names and reasons stand in one place
my $table = slurp(srcdir() . '/src/core/state.h');
my %final;
$final{$1} = $2 while $table =~ /[XS]\(STATE_\w+, "(\w+)", (true|false),/g;
is_deeply([grep { $final{$_} eq 'true' } @step], [grep { !%{ $step{$_} || {} } } @step], 'the final states are those that nothing moves from');
my %named;
$named{$1} = $2 while $table =~ /X\(REASON_\w+, "(\w+)", STATE_(\w+),/g;
is_deeply({ map { $_ => lc $named{$_} } keys %named }, { map { $_ => $ends{$_} } grep { $_ ne '-' } keys %ends }, 'the reasons end where they should');
my @twice;
for my $file (glob srcdir() . '/src/{job,dispatch,store,deploy,api}/*.c') {
	my $text = slurp($file);
	for my $name (keys %named) {
		next if $name eq 'timeout'; # also a key of the job's description
		push @twice, "$file: $name" if $text =~ /["']\Q$name\E["']/;
	}
	push @twice, "$file writes a status" if $file !~ m{/move\.c$} && $text =~ /UPDATE deployment(?:_step)?\b[^;]*?\bSET[^;]*?\bstatus = [^;]*?\bWHERE/s;
	push @twice, "$file asks for a status of a commit" if $file !~ m{/(?:move|report)\.c$} && $text =~ /\breport_want(?:_ended)?\(/;
}
is(join(', ', @twice), '', 'one file names the reasons, one writes states');
done_testing;
