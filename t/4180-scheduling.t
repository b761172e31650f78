#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# A step cannot take away the processor time that its job needs to end it.

use strict;
use warnings;
use Slipway::Spool;
use Slipway::Test;
use Test::More;

plan skip_all => 'without root steps can signal the job anyway' if !is_root();
plan skip_all => 'the system call numbers are those of x86-64' if `uname -m` ne "x86_64\n";

my $repo = make_repo(tempdir() . '/repo');

# setpriority 141, sched_setparam 142, sched_setscheduler 144,
# sched_setaffinity 203, sched_setattr 314
sub calls {
	my ($first, $with, $who) = @_;
	return "perl -e 'my \$x = $with; exit(syscall($first) == -1 ? 1 : 0)' $who";
}
my $user = '$(sed -n "s/^Uid:.\\([0-9]*\\).*/\\1/p" /proc/$PPID/status)';
my @tries = (
	["lowers its job's priority", 'renice -n 19 -p $PPID'],
	['sets its job to the idle class', 'chrt -i -p 0 $PPID'],
	['sets its job to the batch class', 'chrt -b -p 0 $PPID'],
	['binds its job to one processor', 'taskset -p 1 $PPID'],
	['sets policy and priority of its job at once',
	    calls('314, 0 + shift, $x, 0', 'pack(q(LLQlLQQQ), 48, 5, 0, 19, 0, 0, 0, 0)', '$PPID')],
	['sets scheduling parameters of its job', calls('142, 0 + shift, $x', 'pack(q(l), 0)', '$PPID')],
	['names its job with more than 32 bits', calls('141, 0, $x + shift, 19', '7 << 32', '$PPID')],
	["lowers the priority of its job's user", calls('141, 2, 0 + shift, $x', '19', $user)],
	["lowers the priority of its job's process group",
	    calls('141, 1, 0 + shift, $x', '19', '$(ps -o pgid= -p $PPID)')],
);
my $state = 'awk \'{ print "state", $19, $41 }\' /proc/$PPID/stat; grep Cpus_allowed: /proc/$PPID/status';
for (@tries) {
	my ($what, $attack) = @$_;
	my $try = "if ( $attack ) >/dev/null 2>&1; then echo did; else echo could-not; fi";
	my $job = job_run(repository => $repo, steps => ["$state; $try; $state"]);
	my @states = job_log($job) =~ /^state (.*\n.*)$/mg;
	is(scalar job_end($job), 'success -', "a step that $what ends");
	like(job_log($job), qr/^could-not$/m, "a step that $what fails to do so");
	is(@states, 2, "a step that $what reads the scheduling of its job twice");
	is($states[1], $states[0], "a step that $what does not change the scheduling of its job");
}

my $own = job_run(repository => $repo,
	steps => ['renice -n 5 -p $$ && chrt -b -p 0 $$ && chrt -i 0 nice -n 3 taskset 1 awk \'{ print '
	    . '"policy", $41 }\' /proc/self/stat']);
is(scalar job_end($own), 'success -', 'a step changes its own scheduling');
like(job_log($own), qr/^policy 5$/m, 'a step changes the scheduling of its children');

done_testing;
