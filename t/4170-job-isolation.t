#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# What a job leaves in /tmp, /var/tmp, /dev/shm, in System V and POSIX IPC and in
# the keyring of its account is removed when it ends, and other jobs cannot see it
# where the kernel can isolate jobs.

use strict;
use warnings;
use POSIX ();
use Slipway::Monitor;
use Slipway::Spool;
use Slipway::Test;
use Test::More;

plan skip_all => 'without root steps share IPC and /tmp with the account of the runner' if !is_root();
my $machine = (POSIX::uname())[4];
my ($mq_open, $add_key, $keyctl) = @{ { x86_64 => [240, 248, 250], aarch64 => [180, 217, 219] }->{$machine}
    || [] };
my $name = "slipway-t-apart-$$";
# a new chroot has a /dev/shm that only root can write to
my @places = grep { -d && (stat _)[2] & 02 } qw(/tmp /var/tmp /dev/shm);
my $objects = 3 + 2 * grep { $_ eq '/dev/shm' } @places;
my $elsewhere = "/run/slipway-t-$$";
mkdir $elsewhere, 0755 or die "$elsewhere: $!";
END { system 'rm', '-rf', '--', $elsewhere if defined $elsewhere && -d $elsewhere }

my $repo = make_repo("$elsewhere/repo");
my $keep = $keyctl
    ? "perl -e '(\$a, \$b, \$c) = qw(user slipway:left secret); print qq(key ), (syscall($add_key, \$a, \$b, "
    . "\$c, 6, -4) > 0 ? 1 : 0), qq(\\n)'" : '';
my $make = join "\n", 'set +e',
    (map { "mkdir -p $_/$name/deep/er; echo x >$_/$name/deep/file; mkfifo $_/$name/fifo; "
    . "chmod 0 $_/$name/deep; echo x >$_/$name-file" } @places),
    'ipcmk -M 4096 >/dev/null && ipcmk -S 1 >/dev/null && ipcmk -Q >/dev/null && echo made-ipc',
    $mq_open
    ? "perl -e '\$n = qq($name); \$_ = syscall($mq_open, \$n, 0102, 0600, 0); print qq(queue ), "
    . "(\$_ >= 0 ? 1 : 0), qq(\\n)'" : (),
    $keep || 'true';
my $look = join "\n", 'set +e', (map { "test -e $_/$name-file && echo seen-in-$_" } @places),
    'echo "segments $(ipcs -m | grep -c ^0x) $(ipcs -s | grep -c ^0x) $(ipcs -q | grep -c ^0x)"',
    $mq_open
    ? "perl -e '\$n = qq($name); \$_ = syscall($mq_open, \$n, 02, 0, 0); print qq(queue-seen ), "
    . "(\$_ >= 0 ? 1 : 0), qq(\\n)'" : (),
    $keyctl
    ? "perl -e '(\$a, \$b) = qw(user slipway:left); print qq(key-seen ), (syscall($keyctl, 10, -4, \$a, \$b, "
    . "0) > 0 ? 1 : 0), qq(\\n)'" : (),
    'true';

# Returns the files and IPC objects that the account or the name left on the host.
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

# Whether the kernel has keyrings of the account.
sub has_keyrings { my ($uid) = @_; return slurp('/proc/key-users') =~ /^ *$uid:/m }

my @hosts = (
	['workspaces outside of /tmp', workspaces => "$elsewhere/workspaces"],
	['workspaces below /tmp'],
	['private_tmp = no', workspaces => "$elsewhere/shared", conf => "[runner]\nprivate_tmp = no\n"],
	['no namespaces', workspaces => "$elsewhere/plain",
	    wrap => ['setpriv', '--bounding-set', '-sys_admin', '--inh-caps', '-sys_admin']],
);
for (@hosts) {
	my ($what, %o) = @$_;
	my $m = Slipway::Monitor->start(%o);
	my ($ipc, $tmp) = $m->log =~ /each job has (\S.*) and (\S.*)$/m;
	diag("$what: jobs have $ipc and $tmp");
	my $own_ipc = $ipc =~ /private/;
	my $own_tmp = $tmp =~ /private/;
	ok(!$own_tmp, "$what: jobs share /tmp of the host") if $what ne 'workspaces outside of /tmp';
	ok(!$own_ipc, "$what: jobs share IPC of the host") if $what eq 'no namespaces';
	my $uid = $m->{uid_first} + 7;
	my $maker = $m->job(repository => $repo,
	    steps => [$make, $look, 'echo up; until test -e go; do sleep 0.1; done']);
	ok($m->started($maker) && poll(40, sub { job_log($maker) =~ /^up$/m }),
	    "$what: a job creates files, IPC objects and a key");
	my $log = job_log($maker);
	like($log, qr/^made-ipc$/m, "$what: a job creates System V IPC objects");
	like($log, $own_ipc ? qr/^queue 1$/m : qr/^queue 0$/m, "$what: a job "
	    . ($own_ipc ? 'creates a message queue'
	    : 'cannot create a message queue, which could not be found'))
	    if $mq_open;
	like($log, qr/^key 1$/m, "$what: a job creates a key of its account") if $keyctl;
	like($log, qr/^seen-in-\Q$_\E$/m, "$what: the next step sees the file in $_") for @places;
	like($log, qr/^segments 1 1 1$/m, "$what: a job sees its own IPC objects alone") if $own_ipc;
	is(() = grep({ m{^/(?:var/)?tmp/} } left($uid)), $own_tmp ? 0 : 4,
	    "$what: /tmp of the host has " . ($own_tmp ? 'no' : 'all') . ' files of the job');
	is(scalar(grep { m{^/dev/shm} || / / } left($uid)), $own_ipc ? 0 : $objects,
	    "$what: IPC and /dev/shm of the host have " . ($own_ipc ? 'no' : 'all') . ' objects of the job');
	my $other = $m->job(repository => $repo, project => 8, dir => 'other', steps => [$look]);
	ok(defined $m->exited($other, 40), "$what: a job of another project ends");
	unlike(job_log($other), qr{^seen-in-/(?:var/)?tmp}m,
	    "$what: a job of another project sees no file in /tmp") if $own_tmp;
	unlike(job_log($other), qr{^seen-in-/dev/shm}m,
	    "$what: a job of another project sees no file in /dev/shm") if $own_ipc;
	like(job_log($other), qr/^segments 0 0 0$/m,
	    "$what: a job of another project sees no System V IPC object") if $own_ipc;
	like(job_log($other), qr/^queue-seen 0$/m, "$what: a job of another project sees no message queue")
	    if $mq_open;
	spew("$m->{workspaces}/shop/go", '');
	ok(defined $m->exited($maker, 60), "$what: the job ends");
	is(scalar job_end($maker), 'success -', "$what: the job succeeds");
	is_deeply([left($uid)], [], "$what: no object of the job is left");
	ok(!-e "$m->{workspaces}/.home/$maker->{id}.1", "$what: the home of the job is removed");
	if ($keep) {
		# its home is empty, so the monitor may remove it without a process of the account
		my $keeper = $m->job(repository => $repo, steps => [$keep]);
		ok(defined $m->exited($keeper, 60), "$what: a job that leaves only a key ends");
		like(job_log($keeper), qr/^key 1$/m, "$what: the job that leaves only a key has created it");
		ok(!-e "$m->{workspaces}/.home/$keeper->{id}.1",
		    "$what: the home of the job that leaves only a key is removed");
		my $seeker = $m->job(repository => $repo, steps => [$look]);
		ok(defined $m->exited($seeker, 60), "$what: the next job of the account ends");
		like(job_log($seeker), qr/^key-seen 0$/m, "$what: the next job of the account finds no key");
	}
	if ($keyctl && -e '/proc/key-users' && length slurp('/proc/key-users') < 3000) {
		# a kept keyring with the session keyring in it: one key of the account
		my $own = join "\n", "perl -e '\$p = syscall($keyctl, 22, -1, -2);"
		    . " print qq(linked ), syscall($keyctl, 8, -3, \$p), qq(\\n)'",
		    'for i in $(seq 100); do grep -Eq "^ *$(id -u): +[0-9]+ 1/" /proc/key-users && break;'
		    . ' sleep 0.1; done';
		my $count = "perl -e '\$p = syscall($keyctl, 22, -1, -2); \$b = qq(\\0) x 64;"
		    . " print qq(kept ), syscall($keyctl, 11, \$p, \$b, 64), qq(\\n)'";
		for (['linked', $own, qr/^linked 0$/m], ['kept', $count, qr/^kept 0$/m]) {
			my ($name, $step, $re) = @$_;
			my $job = $m->job(repository => $repo, project => 10, dir => 'kept',
				steps => [$step]);
			ok(defined $m->exited($job, 60), "$what: the job ends: $name");
			like(job_log($job), $re, "$what: its result is as it must be: $name");
		}
		my $plain = $m->job(repository => $repo, project => 9, dir => 'plain', steps => ['true']);
		ok(defined $m->exited($plain, 40), "$what: a job without keys ends");
		ok(poll(20, sub { !has_keyrings($m->{uid_first} + 9) }),
		    "$what: a job without keys leaves no keyring of its account");
	}
	my $next = $m->job(repository => $repo, steps => [$look]);
	ok(defined $m->exited($next, 40), "$what: the next job of the project ends");
	unlike(job_log($next), qr/^seen-in/m, "$what: the next job of the project sees no file");
	like(job_log($next), qr/^key-seen 0$/m, "$what: the next job of the project sees no key") if $keyctl;
	like(job_log($next), qr/^uid|^==> step/m, "$what: the next job of the project runs");
	is(scalar job_end($next), 'success -', "$what: the next job of the project succeeds");

	# --- the same after a restart of the monitor
	my $orphan = $m->job(repository => $repo, steps => ["$make; echo up; sleep 600"]);
	ok($m->started($orphan) && poll(40, sub { job_log($orphan) =~ /^up$/m }),
	    "$what: another job creates objects");
	$m->stop('KILL');
	$m = Slipway::Monitor->start(%o, dir => $m->{dir});
	$m->command("kill $orphan->{id} 1");
	ok(defined $m->exited($orphan, 60), "$what: the next monitor ends that job");
	is_deeply([left($uid)], [], "$what: a job ended by the next monitor leaves no object");
	$m->stop;
}

done_testing;
