#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Keys of the kernel (keyrings(7)): the steps of a job share a session keyring,
# which no other job has.

use strict;
use warnings;
use POSIX ();
use Slipway::Spool;
use Slipway::Test;
use Test::More;

my $machine = (POSIX::uname())[4];
my $number = { x86_64 => [248, 250], aarch64 => [217, 219] }->{$machine};
plan skip_all => "the numbers of the system calls on $machine are not known here" if !$number;
my ($add_key, $keyctl) = @$number;
my $here = syscall $keyctl, 0, -3, 0;
plan skip_all => "the kernel offers no keys: $!" if $here == -1;
note("session keyring of the test: $here");

my $repo = tempdir() . '/repo';
run_cmd('sh', '-ec', "git init -q -b main '$repo'; cd '$repo';"
	. 'git config user.email a@example.org; git config user.name a;'
	. 'echo hello >file; git add .; git commit -qm first');

# KEYCTL_GET_KEYRING_ID of the session's; KEYCTL_SEARCH in it.
my $show = "perl -e 'print qq(session ), syscall($keyctl, 0, -3, 0), qq(\\n)'";
my $add = "perl -e '(\$a, \$b, \$c) = qw(user slipway:test secret); print qq(added ), (syscall($add_key, \$a, \$b, \$c, 6, -3) > 0), qq(\\n)'";
my $look = "perl -e '(\$a, \$b) = qw(user slipway:test); print qq(found ), (syscall($keyctl, 10, -3, \$a, \$b, 0) > 0 ? 1 : 0), qq(\\n)'";

sub session { my ($job) = @_; return job_log($job) =~ /^session (-?\d+)$/mg }

my $uid = uid_for();
my $first = job_run(repository => $repo, uid => $uid, steps => ["$show; $add", "$show; $look"]);
is(scalar job_end($first), 'success -', 'a job that adds a key');
my @first = session($first);
like(job_log($first), qr/^added 1$/m, 'can do so');
like(job_log($first), qr/^found 1$/m, 'and its next step finds the key');
is($first[0], $first[1], 'in the keyring that both steps have');
isnt($first[0], $here, "which is not that of the job's parent");
for my $other (uid_for(), $uid) {
	my $second = job_run(repository => $repo, uid => $other, steps => ["$show; $look"]);
	is(scalar job_end($second), 'success -', 'another job, ' . (!is_root() || $other == $uid ? 'of the same account' : 'of another account'));
	my ($session) = session($second);
	isnt($session, $first[0], 'has another session keyring');
	isnt($session, $here, "which is not that of the job's parent either");
	like(job_log($second), qr/^found 0$/m, 'and does not find the key');
}

done_testing;
