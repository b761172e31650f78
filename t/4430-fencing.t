#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# A runner that hangs for too long is fenced, and lost responses of the database do
# no harm: every deployment runs once, to a right end.

use strict;
use warnings;
use Slipway::DB;
use Slipway::Proxy;
use Slipway::Runner;
use Slipway::Test;
use Test::More;
use Time::HiRes qw(sleep time);

my $db = Slipway::DB->start;
$db->migrate;
my $marks = tempdir() . '/marks';
mkdir $marks or die;
chmod 0777, $marks or die;
sub marked { my ($id) = @_; my $text = slurp("$marks/$id"); return defined $text ? ($text =~ tr/\n//) : 0 }
my $mark = "echo \$SLIPWAY_DEPLOYMENT_ID >>$marks/\$SLIPWAY_DEPLOYMENT_ID";

# --- a dispatcher that hangs for two leases
my $one = Slipway::Runner->start(db => $db, name => 'one', conf => "[runner]\nlease = 3\n");
my $project = $one->project;
my $id = $one->deploy($project, "$mark; " . counts_until('/nowhere'), 'echo never');
like($one->wait_log($id, qr/^count-3$/m), qr/^count-3$/m, 'a step runs');
my $two = Slipway::Runner->start(db => $db, name => 'two', conf => "[runner]\nlease = 3\n");
my $behind = $two->deploy($project, $mark, 'echo behind');
sleep 1;
is($two->status($behind), 'pending', 'the next deployment of the project waits');
my $still = $one->dispatcher;
kill 'STOP', $still;
is($two->wait($id, undef, 20), 'interrupted', 'a deployment whose dispatcher hangs is interrupted');
is($two->column($id, "CONCAT_WS(' ', reason, epoch)"), 'runner_lost 2',
    'the interrupted deployment has a new epoch');
is($two->steps($id), 'interrupted skipped', 'the steps of the interrupted deployment are settled');
is($two->wait($behind), 'success', 'the next deployment of the project succeeds');
is($two->column($behind, 'runner'), 'two', 'the next deployment of the project runs on the other runner');
my $log = $two->log($id);
ok(scalar $one->jobs, 'the job of the hung dispatcher is alive');
kill 'CONT', $still;
ok(poll(15, sub { !$one->jobs }), 'the job ends when its dispatcher continues and is fenced');
ok($one->is_clean, 'the fenced job leaves nothing behind');
is($two->column($id, "CONCAT_WS(' ', status, epoch)"), 'interrupted 2',
    'the fenced dispatcher does not change the deployment');
is($two->log($id), $log, 'the fenced dispatcher does not write to the log');
is($one->dispatcher, $still, 'the fenced dispatcher survives');
is($two->stop, 0, 'the other runner stops');
my $after = $one->deploy($project, $mark);
is($one->wait($after), 'success', 'the fenced runner runs the next deployment');
is(marked($_), 1, "deployment $_ ran once") for $id, $behind, $after;

# --- a runner expires leases of others only after a full lease with its own connection
my $gate = tempdir() . '/gate';
$one->write_conf("[runner]\nlease = 6\n");
$one->restart;
$two->write_conf("[runner]\nlease = 6\n");
$id = $one->deploy($project, "$mark; echo up; " . waits_until($gate) . '; echo down');
$one->wait_log($id, qr/^up$/m);
$two->resume;
ok(poll(10, sub { $two->dispatcher }), 'two runners run');
$db->kill9;
sleep 7;
$db->resume;
sleep 1;
spew($gate, '');
is($one->wait($id), 'success', 'no deployment is interrupted after an outage longer than a lease');
like($one->log($id), qr/^down$/m, 'the log is complete after the outage');
is($one->column($id, 'epoch'), 1, 'the deployment keeps its epoch');
is($two->stop, 0, 'runner two stops');
is($one->stop, 0, 'runner one stops');

# --- a database that rejects statements is not queried in a loop, idle or with a job
$one->write_conf("[runner]\nlease = 60\n");
$one->resume;
is($one->wait($one->deploy($project, $mark)), 'success',
    'a deployment succeeds before the database rejects statements');
my $held = tempdir() . '/held';
sub asked {
	return $db->sql("SELECT SUM(variable_value) FROM information_schema.global_status WHERE "
	    . "variable_name IN ('COM_STMT_PREPARE', 'COM_STMT_EXECUTE')");
}
for my $how ('idle', 'with a job') {
	if ($how ne 'idle') {
		$id = $one->deploy($project,
		    "$mark; echo up; " . waits_until($held) . '; echo down');
		$one->wait_log($id, qr/^up$/m);
	}
	my ($before, $said, $since) = (asked(), length $one->said, time);
	$db->sql('RENAME TABLE deployment TO elsewhere');
	ok(poll(60, sub { asked() >= $before + 8 }), "$how: statements fail");
	sleep 3;
	cmp_ok(asked() - $before, '<', 30 + 8 * (time - $since),
	    "$how: failing statements are repeated with pauses");
	my %lines;
	$lines{$_}++ for substr($one->said, $said) =~ /^\S+ \S+ (.*exist.*)$/mg;
	cmp_ok(scalar keys %lines, '>', 0, "$how: the errors are logged");
	is_deeply([grep { $lines{$_} > 1 } sort keys %lines], [], "$how: each error is logged once");
	$db->sql('RENAME TABLE elsewhere TO deployment');
	ok(poll(60, sub { substr($one->said, $said) =~ /claim: recovered$/m }),
	    "$how: the recovery is logged");
}
spew($held, '');
is($one->wait($id), 'success', 'a deployment survives rejected statements');
is($one->column($id, 'epoch'), 1, 'the deployment keeps its epoch');
is($one->stop, 0, 'the runner stops');

# --- a hung monitor whose dispatcher died: another dispatcher adopts its job
$one->write_conf("[runner]\nlease = 3\n");
$one->resume;
$id = $one->deploy($project, 'echo up; sleep 600');
$one->wait_log($id, qr/^up$/m);
my $neighbour = Slipway::Runner->start(db => $db, name => 'neighbour', conf => "[runner]\nlease = 3\n",
    spool => $one->{spool}, workspaces => $one->{workspaces});
$still = $one->dispatcher;
kill 'STOP', $one->pid;
kill 'KILL', $still;
ok(poll(30, sub { $neighbour->said =~ /\b$id\.1: adopted/ }),
    'a dispatcher adopts the job of another monitor');
$db->sql("UPDATE deployment SET epoch = epoch + 1, owner = REPEAT('f', 32), runner = 'elsewhere',"
    . " lease_until = NOW(3) + INTERVAL 1 HOUR WHERE id = $id");
ok(poll(30, sub { $neighbour->said =~ /\b$id\.1: killed: its lease was lost/ }),
    'a job whose lease is lost is to be killed');
ok(poll(30, sub { !$one->jobs }), 'the job ends');
like($neighbour->said, qr/\b$id\.1: its job belongs to another monitor/,
    'the log says that the job belongs to another monitor');
kill 'CONT', $one->pid;
ok($one->is_clean, 'the job leaves nothing behind');
$db->sql("UPDATE deployment SET status = 'interrupted', finished_at = NOW(3) WHERE id = $id");
is($_->stop, 0, 'a runner stops') for $neighbour, $one;

# --- lost responses
my $proxy = Slipway::Proxy->start($db->socket);
chmod 0777, $proxy->socket or die;
my $cut = Slipway::Runner->start(db => $db, name => 'cut',
    conf => "[runner]\nlease = 6\n[database]\nsocket = " . $proxy->socket . "\n");
ok(poll(20, sub { -S $cut->wake_socket }), 'a runner starts behind a proxy');
my $fresh = $cut->project;
is($cut->wait($cut->deploy($fresh, $mark)), 'success', 'a deployment succeeds before connections are cut');
my (@wrong, @ids);
# a deployment takes about 20 packets
for my $plan ((map { "packet $_ answer" } 1 .. 24), (map { "packet $_ before" } 1 .. 18),
    (map { "packet $_ after" } 1, 2, 3, 5, 7, 9, 13, 17)) {
	$proxy->plan($plan);
	my $n = $cut->deploy($fresh, "$mark; echo said-it", 'exit 4');
	push @ids, $n;
	my $status = $cut->wait($n);
	my $said = () = $cut->log($n) =~ /^said-it$/mg;
	my $ran = marked($n);
	push @wrong, "$plan: $status, ran $ran times, said $said"
	    if $status ne 'failed' || $ran != 1 || $said != 1 || $cut->steps($n) ne 'success failed';
}
is_deeply(\@wrong, [], 'each deployment runs once to its right end, wherever the connection is cut');
cmp_ok($proxy->cuts, '>=', 40, 'connections were cut at each packet of a deployment');
$proxy->plan('pass');
ok($cut->is_clean, 'deployments over cut connections leave nothing behind');

# --- a server that crashes repeatedly
my @projects = map { $cut->project } 1 .. 5;
@ids = $cut->deploy_many(map { [$projects[$_ % 5], "$mark; sleep 0.3; echo said-$_"] } 0 .. 29);
for (1 .. 4) {
	sleep 0.4 + rand 0.6;
	$db->kill9;
	sleep 0.2;
	$db->resume;
}
my $ended = poll(180,
    sub { $db->sql("SELECT COUNT(*) FROM deployment WHERE status IN ('pending', 'running')") == 0 });
ok($ended, 'all deployments end though the server is killed four times');
is($db->sql("SELECT GROUP_CONCAT(DISTINCT status) FROM deployment WHERE id >= $ids[0]"),
    'success', 'all deployments succeed though the server is killed four times');
is_deeply([grep { marked($_) != 1 } @ids], [],
    'each deployment runs once though the server is killed four times');
is_deeply([grep { my $n = () = $cut->log($ids[$_]) =~ /^said-$_$/mg; $n != 1 } 0 .. 29], [],
    'each log is complete though the server is killed four times');
is($db->sql("SELECT COUNT(*) FROM deployment a JOIN deployment b ON a.project_id = b.project_id AND a.id < "
    . "b.id"
    . " WHERE a.id >= $ids[0] AND b.started_at < a.finished_at"), 0,
    'deployments of a project run in order, one after the other');
ok($cut->is_clean, 'deployments leave nothing behind though the server was killed');
is($cut->stop, 0, 'the runner stops');
$proxy->stop;
done_testing;
