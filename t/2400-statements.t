#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Every statement of the stores fits the tables, and none reads a large table from
# end to end.

use strict;
use warnings;
use Test::More;
use Slipway::DB;
use Slipway::Statements;
use Slipway::Test;

my $db = Slipway::DB->start(args => ['--innodb-flush-log-at-trx-commit=0']);
$db->migrate;

my ($err, @statements) = Slipway::Statements->read($db);
is($err, '', 'every statement fits its tables');
cmp_ok(scalar @statements, '>', 60, 'the test finds the statements');

# --- large tables: 3000 projects, the first 250 with pending deployments, 40 of
# them with a running one; and many rows in every other table that grows
$db->sql(<<'SQL');
SET SESSION unique_checks = 0, foreign_key_checks = 0;
INSERT INTO user (username, name, email, role, valid) SELECT CONCAT('user', seq), CONCAT('Name ', seq),
    CONCAT('u', seq, '@example.org'), IF(seq % 500 = 0, 'admin', 'viewer'), seq % 10 > 0 FROM seq_1_to_3000;
INSERT INTO api_token (user_id, name, role, hash) SELECT 1 + seq % 3000, CONCAT('token', seq), 'viewer',
    SHA2(seq, 256) FROM seq_1_to_6000;
INSERT INTO project (name, repository, project_dir, valid) SELECT CONCAT('project', seq),
    'https://example.org/a/b', CONCAT('dir', seq), seq % 10 > 0 FROM seq_1_to_3000;
INSERT INTO workspace (project_id, status) SELECT seq, 'ready' FROM seq_1_to_3000;
INSERT INTO pipeline (project_id, name) SELECT 1 + seq % 3000, CONCAT('pipeline', seq) FROM seq_1_to_6000;
INSERT INTO environment (project_id, name, position) SELECT seq, 'production', 0 FROM seq_1_to_3000;
INSERT INTO step (pipeline_id, name, script, position) SELECT 1 + seq % 6000, 'step', 'true', seq DIV 6000
    FROM seq_1_to_18000;
INSERT INTO deployment (project_id, pipeline_id, environment_id, branch, status, `trigger`, created_by,
    owner, runner,
    lease_until, created_at, finished_at, log_size)
    SELECT 1 + seq % 3000, 1 + seq % 3000, 1 + seq % 3000, CONCAT('branch', seq % 50),
    IF(seq > 29000 AND seq % 3000 < 250, 'pending',
	IF(seq BETWEEN 24001 AND 27000 AND seq % 3000 BETWEEN 1 AND 40, 'running',
	ELT(1 + seq % 4, 'success', 'failed', 'canceled', 'interrupted'))),
    ELT(1 + seq % 3, 'manual', 'webhook', 'retry'), 1 + seq % 3000,
    IF(seq % 3000 BETWEEN 1 AND 40, LPAD(seq % 4, 32, '0'), NULL), 'runner', NOW() + INTERVAL 30 SECOND,
    NOW() - INTERVAL seq MINUTE, IF(seq > 29000, NULL, NOW() - INTERVAL seq MINUTE), 100
    FROM seq_1_to_30000;
INSERT INTO deployment_step (deployment_id, position, name, script, run_when, status)
    SELECT seq DIV 2, seq % 2, 'step', 'true', 'success', 'success' FROM seq_2_to_60001;
INSERT INTO log_chunk (deployment_id, start, length, data) SELECT 1 + seq % 3000, 100 * (seq DIV 3000),
    100, 'x' FROM seq_1_to_15000;
INSERT INTO idempotency (user_id, idempotency_key, request_hash, deployment_id, answer, created_at)
    SELECT 1 + seq % 3000, seq, SHA2(seq, 256), seq, '{}', NOW() - INTERVAL seq SECOND FROM seq_1_to_6000;
INSERT INTO hook_secret (project_id, secret) SELECT seq, 'x' FROM seq_1_to_3000;
INSERT INTO deploy_key (project_id, public_key, fingerprint, sealed)
    SELECT seq, 'ssh-ed25519 AAAA', 'SHA256:7', 'x' FROM seq_1_to_3000;
INSERT INTO hook_delivery (project_id, delivery_hash, created_at)
    SELECT 1 + seq % 3000, SHA2(seq, 256), NOW() - INTERVAL seq SECOND FROM seq_1_to_6000;
INSERT INTO commit_token (token, created_at) SELECT seq, NOW() - INTERVAL seq SECOND FROM seq_1_to_6000;
INSERT INTO signin (state_hash, browser_hash, verifier, created_at)
    SELECT SHA2(seq, 256), SHA2(seq, 256), 'x', NOW() - INTERVAL seq SECOND FROM seq_1_to_6000;
INSERT INTO device (hash, user_code, name, address, expires_at, poll_seconds)
    SELECT SHA2(seq, 256), LPAD(seq, 8, '0'), 'x', CONCAT('192.0.2.', seq % 200),
    NOW() + INTERVAL (900 - CAST(seq AS SIGNED)) SECOND, 5 FROM seq_1_to_6000;
INSERT INTO session (user_id, hash, last_used_at, expires_at) SELECT 1 + seq % 3000, SHA2(seq, 256),
    NOW() - INTERVAL seq SECOND, NOW() + INTERVAL (3000 - CAST(seq AS SIGNED)) SECOND FROM seq_1_to_6000;
INSERT INTO git_token (user_id, server, access) SELECT seq, 'https://git.example.org', 'x' FROM seq_1_to_3000;
INSERT INTO audit (at, username, via, action, object_type, project_id, changes)
    SELECT NOW() - INTERVAL 6000 - seq MINUTE, 'ann', 'token', 'updateProject', 'project',
    1 + seq % 3000, '[]'
    FROM seq_1_to_6000;
INSERT INTO notifier (project_id, kind, target, events, active)
    SELECT seq, 'text', 'https://example.org', '["failed"]', 1 FROM seq_1_to_3000;
INSERT INTO member (project_id, user_id, role)
    SELECT 1 + (seq * 7) % 3000, 1 + seq DIV 3, 'viewer' FROM seq_1_to_8000;
INSERT INTO notice (notifier_id, event, deployment_id, next_at, created_at)
    SELECT 1 + seq % 3000, 'failed', seq, IF(seq > 5950, NOW(3) - INTERVAL 1 SECOND, NULL),
    NOW() - INTERVAL seq SECOND FROM seq_1_to_6000;
ANALYZE TABLE user, api_token, project, workspace, pipeline, environment, step, deployment,
    deployment_step, log_chunk, idempotency, commit_token, signin, session, git_token, hook_secret,
    hook_delivery, deploy_key, audit, notifier, notice, member, device;
SQL
my %large = map { $_ => 1 } qw(user api_token project workspace pipeline environment step deployment
    deployment_step log_chunk idempotency commit_token signin session git_token hook_secret hook_delivery
    deploy_key audit notifier notice member device);

# --- a value for each argument, by its name
our %value;
*value = \%Slipway::Statements::value;

# A search for a substring has to read every row.
my %search = map { $_ => 1 } qw(user_count user_page);
# So does the move of a Git server, which an administrator runs once.
$search{$_} = 1 for qw(gitserver_twins gitserver_projects gitserver_move_users gitserver_move_tokens);
# And the deletion of a workspace, which looks for others above and below it.
$search{projectdir_around} = 1;
# EXPLAIN ignores the LIMIT of these; the rows that they read are counted below.
my %counted = map { $_ => 1 } qw(change_newest);
my (@scans, @sorts, @failed, $explained, %used);
# Those in a compound statement, one by one.
sub parts {
	my ($sql) = @_;
	return $sql if $sql !~ s/^BEGIN NOT ATOMIC (.*); END$/$1/s;
	my $branch = qr/\s*(?:IF\b.*?\bTHEN\b|ELSE\b|END IF\b)/s;
	return grep { !/^(?:DECLARE .*)?$/ } map { s/^(?:$branch)*\s*//r =~ s/ INTO \w+$//r } split /;/, $sql;
}
my @parts;
for my $statement (@statements) {
	my ($name) = @$statement;
	push @parts, map { [$name, $_] } parts(Slipway::Statements->filled($statement));
}
# It would lock what it reads, for the server does not regard an IF as a SELECT.
my @locking = map { $_->[0] } grep { $_->[2] =~ /\bIF\b(?:(?!\bTHEN\b)[^;])*\bSELECT\b[^;]*?\bTHEN\b/s
    && $_->[2] =~ /^BEGIN NOT ATOMIC/ } @statements;
is("@locking", '', 'no condition of a compound statement queries a table');
cmp_ok(scalar(grep { $_->[0] eq 'move_end' } @parts), '>', 5, 'the test reads compound statements');
for my $part (@parts) {
	my ($name, $sql) = @$part;
	next if $sql =~ /^(?:INSERT|REPLACE)/ && $sql !~ /\bSELECT\b/;
	my ($rc, $plan, $why) = $db->client("EXPLAIN $sql");
	if ($rc != 0) { push @failed, "$name: $why"; next }
	$explained++;
	for my $line (split /\n/, $plan) {
		my (undef, undef, $table, $type, undef, $index, undef, undef, $rows, $extra) = split /\t/,
		    $line;
		next if !defined $type;
		my $alias = $table;
		my ($real) = $sql =~ /\b(?:FROM|JOIN|UPDATE)\s+(\w+)\s+(?:AS\s+)?\Q$alias\E\b/i;
		my $base = $large{$table} ? $table : defined $real && $large{$real} ? $real : next;
		$used{$base}{$index} = 1;
		next if $rows eq 'NULL'; # an INSERT reads nothing of its table
		push @scans, "$name: $base: $rows rows" if $type eq 'ALL' && !$search{$name};
		push @scans, "$name: $base: $rows rows of index $index"
		    if $type eq 'index' && $rows > 1000 && !$search{$name} && !$counted{$name};
		push @sorts, "$name: $base: sorts $rows rows"
		    if $extra =~ /filesort/ && $rows > 1000 && !$search{$name};
	}
}
is_deeply(\@failed, [], 'EXPLAIN accepts every statement');
cmp_ok($explained, '>', 50, 'the test reads the plans');
is(join("\n", @scans), '', 'no statement reads a large table from end to end');
my @unused = grep { !$used{deployment}{$_} } split /\n/,
    $db->sql('SELECT DISTINCT index_name FROM information_schema.statistics'
	. " WHERE table_schema = 'slipway' AND table_name = 'deployment'");
is("@unused", '', 'every index of deployments serves a statement');
is(join("\n", @sorts), '', 'no statement sorts a large table to find its first rows');

# --- rows that a statement really reads
sub reads {
	my ($sql) = @_;
	my $out = $db->sql("FLUSH STATUS; $sql; SELECT '--'; SHOW SESSION STATUS LIKE 'Handler_read%'");
	my $n = 0;
	my ($status) = $out =~ /.*^--\n(.*)/ms;
	$n += $1 while $status =~ /^Handler_read\w*\t(\d+)$/mg;
	return $n;
}
my %sql = map { $_->[0] => $_ } @statements;
# Many rows of one branch and none of one status or of another branch; and a pipeline
# and an environment of another project.
$db->sql("INSERT INTO deployment (project_id, pipeline_id, environment_id, branch, status, `trigger`)"
    . " SELECT 9, 9, 9, 'busy', 'success', 'manual' FROM seq_1_to_5000;"
    . ' UPDATE pipeline SET project_id = 9 WHERE id = 9;'
    . ' UPDATE deployment SET commit_hash = SHA1(id % 1000);'
    # a tag that every project moves, and one that all but one have
    . " UPDATE deployment SET tag = IF(id % 2, 'nightly', IF(project_id = 9, 'v2', 'v1')),"
    . ' branch = NULL WHERE id % 5 = 1 OR id % 5 = 2;'
    . " UPDATE notifier SET events = '[\"recovered\"]' WHERE project_id = 9; ANALYZE TABLE deployment");
my %busy = (project_id => 9, pipeline_id => 9, environment_id => 9, branch => "'busy'",
	status => "'interrupted'", before => 9e15);
my %rare = (%busy, branch => "'rare'", status => "'success'");
my %commit = (map({ $_ => 0 } qw(project_id pipeline_id environment_id)), status => 'NULL', branch => 'NULL',
	trigger => 'NULL', tag => 'NULL', created_by => 0, before => 9e15);
my %started = (%commit, trigger => "'rollback'");
my %tagged = (%commit, tag => "'v1'");
my %ended = (id => $db->sql('SELECT MAX(id) FROM deployment'), events => "'[\"recovered\"]'");
my %foreign = (%busy, project_id => 10, status => "'success'");
for my $case (['claim_candidates', 1500], ['project_by_id', 5], ['principal_by_token', 5],
	['project_page', 200], ['change_newest', 700], ['step_page_of', 20],
	['queue_held', 100], ['queue_expired', 60], ['figures_read', 500],
	(map { ["deployment_page_$_", 50, \%busy] } 1 .. 31),
	['deployment_page_of_commit', 50, \%commit], ['deployment_page_of_digits', 120, \%commit],
	['deployment_page_of_user', 120, { %commit, created_by => 7 }],
	['deployment_page_of_trigger', 50, { %started, trigger => "'manual'" }],
	(map { ["deployment_page_of_$_", 50, { %started, "${_}_id" => 9 }] }
	    qw(project pipeline environment)),
	['deployment_page_of_tag', 50, { %tagged, tag => "'nightly'" }],
	['deployment_page_of_tag', 5, { %tagged, tag => "'none'" }],
	(map { ["deployment_page_of_tag_$_", 50, { %tagged, "${_}_id" => 9 }] }
	    qw(project pipeline environment)),
	(map { ["deployment_page_of_tag_$_", 50, { %tagged, tag => "'nightly'", "${_}_id" => 9 }] }
	    qw(project pipeline environment)),
	['notice_want', 50, \%ended],
	(map { ["deployment_page_$_", 50, \%rare] } 16 .. 31),
	(map { ["deployment_page_$_", 50, \%foreign] } 3, 7, 11, 15, 17, 19, 21, 23, 25, 27, 29, 31)) {
	my ($name, $most, $own) = @$case;
	local @value{keys %$own} = values %$own if $own;
	my ($found) = $sql{$name} or do { fail("$name is a statement"); next };
	my $n = reads(Slipway::Statements->filled($found));
	cmp_ok($n, '<=', $most, "$name reads at most $most rows of an index ($n)");
}

done_testing();
