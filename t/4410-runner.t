#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Deployments from the queue to their end, by the runner as it is installed:
# results, order, slots, cancels, and how soon things are seen.

use strict;
use warnings;
use Slipway::DB;
use Slipway::Runner;
use Slipway::Test;
use Test::More;
use Time::HiRes qw(sleep time);

my $db = Slipway::DB->start;
$db->migrate;
my $runner = Slipway::Runner->start(db => $db, conf => "[runner]\nslots = 6\npoll = 60\n");
ok(poll(20, sub { -S $runner->wake_socket }), 'listens for calls');
is((stat $runner->wake_socket)[2] & 07777, 0660, 'of its group');

# --- one of each kind
my $project = $runner->project(repo => $runner->repo({ 'a/b' => "content\n" }));
my $id = $runner->deploy($project, 'cat a/b', 'echo two >&2',
    { name => 'never', script => 'echo never', when => 'failure' });
is($runner->wait($id), 'success', 'a deployment succeeds');
is($runner->steps($id), 'success success skipped', 'with its steps');
my $log = $runner->log($id);
like($log, qr/^content$/m, 'its output is in the log');
like($log, qr/^two$/m, 'both kinds of it');
is($runner->column($id, 'log_size'), length $log, 'as long as it says');
my $hash = $runner->column($id, 'commit_hash');
like($hash, qr/^[0-9a-f]{40}$/, 'the commit is known');
is($runner->column($id, "CONCAT_WS('|', commit_message, branch, runner, epoch, reason, finished_at >= started_at)"),
    "first\\n\\nof " . tempdir() . '/repo1|main|runner-1|1|1', 'with message, branch, runner');
is($db->sql("SELECT GROUP_CONCAT(IFNULL(exit_code, '-') ORDER BY position) FROM deployment_step WHERE deployment_id = $id"),
    '0,0,-', 'exit codes');
is($db->sql("SELECT COUNT(*) FROM deployment_step WHERE deployment_id = $id AND status = 'success' AND log_length > 0"
    . ' AND finished_at >= started_at'), 2, 'times and places in the log');
my ($at, $len) = split /\t/, $db->sql("SELECT log_offset, log_length FROM deployment_step WHERE deployment_id = $id AND position = 1");
like(substr($log, $at, $len), qr/two\n/, 'where the step is');
unlike(substr($log, $at, $len), qr/content/, 'and no other');
is($db->sql("SELECT CONCAT_WS(' ', status, branch, commit_hash, dirty, runner, size_bytes > 0) FROM workspace WHERE project_id = $project"),
    "ready main $hash 0 runner-1 1", 'the workspace is known');
ok($runner->is_clean, 'nothing is left of it');

my %ends = (
	'exit 3' => ['failed', 'step_failed', 'failed'],
	'kill -9 $$' => ['failed', 'step_failed', 'failed'],
	'exit 0' => ['success', 'NULL', 'success'],
);
for my $script (sort keys %ends) {
	my ($status, $reason, $step) = @{ $ends{$script} };
	$id = $runner->deploy($project, $script);
	is($runner->wait($id), $status, "$script: $status");
	is($runner->column($id, 'IFNULL(reason, \'NULL\')'), $reason, "  reason $reason");
	is($runner->steps($id), $step, "  step $step");
}
is($db->sql("SELECT GROUP_CONCAT(IFNULL(exit_code, '-'), '/', IFNULL(`signal`, '-') ORDER BY deployment_id)"
    . " FROM deployment_step WHERE position = 0 AND deployment_id > 1"), '0/-,3/-,-/9', 'exit code or signal');
$id = $runner->deploy($project, { name => 'slow', script => 'sleep 600', timeout => 1 },
    { script => 'echo cleaned', when => 'always' });
is($runner->wait($id), 'failed', 'a step that takes too long');
is($runner->column($id, 'reason'), 'timeout', 'has timed out');
like($runner->log($id), qr/^cleaned$/m, 'its cleanup ran');
$id = $runner->deploy($project, { env => '{"WHO": "w o r l d", "SECRET": null}' }, 'echo "hello $WHO<${SECRET-none}>"');
$runner->wait($id);
like($runner->log($id), qr/^hello w o r l d<none>$/m, 'variables are set');
my $nowhere = $runner->project(repo => tempdir() . '/no/such/repository');
$id = $runner->deploy($nowhere, 'echo never');
is($runner->wait($id), 'failed', 'a repository that is not there');
is($runner->column($id, 'reason'), 'checkout_failed', 'cannot be checked out');
is($runner->steps($id), 'skipped', 'no step ran');
my $empty = $runner->deploy($project);
is($runner->wait($empty), 'success', 'without steps it is the checkout alone');
my $outside = $runner->project(dir => '../outside');
$id = $runner->deploy($outside, 'echo never');
is($runner->wait($id), 'failed', 'a directory outside is refused');
is($runner->column($id, "CONCAT_WS(' ', reason, detail IS NOT NULL)"), 'workspace_error 1', 'and says so');
$id = $runner->deploy($project, 'true');
is($runner->wait($id), 'success', 'the next one runs');
# --- what the steps make of their own clone
my $self = $runner->project(repo => tempdir() . '/repo1');
for (['rm -rf .git', 'no_git'], ['rm -rf .git *', 'empty'], ['echo x >.git/HEAD', 'error']) {
	my ($script, $seen) = @$_;
	$id = $runner->deploy($self, $script);
	is($runner->wait($id), 'success', "$script: the end is what the steps made it");
	is($db->sql("SELECT CONCAT_WS(' ', status, dirty) FROM workspace WHERE project_id = $self"), "$seen 0", "  the workspace: $seen");
}
$id = $runner->deploy($self, 'cat a/b');
is($runner->wait($id), 'success', 'and the next one finds its way');
SKIP: {
	skip 'only root can open it then', 1 if !is_root();
	$runner->wait($runner->deploy($self, 'chmod 0 .'));
	$id = $runner->deploy($self, 'cat a/b');
	is($runner->wait($id), 'success', 'a directory that they closed is opened again') or diag($runner->log($id));
}
my $sealed = $runner->project;
$db->sql("INSERT INTO deployment (project_id, pipeline_id, `trigger`, secret_vars) VALUES ($sealed, $sealed, 'manual', '{\"KEY\":\"nonsense\"}')");
$id = $db->sql('SELECT MAX(id) FROM deployment');
$runner->ring;
is($runner->wait($id), 'failed', 'secrets that do not open');
is($runner->column($id, 'reason'), 'runner_error', 'are an error of the runner');
unlike($runner->column($id, 'detail'), qr{/}, 'that tells no path');

# --- cancels
$id = $runner->deploy($project, "trap 'echo told; exit 1' TERM; echo up; while :; do sleep 0.1; done",
    { script => 'echo cleaned', when => 'always' }, 'echo never');
like($runner->wait_log($id, qr/^up$/m), qr/^up$/m, 'a deployment runs');
my $behind = $runner->deploy($project, 'echo never');
sleep 0.3;
is($runner->status($behind), 'pending', 'the next of its project waits');
$runner->cancel($behind);
is($runner->status($behind), 'canceled', 'canceled while it waits');
my $before = time;
$runner->cancel($id);
is($runner->wait($id), 'canceled', 'canceled while it runs');
cmp_ok(time - $before, '<', deadline(30), 'soon, though the poll is a minute');
is($runner->column($id, 'reason'), 'canceled_by_user', 'with its reason');
like($runner->log($id), qr/^told$/m, 'the step was told');
like($runner->log($id), qr/^cleaned$/m, 'the cleanup ran');
unlike($runner->log($id), qr/^never$/m, 'the rest did not');
$id = $runner->deploy($project, "trap '' TERM INT HUP; echo up; (setsid bash -c 'trap \"\" TERM; sleep 60' &); while :; do sleep 60; done");
$runner->wait_log($id, qr/^up$/m);
$runner->cancel($id);
is($runner->wait($id), 'canceled', 'one that listens to nothing');
ok($runner->is_clean, 'nothing is left of it');
is($runner->status($behind), 'canceled', 'what was canceled stays so');

# --- slots
my @projects = map { $runner->project } 1 .. 10;
my $gate = tempdir() . '/gate';
my @many = $runner->deploy_many(map { [$_, "while ! test -e $gate; do sleep 0.1; done"] } @projects);
sub running { return $db->sql("SELECT COUNT(*) FROM deployment WHERE status = 'running'") }
ok(poll(20, sub { running() == 6 }), 'six slots, six run');
sleep 0.5;
is(running(), 6, 'and no more');
is($db->sql("SELECT MAX(id) < $many[6] FROM deployment WHERE status = 'running'"), 1, 'the oldest');
spew($gate, '');
is($runner->wait($_), 'success', "$_ ends") for @many;

# --- a hundred over ten projects
$before = time;
@many = $runner->deploy_many(map { [$projects[$_ % 10], "echo deployment-$_"] } 0 .. 99);
my $took = poll(180, sub { $db->sql("SELECT COUNT(*) FROM deployment WHERE status = 'success' AND id >= $many[0]") == 100 });
ok($took, 'a hundred over ten projects all end');
diag(sprintf 'a hundred over ten projects, 6 slots: %.1f s', time - $before);
is($db->sql("SELECT COUNT(*) FROM deployment WHERE id >= $many[0] AND epoch = 1"), 100, 'each claimed once');
is($db->sql("SELECT COUNT(*) FROM deployment a JOIN deployment b ON a.project_id = b.project_id AND a.id < b.id"
    . " WHERE a.id >= $many[0] AND b.started_at < a.started_at"), 0, 'in order per project');
is_deeply([grep { my $n = () = $runner->log($many[$_]) =~ /^deployment-$_$/mg; $n != 1 } 0 .. 99], [], 'each ran once');
ok($runner->is_clean, 'nothing is left of them');

# --- how soon
my (@starts, @sees);
for my $n (1 .. 20) {
	my $file = tempdir() . "/started$n";
	spew($file, '', 0666);
	$before = time;
	$id = $runner->deploy($project, "date +%s.%N >$file; echo seen; sleep 0.4");
	my $asked = time;
	poll(10, sub { -s $file }) or diag($runner->tell($id), tail($runner->said));
	push @starts, 1000 * (slurp($file) - $asked);
	poll(10, sub { $runner->log($id) =~ /^seen$/m });
	push @sees, 1000 * (time - slurp($file));
	is($runner->wait($id), 'success', "run $n of twenty");
}
@starts = sort { $a <=> $b } @starts;
@sees = sort { $a <=> $b } @sees;
diag(sprintf 'queued to first byte of the script: median %.0f ms, worst %.0f ms', @starts[10, 19]);
diag(sprintf 'written to seen in the database (with the poll of the test): median %.0f ms, worst %.0f ms', @sees[10, 19]);
cmp_ok($starts[10], '<', deadline(2000), 'a call starts work at once, though the poll is a minute');
cmp_ok($sees[10], '<', deadline(1000), 'output is seen soon');
$before = time;
for (1 .. 10) { $id = $runner->deploy($project); $runner->wait($id) }
diag(sprintf 'a deployment without steps, start to end: %.0f ms', 1000 * (time - $before) / 10);

# --- accounts that are busy, of as many projects as there are slots
if (is_root()) {
	my @busy = @projects[0 .. 5];
	my @guests = map {
		my $uid = $runner->{uid_first} + $_ % 300;
		start_process({ name => "guest$_" }, 'setpriv', '--reuid', $uid, '--regid', $uid, '--clear-groups', 'sleep', 3000);
	} @busy;
	ok(poll(60, sub { !grep { ((stat "/proc/$guests[$_]")[4] // 0) != $runner->{uid_first} + $busy[$_] % 300 } 0 .. 5 }),
	    'others run under the accounts of six projects');
	my @refused = $runner->deploy_many(map { [$_, 'true'] } @busy);
	sub refused { my ($of) = @_; return scalar(() = $runner->said =~ /^.*job $of\.\d+ refused: /mg) }
	ok(poll(120, sub { !grep { refused($_) < 7 } @refused }), 'their deployments are tried less and less often');
	$before = time;
	is($runner->wait($runner->deploy($projects[9], 'true')), 'success', 'they hold up none of another project');
	cmp_ok(time - $before, '<', deadline(9), 'nor does the pause after them');
	stop_process($_) for @guests;
	is($runner->wait($_), 'success', "$_ has its turn when its account is free") for @refused;
}

is($runner->stop, 0, 'ends when it is told to');
is_deeply([grep { !m{/objects\.\d+$} } glob "$runner->{spool}/*"], [], 'and leaves nothing of deployments in the spool');
done_testing;
