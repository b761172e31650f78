#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Steps: which of them run, how they end, time limits, cancel.

use strict;
use warnings;
use Fcntl;
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep time);
use Slipway::Spool;
use Slipway::Test;

note(is_root() ? 'as root' : 'without root');
my $repo = make_repo(tempdir() . '/repo');
sub run_steps { return job_run(repository => $repo, steps => \@_) }
sub step { my ($script, $when, %o) = @_; return { script => $script, when => $when || 'success', %o } }

# --- runWhen: each letter is a step: s success, f failure, a always; upper case fails
my %matrix = (
	's' => 's', 'S' => 'S', 'f' => '', 'a' => 'a', 'A' => 'A',
	'sf' => 's', 'Sf' => 'Sf', 'Ss' => 'S', 'Sa' => 'Sa', 'fs' => 's', 'SF' => 'SF',
	'sSfas' => 'sSfa', 'ssfas' => 'ssas', 'Asf' => 'Af', 'SFa' => 'SFa',
	'sFa' => 'sa', 'SfAfas' => 'SfAfa',
);
for my $steps (sort keys %matrix) {
	my %when = (s => 'success', f => 'failure', a => 'always');
	my @all = map { step("echo 'ran $_'" . ($_ eq lc $_ ? '' : '; exit 1'), $when{ lc $_ }) } split //,
	    $steps;
	my $job = run_steps(@all);
	my $ran = join '', job_log($job) =~ /^ran (.)$/mg;
	is($ran, $matrix{$steps}, "of the steps $steps these run: " . ($ran || 'none'));
	my ($bad) = $ran =~ /([A-Z])/;
	is(scalar job_end($job), $bad ? 'failed step_failed' : 'success -',
	    "the steps $steps end with the right status");
	my @skipped = job_steps($job) =~ /skipped/g;
	is(@skipped, length($steps) - length($ran), "the other steps of $steps are skipped");
}
is(scalar job_end(run_steps()), 'success -', 'a job without steps succeeds');

# --- what a job leaves in its home costs the monitor a process that removes it
sub home { my ($job) = @_; return join ' ', sort map { s{.*/}{}r } glob "$job->{home}/{.??*,*}" }
for my $checkout (qw(fresh none)) {
	my $job = job_run(repository => $repo, checkout => $checkout, steps => ['echo ran']);
	is(home($job), '', "with checkout $checkout, a job leaves nothing in its home");
	is($job->{status}, 0, "with checkout $checkout, the exit status of the job says so");
}
is(home(run_steps('echo text >~/file')), 'file', 'what a step leaves in the home stays for the monitor');

# --- exit statuses and signals
for my $code (0, 1, 2, 3, 126, 127, 128, 200, 255) {
	my $job = run_steps("exit $code");
	is(job_steps($job), "0:" . ($code ? 'failed' : 'success') . ":$code:-",
	    "a step with exit status $code");
}
for my $signal (1, 2, 3, 6, 9, 11, 13, 15, 31) {
	my $job = run_steps("exec perl -e 'kill $signal, \$\$; sleep 5'");
	is(job_steps($job), "0:failed:-:$signal", "a step killed by signal $signal");
	my (undef, $detail) = job_end($job);
	like($detail, qr/^Step 1 \(step 1\) was killed by signal $signal \(/,
	    "the detail names signal $signal");
}
my ($end, $detail) = job_end(run_steps('true', step('exit 7', 'success', name => 'build it')));
is($detail, 'Step 2 (build it) ended with exit status 7.', 'the detail names the failed step');

# --- scripts
is(job_steps(run_steps('false; true')), '0:failed:1:-', 'a failing command ends the step');
is(job_steps(run_steps('false | true')), '0:failed:1:-', 'a failing command in a pipe ends the step');
is(job_steps(run_steps("#!/bin/sh\nfalse\ntrue\n")), '0:success:0:-',
    'a script with its own interpreter decides itself');
my $perl = run_steps("#!/usr/bin/perl\nprint qq(perl \$\]\\n); exit 4;\n");
is(job_steps($perl), '0:failed:4:-', 'a Perl script sets the exit status');
like(job_log($perl), qr/^perl 5/m, 'a Perl script runs under perl');
my $none = run_steps("#!/no/such/interpreter\n", step('echo cleanup', 'failure'));
is(job_steps($none), '0:failed:127:- 1:success:0:-', 'an unknown interpreter fails the step');
like(job_log($none), qr/could not be started: No such file/, 'the log names the missing interpreter');
like(job_log(run_steps('cat; echo end')), qr/^end$/m, 'standard input is empty');
like(job_log(run_steps("printf '%s' 'no newline'", 'echo next')), qr/^no newline\n==> step 2/m,
    'a newline is added to an unfinished line');
my $long = 'x' x 60000;
like(job_log(run_steps("echo $long | wc -c")), qr/^60001$/m, 'a script of 60 kB runs');
my $huge = job_run(repository => $repo, env => [map { "V$_=" . 'x' x 65000 } 1 .. 40],
    steps => ['echo fits']);
is((split / /, scalar job_end($huge))[0], 'failed', 'an environment that is too large fails the step');
like(job_log($huge), qr/could not be started: Argument list too long/,
    'the log says that the environment is too large');
my $shared = run_steps('echo 1 >~/a; echo 2 >b', 'cat ~/a b; pwd; cd /', 'pwd');
like(job_log($shared), qr{^1\n2\n(\S+)\n==> step 3: step 3\n\1$}m,
    'home and workspace are shared by all steps');

# --- positions in the log
my $placed = run_steps('echo one', 'echo two; echo three', 'exit 1');
my $text = job_log($placed);
my %at;
for (job_result($placed)) {
	my ($name, $value) = @$_;
	my @w = split / /, $value;
	$at{$w[0]} = $w[2] if $name eq 'step-started';
	$at{$w[0]} = substr $text, $at{$w[0]}, $w[5] if $name eq 'step-ended';
}
is_deeply(\%at, { 0 => "one\n", 1 => "two\nthree\n", 2 => '' },
    'the positions of a step select its output in the log');
my @order = map { $_->[0] } job_result($placed);
is("@order",
    'checked-out objects step-started step-ended step-started step-ended step-started step-ended workspace '
    . 'end', 'the result has its records in order');

# --- timeouts
my ($t, $job);
within(2, sub {
	$t = stopwatch();
	$job = run_steps(step('echo before; sleep 3000; echo after', 'success', timeout => 2), 'echo next',
	    step('echo cleanup', 'failure'), step('echo always', 'always'));
	cmp_ok($t->(), '<', deadline(60), 'a step ends at its time limit');
	($end, $detail) = job_end($job);
	is($end, 'failed timeout', 'a step past its time limit fails');
	is($detail, 'Step 1 (step 1) timed out.', 'the detail names the step that timed out');
	is(job_steps($job), '0:failed:-:15 1:skipped 2:success:0:- 3:success:0:-',
	    'cleanup steps run after a timeout');
	like(job_log($job), qr/^before\n==> step 1 timed out\n/m,
	    'the output before a timeout is in the log');
});
within(2, sub {
	$job = job_run(repository => $repo, grace => 30,
	    steps => [step('trap "echo got TERM; exit 3" TERM; sleep 3000 & wait', 'success', timeout => 2)]);
	like(job_log($job), qr/^got TERM$/m, 'a step past its time limit gets TERM first');
	is(job_steps($job), '0:failed:3:-', 'the exit status after TERM is reported');
});
within(1, sub {
	$t = stopwatch();
	$job = job_run(repository => $repo, timeout => 8, grace => 30,
	    steps => [step('sleep 3000'), step('echo no'),
	        step('echo cleanup; sleep 1; echo cleaned', 'failure'),
	    step('sleep 3000', 'always', timeout => 1), step('echo last', 'always')]);
	cmp_ok($t->(), '<', deadline(60), 'a pipeline ends at its time limit');
	($end, $detail) = job_end($job);
	is($end, 'failed timeout', 'a pipeline past its time limit fails');
	is($detail, 'The pipeline took longer than 8 seconds.',
	    'the detail names the time limit of the pipeline');
	is(job_steps($job), '0:failed:-:15 1:skipped 2:success:0:- 3:failed:-:15 4:success:0:-',
	    'cleanup steps have their own time limit');
});
within(2, sub {
	$job = job_run(repository => $repo, timeout => 3, grace => 30,
	    steps => [step('sleep 1; exit 5'), step('sleep 4; echo cleaned', 'failure')]);
	like(job_steps($job), qr/ 1:success:0:-$/,
	    'a failure shortly before the time limit leaves cleanup its time');
});
my $slow = tempdir() . '/slow';
mkdir $slow;
chmod 0755, spew("$slow/git", "#!/bin/sh\nexec sleep 3000\n");
within(2, sub {
	$job = job_run(repository => $repo, timeout => 2, grace => 30, path => "$slow:/usr/bin:/bin",
	    steps => [step('echo no'), step('echo cleanup', 'failure'), step('echo always', 'always')]);
	is_deeply([job_end($job)], ['failed timeout', 'The pipeline took longer than 2 seconds.'],
	    'a pipeline can time out before its first step');
	is(job_steps($job), '0:skipped 1:success:0:- 2:success:0:-',
	    'cleanup steps run if the pipeline timed out before its first step');
});
$job = job_run(repository => $repo, timeout => 60,
    steps => [step('exit 5'), step('sleep 3000', 'always', timeout => 1)]);
is(scalar job_end($job), 'failed step_failed',
    'the first failure decides the reason, not that of a cleanup step');

# --- cancel
sub canceled {
	my ($wait, %o) = @_;
	my $j = job_start(repository => $repo, %o);
	ok(poll(20, sub { job_log($j) =~ $wait }), 'a job is running');
	my $start = stopwatch();
	job_cancel($j);
	$j->{status} = job_wait($j);
	$j->{took} = $start->();
	return $j;
}
$job = canceled(qr/^up$/m, grace => 30, steps => [step('echo up; sleep 3000'), step('echo no'),
    step('echo on failure', 'failure'), step('echo always', 'always')]);
cmp_ok($job->{took}, '<', deadline(60), 'a cancel ends the job');
is_deeply([job_end($job)], ['canceled canceled_by_user', 'The deployment was canceled.'],
    'a canceled job has its status and reason');
is(job_steps($job), '0:canceled:-:15 1:skipped 2:success:0:- 3:success:0:-',
    'cleanup steps run after a cancel');
within(3, sub {
	$job = canceled(qr/^up$/m, grace => 30, cancel_grace => 4,
	    steps => [step('echo up; sleep 3000'), step('sleep 3000', 'always'),
	        step('echo late', 'always')]);
	cmp_ok($job->{took}, '<', deadline(60), 'cleanup after a cancel ends at its time limit');
	is(job_steps($job), '0:canceled:-:15 1:failed:-:15 2:skipped',
	    'the time limit of cleanup holds for all its steps');
	is(scalar job_end($job), 'canceled canceled_by_user',
	    'a cleanup step that times out keeps the job canceled');
});
within(2, sub {
	$job = canceled(qr/^up$/m, grace => 30, cancel_grace => 2,
	    steps => [step('exit 3'), step('echo up; sleep 3000', 'always'), step('echo late', 'always')]);
	is(scalar job_end($job), 'canceled canceled_by_user', 'a cancel during cleanup cancels the job');
	is(job_steps($job), '0:failed:3:- 1:failed:-:15 2:skipped',
	    'a cancel during cleanup limits the time of cleanup');
});
within(0.5, sub {
	$job = canceled(qr/^up$/m, grace => 30, cancel_grace => 600, steps => [step('true'),
	    step('echo up; sleep 1; echo cleaned', 'always'), step('true'),
	        step('echo on failure', 'failure')]);
	is(job_steps($job), '0:success:0:- 1:success:0:- 2:skipped 3:success:0:-',
	    'a cancel does not abort a cleanup step');
	is(scalar job_end($job), 'canceled canceled_by_user', 'a job whose cleanup succeeded is canceled');
});
$job = canceled(qr/^up$/m, grace => 1, steps => [step("trap '' TERM; echo up; while :; do sleep 1; done")]);
is(job_steps($job), '0:canceled:-:9', 'a step that ignores TERM is killed');
$job = job_start(repository => $repo, steps => [step('echo up; sleep 2; echo done')]);
poll(20, sub { job_log($job) =~ /^up$/m });
syswrite $job->{control}, "cancelled\nnonsense\n" . 'x' x 300 . "\n";
is(job_wait($job), 0, 'unknown lines on the control pipe are ignored');
is(scalar job_end($job), 'success -', 'a job with unknown lines on its control pipe succeeds');
$job = job_start(repository => $repo, steps => [step('echo up; sleep 3000')], grace => 30);
poll(20, sub { job_log($job) =~ /^up$/m });
syswrite $job->{control}, $_ for split //, "x\ncancel\n";
job_wait($job);
is(scalar job_end($job), 'canceled canceled_by_user', 'a cancel that arrives byte by byte is recognized');

# A job that cannot write its result blocks between two steps.
my $go = tempdir() . '/go';
my $spool = spool_make(repository => $repo,
    steps => [step("touch up; until test -e $go; do sleep 0.01; done"), step('echo ran; touch ran'),
    step('echo always', 'always')]);
unlink "$spool->{dir}/result";
POSIX::mkfifo("$spool->{dir}/result", 0600) or die "mkfifo: $!";
sysopen my $fifo, "$spool->{dir}/result", O_RDWR | O_NONBLOCK or die "result: $!";
fcntl $fifo, 1031, 4096 or die "F_SETPIPE_SZ: $!"; # the minimum
$job = job_start(spool => $spool);
my $said = '';
sub taken { while (sysread $fifo, my $text, 65536) { $said .= $text } return $said }
ok(poll(20, sub { taken() =~ /step-started/ && -e "$job->{workspace}/up" }), 'the first step is running');
1 while syswrite $fifo, 'x';
spew($go, '');
ok(poll(20, sub { slurp("/proc/$job->{pid}/task/$job->{pid}/children") eq '' }),
    'the first step ended, and the job cannot report it');
job_cancel($job);
my $ended = poll(20, sub { taken() =~ /\nend \d+\n/ });
unlink "$spool->{dir}/result";
# a record may contain an x of its own
spew("$spool->{dir}/result", $said =~ s/x{64,}//r);
ok($ended, 'a cancel between two steps ends the job');
job_wait($job);
unlike(job_log($job), qr/^ran$/m, 'after a cancel the next step does not start');
ok(!-e "$job->{workspace}/ran", 'after a cancel the next step does nothing');
is(job_steps($job), '0:success:0:- 1:skipped 2:success:0:-', 'after a cancel the next step is skipped');
like(job_log($job), qr/^always$/m, 'cleanup steps run after a cancel between two steps');

# --- a step ends with its process, not when its output is closed
my $from = time;
$job = run_steps('exec >&- 2>&-; sleep 1; exit 9');
is(job_steps($job), '0:failed:9:-', 'a step with closed output has its exit status');
cmp_ok(time - $from, '>=', 1, 'a step with closed output runs to its end');
$t = stopwatch();
$job = run_steps('sleep 3000 & echo started', 'echo next');
cmp_ok($t->(), '<', deadline(60), 'a child that holds the output open does not delay the next step');
for (1 .. 100) { # the job waits a fifth of a second
	$job = run_steps('(sleep 0.1; echo late) & echo early', 'echo next');
	last if job_log($job) =~ /^late$/m;
}
like(job_log($job), qr/^early\nlate\n==> step 2/m,
    'output shortly after the end of a step belongs to the step');
$job = run_steps('for i in $(seq 20000); do echo line $i; done; kill -9 $$');
like(job_log($job), qr/^line 20000\n==> step 1 was killed/m, 'the log has all output of a killed step');

done_testing();
