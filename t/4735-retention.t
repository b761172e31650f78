#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Old deployments, push events and messages are deleted; what something still needs
# stays.

use strict;
use warnings;
use Slipway::API qw(outcome);
use Slipway::Test;
use Slipway::Whole;
use Test::More;

my $all = Slipway::Whole->start(runner => "[runner]\nlease = 3\npoll = 60\ndelivery_days = 20\n");
my ($api, $db, $runner) = ($all->api, $all->db, $all->runner);
my $project = $all->project($runner->repo);
my $pipeline = $all->pipeline($project, { pipeline => { checkout => 'none' } }, 'echo log');
my %env = map { $_ => $all->make('/api/environments', { projectId => $project, name => $_ })->{id} }
    qw(live back gone);
my ($bare, $dead) = map { $all->project($runner->repo) } 1, 2;
my $real = $all->wait($all->post(projectId => $project, environmentId => $env{gone}))->{id};
$runner->stop;

# Adds a deployment that ended a year ago, unless members say otherwise.
my ($next, %name) = (1000);
sub old {
	my ($name, %o) = @_;
	my %row = (id => ++$next, project_id => $project, pipeline_id => $pipeline, status => "'success'",
		trigger => "'manual'", created_at => 'NOW(3) - INTERVAL 365 DAY',
		finished_at => 'NOW(3) - INTERVAL 365 DAY', %o);
	my @column = sort keys %row;
	$db->sql('INSERT INTO deployment (' . join(', ', map { "`$_`" } @column) . ') VALUES ('
	    . join(', ', @row{@column}) . ')');
	$db->sql("INSERT INTO deployment_step (deployment_id, position, name, script, run_when)"
	    . " VALUES ($next, 0, 's', 'true', 'success');"
	    . "INSERT INTO log_chunk (deployment_id, start, length, data) VALUES ($next, 0, 1, 'x');"
	    . "INSERT INTO commit_status (deployment_id, wanted) VALUES ($next, 'success');"
	    . "INSERT INTO deployment_wait VALUES ($next, 'slots', 'x', 'r', NOW(3));"
	    . "INSERT INTO deployment_return VALUES ($next, 1, 'r', NOW(3))");
	$name{$next} = $name;
	return $next;
}
sub left { return join ', ', sort map { $name{$_} || () } split /\n/, $db->sql('SELECT id FROM deployment') }

# --- rows that are deleted
my %at = (environment_id => $env{live});
old("success $_", %at) for 1 .. 3;
old('failed', %at, status => "'failed'");
old('canceled', status => "'canceled'");
old('interrupted', status => "'interrupted'");
old("bare $_", project_id => $bare) for 1, 2;
old('of a deleted environment', environment_id => $env{gone});
old('of a deleted project', project_id => $dead);
my $late = old('ended late', created_at => 'NOW(3) - INTERVAL 400 DAY', finished_at => 'NOW(3)');
# --- rows that stay
my @kept = ('ended late');
sub kept { my ($name, @row) = @_; push @kept, $name; return old($name, @row) }
kept('pending', status => "'pending'", finished_at => 'NULL', turn => 2);
kept('running', status => "'running'", finished_at => 'NULL', owner => "'x'",
    lease_until => 'NOW(3) + INTERVAL 1 DAY');
kept('young', finished_at => 'NOW(3) - INTERVAL 29 DAY', status => "'failed'",
    created_at => 'NOW(3) - INTERVAL 29 DAY');
my $repeated = kept('repeated', status => "'failed'");
kept('repetition', retry_of => $repeated, created_at => 'NOW(3)', finished_at => 'NOW(3)');
my %back = (environment_id => $env{back});
my $first = kept('content of the one before', %back);
my $before = kept('before the live one', %back, trigger => "'rollback'", retry_of => $first);
my $content = kept('content of the live one', %back, replaced => $before);
my $now = kept('live', %back, trigger => "'rollback'", retry_of => $content);
old("never again $_", %back) for 1, 2;
kept("recent $_", %back) for 1 .. 10;
kept("recent in live $_", %at) for 1 .. 10;
kept("recent without environment $_", project_id => $bare) for 1 .. 10;
old('failed since', %at, status => "'failed'");
my $scheduled = kept('of a schedule', status => "'failed'");
my $unscheduled = old('of a deleted schedule', status => "'failed'");
my %head = (status => "'failed'", commit_hash => 'REPEAT("a", 40)');
kept('head of a branch', %head, branch => "'main'");
old('head of another branch', %head, branch => "'old'");
old('head of another project', %head, branch => "'main'", project_id => $bare);
old('no head', %head, branch => "'main'", commit_hash => 'REPEAT("b", 40)');
$db->sql("UPDATE environment SET live_deployment = $now WHERE id = $env{back};"
    . "INSERT INTO schedule (project_id, pipeline_id, name, cron, timezone, variables, active,"
    . " last_deployment_id, valid) VALUES"
    . " ($project, $pipeline, 's', '\@yearly', 'UTC', '{}', 0, $scheduled, 1),"
    . " ($project, $pipeline, 't', '\@yearly', 'UTC', '{}', 0, $unscheduled, 0);"
    . "INSERT INTO push_head (project_id, branch, commit_hash, caught_up)"
    . " VALUES ($project, 'main', '" . 'a' x 40 . "', 0)");

# --- events and messages
$db->sql("INSERT INTO hook_delivery (project_id, delivery_hash, created_at) VALUES"
    . " ($project, 'old', NOW(3) - INTERVAL 21 DAY), ($project, 'new', NOW(3) - INTERVAL 19 DAY);"
    . "INSERT INTO notice (notifier_id, event, deployment_id, next_at, created_at) VALUES"
    . " (9, 'old', 1, NULL, NOW(3) - INTERVAL 21 DAY), (9, 'new', 2, NULL, NOW(3) - INTERVAL 19 DAY),"
    . " (9, 'unsent', 3, NOW(3) + INTERVAL 1 DAY, NOW(3) - INTERVAL 21 DAY)");
is($api->delete("/api/environments/$env{gone}")->{status}, 204, 'an environment is deleted');
is($api->delete("/api/projects/$dead")->{status}, 204, 'a project is deleted');

my $everything = left();
$runner->resume;
ok(poll(60, sub { $db->sql("SELECT COUNT(*) FROM notice WHERE event = 'old'") == 0 }),
    'old messages are deleted');
is($db->sql('SELECT GROUP_CONCAT(event ORDER BY event) FROM notice WHERE notifier_id = 9'), 'new,unsent',
    'messages that are young or were not sent stay');
is($db->sql('SELECT GROUP_CONCAT(delivery_hash) FROM hook_delivery'), 'new', 'old push events are deleted');
is(left(), $everything, 'without deployment_days, no deployment is deleted');

$db->sql("UPDATE deployment SET finished_at = NOW(3) - INTERVAL 31 DAY,"
    . " created_at = NOW(3) - INTERVAL 31 DAY WHERE id = $real");
$runner->write_conf($runner->{conf} . "deployment_days = 30\n");
kill HUP => $runner->pid;
my $want = join ', ', sort @kept;
ok(poll(60, sub { left() eq $want }), 'old deployments are deleted, except those that are needed')
    or is(left(), $want);
is($api->get("/api/deployments/$real")->{status}, 404, 'a deployment that a runner has run is deleted');
for my $table (qw(deployment_step log_chunk commit_status deployment_wait deployment_return)) {
	is($db->sql("SELECT COUNT(*) FROM $table t LEFT JOIN deployment d ON d.id = t.deployment_id"
		. ' WHERE d.id IS NULL'), 0, "no row of $table belongs to a deleted deployment");
	is($db->sql("SELECT COUNT(DISTINCT deployment_id) FROM $table WHERE deployment_id = $late"), 1,
	    "the others stay in $table") if $table =~ /step|status/;
}
my $got = $api->post("/api/environments/$env{back}/rollback", {});
is($got->{status}, 201, 'a rollback still finds what was live before') or diag($got->{body});
is($got->{json}{retryOf}, $first, 'a rollback repeats the deployment that was live before');
is(outcome($api->post("/api/environments/$env{live}/rollback", { deploymentId => 1001 })),
    '422 /deploymentId', 'a rollback to a deleted deployment is rejected');
is($api->post("/api/deployments/1001/retry")->{status}, 404, 'a deleted deployment cannot be retried');
done_testing;
