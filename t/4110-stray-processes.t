#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# No process that a step starts survives the step.

use strict;
use warnings;
use POSIX ();
use Test::More;
use Time::HiRes qw(time);
use Slipway::Monitor;
use Slipway::Spool;
use Slipway::Test;

note(is_root() ? 'as root' : 'without root');
my $repo = make_repo(tempdir() . '/repo');
# Lines of ps for living processes whose command line contains the mark.
sub left {
	my ($mark) = @_;
	return grep { !/^\s*\d+ Z/ && /\Q$mark\E/ } `ps -eo pid,stat,args`;
}
my $mark = 7_000_000 + $$ * 100;
my $hide = "perl -MPOSIX -e 'exit if fork; setsid(); exit if fork; POSIX::close(\$_) for 0..255; sleep MARK'";
my @tries = (
	['a background process', "sleep MARK &", 'success'],
	['a process with nohup', "nohup sleep MARK >/dev/null 2>&1 &", 'success'],
	['a process with setsid', "setsid sleep MARK & ", 'success'],
	['a process with setsid --fork', "setsid --fork sleep MARK </dev/null >/dev/null 2>&1", 'success'],
	['a daemon with closed descriptors', $hide, 'success'],
	['a process that ignores TERM, HUP and INT', "(trap '' TERM HUP INT; while :; do sleep MARK; done) &",
	    'success'],
	['a process that stops itself', "bash -c 'kill -STOP \$\$; sleep MARK' &", 'success'],
	['a tree of processes',
	    "for i in 1 2 3; do (for j in 1 2 3; do (sleep MARK &) ; done; setsid sleep MARK) & done",
	    'success'],
	['a process that forks endlessly',
	    "perl -e 'while (1) { my \$p = fork; exit if \$p; \$0 = q(xMARK); select undef, undef, undef, "
	    . "0.001 }' &", 'success'],
	['a process that keeps writing to the output',
	    "(trap '' PIPE TERM; while :; do echo MARK; sleep 0.01; done) &",
	    'success'],
	['a step that closes its output', "exec >/dev/null 2>&1; sleep 0.2; : MARK", 'success'],
	['a step that kills itself', "sleep MARK & kill -9 \$\$", 'failed'],
	['a step that kills its process group', "sleep MARK & trap '' TERM; kill -9 0", 'failed'],
);
for (@tries) {
	my ($what, $script, $status) = @$_;
	$mark++;
	$script =~ s/MARK/$mark/g;
	my $t = stopwatch();
	my $job = job_run(repository => $repo,
	    steps => [$script, "ps -eo stat,args | grep -v grep | grep -v '^Z' | grep -c $mark || true"]);
	cmp_ok($t->(), '<', deadline(30), "$what: the job ends in time");
	is((split /:/, job_steps($job))[1], $status, "$what: the status of the step");
	is_deeply([left($mark)], [], "$what: no process is left");
	like(job_log($job), qr/^==> step 2: step 2\n0\n/m,
	    "$what: no process is left when the next step starts")
	    if $status eq 'success';
}
$mark++;

# --- steps that do not end on TERM
for (['a step that ignores TERM', "trap '' TERM; echo up; while :; do sleep $mark; done"],
    ['a step that stops itself', "echo up; kill -STOP \$\$; sleep $mark"],
    ['a step that keeps forking',
    "echo up; trap '' TERM; while :; do (setsid sleep $mark &) ; sleep 0.01; done"]) {
	my ($what, $script) = @$_;
	my $t = stopwatch();
	my $job = job_run(repository => $repo, grace => 1, steps => [{ script => $script, timeout => 1 }]);
	is(scalar job_end($job), 'failed timeout', "$what times out");
	cmp_ok($t->(), '<', deadline(30), "$what ends soon after its time limit");
	is_deeply([left($mark)], [], "$what leaves no process");
}

# --- a process outside of the job writes to the step's output endlessly
my $go = tempdir() . '/go';
my $t = stopwatch();
my $job = job_start(repository => $repo, log_max => 1 << 28,
	steps => ["echo pid-\$\$; until test -e $go; do sleep 0.01; done", 'echo the-next']);
my $pid;
ok(poll(60, sub { ($pid) = (slurp("$job->{dir}/log") || '') =~ /^pid-(\d+)$/m }),
    'a step prints its process id');
open my $pipe, '>', "/proc/$pid/fd/1" or die "its output: $!";
my @writers = map {
	my $writer = fork;
	die "fork: $!" if !defined $writer;
	if ($writer == 0) {
		$SIG{PIPE} = 'DEFAULT';
		alarm 900;
		my $text = "outside\n" x 8192;
		1 until -e $go;
		1 while syswrite $pipe, $text;
		POSIX::_exit(0);
	}
	$writer;
} 1 .. 4;
close $pipe;
spew($go, '');
ok(poll(30, sub { defined job_end($job) }), 'the step ends while its output is held open');
is(job_wait($job), 0, 'the job ends while the output is held open');
my %how;
for (@writers) { waitpid $_, 0; $how{ $? & 127 }++ }
is_deeply(\%how, { 13 => 4 }, 'the writers get SIGPIPE');
my $open = 'a process that cannot be killed keeps the output open; its further output is discarded';
like(job_log($job), qr/^==> \Q$open\E\n==> step 2: step 2\nthe-next\n/m, 'the log names the open output');

# --- fork bombs
my $bomb = "perl -e 'fork while 1; sleep $mark'";
$t = stopwatch();
$job = job_run(repository => $repo, grace => 1, limits => ['-p', is_root() ? 100 : 3000],
	steps => [{ script => is_root() ? $bomb : "sleep $mark", timeout => 2 }]);
is(scalar job_end($job), 'failed timeout', 'a fork bomb times out');
cmp_ok($t->(), '<', deadline(30), 'a fork bomb ends soon after its time limit');
is_deeply([left($mark)], [], 'a fork bomb leaves no process');
$job = job_run(repository => $repo, steps => ['for i in $(seq 1500); do (sleep 0.01 &) ; done; echo all']);
is(scalar job_end($job), 'success -', 'a step with hundreds of short orphans succeeds');
is(scalar(grep { /^\s*\d+ $job->{pid} / } `ps -eo pid,ppid,args`), 0, 'hundreds of orphans leave no zombie');
# more than the job reaps at a time
$job = job_run(repository => $repo, steps => ["perl -e 'pipe my \$r, my \$w; for (1 .. 1500) "
	. "{ next if fork; close \$w; sysread \$r, my \$x, 1; exit }'"]);
is(scalar job_end($job), 'success -', 'a step whose orphans all end at once succeeds');
is(scalar(grep { /^\s*\d+ $job->{pid} / } `ps -eo pid,ppid,args`), 0, 'they leave no zombie');
$job = job_run(repository => $repo, limits => ['-f', 65536],
    steps => ['exec 2>&1; dd if=/dev/zero of=big bs=1k count=100; true']);
is((stat "$job->{workspace}/big")[7], 65536, 'a file does not grow past its limit');

# --- limits by control groups, if available
my $m = Slipway::Monitor->start(conf => "[runner]\npids_max = 64\nmemory_max = 64m\n");
my ($memory, $pids) = $m->log =~ /memory (\S+), processes (\S+), kill/;
note("control groups: memory $memory, processes $pids");
my $bombed = $m->job(repository => $repo, project => 21, dir => 'bomb', grace => 1,
	steps => [{ script => "perl -e 'for (1..200) { my \$p = fork; if (!defined \$p) { print qq(full at "
	    . "\$_\\n); last } if (!\$p) { sleep $mark; exit } }'", when => 'always' }]);
ok(defined $m->exited($bombed, 60), 'a fork bomb under the monitor ends');
SKIP: {
	skip 'no limit on processes on this machine', 1 if $pids eq 'none' && !is_root();
	like(job_log($bombed), qr/^full at \d+$/m, 'a fork bomb reaches pids_max');
}
is_deeply([left($mark)], [], 'a fork bomb under the monitor leaves no process');
my $glutton = $m->job(repository => $repo, project => 22, dir => 'glutton', grace => 1,
	steps => ["perl -e 'my \@a; push \@a, \"x\" x (1 << 20) for 1..256; print qq(had it all\\n)'"]);
ok(defined $m->exited($glutton, 60), 'a job that allocates too much memory ends');
SKIP: {
	skip 'no limit on memory on this machine', 1 if $memory eq 'none';
	unlike(job_log($glutton), qr/^had it all$/m, 'a job cannot allocate more than memory_max');
}
ok(kill(0, $m->{pid}), 'the monitor survives fork bombs');
$m->stop;
my $groups = sprintf 'slipway-%x.%x-', (stat $m->{workspaces})[0, 1];
is_deeply([grep { -d } glob "/sys/fs/cgroup/{,*/}$groups*"], [], 'no control group is left');

done_testing();
