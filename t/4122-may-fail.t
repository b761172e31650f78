#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Steps that may fail: the deployment succeeds with warnings, whatever ends them.

use strict;
use warnings;
use Test::More;
use Slipway::Spool;
use Slipway::Test;

my $repo = make_repo(tempdir() . '/repo');
sub run_steps { return job_run(repository => $repo, steps => \@_) }
sub step { my ($script, %o) = @_; return { script => $script, when => 'success', %o } }
sub may { my ($script, %o) = @_; return step($script, name => 'tidy', may_fail => 1, %o) }
sub warned {
	my ($job) = @_;
	return (map { $_->[1] } grep { $_->[0] eq 'warnings' } job_result($job))[0];
}

my $job = run_steps('true', may('exit 3'), step('echo after'), step('echo undo', when => 'failure'));
is_deeply([job_end($job)], ['success -', 'Step 2 (tidy) ended with exit status 3.'],
    'a job succeeds although a step that may fail failed, and says so');
is(job_steps($job), '0:success:0:- 1:failed:3:- 2:success:0:- 3:skipped',
    'a failure that may be is shown, and the steps after it run as after a success');
is(warned($job), 1, 'the result has the number of warnings');
like(job_log($job), qr/^==> step 2 ended with exit status 3\n==> step 2 may fail: this is a warning$/m,
    'the log says that it is a warning');
is_deeply([job_end(run_steps('true', may('true')))],
    ['success -', ''], 'without a failure there is no detail');
is(warned(run_steps('true', may('true'))), undef, 'without a failure there are no warnings');

$job = run_steps(may('exit 1'), step('exit 5'), may('echo undo; false', when => 'failure'));
is_deeply([job_end($job)], ['failed step_failed', 'Step 2 (step 2) ended with exit status 5.'],
    'a step that may not fail still decides');
is(warned($job), 2, 'a failed job counts its warnings, too');
$job = run_steps('true', may('exit 1'), may('kill -KILL $$', name => 'more', when => 'always'));
is_deeply([job_end($job)], ['success -',
	'Step 2 (tidy) ended with exit status 1. Step 3 (more) was killed by signal 9 (Killed).'],
    'the detail names each step');
$job = run_steps('true', may('sleep 3000', timeout => 1), 'echo after');
is_deeply([job_end($job)], ['success -', 'Step 2 (tidy) timed out.'], 'a time limit is a warning, too');
$job = run_steps('true', may('true', directory => 'no/such'));
is(scalar job_end($job), 'success -', 'a missing directory is a warning, too');
$job = run_steps('true', may("#!/no/such\n"));
is(scalar job_end($job), 'success -', 'a missing interpreter is a warning, too');

# --- cancel
sub canceled {
	my (@steps) = @_;
	my $j = job_start(repository => $repo, grace => 30, cancel_grace => 20, steps => \@steps);
	ok(poll(20, sub { job_log($j) =~ /^up$/m }), 'a step is running');
	job_cancel($j);
	job_wait($j);
	return $j;
}
my $long = 'echo up; sleep 3000';
$job = canceled('true', step('echo undo', when => 'failure'), may($long), may('echo more'),
    step('echo cleanup', when => 'always'));
is_deeply([job_end($job)], ['success -', 'Step 3 (tidy) was canceled.'],
    'a cancel when only housekeeping is left does not take the success back');
is(job_steps($job), '0:success:0:- 1:skipped 2:canceled:-:15 3:skipped 4:success:0:-',
    'a cancel ends housekeeping, skips the rest of it and runs what always runs');
is(warned($job), 1, 'the canceled step is a warning');
$job = canceled('true', may($long), 'echo needed');
is(scalar job_end($job), 'canceled canceled_by_user',
    'a cancel before the last step that may not fail cancels');
$job = canceled(may($long));
is(scalar job_end($job), 'canceled canceled_by_user', 'a cancel before anything was achieved cancels');
$job = canceled('exit 4', may($long, when => 'always'));
is(scalar job_end($job), 'canceled canceled_by_user', 'a cancel after a failure does not make a success');
$job = canceled('true', may($long), step('exit 7', when => 'always'));
is(scalar job_end($job), 'canceled canceled_by_user',
    'a success that was canceled ends when a step that may not fail does');

# --- a job that is killed
sub killed {
	my (@steps) = @_;
	my $j = job_start(repository => $repo, steps => \@steps);
	ok(poll(20, sub { job_log($j) =~ /^up$/m }), 'a step is running');
	kill 'KILL', $j->{pid};
	job_wait($j);
	return (map { $_->[1] } grep { $_->[0] eq 'achieved' } job_result($j))[0];
}
$long = 'echo up; sleep 30';
is(killed('true', may($long), may('true')), '1 tidy', 'the result tells when only housekeeping is left');
is(killed('true', may($long), 'true'), undef, 'but not before');
is(killed('true', may($long), step('true', when => 'always')), undef, 'nor if a step must still run');
is(killed('true', may($long), step('true', when => 'failure')), '1 tidy',
    'what runs after a failure does not count');

done_testing();
