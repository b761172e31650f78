#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# A runner that is silent for too long is fenced, and answers of the database
# that are lost do no harm: every deployment runs once, to a right end.

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

# --- a dispatcher that stands still for two leases
my $one = Slipway::Runner->start(db => $db, name => 'one', conf => "[runner]\nlease = 3\n");
my $project = $one->project;
my $id = $one->deploy($project, "$mark; n=0; while :; do n=\$((n+1)); echo count-\$n; sleep 0.05; done", 'echo never');
like($one->wait_log($id, qr/^count-3$/m), qr/^count-3$/m, 'a step runs');
my $two = Slipway::Runner->start(db => $db, name => 'two', conf => "[runner]\nlease = 3\n");
my $behind = $two->deploy($project, $mark, 'echo behind');
sleep 1;
is($two->status($behind), 'pending', 'the next of the project waits');
my $still = $one->dispatcher;
kill 'STOP', $still;
is($two->wait($id, undef, 20), 'interrupted', 'when its runner stands still it is given up');
is($two->column($id, "CONCAT_WS(' ', reason, epoch)"), 'runner_lost 2', 'under a new epoch');
is($two->steps($id), 'interrupted skipped', 'with its steps');
is($two->wait($behind), 'success', 'the next one runs');
is($two->column($behind, 'runner'), 'two', 'on the other runner');
my $log = $two->log($id);
ok(scalar $one->jobs, 'its job still lives');
kill 'CONT', $still;
ok(poll(15, sub { !$one->jobs }), 'until its dispatcher moves again and is refused');
ok($one->is_clean, 'nothing is left of it');
is($two->column($id, "CONCAT_WS(' ', status, epoch)"), 'interrupted 2', 'it has changed nothing');
is($two->log($id), $log, 'nor added to the log');
is($one->dispatcher, $still, 'the dispatcher goes on');
is($two->stop, 0, 'the other one ends');
my $after = $one->deploy($project, $mark);
is($one->wait($after), 'success', 'and works again');
is(marked($_), 1, "$_ ran once") for $id, $behind, $after;

# --- leases of others only after a lease of one's own connection
my $gate = tempdir() . '/gate';
$one->write_conf("[runner]\nlease = 6\n");
$one->restart;
$two->write_conf("[runner]\nlease = 6\n");
$id = $one->deploy($project, "$mark; echo up; until test -e $gate; do sleep 0.1; done; echo down");
$one->wait_log($id, qr/^up$/m);
$two->resume;
ok(poll(10, sub { $two->dispatcher }), 'two runners');
$db->kill9;
sleep 7;
$db->resume;
sleep 1;
spew($gate, '');
is($one->wait($id), 'success', 'after an outage of more than a lease nobody is given up');
like($one->log($id), qr/^down$/m, 'and the log is complete');
is($one->column($id, 'epoch'), 1, 'under its one epoch');
is($two->stop, 0, 'ends');
is($one->stop, 0, 'ends');

# --- a database that answers, and refuses: neither idle nor with a job is it asked all the time
$one->write_conf("[runner]\nlease = 60\n");
$one->resume;
is($one->wait($one->deploy($project, $mark)), 'success', 'a runner is back');
my $held = tempdir() . '/held';
sub asked { return $db->sql("SELECT SUM(variable_value) FROM information_schema.global_status WHERE variable_name IN ('COM_STMT_PREPARE', 'COM_STMT_EXECUTE')") }
for my $how ('idle', 'with a job') {
	if ($how ne 'idle') {
		$id = $one->deploy($project, "$mark; echo up; until test -e $held; do sleep 0.1; done; echo down");
		$one->wait_log($id, qr/^up$/m);
	}
	my ($before, $said, $since) = (asked(), length $one->said, time);
	$db->sql('RENAME TABLE deployment TO elsewhere');
	ok(poll(60, sub { asked() >= $before + 8 }), "$how: statements fail");
	sleep 3;
	cmp_ok(asked() - $before, '<', 30 + 8 * (time - $since), '  and are tried now and then');
	my %lines;
	$lines{$_}++ for substr($one->said, $said) =~ /^\S+ \S+ (.*exist.*)$/mg;
	cmp_ok(scalar keys %lines, '>', 0, '  it is told');
	is_deeply([grep { $lines{$_} > 1 } sort keys %lines], [], '  once each');
	$db->sql('RENAME TABLE elsewhere TO deployment');
	ok(poll(60, sub { substr($one->said, $said) =~ /claim: all is well again$/m }), '  as is the end of it');
}
spew($held, '');
is($one->wait($id), 'success', 'and all goes on afterwards');
is($one->column($id, 'epoch'), 1, 'under its one epoch');
is($one->stop, 0, 'ends');

# --- below a monitor that stands still, whose dispatcher died: another adopts it
$one->write_conf("[runner]\nlease = 3\n");
$one->resume;
$id = $one->deploy($project, 'echo up; sleep 600');
$one->wait_log($id, qr/^up$/m);
my $neighbour = Slipway::Runner->start(db => $db, name => 'neighbour', conf => "[runner]\nlease = 3\n",
    spool => $one->{spool}, workspaces => $one->{workspaces});
$still = $one->dispatcher;
kill 'STOP', $one->pid;
kill 'KILL', $still;
ok(poll(30, sub { $neighbour->said =~ /\b$id\.1: is adopted/ }), 'a job of another monitor is adopted');
$db->sql("UPDATE deployment SET epoch = epoch + 1, owner = REPEAT('f', 32), runner = 'elsewhere',"
    . " lease_until = NOW(3) + INTERVAL 1 HOUR WHERE id = $id");
ok(poll(30, sub { $neighbour->said =~ /\b$id\.1: is killed: its lease is lost/ }), 'and is to be ended');
ok(poll(30, sub { !$one->jobs }), 'which it is');
like($neighbour->said, qr/\b$id\.1: its job has another monitor/, 'by itself');
kill 'CONT', $one->pid;
ok($one->is_clean, 'nothing is left');
$db->sql("UPDATE deployment SET status = 'interrupted', finished_at = NOW(3) WHERE id = $id");
is($_->stop, 0, 'ends') for $neighbour, $one;

# --- lost answers
my $proxy = Slipway::Proxy->start($db->socket);
chmod 0777, $proxy->socket or die;
my $cut = Slipway::Runner->start(db => $db, name => 'cut',
    conf => "[runner]\nlease = 6\n[database]\nsocket = " . $proxy->socket . "\n");
ok(poll(20, sub { -S $cut->wake_socket }), 'a runner whose connection is cut');
my $fresh = $cut->project;
is($cut->wait($cut->deploy($fresh, $mark)), 'success', 'not yet');
my (@wrong, @ids);
for my $plan ((map { "packet $_ answer" } 1 .. 24, 27, 30, 35, 40, 50, 60),
    (map { "packet $_ before" } 1 .. 4, 8, 12, 16, 20, 24, 30),
    (map { "packet $_ after" } 2, 5, 9, 13, 17, 21, 25)) {
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
cmp_ok($proxy->cuts, '>=', 40, $proxy->cuts . ' cuts');
$proxy->plan('pass');
ok($cut->is_clean, 'nothing is left');

# --- a server that dies again and again
my @projects = map { $cut->project } 1 .. 5;
@ids = $cut->deploy_many(map { [$projects[$_ % 5], "$mark; sleep 0.3; echo said-$_"] } 0 .. 29);
for (1 .. 4) {
	sleep 0.4 + rand 0.6;
	$db->kill9;
	sleep 0.2;
	$db->resume;
}
my $ended = poll(180, sub { $db->sql("SELECT COUNT(*) FROM deployment WHERE status IN ('pending', 'running')") == 0 });
ok($ended, 'all deployments end while the server is killed four times');
is($db->sql("SELECT GROUP_CONCAT(DISTINCT status) FROM deployment WHERE id >= $ids[0]"), 'success', 'with success');
is_deeply([grep { marked($_) != 1 } @ids], [], 'each ran once');
is_deeply([grep { my $n = () = $cut->log($ids[$_]) =~ /^said-$_$/mg; $n != 1 } 0 .. 29], [], 'with its log');
is($db->sql("SELECT COUNT(*) FROM deployment a JOIN deployment b ON a.project_id = b.project_id AND a.id < b.id"
    . " WHERE a.id >= $ids[0] AND b.started_at < a.finished_at"), 0, 'in order, one after the other');
ok($cut->is_clean, 'nothing is left');
is($cut->stop, 0, 'ends');
$proxy->stop;
done_testing;
