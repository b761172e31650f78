#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The parts of the runner are killed while a step runs: the step continues, its log
# is complete and its result right; if the job itself dies, it is interrupted.

use strict;
use warnings;
use Slipway::DB;
use Slipway::Runner;
use Slipway::Test;
use Test::More;
use Time::HiRes qw(sleep time);

my $db = Slipway::DB->start;
$db->migrate;
my $runner = Slipway::Runner->start(db => $db, conf => "[runner]\nlease = 6\n");
my $project = $runner->project;

# A step that counts until the test ends it; each number is in the log once.
my $gate;
my $gates = 0;
sub counting {
	$gate = tempdir() . '/gate' . ++$gates;
	return counts_until($gate) . '; echo last-$n';
}
sub up { my ($id) = @_; return $runner->wait_log($id, qr/^count-3$/m) =~ /^count-3$/m }
# Ends the step; whether the log has every line, once, in order.
sub whole {
	my ($id) = @_;
	spew($gate, '');
	$runner->wait($id);
	my @got = $runner->log($id) =~ /^(count-\d+|last-\d+)$/mg;
	my ($last) = @got ? $got[-1] =~ /^last-(\d+)$/ : ();
	return 0 if !defined $last;
	return "@got" eq join ' ', (map { "count-$_" } 1 .. $last), "last-$last";
}
sub epoch { my ($id) = @_; return $runner->column($id, 'epoch') }

for my $how ('dispatcher', 'monitor', 'both', 'a restart', 'a reload') {
	my $id = $runner->deploy($project, counting(), 'exit 7');
	ok(up($id), "$how killed or signaled: a step runs");
	my @jobs = $runner->jobs;
	my $old = $runner->dispatcher;
	if ($how eq 'dispatcher') { kill 'KILL', $old }
	elsif ($how eq 'monitor') { $runner->kill9; $runner->resume }
	elsif ($how eq 'both') { kill 'KILL', $old; $runner->kill9; sleep 0.5; $runner->resume }
	elsif ($how eq 'a reload') { kill 'HUP', $runner->pid }
	else { is($runner->stop, 0, "$how: the runner stops"); is_deeply([$runner->jobs], \@jobs,
	    "$how: the job survives the stop"); $runner->resume }
	ok(poll(15, sub { my $d = $runner->dispatcher; $d && ($how eq 'a reload' || $d != $old) }),
	    "$how: a dispatcher runs again");
	my $seen = length $runner->log($id);
	ok(poll(15, sub { length $runner->log($id) > $seen }), "$how: the log grows again");
	is_deeply([$runner->jobs], \@jobs, "$how: the job is the same");
	is($runner->status($id), 'running', "$how: the deployment is running");
	ok(whole($id), "$how: the log is complete");
	is($runner->status($id), 'failed', "$how: the deployment fails as its step does");
	is($runner->column($id, "CONCAT_WS(' ', reason, epoch)"), 'step_failed 1',
	    "$how: the deployment has its reason and first epoch");
	is($runner->steps($id), 'success failed', "$how: the steps have their status");
	ok($runner->is_clean, "$how: the deployment leaves nothing behind");
}

# --- a job that ends without monitor and dispatcher
my $id = $runner->deploy($project, counting());
ok(up($id), 'a step runs');
$runner->kill9;
ok(poll(10, sub { !$runner->{pid} }), 'the monitor is killed');
spew($gate, '');
ok(poll(20, sub { !$runner->jobs }), 'the job ends');
is($runner->status($id), 'running', 'the deployment is still running in the database');
$runner->resume;
is($runner->wait($id), 'success', 'the next monitor finds the result');
ok(whole($id), 'the next monitor finds the whole log');
ok($runner->is_clean, 'the deployment leaves nothing behind');

# --- MariaDB
for my $how ('kill9', 'stop') {
	$id = $runner->deploy($project, counting(), 'exit 7');
	ok(up($id), "$how of MariaDB: a step runs");
	my @jobs = $runner->jobs;
	$db->$how;
	sleep 2;
	is_deeply([$runner->jobs], \@jobs, "$how of MariaDB: the job survives");
	$db->resume;
	my $seen = length $runner->log($id);
	ok(poll(20, sub { length $runner->log($id) > $seen }), "$how of MariaDB: the log grows again");
	ok(whole($id), "$how of MariaDB: the log is complete");
	is($runner->status($id), 'failed', "$how of MariaDB: the result is right");
	is(epoch($id), 1, "$how of MariaDB: the deployment keeps its epoch");
}
# down for longer than a lease, while the job ends
$id = $runner->deploy($project, counting(), 'exit 7');
ok(up($id), 'a step runs before MariaDB goes down for longer than a lease');
$db->kill9;
spew($gate, '');
ok(poll(20, sub { !$runner->jobs }), 'the job ends while MariaDB is down');
sleep 7;
$db->resume;
is($runner->wait($id), 'failed', 'the result is stored after MariaDB is back');
ok(whole($id), 'the log is complete after MariaDB is back');
is(epoch($id), 1, 'the deployment keeps its epoch');
ok($runner->is_clean, 'the deployment leaves nothing behind');
# the runner starts before its database
$runner->stop;
$db->stop;
$runner->resume;
ok(poll(10, sub { $runner->dispatcher }), 'the runner starts without its database');
$db->resume;
$id = $runner->deploy($project, 'echo hello');
is($runner->wait($id), 'success', 'a deployment succeeds when the database is back');

# --- the job is killed; the test does not wait for the lease
$runner->stop;
$runner->write_conf("[runner]\nlease = 3600\n")->resume;
my $before;
for my $who ('job', 'job and step') {
	$id = $runner->deploy($project, counting() . '; sleep 600', 'echo never');
	ok(up($id), "$who killed: a step runs");
	$before = stopwatch();
	kill 'KILL', $runner->jobs, $who eq 'job' ? () : map { Slipway::Runner::_below($_) } $runner->jobs;
	is($runner->wait($id), 'interrupted', "$who killed: the deployment is interrupted");
	cmp_ok($before->(), '<', deadline(30),
	    "$who killed: the deployment is interrupted within seconds");
	is($runner->column($id, 'reason'), 'runner_lost', "$who killed: the deployment has its reason");
	is($runner->steps($id), 'interrupted skipped', "$who killed: the steps are settled");
	like($runner->log($id), qr/^count-3$/m, "$who killed: the log has the output before");
	ok($runner->is_clean, "$who killed: the deployment leaves nothing behind");
}
# when only what may fail is left, the outcome is known
$id = $runner->deploy($project, 'echo live', { script => counting() . '; sleep 600', may_fail => 1 });
ok(up($id), 'job killed after its last required step: a step runs');
kill 'KILL', $runner->jobs;
is($runner->wait($id), 'success', 'job killed after its last required step: the deployment has succeeded');
is($runner->steps($id), 'success interrupted',
    'job killed after its last required step: the step is settled');
is($runner->column($id, "CONCAT(warnings, ' ', detail)"),
    '1 The job was killed during step 2 (step 1) or later, when everything that may not fail had'
    . ' succeeded.', 'job killed after its last required step: the warning says so');

# job and dispatcher, so that the next dispatcher finds the dead job
$id = $runner->deploy($project, counting());
ok(up($id), 'job and dispatcher killed: a step runs');
my $waits = $runner->deploy($project, 'echo after');
kill 'KILL', $runner->dispatcher, $runner->jobs;
is($runner->wait($id), 'interrupted', 'job and dispatcher killed: the deployment is interrupted');
is($runner->wait($waits), 'success',
    'job and dispatcher killed: the next deployment of the project succeeds');

# --- everything is killed, as by a power failure
$id = $runner->deploy($project, counting());
ok(up($id), 'power failure: a step runs');
my $other = $runner->project;
my $second = $runner->deploy($other, counting());
ok(up($second), 'power failure: a step of another project runs');
$waits = $runner->deploy($project, 'echo after');
$runner->kill_all;
$db->kill9;
ok(poll(20, sub { !$runner->jobs }), 'power failure: no job runs');
$db->resume;
$before = stopwatch();
$runner->resume;
is($runner->wait($_), 'interrupted', 'power failure: a running deployment is interrupted at the next start')
    for $id, $second;
is($runner->column($id, 'reason'), 'runner_lost', 'power failure: the deployment has its reason');
is($runner->wait($waits), 'success', 'power failure: the pending deployment succeeds');
cmp_ok($before->(), '<', deadline(30), 'power failure: the next start does not wait for the lease');
like($runner->log($id), qr/^count-3$/m, 'power failure: the log has the output before');
# the same with an empty spool: the owner of the deployment is unknown
$runner->stop;
$runner->write_conf("[runner]\nlease = 6\n")->resume;
$id = $runner->deploy($project, counting());
ok(up($id), 'power failure, empty spool: a step runs');
$runner->kill_all;
system 'rm', '-rf', $runner->{spool};
$db->sql("UPDATE deployment SET lease_until = NOW(3) + INTERVAL 20 SECOND WHERE id = $id");
$runner->resume;
my $twin = qr/another runner has this name and holds deployments, or one did whose spool is lost/;
ok(poll(30, sub { $runner->said =~ /runner \Q$runner->{name}\E: $twin/ }),
    'power failure, empty spool: the log names the runner');
is($runner->wait($id), 'interrupted', 'power failure, empty spool: the deployment is interrupted');
is($runner->column($id, 'reason'), 'runner_lost',
    'power failure, empty spool: the deployment has its reason');
is($runner->column($id, 'finished_at >= started_at + INTERVAL 20 SECOND'), 1,
    'power failure, empty spool: the deployment is interrupted when its lease expires');
$id = $runner->deploy($project, 'echo again');
is($runner->wait($id), 'success', 'power failure, empty spool: the next deployment succeeds');

# --- an incomplete directory is no deployment
mkdir "$runner->{spool}/new.99.1" or die;
spew("$runner->{spool}/new.99.1/log", 'half');
mkdir "$runner->{spool}/98.1" or die;
spew("$runner->{spool}/98.1/job", 'of another account');
if (is_root()) { chown((getpwnam 'nobody')[2, 3], $_) for map { ($_, "$_/log") } "$runner->{spool}/new.99.1" }
utime 1, 1, "$runner->{spool}/new.99.1" or die;
$runner->restart;
ok(poll(20, sub { !-e "$runner->{spool}/new.99.1" }), 'an incomplete directory is removed at the next start');
ok(-e "$runner->{spool}/98.1/job", 'a directory of another account is left alone');
$id = $runner->deploy($project, 'echo again');
is($runner->wait($id), 'success', 'a deployment succeeds after incomplete directories');
is($runner->stop, 0, 'the runner stops');
done_testing;
