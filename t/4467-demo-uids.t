#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The demo gives its steps user ids that nothing else on the host has.

use strict;
use warnings;
use File::Path qw(make_path);
use Slipway::DB;
use Slipway::Runner;
use Slipway::Test;
use Test::More;

# Runs this in a shell that has the demo's functions.
sub shell {
	my ($script) = @_;
	my ($status, $out, $err) = run_cmd({ env => { top => srcdir(), uid => $> } }, 'bash', '-c',
	    "set -eu; say() { :; }; die() { echo \"\$*\" >&2; exit 9; }; . '" . srcdir() . "/t/demo.sh'; $script");
	diag($err) if $err ne '';
	return wantarray ? ($status, $out) : $status == 0;
}
my ($status, $first) = shell('uids_pick; echo $uid_first');
is($status, 0, 'a range is found');
chomp $first;
like($first, qr/^[78]\d{8}$/, 'far from the one that packages use');
my %seen = map { $_ => 1 } map { (shell('uids_pick; echo $uid_first'))[1] } 1 .. 5;
cmp_ok(scalar keys %seen, '>', 1, 'and not always the same');
ok(!shell("uids_taken $first"), 'it is free');
my ($account) = map { (split /:/)[2] } grep { !/^root:/ } split /\n/, slurp('/etc/passwd');
ok(shell("uids_taken $account"), 'a range with an account is not');
if (is_root()) {
	my $in = $first + 1200; # the runner's own are behind those of steps
	my $pid = start_process({ name => 'other' }, 'setpriv', '--reuid', $in, '--clear-groups', 'sleep', '600');
	ok(poll(10, sub { (stat "/proc/$pid")[4] == $in }), 'a process has an id of it');
	ok(shell("uids_taken $first"), 'then the range is taken');
	ok(!shell('uids_taken ' . ($first + 3000)), 'another one is not');
	stop_process($pid);
	ok(!shell("uids_taken $first"), 'until the process ends');
}
my $db = Slipway::DB->start;
$db->migrate;
my $runner = Slipway::Runner->start(db => $db);
SKIP: {
	skip 'no range without root', 3 if !is_root();
	my $own = $runner->{uid_first};
	ok(shell("uids_taken $own"), 'the range of a runner is taken, though no job runs');
	ok(shell('uids_taken ' . ($own - 500)), 'so is one that overlaps it');
	ok(!shell('uids_taken ' . ($own - 1300)), 'one before it is not');
}
$runner->stop;
done_testing();
