#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Kernel keyrings (keyrings(7)): the steps of a job share a session keyring that
# no other job has.

use strict;
use warnings;
use POSIX ();
use Slipway::Spool;
use Slipway::Test;
use Test::More;

my $machine = (POSIX::uname())[4];
my $number = { x86_64 => [248, 250], aarch64 => [217, 219] }->{$machine};
plan skip_all => "the system call numbers of $machine are unknown" if !$number;
my ($add_key, $keyctl) = @$number;
my $here = syscall $keyctl, 0, -3, 0;
plan skip_all => "the kernel has no keyrings: $!" if $here == -1;
note("session keyring of the test: $here");

my $repo = make_repo(tempdir() . '/repo');

# KEYCTL_GET_KEYRING_ID and KEYCTL_SEARCH on the session keyring.
my $show = "perl -e 'print qq(session ), syscall($keyctl, 0, -3, 0), qq(\\n)'";
my $add = "perl -e '(\$a, \$b, \$c) = qw(user slipway:test secret);"
    . " print qq(added ), (syscall($add_key, \$a, \$b, \$c, 6, -3) > 0), qq(\\n)'";
my $look = "perl -e '(\$a, \$b) = qw(user slipway:test);"
    . " print qq(found ), (syscall($keyctl, 10, -3, \$a, \$b, 0) > 0 ? 1 : 0), qq(\\n)'";

sub session { my ($job) = @_; return job_log($job) =~ /^session (-?\d+)$/mg }

my $uid = uid_for();
my $first = job_run(repository => $repo, uid => $uid, steps => ["$show; $add", "$show; $look"]);
is(scalar job_end($first), 'success -', 'a job that adds a key succeeds');
my @first = session($first);
like(job_log($first), qr/^added 1$/m, 'a step adds a key');
like(job_log($first), qr/^found 1$/m, 'the next step finds the key');
is($first[0], $first[1], 'both steps have the same session keyring');
isnt($first[0], $here, "the session keyring is not that of the job's parent");
for my $other (uid_for(), $uid) {
	my $what = 'another job of '
	    . (!is_root() || $other == $uid ? 'the same account' : 'another account');
	my $second = job_run(repository => $repo, uid => $other, steps => ["$show; $look"]);
	is(scalar job_end($second), 'success -', "$what succeeds");
	my ($session) = session($second);
	isnt($session, $first[0], "$what has another session keyring");
	isnt($session, $here, "$what does not have the session keyring of the job's parent");
	like(job_log($second), qr/^found 0$/m, "$what does not find the key");
}

# --- keys that outlive a session: the monitor removes them, so a step must not protect them
for my $case (['a keyring read-only', 5, '-4, 0x0b0b0000'], ['a keyring closed', 29, '-4, 0, 0']) {
	my ($what, $operation, $arguments) = @$case;
	my $job = job_run(repository => $repo, uid => $uid, steps =>
	    ["perl -e 'print qq(was ), syscall($keyctl, $operation, $arguments), qq( \$!\n)'"]);
	like(job_log($job), qr/^was -1 Operation not permitted$/m, "a step cannot make $what");
}

done_testing;
