#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The pid of a dead job is reused by another process; the monitor that adopted the
# job leaves that process alone, with pidfds and on a kernel that has none.

use strict;
use warnings;
use POSIX qw(:sys_wait_h);
use Slipway::Monitor;
use Slipway::Spool;
use Slipway::Test;
use Test::More;
use Time::HiRes qw(sleep);

plan skip_all => 'only root can choose process ids' if !is_root();
plan skip_all => 'no pid namespace' if !own_mounts('--pid', '--fork', '--mount-proc');
my $repo = make_repo(tempdir() . '/repo');

my $next = '/proc/sys/kernel/ns_last_pid';
plan skip_all => "$next is not writable" if !-w $next;

# Starts an idle process with this pid; false if that is impossible.
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
sub below {
	my ($pid) = @_;
	return map { ($_, below($_)) } split ' ', slurp("/proc/$pid/task/$pid/children") || '';
}

# Makes pidfd_open(2) fail with ENOSYS in this process and all its children.
sub without_pidfds {
	my %number = (x86_64 => 434, aarch64 => 434);
	my (undef, undef, undef, undef, $machine) = POSIX::uname();
	my $prctl = { x86_64 => 157, aarch64 => 167 }->{$machine} or return 0;
	# load the number; pidfd_open: ENOSYS; else: allow
	my $filter = join '', map { pack 'S C C L', @$_ } [0x20, 0, 0, 0],
	    [0x15, 0, 1, $number{$machine}], [0x06, 0, 0, 0x00050000 | 38], [0x06, 0, 0, 0x7fff0000];
	my $program = pack 'S x6 P', 4, $filter;
	# PR_SET_SECCOMP, SECCOMP_MODE_FILTER; root needs no_new_privs not
	return syscall($prctl, 22, 2, $program, 0, 0) == 0;
}

for my $how ('with pidfds', 'without pidfds') {
	SKIP: {
		skip 'the system call numbers of this machine are unknown', 1
		    if $how eq 'without pidfds' && !without_pidfds();
		for my $event ('the job ends', 'the job is to be killed') {
			my $case = "$how, $event";
			my $m = Slipway::Monitor->start;
			my $job = $m->job(repository => $repo, project => 3, dir => 'three',
			    steps => ['echo up; sleep 605']);
			my $pid = $m->started($job);
			ok(poll(60, sub { job_log($job) =~ /^up$/m }), "$case: a job runs");
			$m->stop('KILL');
			$m = Slipway::Monitor->start(dir => $m->{dir});
			like($m->log, qr/job $job->{id}\.1 adopted: pid $pid\b/,
			    "$case: the next monitor adopts the job");
			kill STOP => $m->{pid};
			poll(10, sub { state($m->{pid}) eq 'T' });
			kill KILL => $_ for reverse $pid, below($pid);
			ok(poll(10, sub { waitpid($pid, WNOHANG) == $pid }),
			    "$case: the job is killed and reaped");
			ok(victim($pid), "$case: its pid is reused");
			$m->command("kill $job->{id} 1") if $event ne 'the job ends';
			kill CONT => $m->{pid};
			ok(defined $m->exited($job, 30), "$case: the monitor reports the end of the job");
			sleep 0.3;
			is(waitpid($pid, WNOHANG | WUNTRACED), 0,
			    "$case: the process with the reused pid is not signaled");
			is(state($pid), 'S', "$case: the process with the reused pid sleeps");
			kill KILL => $pid;
			waitpid $pid, 0;
			is($m->stop, 0, "$case: the monitor stops");
		}
	}
}
done_testing;
