#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Deployments from the queue to their end, by an installed runner: results, order,
# slots, cancels and delays.

use strict;
use warnings;
use IO::Socket::UNIX ();
use Socket qw(SOCK_DGRAM);
use List::Util qw(max);
use Slipway::DB;
use Slipway::Runner;
use Slipway::Test;
use Test::More;
use Time::HiRes qw(sleep time);

my $db = Slipway::DB->start;
$db->migrate;
my $live = tempdir() . '/live-wake.sock';
my $ear = IO::Socket::UNIX->new(Type => SOCK_DGRAM, Local => $live) or die "$live: $!";
chmod 0666, $live or die "$live: $!";
$ear->blocking(0);
my $runner = Slipway::Runner->start(db => $db,
	conf => "[api]\nlive_wake_socket = $live\n[runner]\nslots = 6\npoll = 60\n");
ok(poll(20, sub { -S $runner->wake_socket }), 'the dispatcher listens on its socket');
is((stat $runner->wake_socket)[2] & 07777, 0660, 'the group can write to the socket');

# --- one deployment of each kind
my $project = $runner->project(repo => $runner->repo({ 'a/b' => "content\n" }));
my $id = $runner->deploy($project, 'cat a/b', 'echo two >&2',
    { name => 'never', script => 'echo never', when => 'failure' });
is($runner->wait($id), 'success', 'a deployment succeeds');
ok(defined recv($ear, my $nothing, 10, 0), 'the dispatcher announces changes to slipway-live');
$ear->close;
unlink $live;
is($runner->steps($id), 'success success skipped', 'a deployment reports its steps');
my $log = $runner->log($id);
like($log, qr/^content$/m, 'the log has standard output');
like($log, qr/^two$/m, 'the log has standard error');
is($runner->column($id, 'log_size'), length $log, 'log_size is the size of the log');
my $hash = $runner->column($id, 'commit_hash');
like($hash, qr/^[0-9a-f]{40}$/, 'the commit hash is stored');
is($runner->column($id,
    "CONCAT_WS('|', commit_message, branch, runner, epoch, reason, finished_at >= started_at)"),
    "first\\n\\nof " . tempdir() . '/repo1|main|runner-1|1|1', 'message, branch and runner are stored');
is($db->sql("SELECT GROUP_CONCAT(IFNULL(exit_code, '-') ORDER BY position) FROM deployment_step WHERE "
    . "deployment_id = $id"),
    '0,0,-', 'the exit codes of the steps are stored');
is($db->sql("SELECT COUNT(*) FROM deployment_step WHERE deployment_id = $id AND status = 'success' AND "
    . "log_length > 0"
    . ' AND finished_at >= started_at'), 2, 'the times and log positions of the steps are stored');
my ($at, $len) = split /\t/,
    $db->sql("SELECT log_offset, log_length FROM deployment_step WHERE deployment_id = $id AND position = 1");
like(substr($log, $at, $len), qr/two\n/, 'the log position of a step selects its output');
unlike(substr($log, $at, $len), qr/content/, 'the log position of a step excludes other output');
is($db->sql("SELECT CONCAT_WS(' ', status, branch, commit_hash, dirty, runner, size_bytes > 0) FROM "
    . "workspace WHERE project_id = $project"),
    "ready main $hash 0 runner-1 1", 'the state of the workspace is stored');
ok($runner->is_clean, 'a finished deployment leaves nothing behind');

my %ends = (
	'exit 3' => ['failed', 'step_failed', 'failed'],
	'kill -9 $$' => ['failed', 'step_failed', 'failed'],
	'exit 0' => ['success', 'NULL', 'success'],
);
for my $script (sort keys %ends) {
	my ($status, $reason, $step) = @{ $ends{$script} };
	$id = $runner->deploy($project, $script);
	is($runner->wait($id), $status, "the script \"$script\" ends as $status");
	is($runner->column($id, 'IFNULL(reason, \'NULL\')'), $reason,
	    "the script \"$script\" ends with reason $reason");
	is($runner->steps($id), $step, "the script \"$script\" has a step that ends as $step");
}
is($db->sql("SELECT GROUP_CONCAT(IFNULL(exit_code, '-'), '/', IFNULL(`signal`, '-') ORDER BY deployment_id)"
    . " FROM deployment_step WHERE position = 0 AND deployment_id > 1"),
    '0/-,3/-,-/9', 'a step stores its exit code or its signal');
$id = $runner->deploy($project, { name => 'slow', script => 'sleep 600', timeout => 1 },
    { script => 'echo cleaned', when => 'always' });
is($runner->wait($id), 'failed', 'a step past its time limit fails the deployment');
is($runner->column($id, 'reason'), 'timeout', 'a step past its time limit has the reason timeout');
like($runner->log($id), qr/^cleaned$/m, 'a cleanup step runs after a timeout');
$id = $runner->deploy($project, { env => '{"WHO": "w o r l d", "SECRET": null}' },
    'echo "hello $WHO<${SECRET-none}>"');
$runner->wait($id);
like($runner->log($id), qr/^hello w o r l d<none>$/m, 'variables are set for the steps');
my $nowhere = $runner->project(repo => tempdir() . '/no/such/repository');
$id = $runner->deploy($nowhere, 'echo never');
is($runner->wait($id), 'failed', 'an unreachable repository fails the deployment');
is($runner->column($id, 'reason'), 'checkout_failed',
    'an unreachable repository has the reason checkout_failed');
is($runner->steps($id), 'skipped', 'an unreachable repository skips the steps');
my $empty = $runner->deploy($project);
is($runner->wait($empty), 'success', 'a deployment without steps succeeds');
my $outside = $runner->project(dir => '../outside');
$id = $runner->deploy($outside, 'echo never');
is($runner->wait($id), 'failed', 'a project directory outside the workspaces fails the deployment');
is($runner->column($id, "CONCAT_WS(' ', reason, detail IS NOT NULL)"), 'workspace_error 1',
    'a project directory outside the workspaces has the reason workspace_error');
$id = $runner->deploy($project, 'true');
is($runner->wait($id), 'success', 'the next deployment succeeds');
# --- changes of the steps to their clone
my $self = $runner->project(repo => tempdir() . '/repo1');
for (['rm -rf .git', 'no_git'], ['rm -rf .git *', 'empty'], ['echo x >.git/HEAD', 'error']) {
	my ($script, $seen) = @$_;
	$id = $runner->deploy($self, $script);
	is($runner->wait($id), 'success', "after \"$script\" the deployment succeeds");
	is($db->sql("SELECT CONCAT_WS(' ', status, dirty) FROM workspace WHERE project_id = $self"),
	    "$seen 0", "after \"$script\" the workspace is $seen");
}
$id = $runner->deploy($self, 'cat a/b');
is($runner->wait($id), 'success', 'a deployment after changes to the clone succeeds');
SKIP: {
	skip 'without root a closed directory cannot be opened', 1 if !is_root();
	$runner->wait($runner->deploy($self, 'chmod 0 .'));
	$id = $runner->deploy($self, 'cat a/b');
	is($runner->wait($id), 'success', 'a deployment after a step closed its workspace succeeds')
	    or diag($runner->log($id));
}
my $sealed = $runner->project;
$db->sql("INSERT INTO deployment (project_id, pipeline_id, `trigger`, secret_vars) VALUES ($sealed, $sealed, "
    . "'manual', '{\"KEY\":\"nonsense\"}')");
$id = $db->sql('SELECT MAX(id) FROM deployment');
$runner->ring;
is($runner->wait($id), 'failed', 'secrets that cannot be decrypted fail the deployment');
is($runner->column($id, 'reason'), 'runner_error',
    'secrets that cannot be decrypted have the reason runner_error');
unlike($runner->column($id, 'detail'), qr{/}, 'the detail contains no path');

# --- cancels
$id = $runner->deploy($project, "trap 'echo told; exit 1' TERM; echo up; while :; do sleep 0.1; done",
    { script => 'echo cleaned', when => 'always' }, 'echo never');
like($runner->wait_log($id, qr/^up$/m), qr/^up$/m, 'a deployment runs');
my $behind = $runner->deploy($project, 'echo never');
sleep 0.3;
is($runner->status($behind), 'pending', 'the next deployment of the project waits');
$runner->cancel($behind);
is($runner->status($behind), 'canceled', 'a pending deployment is canceled at once');
my $before = stopwatch();
$runner->cancel($id);
is($runner->wait($id), 'canceled', 'a running deployment is canceled');
cmp_ok($before->(), '<', deadline(30), 'a cancel takes effect before the next poll');
is($runner->column($id, 'reason'), 'canceled_by_user',
    'a canceled deployment has the reason canceled_by_user');
like($runner->log($id), qr/^told$/m, 'the step of a canceled deployment gets TERM');
like($runner->log($id), qr/^cleaned$/m, 'a cleanup step runs after a cancel');
unlike($runner->log($id), qr/^never$/m, 'steps other than cleanup do not run after a cancel');
$id = $runner->deploy($project, "trap '' TERM INT HUP; echo up;"
    . " (setsid bash -c 'trap \"\" TERM; sleep 60' &); while :; do sleep 60; done");
$runner->wait_log($id, qr/^up$/m);
$runner->cancel($id);
is($runner->wait($id), 'canceled', 'a deployment that ignores signals is canceled');
ok($runner->is_clean, 'a canceled deployment leaves no process');
is($runner->status($behind), 'canceled', 'a canceled deployment stays canceled');

# --- slots
my @projects = map { $runner->project } 1 .. 10;
my $gate = tempdir() . '/gate';
my @many = $runner->deploy_many(map { [$_, "while ! test -e $gate; do sleep 0.1; done"] } @projects);
sub running { return $db->sql("SELECT COUNT(*) FROM deployment WHERE status = 'running'") }
ok(poll(20, sub { running() == 6 }), 'six slots run six deployments');
sleep 0.5;
is(running(), 6, 'six slots run no more than six deployments');
is($db->sql("SELECT MAX(id) < $many[6] FROM deployment WHERE status = 'running'"), 1,
    'the oldest deployments run first');
spew($gate, '');
is($runner->wait($_), 'success', "deployment $_ succeeds") for @many;

# --- 100 deployments of ten projects
$before = stopwatch();
@many = $runner->deploy_many(map { [$projects[$_ % 10], "echo deployment-$_"] } 0 .. 99);
my $took = poll(180,
    sub { $db->sql("SELECT COUNT(*) FROM deployment WHERE status = 'success' AND id >= $many[0]") == 100 });
ok($took, '100 deployments of ten projects succeed');
diag(sprintf '100 deployments of ten projects, 6 slots: %.1f s', $before->());
is($db->sql("SELECT COUNT(*) FROM deployment WHERE id >= $many[0] AND epoch = 1"), 100,
    'each deployment is claimed once');
is($db->sql("SELECT COUNT(*) FROM deployment a JOIN deployment b ON a.project_id = b.project_id AND a.id < "
    . "b.id"
    . " WHERE a.id >= $many[0] AND b.started_at < a.started_at"), 0,
    'deployments of a project start in order');
is_deeply([grep { my $n = () = $runner->log($many[$_]) =~ /^deployment-$_$/mg; $n != 1 } 0 .. 99], [],
    'each deployment runs once');
ok($runner->is_clean, '100 deployments leave nothing behind');

# --- delays
my (@starts, @sees);
best_of(1, sub {
	@starts = @sees = ();
	for my $n (1 .. 20) {
		my $file = tempdir() . "/started$n";
		spew($file, '', 0666);
		$id = $runner->deploy($project, "date +%s.%N >$file; echo seen; sleep 0.4");
		my $asked = time;
		poll(10, sub { -s $file }) or diag($runner->tell($id), tail($runner->said));
		push @starts, 1000 * (slurp($file) - $asked);
		poll(10, sub { $runner->log($id) =~ /^seen$/m });
		push @sees, 1000 * (time - slurp($file));
		is($runner->wait($id), 'success', "deployment $n of 20 succeeds");
	}
	@starts = sort { $a <=> $b } @starts;
	@sees = sort { $a <=> $b } @sees;
	return max($starts[10] / 2000, $sees[10] / 1000);
});
diag(sprintf 'from the queue to the first output of the script: median %.0f ms, worst %.0f ms',
    @starts[10, 19]);
diag(sprintf 'from the output to the database, polled by the test: median %.0f ms, worst %.0f ms',
    @sees[10, 19]);
cmp_ok($starts[10], '<', deadline(2000), 'a request starts a deployment before the next poll');
cmp_ok($sees[10], '<', deadline(1000), 'output is in the database soon');
$before = stopwatch();
for (1 .. 10) { $id = $runner->deploy($project); $runner->wait($id) }
diag(sprintf 'a deployment without steps takes %.0f ms', 1000 * ($before->()) / 10);

# --- busy accounts, of as many projects as there are slots
if (is_root()) {
	my @busy = @projects[0 .. 5];
	my @guests = map {
		my $uid = $runner->{uid_first} + $_ % 300;
		start_process({ name => "guest$_" }, 'setpriv', '--reuid', $uid, '--regid', $uid,
		    '--clear-groups', 'sleep', 3000);
	} @busy;
	my $runs_as = sub { my ($pid, $uid) = @_; return ((stat "/proc/$pid")[4] // 0) == $uid };
	ok(poll(60, sub {
		!grep { !$runs_as->($guests[$_], $runner->{uid_first} + $busy[$_] % 300) } 0 .. 5;
	}), 'other processes run under the accounts of six projects');
	my @waiting = $runner->deploy_many(map { [$_, 'true'] } @busy);
	sub rejections { my ($of) = @_; return scalar(() = $runner->said =~ /^.*job $of\.\d+ rejected: /mg) }
	ok(poll(120, sub { !grep { rejections($_) < 7 } @waiting }),
	    'deployments of busy accounts are tried again');
	$before = stopwatch();
	is($runner->wait($runner->deploy($projects[9], 'true')), 'success',
	    'busy accounts do not delay another project');
	cmp_ok($before->(), '<', deadline(9), 'another project starts without waiting for a retry');
	stop_process($_) for @guests;
	is($runner->wait($_), 'success', "$_ succeeds when its account is free") for @waiting;
}

is($runner->stop, 0, 'the runner stops');
is_deeply([grep { !m{/objects\.\d+$} } glob "$runner->{spool}/*"], [],
    'a stopped runner leaves no deployment in the spool');
done_testing;
