#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The harness of "check": a test that does not end is ended, with all that it started, and
# the run goes on; one that fails is repeated once, alone, and named if it passes then.

use strict;
use warnings;
use Slipway::Test;
use Test::More;

my $dir = tempdir();
mkdir "$dir/t" or die "$dir/t: $!";
my $fine = "use Test::More; ok(1, 'fine'); done_testing();\n";
my %tests = (
	'1-fine' => $fine,
	'2-flaky' => "use Test::More; ok(1, 'fine'); ok(-e '$dir/second', 'it passes when it is alone');\n"
	    . "open my \$f, '>', '$dir/second'; done_testing();\n",
	'3-dies' => "use Test::More; ok(1, 'fine'); exit 3 if !-e '$dir/third'; done_testing();\n"
	    . "END { open my \$f, '>', '$dir/third' }\n",
	'4-fails' => "use Test::More; ok(0, 'it never passes'); done_testing();\n",
	'5-hangs' => "use Test::More; ok(1, 'fine'); system 'setsid sleep 7531 &';\n"
	    . "if (!fork) { setpgrp; exec 'sleep', 7531 } \$SIG{TERM} = 'IGNORE'; sleep 600;\n",
);
spew("$dir/t/$_.t", $tests{$_}) for keys %tests;

sub runs {
	my (@names) = @_;
	unlink "$dir/second", "$dir/third";
	my ($status, $out, $err) = run_cmd({ cwd => $dir }, 'env', 'SLIPWAY_TEST_DEADLINE=3',
	    'PERL5LIB=' . srcdir() . '/t/lib', 'prove', '-PSlipway::Harness', '--harness=Slipway::Flaky',
	    '-j4', map { "t/$_.t" } @names);
	return ($status >> 8, $out, $err);
}
sub sleepers {
	return grep { (slurp("$_/cmdline") // '') eq "sleep\0007531\0" } glob '/proc/[0-9]*';
}

my ($status, $out, $err) = runs('1-fine', '2-flaky', '3-dies');
is($status, 0, 'a run whose failures pass when they are repeated passes') or diag($out, $err);
like($out, qr/^All tests successful\.\nFiles=3, Tests=4, .*\nResult: PASS\nflaky: /m,
    'the closing lines are those of the whole run');
like($out, qr{^flaky: t/2-flaky\.t \(not ok 2 - it passes when it is alone\)$}m,
    'a flaky test is named with the first line that failed');
like($out, qr{^flaky: t/3-dies\.t \(it ended with an error\)$}m, 'a test that died once is flaky, too');

($status, $out, $err) = runs('1-fine', '2-flaky', '4-fails');
is($status, 1, 'a run with a test that fails twice fails');
like($out, qr/^Result: FAIL\nflaky: /m, 'the closing lines say so');
like($out, qr{^t/4-fails\.t .*Failed: 1\)$}m, 'the test that failed twice is listed');
unlike($out, qr{^t/2-flaky\.t .*Failed: }m, 'a flaky test is not listed as failed');

($status, $out, $err) = runs('1-fine', '5-hangs');
is($status, 1, 'a run with a test that hangs fails');
like($out, qr{^t/1-fine\.t .* ok$}m, 'the other tests run');
like($err, qr{^# t/5-hangs\.t did not end within 3 s}m, 'the test that hangs is named');
is_deeply([sleepers()], [], 'nothing that it started is left');
done_testing();
