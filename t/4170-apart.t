#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# What a job leaves in /tmp, /var/tmp, /dev/shm, in IPC of both kinds and among
# the keys of its account is gone when it is over, and other jobs cannot see it
# where the kernel can keep them apart.

use strict;
use warnings;
use POSIX ();
use Slipway::Monitor;
use Slipway::Spool;
use Slipway::Test;
use Test::More;

plan skip_all => 'without root steps share all of it with the account of the runner' if !is_root();
my $machine = (POSIX::uname())[4];
my ($mq_open, $add_key, $keyctl) = @{ { x86_64 => [240, 248, 250], aarch64 => [180, 217, 219] }->{$machine} || [] };
my $name = "slipway-t-apart-$$";
my @places = grep { -d } qw(/tmp /var/tmp /dev/shm);
my $elsewhere = "/run/slipway-t-$$";
mkdir $elsewhere, 0755 or die "$elsewhere: $!";
END { system 'rm', '-rf', '--', $elsewhere if defined $elsewhere && -d $elsewhere }

my $repo = "$elsewhere/repo";
run_cmd('sh', '-ec', "git init -q -b main '$repo'; cd '$repo';"
	. 'git config user.email a@example.org; git config user.name a;'
	. 'echo hello >file; git add .; git commit -qm first');
my $make = join "\n", 'set +e', (map { "mkdir -p $_/$name/deep/er; echo x >$_/$name/deep/file; mkfifo $_/$name/fifo; chmod 0 $_/$name/deep; echo x >$_/$name-file" } @places),
    'ipcmk -M 4096 >/dev/null && ipcmk -S 1 >/dev/null && ipcmk -Q >/dev/null && echo made-ipc',
    $mq_open ? "perl -e '\$n = qq($name); \$_ = syscall($mq_open, \$n, 0102, 0600, 0); print qq(queue ), (\$_ >= 0 ? 1 : 0), qq(\\n)'" : (),
    $keyctl ? "perl -e '(\$a, \$b, \$c) = qw(user slipway:left secret); print qq(key ), (syscall($add_key, \$a, \$b, \$c, 6, -4) > 0 ? 1 : 0), qq(\\n)'" : (),
    'true';
my $look = join "\n", 'set +e', (map { "test -e $_/$name-file && echo seen-in-$_" } @places),
    'echo "segments $(ipcs -m | grep -c ^0x) $(ipcs -s | grep -c ^0x) $(ipcs -q | grep -c ^0x)"',
    $mq_open ? "perl -e '\$n = qq($name); \$_ = syscall($mq_open, \$n, 02, 0, 0); print qq(queue-seen ), (\$_ >= 0 ? 1 : 0), qq(\\n)'" : (),
    $keyctl ? "perl -e '(\$a, \$b) = qw(user slipway:left); print qq(key-seen ), (syscall($keyctl, 10, -4, \$a, \$b, 0) > 0 ? 1 : 0), qq(\\n)'" : (),
    'true';

# On the host: of that user, or of that name.
sub left {
	my ($uid) = @_;
	my @left = grep { defined((lstat)[4]) } map { ("$_/$name", "$_/$name-file") } @places;
	for my $table (qw(shm sem msg)) {
		my ($head, @rows) = split /\n/, slurp("/proc/sysvipc/$table") || '';
		my @head = split ' ', $head || '';
		for (@rows) {
			my %row; @row{@head} = split ' ';
			push @left, "$table $_" if $row{uid} == $uid || $row{cuid} == $uid;
		}
	}
	return @left;
}

my @hosts = (
	['workspaces outside of /tmp', workspaces => "$elsewhere/workspaces"],
	['workspaces below /tmp'],
	['private_tmp = no', workspaces => "$elsewhere/shared", conf => "[runner]\nprivate_tmp = no\n"],
	['no namespaces', workspaces => "$elsewhere/plain", wrap => ['setpriv', '--bounding-set', '-sys_admin', '--inh-caps', '-sys_admin']],
);
for (@hosts) {
	my ($what, %o) = @$_;
	my $m = Slipway::Monitor->start(%o);
	my ($ipc, $tmp) = $m->log =~ /each job has (\S.*) and (\S.*)$/m;
	diag("$what: jobs have $ipc and $tmp");
	my $own_ipc = $ipc =~ /of its own/;
	my $own_tmp = $tmp =~ /of its own/;
	ok(!$own_tmp, "$what: /tmp is the host's") if $what ne 'workspaces outside of /tmp';
	ok(!$own_ipc, "$what: so is IPC") if $what eq 'no namespaces';
	my $uid = $m->{uid_first} + 7;
	my $maker = $m->job(repository => $repo, steps => [$make, $look, 'echo up; until test -e go; do sleep 0.05; done']);
	ok($m->started($maker) && poll(40, sub { job_log($maker) =~ /^up$/m }), 'a job makes things');
	my $log = job_log($maker);
	like($log, qr/^made-ipc$/m, 'System V IPC');
	like($log, $own_ipc ? qr/^queue 1$/m : qr/^queue 0$/m, $own_ipc ? 'a message queue' : 'but no message queue, which could not be found again') if $mq_open;
	like($log, qr/^key 1$/m, 'a key of its user') if $keyctl;
	like($log, qr/^seen-in-\Q$_\E$/m, "a file in $_, which its next step sees") for @places;
	like($log, qr/^segments 1 1 1$/m, 'as it sees its IPC, and nothing else') if $own_ipc;
	is(() = grep({ m{^/(?:var/)?tmp/} } left($uid)), $own_tmp ? 0 : 4, 'in /tmp of the host: ' . ($own_tmp ? 'nothing' : 'all of it'));
	is(scalar(grep { m{^/dev/shm} || / / } left($uid)), $own_ipc ? 0 : 5, 'in IPC and /dev/shm of the host: ' . ($own_ipc ? 'nothing' : 'all of it'));
	my $other = $m->job(repository => $repo, project => 8, dir => 'other', steps => [$look]);
	ok(defined $m->exited($other, 40), 'a job of another project looks for it');
	unlike(job_log($other), qr{^seen-in-/(?:var/)?tmp}m, 'and finds no file in /tmp') if $own_tmp;
	unlike(job_log($other), qr{^seen-in-/dev/shm}m, 'nor one in /dev/shm') if $own_ipc;
	like(job_log($other), qr/^segments 0 0 0$/m, 'nor IPC') if $own_ipc;
	like(job_log($other), qr/^queue-seen 0$/m, 'nor a queue') if $mq_open;
	spew("$m->{workspaces}/shop/go", '');
	ok(defined $m->exited($maker, 60), 'the job ends');
	is(scalar job_end($maker), 'success -', 'well');
	is_deeply([left($uid)], [], 'and nothing is left');
	ok(!-e "$m->{workspaces}/.home/$maker->{id}.1", 'not even its home');
	my $next = $m->job(repository => $repo, steps => [$look]);
	ok(defined $m->exited($next, 40), 'the next job of the project');
	unlike(job_log($next), qr/^seen-in/m, 'finds no file');
	like(job_log($next), qr/^key-seen 0$/m, 'nor a key') if $keyctl;
	like(job_log($next), qr/^uid|^==> step/m, 'and runs');
	is(scalar job_end($next), 'success -', 'well');

	# --- the same where the monitor is another by then
	my $orphan = $m->job(repository => $repo, steps => ["$make; echo up; sleep 600"]);
	ok($m->started($orphan) && poll(40, sub { job_log($orphan) =~ /^up$/m }), 'one that makes things again');
	$m->stop('KILL');
	$m = Slipway::Monitor->start(%o, dir => $m->{dir});
	$m->command("kill $orphan->{id} 1");
	ok(defined $m->exited($orphan, 60), 'is ended by the next monitor');
	is_deeply([left($uid)], [], 'and leaves nothing either');
	$m->stop;
}

done_testing;
