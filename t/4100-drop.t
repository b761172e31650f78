#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# What a step is: its ids, its limits, its descriptors, its environment; and
# what it cannot reach.

use strict;
use warnings;
use Test::More;
use Slipway::Spool;
use Slipway::Test;

note(is_root() ? 'as root: dropped to a user id of its own' : 'without root: nothing to drop');
my $repo = tempdir() . '/repo';
run_cmd('sh', '-ec', "git init -q -b main '$repo'; cd '$repo';"
	. 'git config user.email a@example.org; git config user.name a;'
	. 'echo hello >file; git add .; git commit -qm first');

# Marks stand round what is compared.
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
is(job_wait($job), 0, 'the job ends well');
my $uid = is_root() ? $job->{uid} : $>;
my ($gid) = is_root() ? $uid : $) =~ /^(\d+)/;
my $log = job_log($job);
# What posix_spawn(3) starts ignores glibc's own two signals, which glibc lets
# nobody set back.
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
	is(substr($log, 0, length $want), $want, 'ids, capabilities, signals, descriptors and limits');
} else {
	like($log, qr/^NoNewPrivs:\t1$/m, 'no way to more rights');
	like($log, qr/^0 \/dev\/null\n1 pipe\n2 pipe\ncore 0 files 256 procs 200/m, 'descriptors and limits');
}
like($log, qr/^session (\d+) is \1$/m, 'a session of its own');
like($log, qr/^tty \?$/m, 'without a terminal');
like($log, qr/^700 $uid\n700 $uid\n\Q$job->{workspace}\E$/m, 'a private home, its workspace');
my ($env) = $log =~ /==> step 2: step 2\n(.*)/s;
is($env, <<"END", 'the environment, all of it');
CI=true
EMPTY=
HOME=$job->{home}
LANG=C.UTF-8
MODE=fast
MULTI=a
b
PATH=/usr/local/bin:/usr/bin:/bin
PWD=$job->{workspace}
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

# --- what is out of reach
my $other = job_start(repository => $repo, steps => ['umask 077; echo mine >own; echo up; sleep 60']);
ok(poll(20, sub { job_log($other) =~ /^up$/m }), 'another job is running');
my $secret = tempdir() . '/slipway.conf';
spew($secret, "password = of the database\n", 0600);
my @tries = (
	['sudo -n id -u', 'sudo'],
	['su -c id root </dev/null', 'su'],
	['cat /proc/$PPID/environ', 'the environment of the job'],
	['cat /proc/$PPID/mem', 'its memory'],
	['ls -l /proc/$PPID/fd/', 'its descriptors'],
	['cat /proc/$PPID/fd/3', 'its description'],
	['echo forged >>/proc/$PPID/fd/5', 'its result'],
	['cat /proc/1/environ', 'the environment of init'],
	['unshare -m true', 'a mount namespace'],
	['mount -t tmpfs none /mnt', 'a mount'],
	['chroot / id', 'chroot'],
	['chown 0 file', 'chown'],
	['cp /bin/sh rootsh && chmod 4755 rootsh && ./rootsh -p -c \'[ $(id -u) = 0 ]\'', 'a setuid copy'],
	['nice -n -5 true 2>&1 | grep -v cannot', 'a better priority'],
	['ulimit -n 4096', 'more files'],
	['ulimit -u 4096', 'more processes'],
	['ulimit -c 100', 'core files'],
	['mknod disk b 8 0', 'a device'],
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
my @steps = map { { script => "if ( $_->[0] ) >/dev/null 2>&1; then echo 'REACHED $_->[1]'; fi", when => 'always' } } @tries;
my $spy = job_run(repository => $repo, steps => \@steps, limits => ['-n', 256, '-p', 200]);
$log = job_log($spy);
unlike($log, qr/REACHED \Q$_->[1]\E/, "out of reach: $_->[1]") for @tries;
is(scalar job_end($spy), 'success -', 'all of it was tried');
ok(kill(0, $other->{pid}), 'the other job runs on');
kill 'KILL', $other->{pid};
job_wait($other);

# --- a job that is not let run
if (is_root()) {
	my $root = job_start(repository => $repo, uid => 0, steps => ['id -u'],
		limits => []);
	isnt(job_wait($root), 0, 'no job runs as root');
	is(scalar job_end($root), 'failed runner_error', 'and the result says so');
	unlike(job_log($root), qr/^0$/m, 'no step did');
}
my $first = job_start(repository => $repo, steps => ['echo up; sleep 30']);
ok(poll(20, sub { job_log($first) =~ /^up$/m }), 'a job holds its lock');
my $second = job_start(spool => { map { $_ => $first->{$_} } qw(dir id epoch) },
	workspace => "$first->{workspace}2", home => "$first->{home}2");
is(job_wait($second) >> 8, 75, 'a second one on the same spool ends at once');
ok(!defined job_end($first), 'and writes nothing');
kill 'KILL', $first->{pid};
job_wait($first);
for (['no end', "deployment 1\n5\n"], ['garbage', "hello\n"], ['', 'empty'],
    ['unknown record', "deployment 1\n5\nnonsense 1\nx\nend 0\n\n"],
    ['a number that is none', "deployment 1\nx\nend 0\n\n"],
    ['a step without a name', "step-script 4\ntrue\nend 0\n\n"],
    ['a name with a blank', "env 5\nA B=c\nend 0\n\n"],
    ['records missing', "deployment 1\n5\nend 0\n\n"]) {
	my ($what, $raw) = @$_;
	my $bad = job_run(raw => $raw);
	isnt($bad->{status}, 0, "refused description: $what");
	is(scalar job_end($bad), 'failed runner_error', 'with a result');
}
for ([], ['-i', '1.1'], ['-u', 'root'], ['-u', '-1'], ['-Z']) {
	my ($status) = run_cmd(program('slipway-job'), @$_);
	isnt($status, 0, "refused arguments: @$_");
}

done_testing();
