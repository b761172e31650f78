#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Two hosts with the same runner.name, as a machine and its clone have: what one
# holds is nothing to the other, however often that is started.

use strict;
use warnings;
use Slipway::DB;
use Slipway::Runner;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
$db->migrate;
my $told = qr/\Qrunner twin: another runner has this name and holds deployments, or one did whose spool is gone;\E/;
my ($one, $two) = map { Slipway::Runner->start(db => $db, name => 'twin', idle => 1, conf => "[runner]\nlease = 20\nslots = 4\n") } 1, 2;
my $gate = tempdir() . '/gate';
my $waits = "echo up; until test -e $gate; do sleep 0.1; done; echo down";

$one->resume;
my @ids = map { $one->deploy($one->project, $waits) } 1, 2;
like($one->wait_log($_, qr/^up$/m), qr/^up$/m, 'a step runs') for @ids;
unlike($one->said, $told, 'nobody else has the name');
is(scalar(my @jobs = $one->jobs), 2, 'two jobs');

# the other has room for what is pending, and so has to have settled things
sub holds {
	my ($how) = @_;
	is($two->wait($two->deploy($two->project, 'echo here')), 'success', "$how: it works");
	is_deeply([map { $one->column($_, "CONCAT_WS(' ', status, epoch)") } @ids], ['running 1', 'running 1'], '  and leaves alone what the first holds');
	is_deeply([sort $one->jobs], [sort @jobs], '  whose jobs run on');
	return;
}
# the first has no slot left while it is held up
sub still { my $pid = $one->dispatcher; kill 'STOP', $pid if defined $pid; return sub { kill 'CONT', $pid if defined $pid } }

my $go = still();
$two->resume;
holds('started beside it');
ok(poll(20, sub { $two->said =~ $told }), '  it says that there is another');
is((() = $two->said =~ /$told/g), 1, '  once');
$go->();
$go = still();
is($two->stop, 0, 'stopped');
$two->resume;
holds('stopped and started');
$go->();
$go = still();
$two->kill_all;
$two->resume;
holds('killed and started');
$go->();
is($two->stop, 0, 'stopped');

# and the first takes up its own
$one->kill9;
$two->resume;
holds('beside jobs whose runner was killed');
$one->resume;
ok(poll(60, sub { my $said = $one->said; 2 == grep { $said =~ /\b$_\.1: is adopted/ } @ids }), 'they are adopted where they are');
spew($gate, '');
is($one->wait($_), 'success', 'and end well') for @ids;
is($one->column($_, 'epoch'), 1, 'under their one epoch') for @ids;
ok($_->is_clean, 'nothing is left') for $one, $two;

# what died with its host is given up when its lease is over, by whomever
unlink $gate;
is($two->stop, 0, 'stopped');
my $id = $one->deploy($one->project, $waits);
like($one->wait_log($id, qr/^up$/m), qr/^up$/m, 'a step runs');
$one->kill_all;
$two->resume;
is($two->wait($id), 'interrupted', 'a host that is gone: the other gives it up');
is($two->column($id, "CONCAT_WS(' ', reason, finished_at >= started_at + INTERVAL 20 SECOND)"), 'runner_lost 1', 'when the lease is over');
is($two->stop, 0, 'ends');
done_testing;
