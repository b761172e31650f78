#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# A step cannot silence, stop or end its job; where it can (without root) the
# result never claims success.  A job that exceeded its limits is killed.

use strict;
use warnings;
use POSIX ();
use Slipway::Monitor;
use Slipway::Spool;
use Slipway::Test;
use Test::More;
use Time::HiRes qw(sleep time);

note(is_root() ? 'as root: the job runs under another uid than its steps'
    : 'without root: steps can signal the job');
my $repo = make_repo(tempdir() . '/repo');
my $mark = 7_600_000 + $$;

my @tries = (
	(map { ["limits $_->[0] to $_->[1]", "prlimit --pid \$PPID --$_->[0]=$_->[1]"] }
	    ['fsize', 0], ['fsize', 300], ['nofile', 0], ['nproc', 0], ['as', 1], ['data', 0], ['stack', 0],
	    ['cpu', 0], ['cpu', 1]),
	(map { ["sends $_", "kill -$_ \$PPID"] } qw(KILL TERM INT HUP CHLD PIPE XFSZ QUIT SEGV)),
	# without root the job would stay stopped: the monitor ends it, see below
	!is_root() ? () : ['sends STOP', "kill -STOP \$PPID"],
	!is_root() ? () : ['sends STOP again and again',
	    "(while kill -STOP \$PPID; do :; done) & sleep 0.3; kill -STOP \$PPID"],
	['traces its job', 'perl -e \'exit(syscall(101, 16, 0 + shift, 0, 0) != 0)\' $PPID'],
	['writes to the memory of its job', 'echo x >/proc/$PPID/mem'],
	['makes its job the victim of the OOM killer', 'echo 1000 >/proc/$PPID/oom_score_adj'],
	['opens the log of its job', 'exec 7</proc/$PPID/fd/4'],
	['makes its job send signals',
	    'perl -MFcntl -e \'pipe my $r, my $w; fcntl $r, F_SETOWN, 0 + shift or exit 1; fcntl $r, 10, '
	    . '9 or exit 1; fcntl $r, F_SETFL, O_ASYNC | O_NONBLOCK or exit 1; syswrite $w, q(x); sleep 1; '
	    . 'exit 1\' $PPID'],
);
for (@tries) {
	my ($what, $attack) = @$_;
	my $job = job_start(repository => $repo, grace => 1, timeout => 20,
		steps => ["if ( $attack ) 2>/dev/null; then echo did; else echo could-not; fi; echo after",
		    'echo the-next; seq 1 200']);
	my $status = job_wait($job, 60);
	if (!is_root() && !defined $status) {
			# the monitor would kill it: see below
		kill 'KILL', $job->{pid};
		$status = job_wait($job);
	}
	my $end = job_end($job);
	my $complete = job_log($job) =~ /^(?:did|could-not)\nafter\n(?:.*\n)*the-next\n1\n(?:\d+\n)*200\n/m;
	if (is_root()) {
		is($end, 'success -', "a step that $what: the job succeeds");
		ok($complete, "a step that $what: the log is complete");
		like(job_log($job), qr/^could-not$/m, "a step that $what fails to do so");
	} else {
		ok($complete || !defined $end || $end !~ /^success/,
		    "a step that $what: the job does not succeed or its log is complete");
	}
}

# --- steps cannot do this to another job either
if (is_root()) {
	my $killer = job_run(repository => $repo,
	    steps => ['echo before; kill -9 -1; echo after', { script => 'echo cleanup', when => 'always' }]);
	like(scalar job_end($killer), qr/^(?:success -|failed step_failed)$/,
	    'a step that kills all it can reach ends');
	like(job_log($killer), qr/^before\n(?:.*\n)*cleanup\n/m,
	    'the job of a step that kills all it can reach runs its cleanup');
	my $job = job_start(repository => $repo, steps => ['echo up; sleep 2; echo alive']);
	ok(poll(30, sub { job_log($job) =~ /^up$/m }), 'a job runs');
	my $other = job_run(repository => $repo,
	    steps => ["kill -9 $job->{pid} && echo did; prlimit --pid $job->{pid} --nofile=0 && echo did; "
	    . "true"]);
	unlike(job_log($other), qr/^did$/m, 'steps of another job cannot signal or limit a job');
	is(job_wait($job), 0, 'the attacked job succeeds');
	my $ids = job_run(repository => $repo,
	    steps => ['grep ^Uid: /proc/$PPID/status; grep -E "^Cap(Inh|Prm|Eff|Bnd|Amb)" '
	    . '/proc/$PPID/status; ls -ldn /proc/$PPID/fd | cut -d" " -f3']);
	my ($real, $effective, $saved, $files) = job_log($ids) =~ /^Uid:\t(\d+)\t(\d+)\t(\d+)\t(\d+)$/m;
	is("$effective $files", "$ids->{uid} $ids->{uid}",
	    'a job has the effective and file-system uid of its account');
	is($real, $saved, 'a job has the same real and saved uid');
	isnt($real, $ids->{uid}, 'the real uid of a job is not that of its account');
	is(() = job_log($ids) =~ /^Cap(?:Inh|Prm|Eff|Amb):\t0+$/mg, 4, 'a job has no capability');
	like(job_log($ids), qr/^0$/m, 'the descriptors of a job belong to root');
}

# --- a log that cannot be written
sub without_log {
	my (%o) = @_;
	my $spool = spool_make(repository => $repo, %o);
	unlink "$spool->{dir}/log";
	symlink '/dev/full', "$spool->{dir}/log" or die "symlink: $!";
	my $job = job_start(spool => $spool);
	is(job_wait($job), 0, 'a job that cannot write its log ends');
	return $job;
}
sub said {
	my ($job) = @_;
	my ($end) = grep { $_->[0] eq 'end' } job_result($job);
	return $end ? $end->[1] : 'nothing';
}
my $lost = without_log(steps => ['echo hello']);
like(said($lost),
    qr/^failed log_lost \d+\nThe log is incomplete: writing it failed \(No space left on device\)\.$/,
    'a lost log fails the job and gives the cause');
is(job_steps($lost), '0:success:0:-', 'a lost log leaves the status of the steps');
$lost = without_log(steps => ['echo hello; exit 3']);
like(said($lost), qr/^failed step_failed \d+\n.*status 3\. The log is incomplete: writing it failed/,
    'a failed step with a lost log reports both');
my $cut = job_run(repository => $repo, log_max => 500, steps => ['seq 1 1000']);
is(scalar job_end($cut), 'success -', 'a log cut at its limit does not fail the job');

# --- a job that is kept from running
sub left { return grep { !/^\s*\d+ Z/ && /\Q$mark\E/ } `ps -eo pid,stat,args` }
for my $adopted (0, 1) {
	my $m = Slipway::Monitor->start;
	my $job = $m->job(repository => $repo, limit => 8,
	    steps => ["echo up; (setsid sleep $mark &); sleep $mark"]);
	my $pid = $m->started($job);
	ok($pid && poll(30, sub { job_log($job) =~ /^up$/m }), 'a job with a time limit of the monitor runs');
	if ($adopted) {
		$m->stop('KILL');
		$m = Slipway::Monitor->start(dir => $m->{dir});
		like($m->log, qr/job $job->{id}\.1 adopted/, 'another monitor adopts the job');
	}
	my $stopper = fork;
	if (!$stopper) {
		alarm 900;
		sleep 0.001 while kill 'STOP', $pid;
		POSIX::_exit(0);
	}
	ok(defined $m->exited($job, 40), 'a job that is stopped for good is killed');
	like($m->log, qr/job $job->{id}\.1 exceeded its limits/,
	    'the log says that the job exceeded its limit');
	is_deeply([left()], [], 'a killed job leaves no process');
	kill 'KILL', $stopper;
	waitpid $stopper, 0;
	$m->stop;
}

# --- a process that only has the name of a job
if (is_root()) {
	my $m = Slipway::Monitor->start;
	my $fake = 'for i in 1 2 3; do bash -c \'exec -a /x/slipway-job perl -e "sleep 600" -- \' & done; '
	    . 'perl -e \'for (1 .. 3) { fork or exec { "/bin/sleep" } "slipway-job", "-i", '
	        . '"$ENV{SLIPWAY_DEPLOYMENT_ID}.1", "600" }\'; '
	    . 'perl -e \'$0 = "slipway-job\0-i\0$ENV{SLIPWAY_DEPLOYMENT_ID}.1\0x"; sleep 600\' & '
	    . 'echo "sleep 600" >$SLIPWAY_DEPLOYMENT_ID.1; '
	    . 'perl -e \'exec { $^X } "slipway-job", "-i", "$ENV{SLIPWAY_DEPLOYMENT_ID}.1"\' & ';
	my $job = $m->job(repository => $repo,
	    steps => ["$fake echo up; until test -e go; do sleep 0.1; done; echo done"]);
	my $pid = $m->started($job);
	ok($pid && poll(30, sub { job_log($job) =~ /^up$/m }),
	    'a step starts processes with the name of its job');
	$m->stop('KILL');
	$m = Slipway::Monitor->start(dir => $m->{dir});
	like($m->log, qr/job $job->{id}\.1 adopted: pid $pid,/,
	    'the next monitor adopts the real job');
	spew("$m->{workspaces}/shop/go", '');
	ok(defined $m->exited($job, 40), 'the adopted job ends');
	is(scalar job_end($job), 'success -', 'the adopted job succeeds');

	# the job dies while no monitor runs
	$job = $m->job(repository => $repo, steps => ["$fake echo up; sleep 600"]);
	$pid = $m->started($job);
	ok($pid && poll(30, sub { job_log($job) =~ /^up$/m }), 'another step starts such processes');
	$m->stop('KILL');
	kill 'KILL', $pid;
	ok(poll(30, sub { (slurp("/proc/$pid/stat") // ') Z') =~ /\) Z/ }), 'the job dies');
	$m = Slipway::Monitor->start(dir => $m->{dir});
	like($m->log, qr/job $job->{id}\.1 ended while no monitor was running/,
	    'no process that has only the name of a dead job is adopted');
	ok(defined $m->exited($job, 40), 'a job that died while no monitor ran ends');
	is_deeply([left()], [], 'no process with the name of a job is left');
	$m->stop;
}

done_testing;
