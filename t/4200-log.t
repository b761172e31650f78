#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The log of a job: its delay, masking, limit and cost.

use strict;
use warnings;
use Test::More;
use Time::HiRes qw(sleep time);
use Slipway::Spool;
use Slipway::Test;

my $mounts = own_mounts();
note(is_root() ? 'as root' : 'without root');
my $repo = make_repo(tempdir() . '/repo');
sub output { my ($job) = @_; my ($text) = job_log($job) =~ /^==> step 1: step 1\n(.*)/ms; return $text }
sub run_one { my ($script, %o) = @_; return job_run(repository => $repo, steps => [$script], %o) }

# --- delay
sub latest {
	my ($worst, $seen) = (0, 0);
	my $script = 'for i in 1 2 3 4 5; do'
	    . ' perl -MTime::HiRes=time -e \'$| = 1; printf "at %.3f\n", time\'; sleep 0.3; done';
	my $job = job_start(repository => $repo, steps => [$script]);
	poll(20, sub {
		while ((my @at = job_log($job) =~ /^at ([\d.]+)\n/mg) > $seen) {
			my $late = time - $at[$seen++];
			$worst = $late if $late > $worst;
		}
		return defined job_end($job);
	});
	job_wait($job);
	is($seen, 5, 'lines arrive one by one');
	return $worst;
}
my $worst = best_of(1, \&latest);
cmp_ok($worst, '<', deadline(1), sprintf 'a line is in the log after at most %.0f ms', $worst * 1000);

# --- masking
my $secret = 'tr0ub4dor&3 with blanks';
my $key = "-----BEGIN KEY-----\nMIIabcdefgh\nijklmnopqr\n-----END KEY-----";
my @secrets = ("PASS=$secret", "KEY=$key", 'PIN=123', 'OTHER=tr0ub4dor');
my $job = run_one(<<'END', secret => \@secrets, env => ['PLAIN=visible-value']);
echo "it is $PASS"
set -x
: "$PASS"
set +x
echo "$KEY"
echo "$KEY" | sed 's/^/> /'
printf %s "$PASS" | base64
for c in $(printf %s "$PASS" | sed 's/./&\n/g'); do :; done
printf %s "$PASS" | perl -ne '$| = 1; for (split //) { print; select undef, undef, undef, 0.005 }'
echo
echo "$PIN $PLAIN $OTHER"
echo "$PASS" >&2
printf 'last %s' "$OTHER"
END
my $text = output($job);
unlike($text, qr/\Q$secret\E|MIIabc|ijklmn|tr0ub4dor|BEGIN KEY/, 'the log contains no secret');
like($text, qr/^it is \*\*\*\n/m, 'a secret is replaced by ***');
# the first bytes of slow output, fewer than eight, may be shown
my $begun = join '|', map { quotemeta substr $secret, 0, $_ } 0 .. 7;
like($text, qr/^\*\*\*\n(?:$begun)\*\*\*\n123 visible-value \*\*\*\n\*\*\*\nlast \*\*\*$/m,
    'secrets are masked in every position');
like($text, qr/^> \*\*\*\n> \*\*\*\n> \*\*\*\n> \*\*\*\n/m,
    'each line of a secret with several lines is masked');
is(scalar job_end($job), 'success -', 'the step had all secrets');
$job = job_run(repository => $repo, secret => ["S=hush-hush"],
    steps => [{ name => 'say hush-hush', script => 'exit 3' }]);
unlike(job_log($job), qr/hush-hush/, 'a secret in the name of a step is masked');

# a possible beginning of a secret is not held back for long
my $go = tempdir() . '/go';
$job = job_start(repository => $repo, secret => ['S=go on? and more'],
    steps => ["printf 'go on? '; while ! test -e $go; do sleep 0.1; done; echo done"]);
ok(poll(20, sub { job_log($job) =~ /^==> step 1/m }), 'a step prints a prompt');
my $t = stopwatch();
ok(poll(20, sub { job_log($job) =~ /go on\? $/ }), 'a prompt that begins like a secret is shown');
cmp_ok($t->(), '<', deadline(10), 'such a prompt is shown soon');
spew($go, '');
job_wait($job);
$job = job_run(repository => $repo, secret => ['S=correct horse battery'],
    steps => ['printf "correct horse"; sleep 1; echo " battery"; printf "correct horse"; sleep 1; '
        . 'echo " ride"']);
like(output($job), qr/^\*\*\*\ncorrect horse ride\n/, 'a long part of a secret is held back across a pause');

# --- bytes are unchanged
my $bytes = join '', map { chr } 0 .. 255;
$job = run_one('perl -e \'binmode STDOUT; print map { chr } 0 .. 255\'');
ok(output($job) eq $bytes, 'any byte is unchanged');
$job = run_one("printf 'a\\r\\nb\\033[31mred'");
is(output($job), "a\r\nb\e[31mred", 'carriage returns and escapes are unchanged');
$job = run_one('seq 100000');
ok(output($job) eq join('', map { "$_\n" } 1 .. 100000), '100,000 lines are complete and in order');
$job = run_one('perl -e \'print "\n" x 100000\'');
is(length output($job), 100000, '100,000 empty lines are complete');

# --- the limit
for my $size (5000, 4096, 10000, 1 << 20) {
	# the text before the step counts towards the limit
	my $max = 4096;
	my $j = run_one("head -c $size /dev/zero | tr '\\0' x; echo >&2; exit 3", log_max => $max);
	my $log = job_log($j);
	my $before = index($log, "==> step 1: step 1\n") + length "==> step 1: step 1\n";
	my $cut = $before + $size + 1 + length("==> step 1 ended with exit status 3\n") - $max;
	my $want = substr($log, 0, $before) . 'x' x ($max - $before)
	    . "\n==> the log is full: $cut more bytes were cut\n";
	ok($log eq $want,
	    "$size bytes: the log is cut at its limit, and the last line has the number of cut bytes")
	    or diag(substr($log, -80), $cut);
	is(job_steps($j), '0:failed:3:-', "$size bytes: the step runs to its end");
}
my $probe = run_one('echo x');
my $exact = -s "$probe->{dir}/log";
for (0, -1) {
	my $j = run_one('echo x', log_max => $exact + $_);
	my $log = job_log($j);
	if ($_ == 0) { unlike($log, qr/were cut/, 'a log of exactly the limit is not cut') }
	else { like($log, qr/x\n==> the log is full: 1 more bytes were cut\n\z/,
	    'a log of one byte more is cut') }
}
my $capped = job_run(repository => $repo, log_max => 2048, steps => ['head -c 9999 /dev/zero']);
my ($ended) = grep { $_->[0] eq 'step-ended' } job_result($capped);
cmp_ok((split / /, $ended->[1])[5], '<=', 2048, "the position of a step's output is within the limit");

# --- a full disk
$job = job_start(spool => do {
	my $s = spool_make(repository => $repo, steps => ['seq 1000; echo ok >done']);
	unlink "$s->{dir}/log";
	symlink '/dev/full', "$s->{dir}/log" or die;
	$s;
});
is(job_wait($job), 0, 'a job with a full disk for its log ends');
is(scalar job_end($job), 'failed log_lost', 'a full disk for the log fails the job');
is(job_steps($job), '0:success:0:-', 'a full disk for the log does not fail the steps');
is(slurp("$job->{workspace}/done"), "ok\n", 'the steps run to their end on a full disk for the log');
SKIP: {
	my $small = tempdir() . '/small';
	mkdir $small;
	skip 'no file system can be mounted here', 3
	    if !$mounts || system("mount -t tmpfs -o size=64k none $small 2>/dev/null") != 0;
	my $spool = spool_make(root => $small, repository => $repo,
	    steps => ['true', 'true', 'echo 1 >done']);
	# the workspace is elsewhere, and the rest of the space is used up
	spew("$small/ballast", '') ;
	system("dd if=/dev/zero of=$small/ballast bs=4k 2>/dev/null");
	my $j = job_start(spool => $spool, workspace => tempdir() . '/ws-full',
	    home => tempdir() . '/home-full');
	ok(poll(20, sub { -e tempdir() . '/ws-full/done' }), 'the steps run on a full disk for the result');
	sleep 0.5;
	ok(!defined job_end($j), 'the end cannot be written on a full disk');
	unlink "$small/ballast";
	is(job_wait($j), 0, 'the job ends when there is space again');
	is(scalar job_end($j), 'failed log_lost', 'the result says that the log was lost');
	is(scalar(grep { $_->[0] eq 'step-ended' } job_result($j)), 3,
	    'no other record of the result is lost');
	delete $j->{control};
	system('umount', '-l', $small);
}

# --- cost
my $mb = $ENV{SLIPWAY_LONG} ? 1024 : 256;
for (["head -c ${mb}M /dev/zero", 'one line'], ["(yes || true) | head -c ${mb}M", 'short lines']) {
	my ($script, $what) = @$_;
	my $j = job_start(repository => $repo, steps => [$script],
	    secret => ['S=0123456789', 'T=yellow submarine'], log_max => 1 << 20);
	my $peak = 0;
	my $start = time;
	poll(600, sub {
		my ($rss) =
		    (slurp("/proc/$j->{pid}/status") || '') =~ /^Name:\s+slipway-job\n.*^VmHWM:\s+(\d+)/ms;
		$peak = $rss if $rss && $rss > $peak;
		return waitpid($j->{pid}, POSIX::WNOHANG()) == $j->{pid};
	});
	my $rate = $mb / (time - $start);
	is(scalar job_end($j), 'success -', "a step writes $mb MiB of $what");
	cmp_ok($peak, '<', $ENV{SLIPWAY_SANITIZED} ? 200000 : 16384,
	    "$mb MiB of $what need $peak KiB of memory");
	note(sprintf '%.0f MiB/s', $rate);
	cmp_ok(-s "$j->{dir}/log", '<', (1 << 20) + 100, "$mb MiB of $what: the log ends at its limit");
}

done_testing();
