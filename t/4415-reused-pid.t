#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The number of a job that is gone is given to another process, which the
# monitor that had adopted the job leaves alone; with descriptors of processes,
# and on a kernel that has none.

use strict;
use warnings;
use POSIX qw(:sys_wait_h);
use Slipway::Monitor;
use Slipway::Spool;
use Slipway::Test;
use Test::More;
use Time::HiRes qw(sleep);

plan skip_all => 'only root has process numbers of its own to give' if !is_root();
plan skip_all => 'no process numbers of its own' if !own_mounts('--pid', '--fork', '--mount-proc');
my $repo = tempdir() . '/repo';
run_cmd('sh', '-ec', "git init -q -b main '$repo'; cd '$repo';"
	. 'git config user.email a@example.org; git config user.name a;'
	. 'echo hello >file; git add .; git commit -qm first');

my $next = '/proc/sys/kernel/ns_last_pid';
plan skip_all => "$next cannot be written" if !-w $next;

# A process with this number that does nothing; nothing if it cannot be had.
sub victim {
	my ($pid) = @_;
	for (1 .. 50) {
		open my $fh, '>', $next or die "$next: $!";
		syswrite $fh, $pid - 1;
		close $fh;
		my $got = fork;
		die "fork: $!" if !defined $got;
		if ($got == 0) { POSIX::pause() while 1 }
		return 1 if $got == $pid;
		kill KILL => $got;
		waitpid $got, 0;
	}
	return 0;
}
sub state { my ($pid) = @_; return (slurp("/proc/$pid/stat") || '') =~ /\) (\S)/ ? $1 : 'gone' }
sub below { my ($pid) = @_; return map { ($_, below($_)) } split ' ', slurp("/proc/$pid/task/$pid/children") || '' }

# From now on, in this process and all it starts: pidfd_open(2) is not there.
sub without_pidfds {
	my %number = (x86_64 => 434, aarch64 => 434);
	my (undef, undef, undef, undef, $machine) = POSIX::uname();
	my $prctl = { x86_64 => 157, aarch64 => 167 }->{$machine} or return 0;
	# load the number; if it is that one: ENOSYS; else allow
	my $filter = join '', map { pack 'S C C L', @$_ } [0x20, 0, 0, 0],
	    [0x15, 0, 1, $number{$machine}], [0x06, 0, 0, 0x00050000 | 38], [0x06, 0, 0, 0x7fff0000];
	my $program = pack 'S x6 P', 4, $filter;
	# PR_SET_SECCOMP, SECCOMP_MODE_FILTER: root needs no more
	return syscall($prctl, 22, 2, $program, 0, 0) == 0;
}

for my $how ('with descriptors of processes', 'without') {
	SKIP: {
		skip 'this machine has other numbers', 1 if $how eq 'without' && !without_pidfds();
		for my $asked ('by itself', 'when it is to be killed') {
			my $m = Slipway::Monitor->start;
			my $job = $m->job(repository => $repo, project => 3, dir => 'three', steps => ['echo up; sleep 605']);
			my $pid = $m->started($job);
			ok(poll(60, sub { job_log($job) =~ /^up$/m }), "$how, $asked: a job runs");
			$m->stop('KILL');
			$m = Slipway::Monitor->start(dir => $m->{dir});
			like($m->log, qr/job $job->{id}\.1 is adopted: pid $pid\b/, '  it is adopted');
			kill STOP => $m->{pid};
			poll(10, sub { state($m->{pid}) eq 'T' });
			kill KILL => $_ for reverse $pid, below($pid);
			ok(poll(10, sub { waitpid($pid, WNOHANG) == $pid }), '  it is killed, and waited for');
			ok(victim($pid), '  its number is given to another');
			$m->command("kill $job->{id} 1") if $asked ne 'by itself';
			kill CONT => $m->{pid};
			ok(defined $m->exited($job, 30), '  that it is over is seen');
			sleep 0.3;
			is(waitpid($pid, WNOHANG | WUNTRACED), 0, '  the other has not been touched');
			is(state($pid), 'S', '  and sleeps');
			kill KILL => $pid;
			waitpid $pid, 0;
			is($m->stop, 0, '  the monitor ends');
		}
	}
}
done_testing;
