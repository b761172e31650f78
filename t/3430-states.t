#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# States: every pair of them for deployments and steps, and that a move writes all
# of its rows or none.

use strict;
use warnings;
use Slipway::DB;
use Slipway::Probe;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
$db->migrate;
my $conf = spew(tempdir() . '/states.conf', $db->conf . "[gitserver]\nurl = https://git.example\n", 0600);
my $probe = Slipway::Probe->start($conf, 'queue_probe');
sub ask { return $probe->ask("@_") }

$db->sql('INSERT INTO project (id, name, repository, project_dir)'
    . " SELECT seq, CONCAT('p', seq), 'https://git.example/o/r', CONCAT('dir', seq) FROM seq_1_to_9;"
    . "INSERT INTO pipeline (id, project_id, name) SELECT id, id, 'pipe' FROM project");
my $next = 100;
# A deployment in a state, with a step that ended, one that runs and one that is
# pending, and a log of five bytes.
sub deployment {
	my ($project, $state) = @_;
	my $id = ++$next;
	my $ended = $state eq 'pending' ? 'pending' : 'success';
	my $running = $state eq 'pending' ? 'pending' : 'running';
	my $held = $state eq 'pending' ? 'NULL, NULL, NULL, NULL'
	    : "REPEAT('a', 32), 'one', NOW(3) + INTERVAL 1 HOUR, NOW(3)";
	$db->sql('INSERT INTO deployment (id, project_id, pipeline_id, `trigger`, status, epoch, commit_hash,'
	    . ' owner, runner, lease_until, started_at)'
	    . " VALUES ($id, $project, $project, 'manual', '$state', 4, REPEAT('1', 40), $held);"
	    . 'INSERT INTO deployment_step (deployment_id, position, name, script, run_when, status)'
	    . " VALUES ($id, 0, 'a', 'true', 'success', '$ended'),"
	    . " ($id, 1, 'b', 'true', 'success', '$running'),"
	    . " ($id, 2, 'c', 'true', 'success', 'pending');"
	    . "INSERT INTO log_chunk (deployment_id, start, length, data) VALUES ($id, 0, 5, 'hello')");
	return $id;
}
sub row { my ($id, $what) = @_; return $db->sql("SELECT $what FROM deployment WHERE id = $id") }
sub steps {
	my ($id) = @_;
	my $sql = "SELECT status FROM deployment_step WHERE deployment_id = $id ORDER BY position";
	return join ' ', split /\n/, $db->sql($sql);
}
sub wanted { my ($id) = @_; return $db->sql("SELECT wanted FROM commit_status WHERE deployment_id = $id") }
# Every row that a move may write.
sub all {
	my ($id) = @_;
	return join "\n", map { $db->sql($_) } "SELECT * FROM deployment WHERE id = $id",
	    "SELECT * FROM deployment_step WHERE deployment_id = $id ORDER BY position",
	    "SELECT * FROM commit_status WHERE deployment_id = $id";
}
# Deletes every deployment.
sub clear {
	$db->sql('DELETE FROM commit_status; DELETE FROM log_chunk; DELETE FROM deployment_step;'
	    . ' DELETE FROM deployment');
	return;
}

is(ask('check'), 'ok', 'every statement fits its tables');

# --- every pair of states of a deployment
my @states = qw(pending running success failed canceled interrupted);
my %reason = (success => '-', failed => 'step_failed', canceled => 'canceled_by_user',
    interrupted => 'runner_lost',
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
			is(row($id, 'status'), $to, "a move from $from to $to changes the status");
		} else {
			like($got, qr/^error conflict a deployment cannot move from $from to $to/,
			    "a deployment cannot move from $from to $to");
			is(all($id), $before, "a rejected move from $from to $to writes nothing");
		}
		clear();
	}
}

# --- a move is conditional on the state and the epoch of the row
for my $from (@states) {
	for my $to (sort keys %{ $legal{$from} }) {
		for my $is (grep { $_ ne $from } @states) {
			my $id = deployment(1, $is);
			my $before = all($id);
			is(ask("move $id 4 $from $to $reason{$to}"), 0,
			    "a move from $from to $to does not move a deployment that is $is");
			is(all($id), $before,
			    "a move from $from to $to of a deployment that is $is writes nothing");
			clear();
		}
		next if $from eq 'pending' && $to eq 'canceled';
		my $id = deployment(1, $from);
		my $before = all($id);
		is(ask("move $id 3 $from $to $reason{$to}"), 0,
		    "a move from $from to $to with another epoch does not move the deployment");
		is(all($id), $before, "a move from $from to $to with another epoch writes nothing");
		clear();
	}
}

# --- a reason belongs to one state
my %ends = (approval_denied => 'canceled', canceled_by_user => 'canceled', checkout_failed => 'failed',
	environment_deleted => 'canceled', log_lost => 'failed',
	project_deleted => 'canceled', runner_error => 'failed', runner_lost => 'interrupted',
	step_failed => 'failed', superseded => 'canceled', timeout => 'failed', workspace_error => 'failed',
	'-' => 'success');
my %commit = (runner_error => 'error', runner_lost => 'error', workspace_error => 'error');
for my $reason (sort keys %ends) {
	for my $to (qw(success failed canceled interrupted)) {
		my $id = deployment(1, 'running');
		my $got = ask("move $id 4 running $to $reason");
		if ($to eq $ends{$reason}) {
			is($got, 1, "the reason $reason belongs to the state $to");
			is(wanted($id), $commit{$reason} || $to,
			    "the reason $reason yields its commit status");
		} else {
			like($got, qr/^error conflict/,
			    "the reason $reason does not belong to the state $to");
		}
		clear();
	}
}
my $id = deployment(1, 'pending');
like(ask("move $id 4 pending running timeout"), qr/^error conflict/, 'a move to running has no reason');
clear();

# --- the rows that a move writes
$id = deployment(1, 'pending');
is(ask("move $id 4 pending running -"), 1, 'a deployment moves from pending to running');
is(row($id, "CONCAT_WS(' ', status, epoch, LEFT(owner, 3), runner, started_at IS NOT NULL,"
    . ' lease_until > NOW(3) + INTERVAL 25 SECOND)'),
    'running 5 ccc three 1 1', 'a running deployment has owner, runner, lease and a new epoch');
is(steps($id), 'pending pending pending', 'a move to running keeps the steps pending');
is(ask("move $id 5 running pending -"), 1, 'a deployment moves from running back to pending');
is(row($id, "CONCAT_WS(' ', status, epoch, owner IS NULL, runner IS NULL, started_at IS NULL,"
    . ' lease_until IS NULL)'), 'pending 6 1 1 1 1',
    'a deployment that moved back to pending has no owner, and a new epoch');
is(ask("move $id 6 pending canceled canceled_by_user"), 1, 'a deployment moves from pending to canceled');
my $outcome = "CONCAT_WS(' ', status, reason, detail, finished_at IS NOT NULL)";
is(row($id, $outcome), 'canceled canceled_by_user Said by a test. 1', 'a canceled deployment has its reason');
is(steps($id), 'skipped skipped skipped', 'the steps of a canceled deployment are skipped');
is(wanted($id), 'canceled', 'the commit of a canceled deployment gets the status');
clear();
for (['success', 'interrupted'], ['failed', 'interrupted'], ['canceled', 'canceled'],
    ['interrupted', 'interrupted']) {
	my ($to, $step) = @$_;
	$id = deployment(1, 'running');
	is(ask("move $id 4 running $to $reason{$to}"), 1, "a running deployment moves to $to");
	is(row($id, "CONCAT_WS(' ', epoch, log_size, owner IS NOT NULL, lease_until IS NULL,"
	    . ' finished_at >= started_at)'), '4 5 1 1 1',
	    "a deployment that is $to has the size of its log");
	is(steps($id), "success $step skipped", "the steps of a deployment that is $to are final");
	clear();
}

# --- all or nothing: each table in turn rejects its write
my $signal = "FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'refused'";
my %refuse = (deployment_step => 'BEFORE UPDATE', commit_status => 'BEFORE INSERT');
for my $table (sort keys %refuse) {
	for my $case (['pending', 'canceled'],
	    map { ['running', $_] } qw(success failed canceled interrupted)) {
		my ($from, $to) = @$case;
		$id = deployment(1, $from);
		my $before = all($id);
		my $move = "a move from $from to $to while $table cannot be written";
		$db->sql("CREATE TRIGGER refuse $refuse{$table} ON $table $signal");
		like(ask("move $id 4 $from $to $reason{$to}"), qr/^error /, "$move is an error");
		is(all($id), $before, "$move writes nothing");
		$db->sql('DROP TRIGGER refuse');
		is(ask("move $id 4 $from $to $reason{$to}"), 1,
		    "a move from $from to $to succeeds once $table can be written");
		isnt(wanted($id), '',
		    "a move from $from to $to writes the commit status once $table can be written");
		clear();
	}
}

# The calls of the runner open their own transaction.
for my $call ('end ID 4 failed step_failed', 'end ID 4 success -', 'release ID 4', 'expire') {
	$id = deployment(1, 'running');
	$db->sql("UPDATE deployment SET lease_until = NOW(3) - INTERVAL 1 SECOND WHERE id = $id")
	    if $call eq 'expire';
	$db->sql("UPDATE deployment SET cancel_at = NOW(3) WHERE id = $id") if $call =~ /release/;
	my $before = all($id);
	$db->sql("CREATE TRIGGER refuse BEFORE INSERT ON commit_status $signal");
	like(ask($call =~ s/ID/$id/r), qr/^error /,
	    "\"$call\" while commit_status cannot be written is an error");
	is(all($id), $before, "\"$call\" while commit_status cannot be written writes nothing");
	$db->sql('DROP TRIGGER refuse');
	like(ask($call =~ s/ID/$id/r), qr/^(?:ok|1)$/,
	    "\"$call\" succeeds once commit_status can be written");
	isnt(wanted($id), '', "\"$call\" writes the commit status once it can be written");
	clear();
}

# --- every deployment of a project at once
my %few = map { $_ => deployment(2, $_) } @states;
my $other = deployment(3, 'pending');
my $before = all($few{running});
is(ask('move_all 2 pending canceled project_deleted'), 1, 'the pending deployment of a project is canceled');
is(row($few{pending}, $outcome), 'canceled project_deleted Said by a test. 1',
    'a deployment canceled with its project has the reason');
is(steps($few{pending}), 'skipped skipped skipped',
    'the steps of a deployment canceled with its project are skipped');
is(wanted($few{pending}), 'canceled', 'the commit of a deployment canceled with its project gets the status');
is(all($few{running}), $before, 'a running deployment of the project is not changed');
is(row($other, 'status'), 'pending', 'a pending deployment of another project is not changed');
is($db->sql('SELECT COUNT(*) FROM commit_status'), 1, 'no other commit gets a status');
for my $from (@states) {
	for my $to (@states) {
		next if $from eq 'pending' && $to eq 'canceled';
		like(ask("move_all 2 $from $to $reason{$to}"), qr/^error conflict/,
		    "the deployments of a project cannot be moved from $from to $to");
	}
}
clear();
# How many statements the server has executed that write.
sub written {
	return $db->sql('SELECT SUM(VARIABLE_VALUE) FROM information_schema.GLOBAL_STATUS'
	    . ' WHERE VARIABLE_NAME IN'
	    . " ('COM_INSERT_SELECT', 'COM_INSERT', 'COM_UPDATE', 'COM_UPDATE_MULTI', 'COM_STMT_EXECUTE')");
}
my %cost;
for my $n (2, 400) {
	$db->sql('INSERT INTO deployment (project_id, pipeline_id, `trigger`, commit_hash)'
	    . " SELECT 2, 2, 'manual', REPEAT('1', 40) FROM seq_1_to_$n;"
	    . 'INSERT INTO deployment_step (deployment_id, position, name, script, run_when)'
	    . " SELECT id, 0, 'a', 'true', 'success' FROM deployment WHERE status = 'pending'");
	my $start = written();
	is(ask('move_all 2 pending canceled project_deleted'), $n,
	    "$n pending deployments of a project are canceled at once");
	$cost{$n} = written() - $start;
	is($db->sql("SELECT COUNT(*) FROM deployment_step WHERE status = 'pending'"), 0,
	    "no step of $n canceled deployments is pending");
	is($db->sql("SELECT COUNT(*) FROM commit_status WHERE wanted = 'canceled'"), $n,
	    "the commits of $n canceled deployments get their statuses");
	clear();
}
is($cost{400}, $cost{2}, 'canceling 400 deployments takes as many statements as canceling two');

# --- every pair of states of a step
my @step = qw(pending running success failed skipped canceled interrupted);
my %step = (pending => { map { $_ => 1 } qw(running success failed skipped canceled interrupted) },
	running => { map { $_ => 1 } qw(success failed canceled interrupted) });
$id = deployment(1, 'running');
sub step { return $db->sql("SELECT * FROM deployment_step WHERE deployment_id = $id AND position = 1") }
for my $from (@step) {
	for my $to (@step) {
		$db->sql("UPDATE deployment_step SET status = '$from', started_at = NULL"
		    . " WHERE deployment_id = $id AND position = 1");
		my $before = step();
		my $got = ask("step $id 4 1 $to");
		if ($step{$from}{$to}) {
			is($got, 'ok', "a step may move from $from to $to");
			is((split ' ', steps($id))[1], $to,
			    "a move of a step from $from to $to changes the status");
		} elsif ($to ne 'pending' && ($from eq $to || $step{$to}{$from})) {
			is($got, 'ok', "a repeated or late move of a step from $from to $to is accepted");
			is(step(), $before,
			    "a repeated or late move of a step from $from to $to writes nothing");
		} else {
			like($got, qr/^error conflict step 1 of deployment $id cannot move from $from to $to/,
			    "a step cannot move from $from to $to");
			is(step(), $before, "a rejected move of a step from $from to $to writes nothing");
		}
	}
}
like(ask("step $id 3 1 running"), qr/^error precondition_failed/,
    'a step of a deployment with another epoch does not move');
like(ask("step $id 4 7 running"), qr/^error precondition_failed/, 'an unknown step does not move');
$db->sql("UPDATE deployment SET status = 'success' WHERE id = $id");
like(ask("step $id 4 2 running"), qr/^error precondition_failed/,
    'a step of a deployment that ended does not move');
$probe->stop;

# --- the table of states in the source
my $table = slurp(srcdir() . '/src/core/state.h');
my %final;
$final{$1} = $2 while $table =~ /[XS]\(STATE_\w+, "(\w+)", (true|false),/g;
is_deeply([grep { $final{$_} eq 'true' } @step], [grep { !%{ $step{$_} || {} } } @step],
    'the final states are those without a legal move');
my %named;
$named{$1} = $2 while $table =~ /X\(REASON_\w+, "(\w+)", STATE_(\w+),/g;
my %reasons = %ends;
delete $reasons{'-'};
is_deeply({ map { $_ => lc $named{$_} } keys %named }, \%reasons, 'every reason belongs to its state');
my @twice;
for my $file (glob srcdir() . '/src/{job,dispatch,store,deploy,api}/*.c') {
	my $text = slurp($file);
	for my $name (keys %named) {
		next if $name eq 'timeout'; # also a key of the job's description
		push @twice, "$file: $name" if $text =~ /["']\Q$name\E["']/;
	}
	my $write = qr/UPDATE deployment(?:_step)?\b[^;]*?\bSET[^;]*?\bstatus = [^;]*?\bWHERE/s;
	push @twice, "$file writes a status" if $file !~ m{/move\.c$} && $text =~ $write;
	push @twice, "$file requests a commit status"
	    if $file !~ m{/(?:move|report)\.c$} && $text =~ /\breport_want(?:_ended)?\(/;
}
is(join(', ', @twice), '', 'only one file names the reasons, and only one writes states');
done_testing;
