#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# How much a statement reads depends on its tables, not on what the optimizer
# believes about them: with statistics of empty, small and skewed tables, and with
# any others.  The rows that it reads are counted, so that this holds for every
# version of MariaDB.

use strict;
use warnings;
use Test::More;
use Slipway::DB;
use Slipway::Statements;
use Slipway::Test;

my $projects = 200;
my $pending = 10_000;
my $db = Slipway::DB->start(args =>
    ['--innodb-flush-log-at-trx-commit=0', '--innodb-stats-auto-recalc=0', '--innodb-buffer-pool-size=96M']);
$db->migrate;
my ($err, @statements) = Slipway::Statements->read($db);
is($err, '', 'every statement fits its tables');
my $session = $db->session; # with the character set of the service
$session->('SET SESSION unique_checks = 0, foreign_key_checks = 0');
my @tables = split /\n/, $session->('SELECT table_name FROM information_schema.tables'
    . " WHERE table_schema = 'slipway' AND table_type = 'BASE TABLE'");

# Adds projects, and deployments to them: so many that have ended, and pending ones.
sub add {
	my ($n, $ended, $queue, $project) = @_;
	$project ||= "1 + seq % $n";
	my $place = "$project, $project, $project";
	$session->(<<"SQL");
INSERT IGNORE INTO user (id, username, name, role) SELECT seq, CONCAT('user', seq), 'x', 'viewer'
    FROM seq_1_to_$n;
INSERT IGNORE INTO project (id, name, repository, project_dir) SELECT seq, CONCAT('project', seq),
    'https://example.org/a/b', CONCAT('dir', seq) FROM seq_1_to_$n;
INSERT IGNORE INTO workspace (project_id, status) SELECT seq, 'ready' FROM seq_1_to_$n;
INSERT IGNORE INTO pipeline (id, project_id, name) SELECT seq, seq, 'p' FROM seq_1_to_$n;
INSERT IGNORE INTO environment (id, project_id, name, position) SELECT seq, seq, 'e', 0 FROM seq_1_to_$n;
INSERT IGNORE INTO step (pipeline_id, name, script, position) SELECT 1 + seq % $n, 's', 'true', seq DIV $n
    FROM seq_1_to_@{[ 10 * $n ]};
INSERT INTO deployment (project_id, pipeline_id, environment_id, branch, status, `trigger`, created_at,
    finished_at, log_size) SELECT $place, 'main', 'success', 'webhook', NOW(), NOW(), 100
    FROM seq_1_to_$ended;
INSERT INTO deployment (project_id, pipeline_id, environment_id, branch, status, `trigger`)
    SELECT $place, 'main', 'pending', 'webhook' FROM seq_1_to_$queue;
INSERT IGNORE INTO deployment_step (deployment_id, position, name, script, run_when, status)
    SELECT id, 0, 's', 'true', 'success', IF(status = 'pending', status, 'success') FROM deployment;
INSERT IGNORE INTO log_chunk (deployment_id, start, length, data) SELECT id, 0, 100, 'x' FROM deployment
    WHERE status = 'success';
INSERT INTO audit (at, username, via, action, object_type, project_id, changes) SELECT NOW(), 'ann',
    'token', 'updateProject', 'project', $project, '[]' FROM seq_1_to_$ended;
SQL
	return;
}

# --- statistics of each shape of the tables
my %statistics;
sub measure {
	my ($shape) = @_;
	$session->('ANALYZE TABLE ' . join ', ', @tables);
	my $of = "' WHERE database_name = \\'slipway\\' AND table_name = \\'', table_name";
	my $from = "WHERE database_name = 'slipway'";
	$statistics{$shape} = [
		split(/\n/, $session->("SELECT CONCAT('UPDATE mysql.innodb_table_stats SET n_rows = ',"
			. " n_rows, ', clustered_index_size = ', clustered_index_size, $of, '\\'')"
			. " FROM mysql.innodb_table_stats $from")),
		split(/\n/, $session->("SELECT CONCAT('UPDATE mysql.innodb_index_stats SET stat_value = ',"
			. " stat_value, $of, '\\' AND index_name = \\'', index_name,"
			. " '\\' AND stat_name = \\'', stat_name, '\\'')"
			. " FROM mysql.innodb_index_stats $from")),
	];
	return;
}
measure('empty');
add(5, 50, 20);
measure('small');
add($projects, 1, $pending - 20, 7);
measure('skewed');
$session->("DELETE FROM $_ WHERE status = 'pending'") for qw(deployment_step deployment);
add($projects, 20_000, $pending);
measure('large');

# Any numbers: each number of different values is between that of the shorter prefix of
# the index and that of the rows.
my $seed = 7;
sub number { $seed = ($seed * 1_103_515_245 + 12_345) % 2_147_483_648; return $seed / 2_147_483_648 }
my @index = map { [split /\t/] } split /\n/, $session->('SELECT table_name, index_name, stat_name'
    . " FROM mysql.innodb_index_stats WHERE database_name = 'slipway' ORDER BY 1, 2, 3");
sub invent {
	my %rows;
	my (@all, $last);
	my $before = '';
	for (@index) {
		my ($table, $index, $name) = @$_;
		my $at = "database_name = 'slipway' AND table_name = '$table'";
		if (!defined $rows{$table}) {
			my $n = $rows{$table} =
			    (0, 1, 10, 200, 1000, 10_000, 100_000, 1_000_000)[8 * number()];
			push @all, "UPDATE mysql.innodb_table_stats SET n_rows = $n,"
			    . " clustered_index_size = 1 + $n DIV 50 WHERE $at";
		}
		my $n = $rows{$table};
		$last = 1 if $before ne "$table $index";
		$before = "$table $index";
		my $value = $name =~ /^n_diff/ && $n > 0 ? $last = int $last * ($n / $last)**number()
		    : 1 + int $n / 50 * number();
		push @all, "UPDATE mysql.innodb_index_stats SET stat_value = $value"
		    . " WHERE $at AND index_name = '$index' AND stat_name = '$name'";
	}
	return \@all;
}
$statistics{"invented $_"} = invent() for 1 .. 5;

# The server reads statistics when it opens a table by a name that it does not know.
sub use_statistics {
	my ($shape) = @_;
	$session->(join ';', @{ $statistics{$shape} });
	$session->(join ';', map { "RENAME TABLE $_ TO x_$_, x_$_ TO $_" } @tables);
	return;
}

# --- what each statement reads
my $linear = 3 * $pending; # the whole queue, once
my %most = (claim_plain => $linear, claim_candidates => $linear, claim_passers => $linear,
	claim_mine => 5,
	claim_load => 100, board_projects => 700, board_environments => 300, board_waiting => 400,
	board_deployments => 20, change_newest => 600, change_read => 7000, change_open => 60_000,
	change_watchers => 400, deployment_by_id => 20, deployment_log_sizes => 20,
	deployment_page_of_project => 100, move_waiting_of_environment => 100, figures_read => $pending + 10,
	joblog_state => 5, joblog_chunk_at => 5, lock_over => 5, move_take => 20,
	move_cancel_all_steps => 200,
	principal_by_token => 5, principal_by_session => 5, project_by_id => 5, project_page => 200,
	project_page_named => 300, push_older => 200, queue_renew => 5, queue_commit => 5, queue_held => 20,
	queue_held_by_runner => 20, queue_hold => 5, queue_expired => 20, retention_sweep => 800,
	schedule_due => 20, step_of_pipelines => 400, step_update => 5, total_ended_all => 300,
	waiting_ahead => 100, waiting_queue => 100, waiting_crowd => 50, audit_page => 50,
	audit_page_of => 50);
my %known = map { $_->[0] => 1 } @statements;
is(join(' ', grep { !$known{$_} } sort keys %most), '', 'each statement that the test names exists');
my $any = 5 * ($pending + 20_000); # no other one reads its tables more often than a few times
my (%worst, %why, $tried, $ran);
# a statement that reads too much could take hours
$session->('SET SESSION max_statement_time = 20');
for my $shape (sort keys %statistics) {
	use_statistics($shape);
	for my $statement (@statements) {
		my ($name) = @$statement;
		next if !$most{$name} && ($name =~ /^dbserver_/ || $shape ne 'empty');
		$tried++;
		my $sql = Slipway::Statements->filled($statement);
		$session->('START TRANSACTION; FLUSH STATUS');
		$ran++ if eval { $session->($sql); 1 };
		my $n = 0;
		my $status = $session->("SHOW SESSION STATUS LIKE 'Handler_read%'");
		$n += $1 while $status =~ /\t(\d+)$/mg;
		$session->('ROLLBACK');
		($worst{$name}, $why{$name}) = ($n, $shape) if $n > ($worst{$name} // -1);
	}
}
cmp_ok($ran, '>', 0.8 * $tried, 'most statements run with these arguments');
is(join("\n", map { "$_: $worst{$_} rows with the statistics \"$why{$_}\"" }
    grep { $worst{$_} > ($most{$_} // $any) } sort keys %worst), '',
    'no statement reads more than it has to, whatever the statistics');
done_testing();
