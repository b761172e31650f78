#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The demo chooses user ids for its steps that nothing else on the host uses.

use strict;
use warnings;
use File::Path qw(make_path);
use Slipway::DB;
use Slipway::Runner;
use Slipway::Test;
use Test::More;

# Runs the script in a shell with the functions of the demo.
sub shell {
	my ($script) = @_;
	my ($status, $out, $err) = run_cmd({ env => { top => srcdir(), uid => $> } }, 'bash', '-c',
	    "set -eu; say() { :; }; die() { echo \"\$*\" >&2; exit 9; }; . '" . srcdir()
	    . "/t/demo.sh'; $script");
	diag($err) if $err ne '';
	return wantarray ? ($status, $out) : $status == 0;
}
my ($status, $first) = shell('uids_pick; echo $uid_first');
is($status, 0, 'uids_pick finds a range');
chomp $first;
like($first, qr/^[78]\d{8}$/, 'the range is far from that of packages');
my %seen = map { $_ => 1 } map { (shell('uids_pick; echo $uid_first'))[1] } 1 .. 5;
cmp_ok(scalar keys %seen, '>', 1, 'uids_pick does not always choose the same range');
ok(!shell("uids_taken $first"), 'the range is free');
my ($account) = map { (split /:/)[2] } grep { !/^root:/ } split /\n/, slurp('/etc/passwd');
ok(shell("uids_taken $account"), 'a range with an account is taken');
if (is_root()) {
	my $in = $first + 1200; # the ids of the runner follow those of steps
	my $pid = start_process({ name => 'other' }, 'setpriv', '--reuid', $in, '--clear-groups', 'sleep',
	    '600');
	ok(poll(10, sub { (stat "/proc/$pid")[4] == $in }), 'a process runs under an id of the range');
	ok(shell("uids_taken $first"), 'a range with a process is taken');
	ok(!shell('uids_taken ' . ($first + 3000)), 'the next range is free');
	stop_process($pid);
	ok(!shell("uids_taken $first"), 'the range is free when the process has ended');
}
my $db = Slipway::DB->start;
$db->migrate;
my $runner = Slipway::Runner->start(db => $db);
SKIP: {
	skip 'without root there is no range', 3 if !is_root();
	my $own = $runner->{uid_first};
	ok(poll(20, sub { return scalar shell("uids_taken $own") }),
	    'the range of a runner is taken, though no job runs');
	ok(shell('uids_taken ' . ($own - 500)), 'a range that overlaps it is taken');
	ok(!shell('uids_taken ' . ($own - 1300)), 'a range before it is free');
}
$runner->stop;
done_testing();
