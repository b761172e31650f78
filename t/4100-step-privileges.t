#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The environment of a step: its ids, limits, descriptors and variables, and what
# is out of its reach.

use strict;
use warnings;
use Test::More;
use Slipway::Spool;
use Slipway::Test;

note(is_root() ? 'as root: steps run under their own uid' : 'without root: steps run under the same uid');
my $repo = make_repo(tempdir() . '/repo');

# Markers separate the parts that are compared.
my $script = <<'END';
id
echo "umask $(umask)"
grep -E '^(Uid|Gid|Groups|CapInh|CapPrm|CapEff|CapAmb|NoNewPrivs|SigBlk|SigIgn):' /proc/self/status
ls -l /proc/self/fd | sed -n 's/.* \([0-9]*\) -> \([^:]*\).*/\1 \2/p' | grep -v /proc/
echo "core $(ulimit -c) files $(ulimit -n) procs $(ulimit -u) fsize $(ulimit -f)"
echo "session $(ps -o sid= -p $$ | tr -d ' ') is $$"
echo "tty $(ps -o tty= -p $$)"
stat -c '%a %u' "$HOME" "$HOME/slipway-step"
pwd
END
my %golden = (steps => [$script, 'env -0 | sort -z | tr "\0" "\n"'],
	repository => $repo, branch => 'main', project => 42,
	project_name => 'The Shop', pipeline_name => 'to production',
	env => ['MODE=fast', "MULTI=a\nb", 'PATH=/evil', 'SLIPWAY_COMMIT=fake', 'EMPTY='],
	secret => ['TOKEN=hush-hush']);
$ENV{LEAK} = 'from the monitor';
$ENV{GIT_SSH_COMMAND} = 'false';
my $job = job_start(%golden, limits => ['-n', 256, '-p', 200, '-f', 1 << 30]);
is(job_wait($job), 0, 'the job succeeds');
my $uid = is_root() ? $job->{uid} : $>;
my ($gid) = is_root() ? $uid : $) =~ /^(\d+)/;
my $log = job_log($job);
# A process started by posix_spawn(3) ignores glibc's two internal signals, which
# glibc does not allow to reset.
$log =~ s/^SigIgn:\t\K0000000180000000$/0000000000000000/m;
my ($commit) = $log =~ /at commit ([0-9a-f]{40})/;
if (is_root()) {
	my $want = <<"END";
==> checkout of $repo
==> at commit $commit
==> step 1: step 1
uid=$uid gid=$uid groups=$uid
umask 0022
Uid:\t$uid\t$uid\t$uid\t$uid
Gid:\t$uid\t$uid\t$uid\t$uid
Groups:\t$uid 
SigBlk:\t0000000000000000
SigIgn:\t0000000000000000
CapInh:\t0000000000000000
CapPrm:\t0000000000000000
CapEff:\t0000000000000000
CapAmb:\t0000000000000000
NoNewPrivs:\t1
0 /dev/null
1 pipe
2 pipe
core 0 files 256 procs 200 fsize 1048576
END
	is(substr($log, 0, length $want), $want,
	    'a step has the expected ids, capabilities, signals, descriptors and limits');
} else {
	like($log, qr/^NoNewPrivs:\t1$/m, 'a step can gain no privileges');
	like($log, qr/^0 \/dev\/null\n1 pipe\n2 pipe\ncore 0 files 256 procs 200/m,
	    'a step has the expected descriptors and limits');
}
like($log, qr/^session (\d+) is \1$/m, 'a step has its own session');
like($log, qr/^tty \?$/m, 'a step has no terminal');
like($log, qr/^700 $uid\n700 $uid\n\Q$job->{workspace}\E$/m, 'a step has a private home and its workspace');
my ($env) = $log =~ /==> step 2: step 2\n(.*)/s;
is($env, <<"END", 'a step has exactly the documented environment');
CI=true
EMPTY=
HOME=$job->{home}
LANG=C.UTF-8
MODE=fast
MULTI=a
b
PATH=/usr/local/bin:/usr/bin:/bin
PWD=$job->{workspace}
SHELL=/bin/bash
SHLVL=1
SLIPWAY_BRANCH=main
SLIPWAY_COMMIT=$commit
SLIPWAY_DEPLOYMENT_ID=$job->{id}
SLIPWAY_PIPELINE=to production
SLIPWAY_PROJECT=The Shop
SLIPWAY_PROJECT_ID=42
SLIPWAY_REPOSITORY=$repo
SLIPWAY_WORKSPACE=$job->{workspace}
TOKEN=***
_=/usr/bin/env
END

# --- out of reach
my $other = job_start(repository => $repo, steps => ['umask 077; echo mine >own; echo up; sleep 60']);
ok(poll(20, sub { job_log($other) =~ /^up$/m }), 'another job is running');
my $secret = tempdir() . '/slipway.conf';
spew($secret, "password = of the database\n", 0600);
my @tries = (
	['sudo -n id -u', 'sudo'],
	['su -c id root </dev/null', 'su'],
	['cat /proc/$PPID/environ', 'the environment of its job'],
	['cat /proc/$PPID/mem', 'the memory of its job'],
	['ls -l /proc/$PPID/fd/', 'the descriptors of its job'],
	['cat /proc/$PPID/fd/3', 'the description of its job'],
	['echo forged >>/proc/$PPID/fd/5', 'the result of its job'],
	['cat /proc/1/environ', 'the environment of init'],
	['unshare -m true', 'a mount namespace'],
	['mount -t tmpfs none /mnt', 'a mount'],
	['chroot / id', 'chroot'],
	['chown 0 file', 'chown'],
	['cp /bin/sh rootsh && chmod 4755 rootsh && ./rootsh -p -c \'[ $(id -u) = 0 ]\'', 'a setuid copy'],
	['nice -n -5 true 2>&1 | grep -v cannot', 'a higher priority'],
	['ulimit -n 4096', 'a higher limit of files'],
	['ulimit -u 4096', 'a higher limit of processes'],
	['ulimit -c 100', 'a core file'],
	['mknod disk b 8 0', 'a device file'],
	['perl -e \'$< = 0; $> = 0; exit($> != 0)\'', 'setuid'],
	is_root() ? (
		["cat '$secret'", 'the configuration'],
		["kill -9 $other->{pid}", 'the job of another project'],
		["cat '$other->{workspace}/own'", 'the workspace of another project'],
		["ls '$other->{home}'", 'the home of another project'],
		["ls '$job->{dir}/job' && cat '$job->{dir}/job'", 'the spool'],
		['kill -0 1', 'init'],
	) : (),
);
my @steps = map { { script => "if ( $_->[0] ) >/dev/null 2>&1; then echo 'REACHED $_->[1]'; fi",
    when => 'always' } } @tries;
my $spy = job_run(repository => $repo, steps => \@steps, limits => ['-n', 256, '-p', 200]);
$log = job_log($spy);
unlike($log, qr/REACHED \Q$_->[1]\E/, "a step cannot reach: $_->[1]") for @tries;
is(scalar job_end($spy), 'success -', 'all attempts ran');
ok(kill(0, $other->{pid}), 'the other job survives');
kill 'KILL', $other->{pid};
job_wait($other);

# --- rejected jobs
if (is_root()) {
	my $root = job_start(repository => $repo, uid => 0, steps => ['id -u'],
		limits => []);
	isnt(job_wait($root), 0, 'a job does not run as root');
	is(scalar job_end($root), 'failed runner_error', 'the result of a job as root is an error');
	unlike(job_log($root), qr/^0$/m, 'no step runs as root');
}
my $first = job_start(repository => $repo, steps => ['echo up; sleep 30']);
ok(poll(20, sub { job_log($first) =~ /^up$/m }), 'a job holds its lock');
my $second = job_start(spool => { map { $_ => $first->{$_} } qw(dir id epoch) },
	workspace => "$first->{workspace}2", home => "$first->{home}2");
is(job_wait($second) >> 8, 75, 'a second job on the same spool directory exits at once');
ok(!defined job_end($first), 'the second job writes no result');
kill 'KILL', $first->{pid};
job_wait($first);
for (['no end record', "deployment 1\n5\n"], ['garbage', "hello\n"], ['', 'empty'],
    ['unknown record', "deployment 1\n5\nnonsense 1\nx\nend 0\n\n"],
    ['an invalid number', "deployment 1\nx\nend 0\n\n"],
    ['a step without a name', "step-script 4\ntrue\nend 0\n\n"],
    ['a name with a space', "env 5\nA B=c\nend 0\n\n"],
    ['missing records', "deployment 1\n5\nend 0\n\n"]) {
	my ($what, $raw) = @$_;
	my $bad = job_run(raw => $raw);
	isnt($bad->{status}, 0, "an invalid description is rejected: $what");
	is(scalar job_end($bad), 'failed runner_error', "an invalid description writes a result: $what");
}
for ([], ['-i', '1.1'], ['-u', 'root'], ['-u', '-1'], ['-Z']) {
	my ($status) = run_cmd(program('slipway-job'), @$_);
	isnt($status, 0, "invalid arguments are rejected: @$_");
}

done_testing();
