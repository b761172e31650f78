#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Killing the parts of the runner while a step runs: the step runs on, its log
# is complete, its result right; where the job itself dies, that is said.

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

# A step that counts until the test lets it end; each number once in the log.
my $gate;
my $gates = 0;
sub counting {
	$gate = tempdir() . '/gate' . ++$gates;
	return "n=0; while ! test -e $gate; do n=\$((n+1)); echo count-\$n; sleep 0.02; done; echo last-\$n";
}
sub up { my ($id) = @_; return $runner->wait_log($id, qr/^count-3$/m) =~ /^count-3$/m }
# Lets it end; whether the log has every line, once, in order.
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

for my $how ('dispatcher', 'monitor', 'both', 'an orderly restart', 'a reload') {
	my $id = $runner->deploy($project, counting(), 'exit 7');
	ok(up($id), "$how: a step runs");
	my @jobs = $runner->jobs;
	my $old = $runner->dispatcher;
	if ($how eq 'dispatcher') { kill 'KILL', $old }
	elsif ($how eq 'monitor') { $runner->kill9; $runner->resume }
	elsif ($how eq 'both') { kill 'KILL', $old; $runner->kill9; sleep 0.5; $runner->resume }
	elsif ($how eq 'a reload') { kill 'HUP', $runner->pid }
	else { is($runner->stop, 0, '  it ends'); is_deeply([$runner->jobs], \@jobs, '  the job does not'); $runner->resume }
	ok(poll(15, sub { my $d = $runner->dispatcher; $d && ($how eq 'a reload' || $d != $old) }), '  there is a dispatcher');
	my $seen = length $runner->log($id);
	ok(poll(15, sub { length $runner->log($id) > $seen }), '  the log grows again');
	is_deeply([$runner->jobs], \@jobs, '  it is the same job');
	is($runner->status($id), 'running', '  and runs');
	ok(whole($id), '  its log is complete');
	is($runner->status($id), 'failed', '  its result is right');
	is($runner->column($id, "CONCAT_WS(' ', reason, epoch)"), 'step_failed 1', '  with its reason, under one epoch');
	is($runner->steps($id), 'success failed', '  as are its steps');
	ok($runner->is_clean, '  and nothing is left');
}

# --- a job that ends while nobody looks
my $id = $runner->deploy($project, counting());
ok(up($id), 'a step runs');
$runner->kill9;
ok(poll(10, sub { !$runner->{pid} }), 'the monitor is killed');
spew($gate, '');
ok(poll(20, sub { !$runner->jobs }), 'then the job ends');
is($runner->status($id), 'running', 'nobody has noticed');
$runner->resume;
is($runner->wait($id), 'success', 'whoever comes up finds the result');
ok(whole($id), 'and the whole log');
ok($runner->is_clean, 'nothing is left');

# --- MariaDB
for my $how ('kill9', 'stop') {
	$id = $runner->deploy($project, counting(), 'exit 7');
	ok(up($id), "$how of MariaDB: a step runs");
	my @jobs = $runner->jobs;
	$db->$how;
	sleep 2;
	is_deeply([$runner->jobs], \@jobs, '  the job runs on');
	$db->resume;
	my $seen = length $runner->log($id);
	ok(poll(20, sub { length $runner->log($id) > $seen }), '  the log goes on');
	ok(whole($id), '  without a hole');
	is($runner->status($id), 'failed', '  the result is right');
	is(epoch($id), 1, '  it was never taken away');
}
# away for longer than a lease, and the job ends meanwhile
$id = $runner->deploy($project, counting(), 'exit 7');
ok(up($id), 'away for a lease and more: a step runs');
$db->kill9;
spew($gate, '');
ok(poll(20, sub { !$runner->jobs }), 'the job ends meanwhile');
sleep 7;
$db->resume;
is($runner->wait($id), 'failed', 'the result comes in late');
ok(whole($id), 'with the whole log');
is(epoch($id), 1, 'nobody took it away');
ok($runner->is_clean, 'nothing is left');
# the runner starts before its database
$runner->stop;
$db->stop;
$runner->resume;
ok(poll(10, sub { $runner->dispatcher }), 'the runner starts without a database');
$db->resume;
$id = $runner->deploy($project, 'echo hello');
is($runner->wait($id), 'success', 'and works when it is there');

# --- the job; nobody waits for this lease to end
$runner->stop;
$runner->write_conf("[runner]\nlease = 3600\n")->resume;
my $before;
for my $who ('job', 'the step as well') {
	$id = $runner->deploy($project, counting() . '; sleep 600', 'echo never');
	ok(up($id), "$who: a step runs");
	$before = time;
	kill 'KILL', $runner->jobs, $who eq 'job' ? () : map { Slipway::Runner::_below($_) } $runner->jobs;
	is($runner->wait($id), 'interrupted', '  it is interrupted');
	cmp_ok(time - $before, '<', deadline(30), '  within seconds');
	is($runner->column($id, 'reason'), 'runner_lost', '  with its reason');
	is($runner->steps($id), 'interrupted skipped', '  the step too, the rest is skipped');
	like($runner->log($id), qr/^count-3$/m, '  what it wrote is there');
	ok($runner->is_clean, '  nothing is left');
}
# job and dispatcher, so that the next one finds it
$id = $runner->deploy($project, counting());
ok(up($id), 'job and dispatcher: a step runs');
my $waits = $runner->deploy($project, 'echo after');
kill 'KILL', $runner->dispatcher, $runner->jobs;
is($runner->wait($id), 'interrupted', 'it is interrupted');
is($runner->wait($waits), 'success', 'the next of the project runs');

# --- everything at once, as when the power fails
$id = $runner->deploy($project, counting());
ok(up($id), 'power failure: a step runs');
my $other = $runner->project;
my $second = $runner->deploy($other, counting());
ok(up($second), 'two of them');
$waits = $runner->deploy($project, 'echo after');
$runner->kill_all;
$db->kill9;
ok(poll(20, sub { !$runner->jobs }), 'nothing runs');
$db->resume;
$before = time;
$runner->resume;
is($runner->wait($_), 'interrupted', 'settled at the next start') for $id, $second;
is($runner->column($id, 'reason'), 'runner_lost', 'with its reason');
is($runner->wait($waits), 'success', 'what waited runs');
cmp_ok(time - $before, '<', deadline(30), 'without waiting for anybody');
like($runner->log($id), qr/^count-3$/m, 'what was written is there');
# the same, and the spool is lost as well: nobody knows whose it was
$runner->stop;
$runner->write_conf("[runner]\nlease = 6\n")->resume;
$id = $runner->deploy($project, counting());
ok(up($id), 'power failure with an empty spool: a step runs');
$runner->kill_all;
system 'rm', '-rf', $runner->{spool};
$db->sql("UPDATE deployment SET lease_until = NOW(3) + INTERVAL 20 SECOND WHERE id = $id");
$runner->resume;
ok(poll(30, sub { $runner->said =~ /runner \Q$runner->{name}\E: another runner has this name and holds deployments, or one did whose spool is gone/ }),
    'the log says so');
is($runner->wait($id), 'interrupted', 'it is settled, too');
is($runner->column($id, 'reason'), 'runner_lost', 'with its reason');
is($runner->column($id, 'finished_at >= started_at + INTERVAL 20 SECOND'), 1, 'when its lease is over');
$id = $runner->deploy($project, 'echo again');
is($runner->wait($id), 'success', 'and all works');

# --- half a directory is no deployment
mkdir "$runner->{spool}/new.99.1" or die;
spew("$runner->{spool}/new.99.1/log", 'half');
mkdir "$runner->{spool}/98.1" or die;
spew("$runner->{spool}/98.1/job", 'of somebody else');
if (is_root()) { chown((getpwnam 'nobody')[2, 3], $_) for map { ($_, "$_/log") } "$runner->{spool}/new.99.1" }
utime 1, 1, "$runner->{spool}/new.99.1" or die;
$runner->restart;
ok(poll(20, sub { !-e "$runner->{spool}/new.99.1" }), 'what a crash left half made is cleared away');
ok(-e "$runner->{spool}/98.1/job", 'what is not ours is left alone');
$id = $runner->deploy($project, 'echo again');
is($runner->wait($id), 'success', 'and all works');
is($runner->stop, 0, 'ends');
done_testing;
