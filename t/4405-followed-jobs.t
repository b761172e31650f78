#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# How the dispatcher follows jobs: it sleeps until a job writes something, and writes
# the end of a deployment, or of several, in one transaction; it claims several in one.

use strict;
use warnings;
use Slipway::DB;
use Slipway::Runner;
use Slipway::Test;
use Test::More;
use Time::HiRes qw(sleep);

my $db = Slipway::DB->start;
$db->migrate;
my $runner = Slipway::Runner->start(db => $db, conf => "[runner]\nslots = 4\n");
my $project = $runner->project;
my $gate = tempdir() . '/gate';

sub transactions { return $db->sql('SELECT COUNT(*) FROM commit_token') }
sub rows_read {
	return $db->sql('SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS'
	    . " WHERE VARIABLE_NAME = 'ROWS_READ'");
}
sub wakeups {
	my ($n) = (slurp('/proc/' . $runner->dispatcher . '/status') || '')
	    =~ /^voluntary_ctxt_switches:\s+(\d+)/m;
	return $n;
}

# --- a short deployment
is($runner->wait($runner->deploy($project, 'true')), 'success', 'a first deployment succeeds');
ok($runner->is_clean, 'the first deployment leaves nothing');
# a dispatcher that is stopped meanwhile sees all of the job at once, however slow the machine is
my $short = tempdir() . '/short';
my $id = $runner->deploy($project, "until [ -e $short ]; do sleep 0.1; done; echo short", 'echo second');
ok(poll(60, sub { $runner->steps($id) eq 'running pending' }), 'the first step of a short deployment starts');
my $dispatcher = $runner->dispatcher;
kill 'STOP', $dispatcher;
my $before = transactions();
spew($short, '');
ok(poll(60, sub { !$runner->jobs }), 'the short job ends');
kill 'CONT', $dispatcher;
is($runner->wait($id), 'success', 'a short deployment succeeds');
is($runner->steps($id), 'success success', 'the steps of the short deployment have their states');
like($runner->log($id), qr/^short\n.*^second$/ms, 'the log of the short deployment is complete');
is($db->sql("SELECT COUNT(*) FROM deployment_step WHERE deployment_id = $id AND started_at <= finished_at"
    . ' AND log_offset > 0 AND log_length > 0'), 2, 'each step has its times and its part of the log');
ok($runner->is_clean, 'the short deployment leaves nothing');
is(transactions() - $before, 1, 'the end of a short deployment takes one transaction');
is($db->sql("SELECT MAX(packed) FROM log_chunk WHERE deployment_id = $id"), 0,
    'a short log is not packed');

# --- several at once
my @three = map { $runner->project } 1 .. 3;
my $all = tempdir() . '/all';
kill 'STOP', $dispatcher;
$before = transactions();
my @ids = $runner->deploy_many(map { [$_, "until [ -e $all ]; do sleep 0.1; done; echo of $_"] } @three);
kill 'CONT', $dispatcher;
ok(poll(60, sub { !grep { $runner->steps($_) ne 'running' } @ids }),
    'the deployments of three projects start');
is(transactions() - $before, 1, 'deployments that wait together are claimed in one transaction');
kill 'STOP', $dispatcher;
$before = transactions();
spew($all, '');
sub has_ended { my ($of) = @_; return $runner->said =~ /job $of\.1 ended$/m }
ok(poll(60, sub { !grep { !has_ended($_) } @ids }), 'their jobs end');
kill 'CONT', $dispatcher;
is($runner->wait($_), 'success', "deployment $_ succeeds") for @ids;
is(transactions() - $before, 1, 'deployments that end together are settled in one transaction');
like($runner->log($ids[$_]), qr/^of $three[$_]$/m, 'each deployment has its own step and log') for 0 .. 2;
ok($runner->is_clean, 'the three deployments leave nothing');

# --- a longer log
$id = $runner->deploy($project, 'for i in {1..500}; do echo "line $i"; done');
is($runner->wait($id), 'success', 'a deployment with a longer log succeeds');
ok($runner->is_clean, 'the deployment with a longer log leaves nothing');
is($db->sql("SELECT MIN(packed) FROM log_chunk WHERE deployment_id = $id"), 1, 'a longer log is packed');
like($runner->log($id), qr/^line 1\n.*^line 500$/ms, 'the packed log is complete');

# --- many projects
$db->sql("INSERT INTO project (id, name, repository, project_dir) SELECT seq, CONCAT('many ', seq),"
    . " 'https://git.example/o/r', CONCAT('many', seq) FROM seq_100001_to_110000; ANALYZE TABLE project");
my $read = rows_read();
$id = $runner->deploy($project, 'true');
is($runner->wait($id), 'success', 'a deployment among 10,000 projects succeeds');
cmp_ok(rows_read() - $read, '<', 5000, 'a deployment does not read the rows of all projects');
ok($runner->is_clean, 'a deployment among 10,000 projects leaves no file');

# --- a silent job
$id = $runner->deploy($project, "echo ready; while [ ! -e $gate ]; do sleep 0.5; done; echo opened");
like($runner->wait_log($id, qr/^ready$/m), qr/^ready$/m, 'the log of a running job is stored');
sleep 1;
my $woken = wakeups();
sleep 4;
cmp_ok(wakeups() - $woken, '<', 40, 'the dispatcher sleeps while the job is silent');
spew($gate, '');
is($runner->wait($id), 'success', 'the silent job succeeds');
like($runner->log($id), qr/^ready\nopened$/m, 'the log of the silent job is complete');

# --- a job that writes all the time
$id = $runner->deploy($project, 'for i in {1..20000}; do echo "line $i"; done; exit 3');
is($runner->wait($id), 'failed', 'a job that writes all the time fails as its step does');
is(scalar(() = $runner->log($id) =~ /^line \d+$/mg), 20000,
    'the log of a job that writes all the time is complete');
is($runner->stop, 0, 'the runner stops');
done_testing;
