#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Steps: which of them run, how they end, timeouts, cancel.

use strict;
use warnings;
use Fcntl;
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep time);
use Slipway::Spool;
use Slipway::Test;

note(is_root() ? 'as root' : 'without root');
my $repo = tempdir() . '/repo';
run_cmd('sh', '-ec', "git init -q -b main '$repo'; cd '$repo';"
	. 'git config user.email a@example.org; git config user.name a;'
	. 'echo hello >file; git add .; git commit -qm first');
sub run_steps { return job_run(repository => $repo, steps => \@_) }
sub step { my ($script, $when, %o) = @_; return { script => $script, when => $when || 'success', %o } }

# --- runWhen: letters are steps: s success, f failure, a always, upper case fails
my %matrix = (
	's' => 's', 'S' => 'S', 'f' => '', 'a' => 'a', 'A' => 'A',
	'sf' => 's', 'Sf' => 'Sf', 'Ss' => 'S', 'Sa' => 'Sa', 'fs' => 's', 'SF' => 'SF',
	'sSfas' => 'sSfa', 'ssfas' => 'ssas', 'Asf' => 'Af', 'SFa' => 'SFa', 'sFa' => 'sa', 'SfAfas' => 'SfAfa',
);
for my $steps (sort keys %matrix) {
	my %when = (s => 'success', f => 'failure', a => 'always');
	my @all = map { step("echo 'ran $_'" . ($_ eq lc $_ ? '' : '; exit 1'), $when{ lc $_ }) } split //, $steps;
	my $job = run_steps(@all);
	my $ran = join '', job_log($job) =~ /^ran (.)$/mg;
	is($ran, $matrix{$steps}, "of $steps run " . ($ran || 'none'));
	my ($bad) = $ran =~ /([A-Z])/;
	is(scalar job_end($job), $bad ? 'failed step_failed' : 'success -', 'and it ends so');
	my @skipped = job_steps($job) =~ /skipped/g;
	is(@skipped, length($steps) - length($ran), 'the rest is skipped');
}
is(scalar job_end(run_steps()), 'success -', 'no steps at all');

# --- exit statuses and signals
for my $code (0, 1, 2, 3, 126, 127, 128, 200, 255) {
	my $job = run_steps("exit $code");
	is(job_steps($job), "0:" . ($code ? 'failed' : 'success') . ":$code:-", "exit status $code");
}
for my $signal (1, 2, 3, 6, 9, 11, 13, 15, 31) {
	my $job = run_steps("exec perl -e 'kill $signal, \$\$; sleep 5'");
	is(job_steps($job), "0:failed:-:$signal", "signal $signal");
	my (undef, $detail) = job_end($job);
	like($detail, qr/^Step 1 \(step 1\) was killed by signal $signal \(/, 'said in words');
}
my ($end, $detail) = job_end(run_steps('true', step('exit 7', 'success', name => 'build it')));
is($detail, 'Step 2 (build it) ended with exit status 7.', 'the failing step is named');

# --- scripts
is(job_steps(run_steps('false; true')), '0:failed:1:-', 'a failing command ends the step');
is(job_steps(run_steps('false | true')), '0:failed:1:-', 'in a pipe, too');
is(job_steps(run_steps("#!/bin/sh\nfalse\ntrue\n")), '0:success:0:-', 'with an interpreter of its own that is its own matter');
my $perl = run_steps("#!/usr/bin/perl\nprint qq(perl \$\]\\n); exit 4;\n");
is(job_steps($perl), '0:failed:4:-', 'perl');
like(job_log($perl), qr/^perl 5/m, 'speaks');
my $none = run_steps("#!/no/such/interpreter\n", step('echo cleanup', 'failure'));
is(job_steps($none), '0:failed:127:- 1:success:0:-', 'no such interpreter');
like(job_log($none), qr/could not be started: No such file/, 'said so');
like(job_log(run_steps('cat; echo end')), qr/^end$/m, 'standard input is empty');
like(job_log(run_steps("printf '%s' 'no newline'", 'echo next')), qr/^no newline\n==> step 2/m, 'a missing newline is made up for');
my $long = 'x' x 60000;
like(job_log(run_steps("echo $long | wc -c")), qr/^60001$/m, 'a long script');
my $huge = job_run(repository => $repo, env => [map { "V$_=" . 'x' x 65000 } 1 .. 40], steps => ['echo fits']);
is((split / /, scalar job_end($huge))[0], 'failed', 'an environment that no program may have');
like(job_log($huge), qr/could not be started: Argument list too long/, 'is said');
my $shared = run_steps('echo 1 >~/a; echo 2 >b', 'cat ~/a b; pwd; cd /', 'pwd');
like(job_log($shared), qr{^1\n2\n(\S+)\n==> step 3: step 3\n\1$}m, 'home and workspace last from step to step');

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
is_deeply(\%at, { 0 => "one\n", 1 => "two\nthree\n", 2 => '' }, 'a step\'s part of the log is its output');
my @order = map { $_->[0] } job_result($placed);
is("@order", 'checked-out objects step-started step-ended step-started step-ended step-started step-ended workspace end', 'the order of the result');

# --- timeouts
my $t = time;
my $job = run_steps(step('echo before; sleep 3000; echo after', 'success', timeout => 2), 'echo next', step('echo cleanup', 'failure'), step('echo always', 'always'));
cmp_ok(time - $t, '<', deadline(60), 'a step past its time');
($end, $detail) = job_end($job);
is($end, 'failed timeout', 'fails');
is($detail, 'Step 1 (step 1) timed out.', 'with a reason');
is(job_steps($job), '0:failed:-:15 1:skipped 2:success:0:- 3:success:0:-', 'and cleanup runs');
like(job_log($job), qr/^before\n==> step 1 timed out\n/m, 'its output is kept');
$job = job_run(repository => $repo, grace => 30, steps => [step('trap "echo got TERM; exit 3" TERM; sleep 3000 & wait', 'success', timeout => 2)]);
like(job_log($job), qr/^got TERM$/m, 'it is asked to end first');
is(job_steps($job), '0:failed:3:-', 'its answer is told');
$t = time;
$job = job_run(repository => $repo, timeout => 8, grace => 30, steps => [step('sleep 3000'), step('echo no'), step('echo cleanup; sleep 1; echo cleaned', 'failure'), step('sleep 3000', 'always', timeout => 1), step('echo last', 'always')]);
cmp_ok(time - $t, '<', deadline(60), 'a pipeline past its time');
($end, $detail) = job_end($job);
is($end, 'failed timeout', 'fails');
is($detail, 'The pipeline took longer than 8 seconds.', 'with a reason');
is(job_steps($job), '0:failed:-:15 1:skipped 2:success:0:- 3:failed:-:15 4:success:0:-', 'cleanup has its own time');
$job = job_run(repository => $repo, timeout => 3, grace => 30, steps => [step('sleep 1; exit 5'), step('sleep 4; echo cleaned', 'failure')]);
like(job_steps($job), qr/ 1:success:0:-$/, 'a failure shortly before the end leaves cleanup its time');
my $slow = tempdir() . '/slow';
mkdir $slow;
chmod 0755, spew("$slow/git", "#!/bin/sh\nexec sleep 3000\n");
$job = job_run(repository => $repo, timeout => 2, grace => 30, path => "$slow:/usr/bin:/bin", steps => [step('echo no'), step('echo cleanup', 'failure'), step('echo always', 'always')]);
is_deeply([job_end($job)], ['failed timeout', 'The pipeline took longer than 2 seconds.'], 'a pipeline whose time is over before its first step');
is(job_steps($job), '0:skipped 1:success:0:- 2:success:0:-', 'has cleanup as well');
$job = job_run(repository => $repo, timeout => 60, steps => [step('exit 5'), step('sleep 3000', 'always', timeout => 1)]);
is(scalar job_end($job), 'failed step_failed', 'the first failure counts, not that of the cleanup');

# --- cancel
sub canceled {
	my ($wait, %o) = @_;
	my $j = job_start(repository => $repo, %o);
	ok(poll(20, sub { job_log($j) =~ $wait }), 'a job is running');
	my $start = time;
	job_cancel($j);
	$j->{status} = job_wait($j);
	$j->{took} = time - $start;
	return $j;
}
$job = canceled(qr/^up$/m, grace => 30, steps => [step('echo up; sleep 3000'), step('echo no'), step('echo on failure', 'failure'), step('echo always', 'always')]);
cmp_ok($job->{took}, '<', deadline(60), 'a cancel ends it');
is_deeply([job_end($job)], ['canceled canceled_by_user', 'The deployment was canceled.'], 'as canceled');
is(job_steps($job), '0:canceled:-:15 1:skipped 2:success:0:- 3:success:0:-', 'cleanup ran');
$job = canceled(qr/^up$/m, grace => 30, cancel_grace => 4, steps => [step('echo up; sleep 3000'), step('sleep 3000', 'always'), step('echo late', 'always')]);
cmp_ok($job->{took}, '<', deadline(60), 'cleanup after a cancel gets so much time');
is(job_steps($job), '0:canceled:-:15 1:failed:-:15 2:skipped', 'in total');
is(scalar job_end($job), 'canceled canceled_by_user', 'and it stays canceled');
$job = canceled(qr/^up$/m, grace => 30, cancel_grace => 2, steps => [step('exit 3'), step('echo up; sleep 3000', 'always'), step('echo late', 'always')]);
is(scalar job_end($job), 'canceled canceled_by_user', 'a cancel during cleanup');
is(job_steps($job), '0:failed:3:- 1:failed:-:15 2:skipped', 'leaves it as much time');
$job = canceled(qr/^up$/m, grace => 30, cancel_grace => 600, steps => [step('true'), step('echo up; sleep 1; echo cleaned', 'always'), step('true'), step('echo on failure', 'failure')]);
is(job_steps($job), '0:success:0:- 1:success:0:- 2:skipped 3:success:0:-', 'and cuts none short');
is(scalar job_end($job), 'canceled canceled_by_user', 'which is canceled all the same');
$job = canceled(qr/^up$/m, grace => 1, steps => [step("trap '' TERM; echo up; while :; do sleep 1; done")]);
is(job_steps($job), '0:canceled:-:9', 'what ignores TERM is killed');
$job = job_start(repository => $repo, steps => [step('echo up; sleep 2; echo done')]);
poll(20, sub { job_log($job) =~ /^up$/m });
syswrite $job->{control}, "cancelled\nnonsense\n" . 'x' x 300 . "\n";
is(job_wait($job), 0, 'other lines on the control pipe');
is(scalar job_end($job), 'success -', 'change nothing');
$job = job_start(repository => $repo, steps => [step('echo up; sleep 3000')], grace => 30);
poll(20, sub { job_log($job) =~ /^up$/m });
syswrite $job->{control}, $_ for split //, "x\ncancel\n";
job_wait($job);
is(scalar job_end($job), 'canceled canceled_by_user', 'a cancel that comes byte by byte');

# A job that cannot write its result stands still between two steps.
my $go = tempdir() . '/go';
my $spool = spool_make(repository => $repo, steps => [step("touch up; until test -e $go; do sleep 0.01; done"), step('echo ran; touch ran'), step('echo always', 'always')]);
unlink "$spool->{dir}/result";
POSIX::mkfifo("$spool->{dir}/result", 0600) or die "mkfifo: $!";
sysopen my $fifo, "$spool->{dir}/result", O_RDWR | O_NONBLOCK or die "result: $!";
fcntl $fifo, 1031, 4096 or die "F_SETPIPE_SZ: $!"; # the smallest there is
$job = job_start(spool => $spool);
my $said = '';
sub taken { while (sysread $fifo, my $text, 65536) { $said .= $text } return $said }
ok(poll(20, sub { taken() =~ /step-started/ && -e "$job->{workspace}/up" }), 'a step has begun');
1 while syswrite $fifo, 'x';
spew($go, '');
ok(poll(20, sub { slurp("/proc/$job->{pid}/task/$job->{pid}/children") eq '' }), 'it is over, and cannot be told of');
job_cancel($job);
my $ended = poll(20, sub { taken() =~ /\nend \d+\n/ });
unlink "$spool->{dir}/result";
spew("$spool->{dir}/result", $said =~ s/x+//r);
ok($ended, 'a cancel between two steps');
job_wait($job);
unlike(job_log($job), qr/^ran$/m, 'the next one does not even begin');
ok(!-e "$job->{workspace}/ran", 'nor do anything');
is(job_steps($job), '0:success:0:- 1:skipped 2:success:0:-', 'it is skipped');
like(job_log($job), qr/^always$/m, 'cleanup runs');

# --- the step ends when its process does, not when its output is closed
$t = time;
$job = run_steps('exec >&- 2>&-; sleep 1; exit 9');
is(job_steps($job), '0:failed:9:-', 'closed output: the status counts');
cmp_ok(time - $t, '>=', 1, 'and is waited for');
$t = time;
$job = run_steps('sleep 3000 & echo started', 'echo next');
cmp_ok(time - $t, '<', deadline(60), 'output held open by a child: not waited for');
for (1 .. 5) { # a fifth of a second is waited for it
	$job = run_steps('(sleep 0.1; echo late) & echo early', 'echo next');
	last if job_log($job) =~ /^late$/m;
}
like(job_log($job), qr/^early\nlate\n==> step 2/m, 'what comes a moment later still belongs to the step');
$job = run_steps('for i in $(seq 20000); do echo line $i; done; kill -9 $$');
like(job_log($job), qr/^line 20000\n==> step 1 was killed/m, 'all output of a step that was killed is there');

done_testing();
