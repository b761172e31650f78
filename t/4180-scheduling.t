#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# A step leaves its job the time of the processor that the job needs to end it.

use strict;
use warnings;
use Slipway::Spool;
use Slipway::Test;
use Test::More;

plan skip_all => 'steps can signal the job anyway without root' if !is_root();
plan skip_all => 'the numbers of calls are those of x86-64' if `uname -m` ne "x86_64\n";

my $repo = tempdir() . '/repo';
run_cmd('sh', '-ec', "git init -q -b main '$repo'; cd '$repo';"
	. 'git config user.email a@example.org; git config user.name a;'
	. 'echo hello >file; git add .; git commit -qm first');

# setpriority 141, sched_setparam 142, sched_setscheduler 144,
# sched_setaffinity 203, sched_setattr 314
sub calls {
	my ($first, $with, $who) = @_;
	return "perl -e 'my \$x = $with; exit(syscall($first) == -1 ? 1 : 0)' $who";
}
my $user = '$(sed -n "s/^Uid:.\\([0-9]*\\).*/\\1/p" /proc/$PPID/status)';
my @tries = (
	['lowers its priority', 'renice -n 19 -p $PPID'],
	['makes it idle', 'chrt -i -p 0 $PPID'],
	['makes it a batch', 'chrt -b -p 0 $PPID'],
	['binds it to a processor', 'taskset -p 1 $PPID'],
	['gives it a policy and a priority at once', calls('314, 0 + shift, $x, 0', 'pack(q(LLQlLQQQ), 48, 5, 0, 19, 0, 0, 0, 0)', '$PPID')],
	['gives it parameters', calls('142, 0 + shift, $x', 'pack(q(l), 0)', '$PPID')],
	['names it with more than 32 bits', calls('141, 0, $x + shift, 19', '7 << 32', '$PPID')],
	['lowers all of its user', calls('141, 2, 0 + shift, $x', '19', $user)],
	['lowers all of its group', calls('141, 1, 0 + shift, $x', '19', '$(ps -o pgid= -p $PPID)')],
);
my $state = 'awk \'{ print "state", $19, $41 }\' /proc/$PPID/stat; grep Cpus_allowed: /proc/$PPID/status';
for (@tries) {
	my ($what, $attack) = @$_;
	my $job = job_run(repository => $repo, steps => ["$state; if ( $attack ) >/dev/null 2>&1; then echo did; else echo could-not; fi; $state"]);
	my @states = job_log($job) =~ /^state (.*\n.*)$/mg;
	is(scalar job_end($job), 'success -', "a step that $what ends well");
	like(job_log($job), qr/^could-not$/m, '  but it cannot');
	is(@states, 2, '  and of its job');
	is($states[1], $states[0], '  nothing changes');
}

my $own = job_run(repository => $repo,
	steps => ['renice -n 5 -p $$ && chrt -b -p 0 $$ && chrt -i 0 nice -n 3 taskset 1 awk \'{ print "policy", $41 }\' /proc/self/stat']);
is(scalar job_end($own), 'success -', 'a step changes its own scheduling');
like(job_log($own), qr/^policy 5$/m, 'and that of what it starts');

done_testing;
