#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Two hosts with the same runner.name, such as a machine and its clone: neither
# touches the deployments of the other, however often it is started.

use strict;
use warnings;
use Slipway::DB;
use Slipway::Runner;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
$db->migrate;
my $told =
    qr/\Qrunner twin: another runner has this name and holds deployments, or one did whose spool is lost;\E/;
my ($one, $two) = map { Slipway::Runner->start(db => $db, name => 'twin', idle => 1,
    conf => "[runner]\nlease = 20\nslots = 4\n") } 1, 2;
my $gate = tempdir() . '/gate';
my $waits = "echo up; until test -e $gate; do sleep 0.1; done; echo down";

$one->resume;
my @ids = map { $one->deploy($one->project, $waits) } 1, 2;
like($one->wait_log($_, qr/^up$/m), qr/^up$/m, 'a step runs on the first host') for @ids;
unlike($one->said, $told, 'the first host finds no other runner of its name');
is(scalar(my @jobs = $one->jobs), 2, 'two jobs run');

# the second host has free slots, so it has settled the deployments that it found
sub holds {
	my ($how) = @_;
	is($two->wait($two->deploy($two->project, 'echo here')), 'success',
	    "$how: the second host runs a deployment");
	is_deeply([map { $one->column($_, "CONCAT_WS(' ', status, epoch)") } @ids],
	    ['running 1', 'running 1'], "$how: the second host leaves the deployments of the first alone");
	is_deeply([sort $one->jobs], [sort @jobs], "$how: the jobs of the first host survive");
	return;
}
# the first host claims nothing while it is stopped
sub still {
	my $pid = $one->dispatcher;
	kill 'STOP', $pid if defined $pid;
	return sub { kill 'CONT', $pid if defined $pid }
}

my $go = still();
$two->resume;
holds('second host started');
ok(poll(20, sub { $two->said =~ $told }), 'the second host logs that the name is in use');
is((() = $two->said =~ /$told/g), 1, 'the second host logs it once');
$go->();
$go = still();
is($two->stop, 0, 'the second host stops');
$two->resume;
holds('second host restarted');
$go->();
$go = still();
$two->kill_all;
$two->resume;
holds('second host killed and started');
$go->();
is($two->stop, 0, 'the second host stops');

# and the first host adopts its own jobs
$one->kill9;
$two->resume;
holds('first host killed');
$one->resume;
ok(poll(60, sub { my $said = $one->said; 2 == grep { $said =~ /\b$_\.1: adopted/ } @ids }),
    'the first host adopts its jobs');
spew($gate, '');
is($one->wait($_), 'success', 'an adopted deployment succeeds') for @ids;
is($one->column($_, 'epoch'), 1, 'an adopted deployment keeps its epoch') for @ids;
ok($_->is_clean, 'deployments leave nothing behind') for $one, $two;

# the deployment of a dead host is interrupted when its lease expires, by either host
unlink $gate;
is($two->stop, 0, 'the second host stops');
my $id = $one->deploy($one->project, $waits);
like($one->wait_log($id, qr/^up$/m), qr/^up$/m, 'a step runs on the first host');
$one->kill_all;
$two->resume;
is($two->wait($id), 'interrupted', 'the second host interrupts the deployment of a dead host');
is($two->column($id, "CONCAT_WS(' ', reason, finished_at >= started_at + INTERVAL 20 SECOND)"),
    'runner_lost 1', 'the deployment of a dead host is interrupted when its lease expires');
is($two->stop, 0, 'the second host stops');
done_testing;
